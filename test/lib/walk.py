#!/usr/bin/env python3
"""Type every command of a page of docs/, as a reader would, in a world of its own.

walk.py [--count FILE] PAGE...

A page is what stands in its fences, from top to bottom:

    sh               each complete command of bash is typed; its status has to be 0
    console          "$ command", and below it what is printed: line by line; … stands for anything within a line, alone for any lines, and blanks are
                     all one. The status has to be 0; but not if what is printed begins like an error: "bac: " (without "warning: " or "note: "), "curl: ",
                     "Denied: ", ...; then it must be another
    yaml NAME        (or another language; sh file=NAME) the block is written to that file. Without NAME it is shown
    sh agents        typed where AGENTS names the page's agent (docs/agents/NAME.md) or any; else skipped
    sh needs=WORD    typed where the machine has it: NEEDS; else skipped
    text             shown, as are tables and words in a line

A fence of no or of another language, and indented code, are faults: the page is refused.

The world: HOME, the XDG directories and a cache with the default template and the kernels of the machine are the page's own; commands run in one bash,
which begins in ~/src/web, a git repository. test/docs/PAGE.sh, if there is one, is sourced before: it makes what the page supposes, and says what is typed at
prompts (page.sh says how). Nothing of what a page says is edited. Pages print rows of TAP; PAGES="network kits" in the environment restricts them.
"""
import argparse
import codecs
import fcntl
import fnmatch
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
SHOWN = {"text", "yaml", "json", "toml", "ini", "dockerfile", "python", "make", "diff", "sh", "markdown"}
NEEDS = {
    "internet": (lambda: "INTERNET" in os.environ, "it needs the Internet: INTERNET=1 says that it is there"),
    "tree": (lambda: "TREE" in os.environ, "it builds or tests the whole tree, as ./check does; TREE=1 has it typed"),
    "root": (lambda: os.geteuid() == 0, "it is for root"),
}
# lines that depend on the machine, and are no part of what a page shows
NOISE = re.compile(r"^bac: (.*: )?(no KVM|note: this machine is emulated|.*\bemulat(ed|ion)\b).*$")
ERROR = re.compile(r"bac: (?!warning: |note: )|(bash|sh|cat|touch|ls|curl|git|docker|npm): |Denied: ")

# The shell that types. It reads from 8 what is to be done (kind, NUL, text, NUL) and writes the status to 9.
SHELL = r"""
. "$lib/page.sh"
trap : INT QUIT
while IFS= read -r -d '' kind <&8 && IFS= read -r -d '' text <&8; do
	case $kind in
	fixture) . "$text" >"$world/fixture.log" 2>&1 </dev/null 8<&- 9>&- ;;
	file) mkdir -p -- "$(dirname -- "${text/#\~\//$HOME/}")" && cat "$world/file" >"${text/#\~\//$HOME/}" ;;
	tty) eval "$text" <"$world_tty" >"$world_tty" 2>&1 8<&- 9>&- ;;
	*) eval "$text" >"$world/out" 2>&1 </dev/null 8<&- 9>&- ;;
	esac
	printf '%s\n' "$?" >&9
done
"""


class Fault(Exception):
    """A block that is not by the convention: line and reason."""


class Block:
    """A fence: line of its first line, language, words behind it, lines."""

    def __init__(self, line, info):
        self.line, self.lines, self.file = line, [], None
        self.lang, *words = info.split()
        self.needs = []
        for word in words:
            key, _, value = word.partition("=")
            if key == "needs" and value:
                if value not in NEEDS:
                    raise Fault(line - 1, f"nobody says what '{value}' is")
                self.needs.append(value)
            elif word == "agents":
                self.needs.append("agents")
            elif (key == "file" and value) or (self.lang not in ("sh", "console") and not self.file and not value):
                self.file = value or word
            else:
                raise Fault(line - 1, f"the word '{word}' behind the fence")
        if self.lang not in SHOWN | {"console"}:
            raise Fault(line - 1, f"a fence of the language '{self.lang}'")
        if self.lang not in ("sh", "console") and self.needs:
            raise Fault(line - 1, f"'{info}': only what is typed can need something")


def blocks(text):
    """The fences of a page; what escapes them is a fault."""
    found, block, mark, indent, before = [], None, "", 0, ""
    for n, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"( *)(`{3,}|~{3,}) *(.*?) *$", line)
        if block is None and fence:
            indent, mark = len(fence[1]), fence[2]
            if not fence[3]:
                raise Fault(n, "a fence without a language")
            block = Block(n + 1, fence[3])
        elif block is None:
            if re.match(r"( {4}|\t)", line) and not before.strip():
                raise Fault(n, "an indented block")
        elif fence and fence[2].startswith(mark) and not fence[3]:
            found.append(block)
            block = None
        else:
            block.lines.append(re.sub(f"^ {{0,{indent}}}", "", line))
        before = line
    if block:
        raise Fault(block.line - 1, "a fence that does not end")
    return found


def complete(text):
    """Is this a whole command? bash says; of a here document it only warns."""
    if re.search(r"(?<!\\)(\\\\)*\\\n?$", text):
        return False
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    return done.returncode == 0 and not done.stderr


def commands(block):
    """(line, text, what is printed or None) of each command in a block."""
    lines, n = block.lines, 0
    while n < len(lines):
        start, line = n, lines[n]
        n += 1
        if block.lang == "console":
            if not line.startswith("$ "):
                raise Fault(block.line + start, "a console block begins with '$ '")
            line = line[2:]
        elif not line.strip() or line.lstrip().startswith("#"):
            continue
        text = line + "\n"
        while not complete(text):
            if n == len(lines):
                raise Fault(block.line + start, f"no whole command: {line}")
            text += (re.sub(r"^> ", "", lines[n]) if block.lang == "console" else lines[n]) + "\n"
            n += 1
        printed = None
        if block.lang == "console":
            printed = []
            while n < len(lines) and not lines[n].startswith("$ "):
                printed.append(lines[n])
                n += 1
            while printed and not printed[-1].strip():
                printed.pop()
        yield block.line + start, text, printed


def squeezed(line):
    return re.sub(r"[ \t]+", " ", line).rstrip()


def shows(printed, got):
    """Is what was printed what the page shows?"""
    pattern = ""
    for line in printed:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, squeezed(line).split("…"))) + "\n"
    lines = [squeezed(line) for line in got.splitlines()]
    kept = [line for line in lines if not NOISE.match(line)]
    return any(re.fullmatch(pattern, "".join(line + "\n" for line in some)) for some in (kept, lines))


class Rows:
    """TAP, and how many."""

    def __init__(self):
        self.count = 0

    def row(self, good, name, more="", skip=""):
        self.count += 1
        print(f"{'' if good else 'not '}ok {self.count} - {name}" + (f" # SKIP {skip}" if skip else ""), flush=True)
        if not good:
            print("".join(f"# {line}\n" for line in more.splitlines()), end="", flush=True)


def linked(source, target):
    """A copy by hard links where that can be."""
    if source.exists() and subprocess.run(["cp", "-al", source, target], capture_output=True).returncode:
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


class World:
    """Directories, and the shell that types in them."""

    def __init__(self, top, fixture):
        self.top, self.fixture, self.deadline = top, fixture, 120.0
        self.installed = top.parent / "kits-installed"  # kits that an earlier page has installed
        self.world = top / "w"
        self.home = top / "home"
        for path in (self.world, self.home / "src/web"):
            path.mkdir(parents=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "E2E_", "BAC"))}
        bac = pathlib.Path(os.environ["BAC"])
        self.env.update(HOME=str(self.home), PATH=f"{bac.parent}:{os.environ['PATH']}", TERM="xterm", LC_ALL="C.UTF-8",
                        world=str(self.world), lib=str(HERE), PS1="$ ")
        for name, var in (("r", "RUNTIME_DIR"), ("home/.local/state", "STATE_HOME"), ("home/.config", "CONFIG_HOME"),
                          ("home/.local/share", "DATA_HOME"), ("home/.cache", "CACHE_HOME")):
            (top / name).mkdir(mode=0o700, parents=True)
            self.env[f"XDG_{var}"] = str(top / name)
        self.cache()
        self.repository()
        self.start()

    def cache(self):
        """The machine's templates (the default one and what it stands on) and kernels, by hard links."""
        theirs = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "bac")
        ours = self.home / ".cache/bac"
        ours.mkdir()
        for part in ("templates", "kernels", "layers", "probe.json"):
            linked(theirs / part, ours / part)
        linked(self.installed, ours / self.installed.name)

    def repository(self):
        (self.home / ".gitconfig").write_text("[user]\n\tname = Reader\n\temail = reader@example.org\n")
        web = self.home / "src/web"
        (web / "README.md").write_text("# web\n")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
            subprocess.run(["git", "-C", web, *words], env=self.env, check=True)

    def start(self):
        self.master, slave = os.openpty()
        self.env["world_tty"] = os.ttyname(slave)
        termios.tcsetwinsize(slave, (40, 120))
        order, self.order = os.pipe()
        self.status, status = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (order, status)]
        take = "exec 8<&{0} 9>&{1} {0}<&- {1}>&-\n".format(*theirs)

        def own_terminal():
            os.setsid()
            os.close(os.open(self.env["world_tty"], os.O_RDWR))  # becomes ours

        self.shell = subprocess.Popen(["bash", "-c", take + SHELL, "bash"], env=self.env, cwd=self.home / "src/web",
                                      stdin=subprocess.DEVNULL, preexec_fn=own_terminal, pass_fds=theirs)
        for fd in (order, status, *theirs):
            os.close(fd)
        self.slave = slave  # kept, so that the terminal does not end with a command

    def told(self, name):
        """The words that the fixture has left in a file."""
        try:
            return (self.world / name).read_text().split("\0")
        except FileNotFoundError:
            return []

    def about(self, name, text):
        """What the fixture said for this command, in a table of it."""
        words = self.told(name)
        while len(words) > 1:
            n = int(words[0])
            pattern, rest, words = words[1], words[2:n + 1], words[n + 1:]
            if fnmatch.fnmatchcase(text.strip(), pattern):
                return rest
        return []

    def steps(self, text):
        """What is typed while this command runs: [(regex, keys)]."""
        said = self.about("answers", text)
        return [(ASKS, *said)] if len(said) == 1 else list(zip(said[::2], said[1::2]))

    def type(self, text):
        done = self.do("type", text)
        for more in self.about("after", text):
            self.do("hook", more)
        return done

    def do(self, kind, text):
        """(status or None, what was printed)"""
        steps = self.steps(text) if kind == "type" else None
        (self.world / "out").write_bytes(b"")
        os.write(self.order, f"{'tty' if steps else kind}\0{text}\0".encode())
        said = self.told("deadline")
        end = time.monotonic() + (float(said[0]) if said else self.deadline)
        status, seen = self.follow(end, steps)
        out = seen if steps else (self.world / ("fixture.log" if kind == "fixture" else "out")).read_bytes()
        return status, plain(out)

    def follow(self, end, steps):
        seen, at, late = b"", 0, False
        steps = list(steps or [])
        while True:
            ready, _, _ = select.select([self.status, self.master], [], [], max(0, end - time.monotonic()))
            if self.master in ready:
                seen += os.read(self.master, 65536)
                if steps and (found := re.search(steps[0][0].encode(), plain(seen[at:]).encode(), re.S)) and found:
                    os.write(self.master, codecs.decode(steps.pop(0)[1], "unicode_escape").encode("latin-1"))
                    at = len(seen)
                continue
            if self.status in ready:
                answer = os.read(self.status, 100)
                return (int(answer) if answer and not late else None), seen
            if late:
                self.shell.kill()
                return None, seen
            late, end = True, time.monotonic() + 10
            for pid in self.children():
                os.kill(pid, signal.SIGKILL)

    def children(self):
        """Who belongs to the shell's session, but for what the fixture has started."""
        text = subprocess.run(["ps", "-o", "pid=,ppid=", "--ppid", str(self.shell.pid)], capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in text.splitlines() if int(line.split()[0]) not in self.servers]

    servers = frozenset()

    def end(self):
        """What the page has left goes. What could not go, or None."""
        done = subprocess.run(["timeout", "-k", "5", "120", os.environ["BAC"], "rm", "--all", "--force"], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        os.close(self.order)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.shell.pid, sign)
                self.shell.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        self.shell.wait()
        for fd in (self.master, self.slave, self.status):
            os.close(fd)
        if (mine := self.home / ".cache/bac" / self.installed.name).exists():
            shutil.rmtree(self.installed, ignore_errors=True)
            os.rename(mine, self.installed)
        shutil.rmtree(self.top, ignore_errors=True)
        return done.stdout if done.returncode else None


ASKS = r"[?:$#>%\])] ?\Z"


def plain(text):
    """Without what moves a cursor; a line that was written over is what it became."""
    text = re.sub(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()].|[=>78cDEHMZ])", b"", text)
    text = text.decode(errors="replace").replace("\0", "").replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2] if not line.endswith("\r") else line.rstrip("\r") for line in text.split("\n"))


def title(page, line, text):
    first, _, more = text.strip().partition("\n")
    first = re.sub(r"\s#\s.*", "", first).strip().replace("#", "")
    return f"{page}:{line}: {first[:110]}{' …' if more or len(first) > 110 else ''}"


class Page:
    def __init__(self, path, rows):
        self.path, self.rows = path, rows
        self.name = path.name if path.parent.name != "agents" else f"agents/{path.name}"

    def lacking(self, needs):
        """Why a block cannot be typed here."""
        for need in needs:
            if need == "agents":
                agents = os.environ.get("AGENTS", "").split()
                mine = self.path.stem if self.name.startswith("agents/") else None
                if not agents or (mine and mine not in agents):
                    return 'minutes of npm for each agent: AGENTS="pi codex ..." says which'
            elif not NEEDS[need][0]():
                return NEEDS[need][1]
        return ""

    def walk(self, top):
        try:
            parts = [(block, list(commands(block)) if block.lang in ("sh", "console") and not block.file else [])
                     for block in blocks(self.path.read_text())]
        except Fault as fault:
            self.rows.row(False, f"{self.name}:{fault.args[0]}: {fault.args[1]}", "docs/ has fences of the languages that test/lib/walk.py knows")
            return
        if not any(block.file or typed for block, typed in parts):
            return
        fixture = HERE.parent / "docs" / (self.path.stem + ".sh")
        world = World(top, fixture)
        try:
            if self.prepared(world, fixture):
                for block, typed in parts:
                    self.block(world, block, typed)
        finally:
            left = world.end()
            if left is not None:
                self.rows.row(False, f"{self.name}: what it has made can be removed", left)

    def prepared(self, world, fixture):
        if fixture.exists():
            status, out = world.do("fixture", str(fixture))
            if (world.world / "skip").exists():
                self.rows.row(True, f"{self.name}: the page", skip=(world.world / "skip").read_text())
                return False
            if status:
                self.rows.row(False, f"{self.name}: what it supposes ({fixture.name})", f"status {status}\n{out}")
                return False
            world.servers = frozenset(world.children())
        return True

    def block(self, world, block, typed):
        why = self.lacking(block.needs)
        if block.file:
            (world.world / "file").write_text("".join(line + "\n" for line in block.lines))
            status, out = world.do("file", block.file)
            if status:
                self.rows.row(False, f"{self.name}:{block.line}: {block.file} is written", out)
        for line, text, printed in typed:
            name = title(self.name, line, text)
            if why:
                self.rows.row(True, name, skip=why)
                continue
            status, out = world.type(text)
            wrong = verdict(status, out, printed)
            self.rows.row(not wrong, name, f"{wrong}\ntyped: {text.strip()}\nstatus: {status}\nprinted:\n{out[:3000]}")


def verdict(status, out, printed):
    """What is wrong with a command's end, or nothing."""
    if status is None:
        return "it did not end in time"
    error = bool(printed) and ERROR.match(printed[0])
    if bool(status) != bool(error):
        return "it should have failed" if error else "it failed"
    if printed and not shows(printed, out):
        return "it does not print what the page shows:\n" + "\n".join(printed)
    return ""


def main():
    args = argparse.ArgumentParser(usage=__doc__)
    args.add_argument("--count", type=pathlib.Path)
    args.add_argument("pages", nargs="+", type=pathlib.Path)
    args = args.parse_args()
    rows = Rows()
    wanted = os.environ.get("PAGES", "").split()
    top = pathlib.Path(os.environ["E2E_DIR"], "p")
    for path in args.pages:
        if not wanted or path.stem in wanted:
            began = time.monotonic()
            before = rows.count
            Page(path, rows).walk(top)
            print(f"# {path.name}: {rows.count - before} rows in {time.monotonic() - began:.0f} s", flush=True)
    if args.count:
        args.count.write_text(f"{rows.count}\n")


main()
