#!/usr/bin/env python3
"""bac-workspace with a real QEMU and a real guest kernel, without the rest of bac. Prints TAP.

    test/workspace/try.py BAC-WORKSPACE GUEST-TOOL [SCENARIO...]
"""
import fcntl
import os
import pathlib
import sys
import tempfile
import time

import vm

server_program, tool = sys.argv[1], sys.argv[2]
rows = 0
failed = 0


def row(good, what, detail=""):
    global rows, failed
    rows += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {rows} - {what}", flush=True)
    if not good and detail != "":
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def same(what, got, want):
    row(got == want, what, f"got {got!r}, not {want!r}")


class Pair:
    """A server with a folder as share 0, and a guest on it; both gone at the end."""

    quiet = True

    def __init__(self, rules=(), shares=(), **guest):
        self.rules, self.more, self.guest_args = rules, shares, guest

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="test-bac-share-")
        self.path = pathlib.Path(self.dir.name)
        (self.path / "hello").write_text("hi\n")
        self.server = vm.Server(server_program)
        if self.rules:
            same("rules", self.server.rules(*self.rules), 0)
        same("a share", self.server.add(0, self.path), 0)
        for number, path, flags in self.more:
            same("another", self.server.add(number, path, flags), 0)
        same("start", self.server.start(), 0)
        self.guest = vm.Guest(self.server, programs=[tool], **self.guest_args)
        same("the guest mounts it", self.guest.mounted, 0)
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.guest.kill()
            self.server.process.kill()
            print("# server:", self.server.process.wait(), self.server.process.stderr.read().decode(errors="replace"))
        else:
            self.guest.off()
            same("the server ends with QEMU", self.server.end(), 0)
            self.words = self.server.process.stderr.read().decode(errors="replace")
            if self.quiet:
                same("and had nothing to say", self.words, "")
        self.server.control.close()
        self.dir.cleanup()


def files(machine="microvm", memory="512M", cpus=1):
    with Pair(machine=machine, memory=memory, cpus=cpus) as p:
        g, path = p.guest, p.path
        same("a file is read", g.sh("cat /mnt/0/hello"), (0, "hi"))
        same("and written", g.sh("seq 1 100000 >/mnt/0/numbers; md5sum </mnt/0/numbers"),
             (0, os.popen(f"seq 1 100000 | tee {path}/want | md5sum").read().strip()))
        same("byte by byte", (path / "numbers").read_bytes(), (path / "want").read_bytes())
        g.sh("cp -r /bin /mnt/0/tree; mv /mnt/0/tree /mnt/0/moved; rm /mnt/0/numbers")
        same("a tree is copied and moved", sorted(os.listdir(path / "moved")), sorted(g.sh("ls /bin")[1].split()))
        (path / "late").write_text("from the host\n")
        same("a file of the host's appears", g.sh("cat /mnt/0/late"), (0, "from the host"))
        same("64 MiB go there and back", g.sh(
            "dd if=/dev/urandom of=/mnt/0/big bs=1M count=64 2>/dev/null; a=$(md5sum </mnt/0/big);"
            "echo 3 >/proc/sys/vm/drop_caches; [ \"$a\" = \"$(md5sum </mnt/0/big)\" ]"), (0, ""))


def shares():
    with tempfile.TemporaryDirectory() as other, Pair() as p:
        one = pathlib.Path(other, "one")
        one.write_text("single\n")
        same("a share while it runs", p.server.add(7, other, vm.RO), 0)
        same("is there", p.guest.sh("cat /mnt/7/one"), (0, "single"))
        row(p.guest.sh("echo x >/mnt/7/two")[0] != 0, "and cannot be written")
        same("a single file", p.server.add(8, one), 0)
        same("as well", p.guest.sh("cat /mnt/8"), (0, "single"))
        same("a number twice is refused", p.server.add(7, other) < 0, True)
        same("a share goes", p.server.remove(7), 0)
        row(p.guest.sh("cat /mnt/7/one")[0] != 0, "and is gone")
        same("the other stays", p.guest.sh("cat /mnt/0/hello"), (0, "hi"))


def rules():
    with Pair(rules=[("hide", ".env"), ("protect", ".git/hooks/**")]) as p:
        (p.path / ".env").write_text("secret\n")
        row(p.guest.sh("cat /mnt/0/.env")[0] != 0, "a hidden file is not opened")
        (p.path / ".git/hooks").mkdir(parents=True)
        row(p.guest.sh("echo x >/mnt/0/.git/hooks/pre-commit")[0] != 0, "a protected one is not made")
        p.server.remove(99)
        row(len(p.server.refusals) >= 2, "both are told", p.server.refusals)


def leaks():
    """Secrets in what the guest writes: told, or refused."""
    secret = b"sk-ant-api03-the-value-of-it"
    write = 'printf "key = %s\\n" sk-ant-api03-the-value-"of-it" >/mnt/0/conf/.netrc'
    with Pair() as p:
        g, s = p.guest, p.server
        (p.path / "conf").mkdir()
        same("a secret is written while none is looked for", g.sh(write), (0, ""))
        same("marks, at run time", s.marks(False, {"other": b"0123456789abcdef0", "anthropic": secret}), 0)
        same("garbage for marks is refused", s.ask(vm.MARKS, b"\0\0\0\0\2xx") < 0, True)
        same("it is written all the same", g.sh(write), (0, ""))
        same("as it is", (p.path / "conf/.netrc").read_bytes(), b"key = " + secret + b"\n")
        same("in pieces", g.sh('for c in s k - a n t - a p i 0 3 - the -value -of- it; do printf %s $c; done >/mnt/0/pieces'), (0, ""))
        same("and in the middle of much", g.sh(
            'dd if=/dev/zero of=/mnt/0/big bs=100k count=7 2>/dev/null; printf %s sk-ant-api03-the-value-"of-it" | '
            "dd of=/mnt/0/big bs=1 seek=300000 conv=notrunc 2>/dev/null; cp /mnt/0/big /mnt/0/copy"), (0, ""))
        s.remove(99)
        told = [(r[0], r[9 + 4:].split(b"\0")[0]) for r in s.refusals]
        same("each is told, once for each open file", told, [(vm.LEAK, b"conf/.netrc"), (vm.LEAK, b"pieces"),
                                                             (vm.LEAK, b"big"), (vm.LEAK, b"copy")])
        row(all(b"anthropic\0" in r and b"WRITE\0" in r for r in s.refusals), "by the name of the secret", s.refusals)
        s.refusals.clear()
        same("now they are refused", s.marks(True, {"anthropic": secret}), 0)
        row(g.sh(write)[0] != 0, "the write fails")
        same("nothing of it is there", (p.path / "conf/.netrc").read_bytes(), b"")
        same("other writes do not", g.sh("echo fine >/mnt/0/conf/.netrc; cat /mnt/0/conf/.netrc"), (0, "fine"))
        s.remove(99)
        same("it is told", [r[0] for r in s.refusals], [vm.LEAK_REFUSED])
        same("no marks: nothing is looked for", s.marks(False, {}), 0)
        same("and it is written", g.sh(write), (0, ""))


def driver():
    """The guest's driver lets go of the device and takes it again."""
    with Pair() as p:
        bus = "/sys/bus/virtio/drivers/virtiofs"
        for _ in range(3):
            same("the driver begins anew", p.guest.sh(
                f"umount /mnt && d=$(basename $(ls -d {bus}/virtio*)) && echo $d >{bus}/unbind && echo $d >{bus}/bind"
                " && mount -t virtiofs bac /mnt && cat /mnt/0/hello"), (0, "hi"))


def pause():
    """The machine stops with a request under way, which is answered when it goes on."""
    with Pair() as p, open(p.path / "hello", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        p.guest.send("bac-workspace-guest lock /mnt/0/hello; cat /mnt/0/hello")
        while "FLOCK" not in pathlib.Path("/proc/locks").read_text() or not waiter(p):
            time.sleep(0.05)
        p.guest.monitor("stop")
        fcntl.flock(f, fcntl.LOCK_UN)
        cost = p.server.cost()
        time.sleep(0.5)
        row(p.server.cost()[1] - cost[1] < 20, "a machine that is stopped costs nothing")
        p.guest.monitor("cont")
        same("a lock that was waited for is there after the pause", p.guest.answer(), (0, "hi"))


def waiter(p):
    """True if a thread of the server waits for a lock: they are listed with an arrow."""
    mine = f" {p.server.process.pid} "
    return any("->" in line and mine in line for line in pathlib.Path("/proc/locks").read_text().splitlines())


def memory():
    """Memory is plugged in while the guest works."""
    with Pair(machine="q35", memory="512M,slots=2,maxmem=2G") as p:
        p.guest.send("i=0; while [ $i -lt 300 ]; do cat /mnt/0/hello >/dev/null || echo bad; i=$((i+1)); done")
        p.guest.monitor("object-add", **{"qom-type": "memory-backend-memfd", "id": "more", "size": 256 << 20,
                                         "share": True})
        p.guest.monitor("device_add", driver="pc-dimm", id="dimm", memdev="more")
        same("work goes on while memory is added", p.guest.answer(), (0, ""))
        same("and afterwards", p.guest.sh("cat /mnt/0/hello"), (0, "hi"))


def idle():
    with Pair() as p:
        p.guest.sh("ls -lR /mnt")
        before = p.server.cost()
        time.sleep(5)
        same("a quiet guest wakes nobody", p.server.cost(), before)


def cost():
    """What one uncached request costs; numbers for people, as comments."""
    with Pair() as p:
        before, start = p.server.cost(), time.monotonic()
        status, said = p.guest.sh("bac-workspace-guest stat 10000 /mnt/0/hello")
        wall, after = time.monotonic() - start, p.server.cost()
        same("10,000 are done", status, 0)
        print(f"# {said}; with the program's start {wall * 100:.1f} us; the server's CPU "
              f"{(after[0] - before[0]) * 100:.1f} us, {(after[1] - before[1]) / 1e4:.2f} wake-ups each")
        row(after[1] - before[1] < 12000, "the server wakes up once for each", after[1] - before[1])


def hostile():
    """The guest's root drives the device itself: chains that loop, lead anywhere, are no requests."""
    with Pair(machine="q35") as p:
        p.quiet = False
        bus = "/sys/bus/pci/drivers/virtio-pci"
        device = p.guest.sh("umount /mnt; basename $(dirname $(readlink -f /sys/bus/virtio/drivers/virtiofs/virtio*))")[1]
        p.guest.sh(f"echo {device} >{bus}/unbind")
        before = p.server.cost()
        same("400 starts with garbage in the rings",
             p.guest.sh(f"bac-workspace-guest rings /sys/bus/pci/devices/{device} 400 1"), (0, ""))
        row(p.server.process.poll() is None, "the server lives")
        print(f"# {p.server.cost()[0] - before[0]:.2f} s of CPU, {p.server.cost()[1] - before[1]} wake-ups")
        before = p.server.cost()
        time.sleep(1)
        same("and sleeps", p.server.cost(), before)
        same("a driver that behaves is served again", p.guest.sh(
            f"echo {device} >{bus}/bind; mount -t virtiofs bac /mnt && cat /mnt/0/hello"), (0, "hi"))
        same("nothing in the share has changed", sorted(os.listdir(p.path)), ["hello"])
    row("not served any more" in p.words and p.words.count("\n") <= 4, "it said so, a few times", p.words)


def hang_up():
    """The supervisor goes: so does the server, and the guest gets errors or nothing, but no empty folder."""
    with Pair() as p:
        p.server.control.close()
        same("without its supervisor the server ends", p.server.end(), 0)
        p.guest.kill()
        p.guest.off = lambda: None


scenarios = {
    "files": files,
    "q35": lambda: files("q35", "512M", 2),
    "shares": shares,
    "rules": rules,
    "leaks": leaks,
    "driver": driver,
    "pause": pause,
    "memory": memory,
    "idle": idle,
    "cost": cost,
    "hostile": hostile,
    "hang_up": hang_up,
}
why = vm.missing()
if why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
for name in sys.argv[3:] or scenarios:
    print(f"# {name}", flush=True)
    try:
        scenarios[name]()
    except (vm.Failed, OSError) as e:
        row(False, name, e)
print(f"1..{rows}")
sys.exit(failed != 0)
