#!/usr/bin/env python3
"""How fast bytes get from a guest to a server and back: through the proxy, against plain routing.

network.py BAC    BENCH_MIB (default 512) each way, BENCH_RUNS (default 3)

Both guests are the same kernel under the same QEMU with the same device, and send with the same program (busybox). One is a
sandbox: its bytes end at the proxy, which dials the server. The other is a machine that says nothing else, whose tap is
routed into a network namespace where the server is. Target: 0.9 of plain routing.
Needs root (namespaces, taps, routes) and a static busybox. Exits with 77 where it cannot run.
"""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

BAC = sys.argv[1]
MIB = int(os.environ.get("BENCH_MIB", "512"))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
NAME = f"bench{os.getpid()}"
SPACE = f"bench{os.getpid()}"
BLOCK = b"\0" * (1 << 20)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def bac(*words, **kw):
    return subprocess.run([BAC, *words], check=True, capture_output=True, text=True, **kw).stdout


def sh(text):
    subprocess.run(text, shell=True, check=True)


class Server(threading.Thread):
    """Each connection says with its first byte which way: U it sends, D it wants MIB. Keeps bytes per second."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.done = []
        self.there = threading.Condition()
        self.start()

    def run(self):
        while True:
            s, _ = self.listener.accept()
            with s:
                first, n = s.recv(1), 0
                start = time.monotonic()
                if first == b"U":
                    while got := s.recv(1 << 20):
                        n += len(got)
                elif first == b"D":
                    for _ in range(MIB):
                        s.sendall(BLOCK)
                        n += len(BLOCK)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                took = time.monotonic() - start
            with self.there:
                self.done.append(n / took / 1e6)
                self.there.notify()

    def rate(self, deadline=600):
        with self.there:
            if not self.there.wait_for(lambda: self.done, deadline):
                raise SystemExit("no bytes came")
            return self.done.pop(0)


def job(way, host, port):
    """For busybox's shell. nc ends when the other side does."""
    if way == "U":
        return f"(printf U; $B dd if=/dev/zero bs=1048576 count={MIB} 2>/dev/null) | $B nc {host} {port} >/dev/null"
    return f"(printf D; exec $B sleep 1000) | $B nc {host} {port} >/dev/null & $B sleep 1000 & wait %1"


def kernel():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac/kernels"
    for d in sorted(cache.iterdir()):
        if (d / "kernel.json").exists() and json.load(open(d / "kernel.json")).get("kind") == "minimal":
            return d / "vmlinux"
    return None


def plain_initrd(tmp, script):
    prog = shutil.which("busybox")
    root = tmp / "root"
    for d in ("bin", "dev", "proc", "sys"):
        (root / d).mkdir(parents=True, exist_ok=True)
    shutil.copy(prog, root / "bin/busybox")
    (root / "init").write_text(f"""#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs dev /dev
$B mount -t proc proc /proc
$B ip link set lo up
$B ip address add 10.99.0.2/30 dev eth0
$B ip link set eth0 up
$B ip route add default via 10.99.0.1
{script}
$B poweroff -f
""")
    (root / "init").chmod(0o755)
    sh(f"cd {root} && mknod dev/console c 5 1 2>/dev/null; find . | cpio -o -H newc --quiet >../initrd")
    return tmp / "initrd"


def tap(name):
    """A tap in our namespace, as bac makes it: with the header that lets large segments pass."""
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name.encode(), 0x0002 | 0x1000 | 0x4000))
    return fd


def plain(tmp, words, about, way, server):
    """The machine that is routed: one boot for one transfer."""
    initrd = plain_initrd(tmp, job(way, "10.99.1.2", server.port))
    fd = tap("benchtap")
    sh("ip address add 10.99.0.1/30 dev benchtap; ip link set benchtap up")
    p = subprocess.Popen(
        ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M",
         "microvm,acpi=on,isa-serial=on,x-option-roms=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp",
         str(about["cpus"]), "-m", str(about["memory"] >> 20), "-kernel", str(kernel()), "-initrd", str(initrd), "-serial",
         "null", "-bios", "qboot.rom", "-global", "virtio-mmio.force-legacy=false", "-netdev", f"tap,id=net,fd={fd},vhost=off",
         "-device", "virtio-net-device,netdev=net", "-append", f"quiet {words}"],
        stdin=subprocess.DEVNULL, pass_fds=[fd])
    try:
        return server.rate()
    finally:
        p.kill()
        p.wait()
        os.close(fd)


def sandbox(way, server):
    p = subprocess.Popen([BAC, "exec", NAME, "sh", "-c", "B=/tmp/busybox; " + job(way, "server.example", server.port)],
                         stdin=subprocess.DEVNULL)
    try:
        return server.rate()
    finally:
        p.kill()
        p.wait()
        bac("exec", NAME, "/tmp/busybox", "killall", "busybox", "nc", "sleep")


def in_space(what):
    """Run in the namespace where the routed server is: a thread of ours enters it to make its socket."""
    out = []

    def enter():
        fd = os.open(f"/run/netns/{SPACE}", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)
        out.append(what())

    t = threading.Thread(target=enter)
    t.start()
    t.join()
    return out[0]


def main():
    if os.geteuid() != 0:
        skip("needs root, for taps and routes")
    if not kernel():
        skip("no minimal kernel in the cache: run 'bac kernel build'")
    if not shutil.which("busybox") or b"/ld-" in open(shutil.which("busybox"), "rb").read(4096):
        skip("no static busybox (package busybox-static)")
    near = Server("127.0.0.1")
    bac("settings", "set", "net.connectTo", f"server.example:{near.port}=127.0.0.1:{near.port}")
    bac("policy", "init", "deny-all")
    bac("create", "--name", NAME, "-q", "-m", "1g", "--allow-network", f"server.example:{near.port}",
        "--allow-network", f"localhost:{near.port}", "shell")
    sh(f"ip netns add {SPACE} && ip link add benchv type veth peer name eth0 netns {SPACE} && "
       f"ip address add 10.99.1.1/30 dev benchv && ip link set benchv up && ip -n {SPACE} address add 10.99.1.2/30 dev eth0 "
       f"&& ip -n {SPACE} link set eth0 up && ip -n {SPACE} route add default via 10.99.1.1")
    forward = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
    was = forward.read_text()
    try:
        forward.write_text("1")
        far = in_space(lambda: Server("10.99.1.2"))
        bac("cp", shutil.which("busybox"), f"{NAME}:/tmp/busybox")
        line = bac("exec", NAME, "cat", "/proc/cmdline").split()
        words = " ".join(w for w in line if not w.startswith(("console", "quiet", "bac.")))
        about = json.loads(bac("inspect", "--json", NAME))
        for way, what in ("U", "to host"), ("D", "to guest"):
            ours, routed = [], []
            for _ in range(RUNS):
                ours.append(sandbox(way, near))
                with tempfile.TemporaryDirectory(dir="/var/tmp") as t:
                    routed.append(plain(pathlib.Path(t), words, about, way, far))
            m, p = statistics.median(ours), statistics.median(routed)
            print(f"{what:<10} {m:>8.0f} MB/s   against plain routing {p:.0f} MB/s  ratio {m / p:.2f}  target 0.90", flush=True)
    finally:
        forward.write_text(was)
        subprocess.run(f"ip netns del {SPACE}", shell=True)
        bac("rm", "--force", NAME)


main()
