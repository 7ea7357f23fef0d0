#!/usr/bin/env python3
"""What a sandbox costs, each figure beside one to compare it with, taken in the same run.

life.py BAC PART...    PART: boot exec stream memory idle hundred (default: all but hundred)

boot     cold start to the first reply of exec, against QEMU booting the same kernel to a busybox that says
         one word: on the same devices with the same root mounted (target: 1.25 times), and on a machine with
         no device at all
exec     round trip of /bin/true: median of 400, and the host's share (processor time of bac and its supervisor,
         as the kernel counts it for each process)
stream   bytes per second through exec's stdout, against a pipe inside the guest
memory   resident memory of our processes for one sandbox (target: 8 MiB), against QEMU's
idle     wake-ups of our processes in 10 quiet seconds (target: 0), against QEMU's
hundred  100 boots in a row: how many hung or were repeated (target: none)

BENCH_RUNS (default 7) is how often boot is repeated. Exits with 77 where there is no template.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BAC = sys.argv[1]
RUNS = int(os.environ.get("BENCH_RUNS", "7"))
NAME = f"bench{os.getpid()}"


def bac(*words, **kw):
    return subprocess.run([BAC, *words], check=True, capture_output=True, text=True, **kw).stdout


def row(what, value, unit, against, ratio, target):
    print(f"{what:<10} {value:>10} {unit:<6} against {against}  ratio {ratio}  target {target}", flush=True)


def inspect():
    return json.loads(bac("inspect", "--json", NAME))


def supervisor():
    directory = inspect()["directory"]
    return json.load(open(f"{directory}/run.json"))["pid"]


def kernel():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac/kernels"
    known = []
    for d in cache.iterdir():
        if not d.name.startswith(".") and (d / "vmlinux").exists():
            known.append((json.load(open(d / "kernel.json")), d / "vmlinux"))
    known.sort(key=lambda one: (one[0].get("kind") == "minimal", one[0]["version"], one[0]["created"]))
    return known[-1][1]  # as bac chooses: a minimal one, not of an older bac if there is another, the newest


def template():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac/templates"
    return cache / inspect()["template"]["digest"] / "root.erofs"


def tsc_words():
    """The words about the clock that bac itself uses, from a guest's command line."""
    line = bac("exec", NAME, "cat", "/proc/cmdline").split()
    return " ".join(w for w in line if not w.startswith(("console", "quiet", "bac.")))


def processor(about):
    """QEMU's words about the processor, as bac itself has them."""
    line = pathlib.Path(f"/proc/{about['qemu_pid']}/cmdline").read_text().split("\0")
    return [w for option in ("-accel", "-cpu", "-smp") for w in (option, line[line.index(option) + 1])]


def busybox(tmp):
    """An initramfs of nothing but busybox: the least that can say a word."""
    prog = shutil.which("busybox")
    if not prog or b"/ld-" in open(prog, "rb").read(4096):  # it asks for a loader: not static
        return None
    root = tmp / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(prog, root / "bin/busybox")
    (root / "init").write_text("""#!/bin/busybox sh
if [ -n "$mount_root" ]; then
    set -e
    /bin/busybox mount -t devtmpfs dev /dev
    /bin/busybox mount -t proc proc /proc
    /bin/busybox mount -t sysfs sys /sys
    /bin/busybox mount -r -t erofs /dev/vda /lower
    /bin/busybox mount -t ext4 /dev/vdb /disk
    /bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/disk/upper,workdir=/disk/work root /root
fi
echo up
/bin/busybox poweroff -f
""")
    (root / "init").chmod(0o755)
    for d in ("dev", "proc", "sys", "lower", "disk", "root"):
        (root / d).mkdir()
    subprocess.run("mknod dev/console c 5 1 2>/dev/null; find . | cpio -o -H newc --quiet >../initrd", shell=True,
                   check=True, cwd=root)
    return tmp / "initrd"


def devices(tmp, about):
    """The devices of our machine, as far as QEMU serves them by itself: the workspace server is one more."""
    disk = tmp / "disk.img"
    subprocess.run(["cp", "--sparse=always", f"{about['directory']}/disk.img", disk], check=True)
    words = ["-global", "virtio-mmio.force-legacy=false", "-chardev", "null,id=ctl", "-device",
             "virtio-serial-device,max_ports=2", "-device", "virtserialport,chardev=ctl,name=ctl"]
    for name, path, more in ("root", template(), ",read-only=on"), ("disk", disk, ""):
        words += ["-drive", f"if=none,id={name},format=raw,file={path}{more}", "-device", f"virtio-blk-device,drive={name}"]
    return words


def plain_boot(initrd, words, about, cpu, more=()):
    start = time.monotonic()
    p = subprocess.Popen(
        ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M",
         "microvm,acpi=on,isa-serial=on,x-option-roms=off", *cpu, "-m", str(about["memory"] >> 20), "-kernel",
         str(kernel()), "-initrd", str(initrd), "-serial", "stdio", "-bios", "qboot.rom", *more, "-append", f"console=ttyS0 quiet {words}" + " mount_root=1" * bool(more)],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    took = None
    for line in p.stdout:
        if b"up" in line:
            took = time.monotonic() - start
            break
    p.kill()
    p.wait()
    return took


def bench_boot():
    about = inspect()
    words, cpu = tsc_words(), processor(about)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as t:
        tmp = pathlib.Path(t)
        initrd = busybox(tmp)
        ours, same, plain, boots = [], [], [], []
        for _ in range(RUNS):
            bac("stop", NAME)
            start = time.monotonic()
            bac("exec", NAME, "true")
            ours.append(time.monotonic() - start)
            boots.append(inspect()["boot_seconds"])
            if initrd:
                bac("stop", NAME)
                same.append(plain_boot(initrd, words, about, cpu, devices(tmp, about)))
                plain.append(plain_boot(initrd, words, about, cpu))
    if not initrd or None in plain + same:
        print("boot: no static busybox (package busybox-static), or it did not boot: nothing to compare with")
        return
    m, s, p = (statistics.median(x) for x in (ours, same, plain))
    row("boot", f"{m:.3f}", "s", f"busybox with our devices and root {s:.3f} s", f"{m / s:.2f}", "1.25")
    row("", f"{m:.3f}", "s", f"busybox without devices {p:.3f} s", f"{m / p:.2f}", "-")
    print(f"           min {min(ours):.3f} max {max(ours):.3f}; QEMU's start to READY {statistics.median(boots):.3f} s; "
          f"kernel {kernel()}")


def cpu_ms(pid):
    """What a process had of the processors, to the nanosecond: /proc/PID/stat counts in hundredths of a second."""
    return int(open(f"/proc/{pid}/schedstat").read().split()[0]) / 1e6


def one_exec(pid):
    """Milliseconds of one command: as the clock goes, of bac's own, of the supervisor's."""
    sup, start = cpu_ms(pid), time.monotonic()
    # not subprocess: what Python does in the child before it executes would be counted as bac's
    child = os.posix_spawn(BAC, [BAC, "exec", NAME, "/bin/true"], os.environ)
    _, status, used = os.wait4(child, 0)
    took = (time.monotonic() - start) * 1000
    assert status == 0
    return took, (used.ru_utime + used.ru_stime) * 1000, cpu_ms(pid) - sup


def bench_exec():
    bac("exec", NAME, "true")  # the boots before left it stopped
    n, pid = 400, supervisor()
    every = [one_exec(pid) for _ in range(n)]
    took, own, sup = (sorted(x) for x in zip(*every))
    host = sorted(o + s for _, o, s in every)
    inside = bac("exec", NAME, "python3", "-c",
                 "import subprocess, time, statistics\nt=[]\nfor _ in range(50):\n s=time.monotonic();"
                 " subprocess.run(['/bin/true']); t.append(time.monotonic()-s)\nprint(statistics.median(t)*1000)")
    m = statistics.median(took)
    row("exec", f"{m:.2f}", "ms", f"inside {float(inside):.2f} ms", f"{m / float(inside):.2f}", "15 ms")
    print(f"           p99 {took[int(n * 0.99)]:.2f} ms; host's processor time: median {statistics.median(host):.2f} ms, "
          f"mean {statistics.mean(host):.2f} (bac {statistics.median(own):.2f}, supervisor {statistics.median(sup):.2f}), "
          f"p90 {host[int(n * 0.9)]:.2f}, target 1 ms")


def bench_stream():
    size = 256 << 20
    start = time.monotonic()
    p = subprocess.Popen([BAC, "exec", NAME, "head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE)
    got = 0
    while chunk := p.stdout.read(1 << 20):
        got += len(chunk)
    p.wait()
    rate = got / (time.monotonic() - start) / 1e6
    inside = bac("exec", NAME, "bash", "-c", f"s=$(date +%s%N); head -c {size} /dev/zero | cat >/dev/null; "
                 "e=$(date +%s%N); echo $((e - s))")
    there = size / int(inside) * 1000
    assert got == size
    row("stream", f"{rate:.0f}", "MB/s", f"pipe inside {there:.0f} MB/s", f"{rate / there:.2f}", "-")


def rss(pid):
    private = shared = 0
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Rss:"):
            shared = int(line.split()[1])
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            private += int(line.split()[1])
    return shared, private


def servers():
    """Our processes for the sandbox: the supervisor and all below it but QEMU."""
    parents, names = {}, {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{p}/stat").read()
        except OSError:
            continue
        names[int(p)] = stat.partition("(")[2].rpartition(")")[0]
        parents[int(p)] = int(stat.rpartition(")")[2].split()[1])
    ours = [supervisor()]
    for pid in ours:  # it grows
        ours += [p for p, parent in parents.items() if parent == pid and names[p].startswith("bac-")]
    return ours


def bench_memory():
    bac("exec", NAME, "true")
    each = [rss(p) for p in servers()]
    all_, own = (sum(e[i] for e in each) for i in (0, 1))
    qemu, _ = rss(inspect()["qemu_pid"])
    row("memory", f"{all_ / 1024:.1f}", "MiB", f"QEMU {qemu / 1024:.0f} MiB", f"{all_ / qemu:.3f}", "8 MiB")
    print(f"           of {len(each)} processes; {own / 1024:.1f} MiB are shared with no other")


def wakeups(pid):
    return sum(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if "ctxt_switches" in line)


def bench_idle():
    bac("exec", NAME, "true")
    time.sleep(2)
    ours, qemu = servers(), inspect()["qemu_pid"]
    time.sleep(1)
    before, q = sum(map(wakeups, ours)), wakeups(qemu)
    time.sleep(10)
    n, nq = sum(map(wakeups, ours)) - before, wakeups(qemu) - q
    row("idle", n, "/10 s", f"QEMU {nq}", f"{n / max(nq, 1):.3f}", "0")


def bench_hundred():
    log, times, tries = inspect()["directory"], [], 0
    for _ in range(100):
        bac("stop", NAME)
        start = time.monotonic()
        bac("exec", NAME, "true")
        times.append(time.monotonic() - start)
        tries += 1
    text = bac("logs", NAME)
    hung = text.count("did not come up") + text.count("ended before the guest was up")
    row("hundred", f"{statistics.median(times):.3f}", "s", f"max {max(times):.3f} s", hung, "no hang, no retry")


def main():
    if not json.loads(bac("template", "ls", "--json"))["templates"]:
        print("skipped: no template in the cache: run 'bac template build'")
        sys.exit(77)
    parts = sys.argv[2:] or ["boot", "exec", "stream", "memory", "idle"]
    state = tempfile.mkdtemp(prefix="bac.", dir="/var/tmp")
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = state
    try:
        bac("policy", "init", "deny-all")
        bac("create", "--name", NAME, "-q", "-m", os.environ.get("BENCH_MEMORY", "1g"), "shell")
        for part in parts:
            globals()[f"bench_{part}"]()
    finally:
        bac("rm", "--force", NAME)
        shutil.rmtree(state, ignore_errors=True)


main()
