#!/usr/bin/env python3
"""A terminal for a scenario: runs a command on a pseudo terminal and follows a script.

term.py [--size ROWSxCOLS] STEP... -- COMMAND...
Steps, each with a deadline of 60 s:
  expect:REGEX   until the output since the last match has it
  send:TEXT      type it (Python escapes: \\r, \\x03)
  resize:RxC     another size, with SIGWINCH
  kill           SIGKILL to the command
  end            until the command ends
Prints the output. The status is the command's, or 99 if a step's deadline passed. The last line on
stderr is "termios same" or "termios differ": the terminal's modes before and after.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

DEADLINE = 60


def set_size(fd, text):
    rows, cols = map(int, text.split("x"))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Terminal:
    def __init__(self, argv, size):
        self.seen, self.at, self.status = b"", 0, None
        self.master, self.slave = pty.openpty()
        set_size(self.master, size)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.closerange(3, 1000)
            os.execvp(argv[0], argv)

    def pump(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                pass
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status

    def until(self, done):
        end = time.monotonic() + DEADLINE
        while not done():
            if time.monotonic() > end:
                sys.stderr.write("term.py: deadline\n")
                return False
            self.pump(0.05)
        return True

    def matches(self, regex):
        m = re.search(regex.encode(), self.seen[self.at :], re.S)
        if m:
            self.at += m.end()
        return bool(m)

    def step(self, text):
        word, _, arg = text.partition(":")
        if word == "expect":
            return self.until(lambda: self.matches(arg))
        if word == "send":
            os.write(self.master, arg.encode().decode("unicode_escape").encode("latin-1"))
        elif word == "resize":
            set_size(self.master, arg)
        elif word == "kill":
            os.kill(self.pid, signal.SIGKILL)
        elif word == "end":
            return self.until(lambda: self.status is not None)
        else:
            sys.exit(f"term.py: what is '{text}'?")
        return True

    def settled(self):
        """The watcher puts the modes back a moment after a kill."""
        end = time.monotonic() + 5
        while termios.tcgetattr(self.slave) != self.before and time.monotonic() < end:
            time.sleep(0.02)
        return termios.tcgetattr(self.slave) == self.before


def main():
    args, size = sys.argv[1:], "24x80"
    if args[0] == "--size":
        size, args = args[1], args[2:]
    cut = args.index("--")
    t = Terminal(args[cut + 1 :], size)
    good = all(t.step(s) for s in args[:cut])
    if not good:
        os.kill(t.pid, signal.SIGKILL)
        t.until(lambda: t.status is not None)
    same = t.settled()
    while select.select([t.master], [], [], 0)[0]:
        n = len(t.seen)
        t.pump(0)
        if len(t.seen) == n:
            break
    sys.stdout.buffer.write(t.seen)
    sys.stdout.flush()
    sys.stderr.write(f"termios {'same' if same else 'differ'}\n")
    if not good:
        sys.exit(99)
    sys.exit(os.waitstatus_to_exitcode(t.status) & 0xFF)


main()
