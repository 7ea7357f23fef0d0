#!/usr/bin/env python3
"""What the workspace costs: one virtual machine, three folders, the same work in each.

workspace.py BAC [JOB...]    JOB: see JOBS below (default: all)

    disk        the guest's own disk (ext4)
    bac         a folder of the host, served by bac-workspace
    virtiofsd   the same, served by Debian's virtiofsd on the same QEMU

Each job runs in turn in the three, several times (BENCH_RUNS, default 3); the medians count. Targets: reading work
at most 2 times the disk, creating work at most 3 times, never slower than virtiofsd. Caches of the guest are dropped
before each cold job; the host's stay warm, in the same way for all three. The last columns are what of bac's time was the server's own work (processor time),
and what the job would then be of the disk's with a server that takes no time at all: requests are the guest's to send, so no server goes below.

The machine is started by hand, with the kernel and template of bac's cache, so that both servers are devices of one
QEMU. Exits with 77 where something is missing, and says what. BENCH_FILES (default 20000) is the size of the
repository, BENCH_HOST where the shared folders lie (default: the folder for temporary files).
"""
import array
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BAC = pathlib.Path(sys.argv[1]).resolve()
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
FILES = int(os.environ.get("BENCH_FILES", "20000"))
BOOT_S, JOB_S, SETTLE_S = 120, 900, 60
SPAN_S, QUIET = 0.1, 0.005  # at rest: it had less than this of the processors in that span

# name, kind (r: reading, w: creating), drop caches first, preparation, work. Run in a folder of their own.
JOBS = [
    ("untar", "w", True, "rm -rf untar; mkdir untar", "tar -C untar -xf /scratch/tree.tar"),
    ("find", "r", True, "", "find untar -type f -size +0 | wc -l"),
    ("rm", "w", False, "", "rm -rf untar"),
    ("clone", "w", False, "rm -rf clone", "git clone -q --no-local /scratch/repo.git clone"),
    ("status", "r", True, "", "git -C clone status --short"),
    ("status2", "r", False, "", "git -C clone status --short"),
    ("rg", "r", True, "", "rg -c --no-messages needle clone | wc -l"),
    ("seqwrite", "w", False, "rm -f big", "dd if=/dev/zero of=big bs=1M count=128 conv=fsync 2>/dev/null"),
    ("seqread", "r", True, "", "dd if=big of=/dev/null bs=1M 2>/dev/null"),
    ("randread", "r", True, "", "python3 /scratch/rand.py r big"),
    ("randwrite", "w", False, "", "python3 /scratch/rand.py w big"),
    ("append", "w", False, "rm -f log", "python3 /scratch/rand.py a log"),
]
if os.environ.get("BENCH_NPM"):  # a project with a package-lock.json, with an address ("resolved") for each package, and a filled npm cache
    JOBS.append(("npmci", "w", False, "rm -rf npm; cp -r /scratch/npm npm",
                 "cd npm && npm ci --offline --cache /scratch/npmcache --no-audit --no-fund --silent"))

RAND = """import os, random, sys
random.seed(1)
how, name = sys.argv[1:]
if how == 'a':
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for i in range(2000): os.write(fd, b'x' * 100)
else:
    fd = os.open(name, os.O_RDONLY if how == 'r' else os.O_WRONLY)
    size = os.fstat(fd).st_size // 4096
    for i in range(2000):
        at = random.randrange(size) * 4096
        os.pread(fd, 4096, at) if how == 'r' else os.pwrite(fd, b'y' * 4096, at)
    if how == 'w': os.fsync(fd)
"""

INIT = """#!/bin/busybox sh
b=/bin/busybox
for d in dev proc sys lower disk new; do $b mkdir -p /$d; done
$b mount -t devtmpfs d /dev; $b mount -t proc p /proc; $b mount -t sysfs s /sys
for n in 1 2 3; do for m in /modules/*; do [ -f "$m" ] && $b insmod "$m" 2>/dev/null; done; done
i=0; while [ ! -b /dev/vdb ] && [ $i -lt 400 ]; do $b usleep 5000; i=$((i+1)); done
$b mount -t erofs -o ro /dev/vda /lower
$b mount -t ext4 /dev/vdb /disk
$b mkdir -p /disk/upper /disk/work /disk/d
$b mount -t overlay -o lowerdir=/lower,upperdir=/disk/upper,workdir=/disk/work o /new
for d in dev proc sys; do $b mount --move /$d /new/$d; done
$b mkdir -p /new/w/disk /new/w/bac /new/w/virtiofsd
$b mount --bind /disk/d /new/w/disk
exec $b chroot /new /bin/bash /scratch/guest.sh </new/dev/hvc0 >/new/dev/hvc0 2>&1
"""

GUEST = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t tmpfs t /run; mount -t tmpfs t /tmp; mkdir -p /root /w/root
echo 0 >/proc/sys/kernel/randomize_va_space
mount -t virtiofs bac /w/root && mount --bind /w/root/0 /w/bac || echo "FAIL bac"
mount -t virtiofs vfsd /w/virtiofsd || echo "FAIL virtiofsd"
chown 1000:1000 /w/disk
export HOME=/home/agent
git config --system --add safe.directory '*'
echo READY
while IFS= read -r line; do
	case $line in
	END) break ;;
	'!'*) s=0 e=0; bash -c "${line#?}" >/run/out 2>&1; rc=$? ;;
	*) s=$(date +%s%N); setpriv --reuid 1000 --regid 1000 --clear-groups bash -c "$line" >/run/out 2>&1; rc=$?; e=$(date +%s%N) ;;
	esac
	echo "DONE $rc $((e - s)) $(tail -n 1 /run/out | tr -d '\\r')"
done
umount /w/disk; sync; echo o >/proc/sysrq-trigger; sleep 5
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def cached(folder, mark):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac" / folder
    if not cache.is_dir():
        skip("no template in the cache: run 'bac template build'")
    found = [d for d in cache.iterdir() if not d.name.startswith(".") and (d / mark).exists()]
    if not found:
        skip(f"no {mark} in {cache}")
    return found


def kernel():
    known = [(json.load(open(d / "kernel.json")), d) for d in cached("kernels", "vmlinux")]
    known.sort(key=lambda one: (one[0].get("kind") == "minimal", one[0]["version"], one[0]["created"]))
    return known[-1][1]


def make_repo(tmp):
    """A repository of FILES small files in folders of 50, and the same as a tar file of half as many."""
    work = tmp / "work"
    work.mkdir()
    for i in range(FILES):
        d = work / f"d{i // 1000}" / f"e{i // 50 % 20}"
        d.mkdir(parents=True, exist_ok=True)
        (d / f"f{i}.txt").write_text(f"file {i}\n" + "some words to search in\n" * (i % 40) +
                                     ("needle\n" if i % 97 == 0 else ""))
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@b", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(tmp / "repo.git")], check=True)
    names = [f"d{n}" for n in range(FILES // 2000)] or ["d0"]
    subprocess.run(["tar", "-C", str(work), "-cf", str(tmp / "tree.tar"), *names], check=True)
    shutil.rmtree(work)


def make_disk(tmp):
    root = tmp / "disk"
    scratch = root / "upper" / "scratch"
    scratch.mkdir(parents=True)
    make_repo(scratch)
    (scratch / "rand.py").write_text(RAND)
    (scratch / "guest.sh").write_text(GUEST)
    if npm := os.environ.get("BENCH_NPM"):
        shutil.copytree(npm, scratch / "npm")
        shutil.copytree(os.environ["BENCH_NPM_CACHE"], scratch / "npmcache")
        for name in ("npm", "npmcache"):
            subprocess.run(["chown", "-R", "1000:1000", str(scratch / name)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal" if os.environ.get("BENCH_NOJOURNAL") else "has_journal", "-d",
                    str(root), str(tmp / "disk.img"), "8G"], check=True)
    shutil.rmtree(root)


def make_initrd(tmp, kdir):
    prog = shutil.which("busybox")
    if not prog or b"/ld-" in open(prog, "rb").read(4096):  # it asks for a loader: not static
        skip("no static busybox (package busybox-static)")
    root = tmp / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(prog, root / "bin/busybox")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    subprocess.run("mkdir -p dev; mknod dev/console c 5 1; find . | cpio -o -H newc --quiet >../initrd", shell=True,
                   check=True, cwd=root)
    with open(tmp / "initrd", "ab") as f:  # the kernel's modules, in the order in which they are loaded
        f.write((kdir / "modules.cpio").read_bytes())
    return tmp / "initrd"


def text(s):
    b = s.encode()
    return struct.pack(">I", len(b)) + b + b"\0"


def processor_time(pid):
    """What a process with all its threads had so far, in seconds."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


class Server:
    """bac-workspace without its cage: descriptor 3 to QEMU, 4 to us."""

    def __init__(self, folder):
        self.qemu, vhost = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.ctl, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.p = subprocess.Popen(["bash", "-c", f"exec 3<&{vhost.fileno()} 4<&{control.fileno()} 5<&-; exec "
                                   f"{BAC.parent}/bac-workspace"], pass_fds=[vhost.fileno(), control.fileno()])
        vhost.close()
        control.close()
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        add = struct.pack(">BIIB", 1, 1, 0, 0) + text("/w/bac")
        self.ctl.sendmsg([add], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)
        self.answer()
        self.ctl.send(struct.pack(">BI", 4, 2))
        self.answer()

    def took(self):
        return processor_time(self.p.pid)

    def answer(self):
        self.ctl.settimeout(20)
        m = self.ctl.recv(65536)
        code = struct.unpack(">i", m[5:9])[0]
        if m[0] != 64 or code:
            sys.exit(f"bac-workspace: {m!r}")


class Machine:
    def __init__(self, tmp, kdir, root):
        self.host = pathlib.Path(tempfile.mkdtemp(prefix="bac-bench-", dir=os.environ.get("BENCH_HOST")))
        for name in ("bac", "virtiofsd"):
            (self.host / name).mkdir()
        os.chown(self.host / "virtiofsd", 1000, 1000)  # it hands ids through
        self.server = Server(self.host / "bac")
        daemon = shutil.which("virtiofsd", path="/usr/lib/qemu:/usr/libexec:/usr/bin") or skip("no virtiofsd")
        sock = tmp / "vfsd.sock"
        self.daemon = subprocess.Popen([daemon, f"--socket-path={sock}", "-o", f"source={self.host}/virtiofsd", "-o",
                                        "cache=auto", "-o", "xattr"], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not sock.exists():
            if self.daemon.poll() is not None or time.monotonic() > end:
                skip("virtiofsd does not start here")
            time.sleep(0.02)
        ours, theirs = socket.socketpair()
        fs = "vhost-user-fs-device,queue-size=1024"
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M",
                 "microvm,acpi=on,pic=on,pit=on,rtc=on,isa-serial=on,x-option-roms=off,memory-backend=mem", "-bios", "qboot.rom",
                 "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-erms,-fsrm",
                 "-smp", processors(), "-m", "2048M", "-object", "memory-backend-memfd,id=mem,size=2048M,share=on", "-global",
                 "virtio-mmio.force-legacy=false", "-kernel", str(kdir / "vmlinux"), "-initrd", str(tmp / "initrd"),
                 "-drive", f"if=none,id=r,format=raw,readonly=on,file={root}", "-device", "virtio-blk-device,drive=r",
                 "-drive", f"if=none,id=d,format=raw,file={tmp}/disk.img", "-device", "virtio-blk-device,drive=d",
                 "-chardev", f"socket,id=b,fd={self.server.qemu.fileno()}", "-device", f"{fs},chardev=b,tag=bac",
                 "-chardev", f"socket,id=v,path={sock}", "-device", f"{fs},chardev=v,tag=vfsd",
                 "-device", "virtio-serial-device", "-chardev", f"socket,id=c,fd={theirs.fileno()}", "-device",
                 "virtconsole,chardev=c", "-chardev", f"file,id=s,path={tmp}/console", "-serial", "chardev:s", "-append",
                 "console=ttyS0 quiet reboot=t panic=-1 tsc=reliable no_timer_check " + clock()]
        self.p = subprocess.Popen(words, pass_fds=[self.server.qemu.fileno(), theirs.fileno()],
                                  stdin=subprocess.DEVNULL)
        theirs.close()
        self.server.qemu.close()
        self.wire = ours
        self.lines = ours.makefile("r", errors="replace", newline="\n")
        ours.settimeout(BOOT_S)
        self.await_line("READY", tmp)

    def await_line(self, word, tmp=None):
        while True:
            try:
                line = self.lines.readline()
            except TimeoutError:
                line = ""
            if not line:
                sys.exit(f"the machine ended or hangs; console: {(tmp / 'console').read_text()[-800:] if tmp else ''}")
            if line.startswith("FAIL"):
                sys.exit(f"in the machine: {line}")
            if line.startswith(word):
                return line

    def run(self, where, words, root=False):
        self.wire.settimeout(JOB_S)
        self.wire.sendall(f"{'!' if root else ''}cd /w/{where} && {{ {words}; }}\n".encode())
        done = self.await_line("DONE").split(None, 3)
        if done[1] != "0" and where == "virtiofsd":  # it runs out of descriptors
            print(f"note: '{words}' in virtiofsd: status {done[1]}: {done[3].strip() if len(done) > 3 else ''}")
            return float("nan")
        if done[1] != "0":
            sys.exit(f"'{words}' in {where}: status {done[1]}: {done[3] if len(done) > 3 else ''}")
        return int(done[2]) / 1e9

    def settle(self):
        """Until nobody works any more. A guest that drops its caches forgets the files of both servers, thousands of requests, which it
        sends later: whoever comes next would pay for both."""
        pids, end, before = [self.p.pid, self.daemon.pid, self.server.p.pid], time.monotonic() + SETTLE_S, None
        while time.monotonic() < end:
            now = sum(processor_time(p) for p in pids)
            if before is not None and now - before < QUIET:
                return
            before = now
            time.sleep(SPAN_S)
        sys.exit("the machine does not come to rest")

    def end(self):
        """Also after a failure: nothing of it stays."""
        for p in (self.p, self.daemon, self.server.p):
            p.kill()
            p.wait()
        shutil.rmtree(self.host, ignore_errors=True)


def processors():
    """As bac itself: where QEMU before 8.1 emulates there is one CPU, and it must not think itself alone."""
    said = subprocess.run(["qemu-system-x86_64", "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    found = re.search(r"version (\d+)\.(\d+)", said)
    return os.environ.get("BENCH_CPUS") or ("2" if found and (int(found[1]), int(found[2])) >= (8, 1) else "1,maxcpus=2")


def clock():
    """The host's clock rate for an emulated kernel, as bac itself measures it."""
    probe = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac/probe.json"
    khz = json.load(open(probe)).get("tsc_khz") if probe.exists() else None
    return f"tsc_early_khz={khz} lpj={khz * 4}" if khz else ""


def bench(m, jobs):
    drop = "sync; for i in 1 2 3; do echo 3 >/proc/sys/vm/drop_caches; done"  # what was just in use has a second chance
    for name, kind, cold, before, work in jobs:
        took = {"disk": [], "bac": [], "virtiofsd": []}
        own = []
        for n in range(RUNS):
            order = list(took)[n % 3:] + list(took)[:n % 3]
            for where in order:
                if name == "rm":  # needs something to remove each time
                    m.run(where, "rm -rf untar; mkdir untar; tar -C untar -xf /scratch/tree.tar")
                elif before:
                    m.run(where, before)
                m.run(where, drop if cold else "sync", root=True)
                m.settle()
                begin = m.server.took()
                took[where].append(m.run(where, work))
                if where == "bac":
                    own.append(m.server.took() - begin)
        d, b, v = (statistics.median(took[w]) for w in took)
        o = statistics.median(own)
        print(f"{name:<10} disk {d:7.3f} s  bac {b:7.3f} s  virtiofsd {v:7.3f} s   of the disk {b / d:5.2f} "
              f"(target {2 if kind == 'r' else 3})   of virtiofsd {b / v:5.2f} (target 1)   server {o:6.3f} s, without it {(b - o) / d:5.2f}", flush=True)


def main():
    chosen = [j for j in JOBS if not sys.argv[2:] or j[0] in sys.argv[2:]]
    kdir, root = kernel(), cached("templates", "root.erofs")[0] / "root.erofs"
    if not (BAC.parent / "bac-workspace").exists():
        skip("no bac-workspace beside bac")
    if os.geteuid() != 0:
        skip("virtiofsd of QEMU 7.2 runs as root only")
    with tempfile.TemporaryDirectory(prefix="bac-bench-") as t:
        tmp = pathlib.Path(t)
        make_disk(tmp)
        make_initrd(tmp, kdir)
        m = Machine(tmp, kdir, root)
        try:
            bench(m, chosen)
        finally:
            m.end()


main()
