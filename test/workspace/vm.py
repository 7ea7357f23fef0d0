"""A guest on bac-workspace, by hand: QEMU, a busybox initramfs, a shell on the console. For test/workspace/try.py.

The supervisor's part is played here (docs/protocol/share.md). Every wait has a deadline.
"""
import array
import fcntl
import glob
import json
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from leakset import leak_set  # noqa: E402

ADD, REMOVE, RULES, START, MARKS, ANSWER, REFUSED = 1, 2, 3, 4, 5, 64, 65
LEAK, LEAK_REFUSED = 4, 5
RO, FILE = 1, 2
KINDS = {"hide": 1, "protect": 2, "allow": 3}
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /mnt
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty raw -echo
# what a kernel with modules needs; each again, for those that need another one first
for n in 1 2 3 4; do for m in /modules/*; do [ -f "$m" ] && insmod "$m" 2>/dev/null; done; done
mount -t virtiofs bac /mnt
echo "@@ $?"
while read -r line; do eval "$line"; echo "@@ $?"; done
poweroff -f
"""
MACHINES = {
    "microvm": ["-M", "microvm,acpi=on,pic=on,pit=on,rtc=on,isa-serial=on,x-option-roms=off,"
                "auto-kernel-cmdline=on,memory-backend=mem", "-bios", "qboot.rom"],
    "q35": ["-M", "q35,usb=off,vmport=off,sata=off,smbus=off,memory-backend=mem"],
}


class Failed(Exception):
    pass


def kernel():
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return next(iter(glob.glob(cache + "/bac/kernels/*/vmlinux")), None)


def missing():
    """Why no guest can be started, or None."""
    for program in ("qemu-system-x86_64", "busybox"):
        if not shutil.which(program):
            return f"no {program}"
    with open(shutil.which("busybox"), "rb") as f:
        dynamic = b"/ld-" in f.read(4096)  # the loader that it asks for
    if dynamic:
        return "busybox is not static"
    return None if kernel() else "no kernel in the cache: run 'bac kernel build'"


def text(s):
    s = os.fsencode(s)
    return struct.pack(">I", len(s)) + s + b"\0"


class Server:
    """bac-workspace and the supervisor's end of its socket."""

    def __init__(self, program, wrap=()):
        self.vhost, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.control, theirs_too = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(20)
        a = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, 100)
        b = fcntl.fcntl(theirs_too.fileno(), fcntl.F_DUPFD, 100)
        moves = f'exec 3<&{a} 4<&{b} {a}<&- {b}<&- 5<&-; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", moves, "sh", *wrap, program], close_fds=False,
                                        stderr=subprocess.PIPE)
        os.close(a)
        os.close(b)
        theirs.close()
        theirs_too.close()
        self.seq = 0
        self.refusals = []

    def ask(self, kind, body, fds=()):
        """0 or -errno, as the server answered."""
        self.seq += 1
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.control.sendmsg([struct.pack(">BI", kind, self.seq) + body], extra)
        while True:
            m = self.control.recv(70000)
            if not m:
                raise Failed("the server hung up")
            if m[0] == REFUSED:
                self.refusals.append(m[5:])
                continue
            seq, code = struct.unpack(">Ii", m[1:9])
            if m[0] != ANSWER or seq != self.seq:
                raise Failed(f"a strange answer: {m!r}")
            return code

    def add(self, number, path, flags=0):
        fd = os.open(path, os.O_PATH)
        if not os.path.isdir(path):
            flags |= FILE
        try:
            return self.ask(ADD, struct.pack(">IB", number, flags) + text(os.path.abspath(path)), [fd])
        finally:
            os.close(fd)

    def remove(self, number):
        return self.ask(REMOVE, struct.pack(">I", number))

    def rules(self, *rules):
        return self.ask(RULES, struct.pack(">I", len(rules)) + b"".join(bytes([KINDS[k]]) + text(p) for k, p in rules))

    def marks(self, refuse, secrets):
        body = leak_set(secrets)
        return self.ask(MARKS, struct.pack(">BI", refuse, len(body)) + body)

    def start(self):
        return self.ask(START, b"")

    def cost(self):
        """(CPU seconds, times it went to sleep)"""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        sleeps = 0
        for task in glob.glob(f"/proc/{self.process.pid}/task/*/status"):
            lines = pathlib.Path(task).read_text().splitlines()
            sleeps += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), sleeps

    def end(self):
        """Its status, once QEMU has gone."""
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()


class Guest:
    """QEMU and a shell in the guest, /mnt is the server's file system."""

    def __init__(self, server, programs=(), machine="microvm", memory="512M", cpus=1, extra=(), deadline=120):
        self.end_at = time.monotonic() + deadline
        self.work = tempfile.TemporaryDirectory(prefix="test-bac-try-")
        self.console, console = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.qmp, qmp = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.got = b""
        self.log = b""
        fds = [server.vhost.fileno(), console.fileno(), qmp.fileno()]
        device = "vhost-user-fs-device" if machine == "microvm" else "vhost-user-fs-pci"
        size = memory.split(",")[0]
        khz = self.clock_khz()
        self.process = subprocess.Popen([
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            *MACHINES[machine], "-global", "virtio-mmio.force-legacy=false",
            "-accel", f"tcg,thread={'single' if cpus == 1 else 'multi'},tb-size=256", "-cpu", "max,-erms,-fsrm",
            "-smp", str(cpus), "-m", memory, "-object", f"memory-backend-memfd,id=mem,size={size},share=on",
            "-chardev", f"socket,id=fs,fd={fds[0]}", "-device", f"{device},queue-size=1024,chardev=fs,tag=bac",
            "-chardev", f"socket,id=console,fd={fds[1]}", "-serial", "chardev:console",
            "-chardev", f"socket,id=qmp,fd={fds[2]}", "-mon", "chardev=qmp,mode=control",
            "-kernel", kernel(), "-initrd", self.initrd(programs), *extra,
            "-append", "reboot=t panic=-1 tsc=reliable no_timer_check quiet console=ttyS0 "
            f"tsc_early_khz={khz} lpj={khz * 4}",
        ], stdin=subprocess.DEVNULL, pass_fds=fds)
        for s in (server.vhost, console, qmp):
            s.close()
        self.mounted = self.answer()[0]
        self.monitor("qmp_capabilities")

    @staticmethod
    def clock_khz():
        with open("/proc/cpuinfo", encoding="ascii") as f:
            return next(int(float(line.split(":")[1]) * 1000) for line in f if line.startswith("cpu MHz"))

    def initrd(self, programs):
        top = pathlib.Path(self.work.name)
        (top / "root/bin").mkdir(parents=True)
        for program in (shutil.which("busybox"), *programs):
            shutil.copy(program, top / "root/bin")
        (top / "root/init").write_text(INIT)
        (top / "root/init").chmod(0o755)
        with open(top / "initrd", "wb") as out:
            subprocess.run("find . | busybox cpio -o -H newc", shell=True, cwd=top / "root", stdout=out,
                           stderr=subprocess.DEVNULL, check=True)
            out.flush()
            with open(os.path.join(os.path.dirname(kernel()), "modules.cpio"), "rb") as modules:
                out.write(modules.read())
        return str(top / "initrd")

    def more(self, sock, what):
        left = self.end_at - time.monotonic()
        ready = select.select([sock], [], [], max(left, 0))[0]
        data = sock.recv(65536) if ready else b""
        if not data:
            raise Failed(f"{what}: {'the guest has gone' if ready else 'deadline'}; console: {self.log[-2000:]!r}")
        return data

    def answer(self):
        while True:
            line, newline, rest = self.got.partition(b"\n@@ ")
            if not newline and self.got.startswith(b"@@ "):
                line, newline, rest = b"", b"x", self.got[3:]
            if newline and b"\n" in rest:
                status, _, self.got = rest.partition(b"\n")
                return int(status), line.replace(b"\r", b"").decode(errors="replace").strip("\n")
            data = self.more(self.console, "a command")
            self.got += data
            self.log += data

    def send(self, command):
        self.console.sendall(command.encode() + b"\n")

    def sh(self, command):
        """(status, output) of a command of one line."""
        self.send(command)
        return self.answer()

    def monitor(self, command, **arguments):
        self.qmp.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        got = b""
        while True:
            got += self.more(self.qmp, "QMP")
            for line in got.splitlines():
                try:
                    m = json.loads(line)
                except ValueError:
                    continue
                if "error" in m:
                    raise Failed(m["error"]["desc"])
                if "return" in m:
                    return m["return"]

    def off(self):
        self.send("poweroff -f")
        try:
            self.process.wait(max(self.end_at - time.monotonic(), 1))
        finally:
            self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.work.cleanup()
