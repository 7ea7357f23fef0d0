#!/usr/bin/env python3
"""10,000 connections through one bac-proxy at once, in which nothing happens: its memory, and that it sleeps.

idle.py BAC BAC-PROXY        in a sandbox made for it, as its root: there nobody limits descriptors (the proxy needs 20,000)
idle.py --here BAC-PROXY     on this kernel, for whoever may have so many

Tunnels of the forward proxy, each with a byte there and back. BENCH_IDLE (10000) of them. Targets: 100 MiB for all, no processor
time. The loopback of the guest is the network: no tap, no rules, no other namespace. Exits with 77 where there is no template.
"""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "proxy")]
import rig  # noqa: E402

COUNT = int(os.environ.get("BENCH_IDLE", "10000"))
ASK = b"CONNECT a.test:8007 HTTP/1.1\r\nHost: a.test:8007\r\n\r\n"
ECHO = """
import select, socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 8007))
s.listen(4096)
print("ready", flush=True)
e, c = select.epoll(), {}
e.register(s, select.EPOLLIN)
while True:
    for fd, _ in e.poll():
        if fd == s.fileno():
            n, _ = s.accept()
            c[n.fileno()] = n
            e.register(n, select.EPOLLIN)
        elif data := c[fd].recv(4096):
            c[fd].send(data)
        else:
            c.pop(fd).close()
"""


class Here:
    """Takes the place of a network namespace."""
    fd = -1

    def inside(self):
        return contextlib.nullcontext()

    def end(self):
        pass


class Loop(rig.Rig):
    def network(self):
        rig.sh(f"ip link set lo up; ip addr add {rig.GATEWAY}/32 dev lo")
        self.sockets = [socket.create_server((rig.GATEWAY, 3128), backlog=4096),
                        socket.create_server((rig.GATEWAY, 5300)),
                        socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]


def tunnels(r):
    socks = []
    for _ in range(COUNT):
        s = socket.create_connection((rig.GATEWAY, 3128), 60)
        s.sendall(ASK)
        if b" 200" not in rig.read_until(s):
            raise rig.Failed("CONNECT is refused")
        s.sendall(b"\1")
        assert s.recv(1) == b"\1"
        socks.append(s)
    return socks


def here(program):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * COUNT, 4 * COUNT))
    rig.Namespace = Here
    server = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    server.stdout.readline()
    r = Loop(program, ["allow a.test"], connect=["a.test:8007=127.0.0.1:8007"], keep=False)
    before, start = r.rss(), time.monotonic()
    socks = tunnels(r)
    took, rss, cpu = time.monotonic() - start, r.rss(), r.cpu()
    fds = len(os.listdir(f"/proc/{r.process.pid}/fd"))
    time.sleep(5)
    cpu = r.cpu() - cpu
    for s in socks:  # all are there still
        s.sendall(b"\2")
    assert all(s.recv(1) == b"\2" for s in socks)
    print(f"idle     {len(socks)} connections at once ({fds} descriptors of the proxy, made in {took:.0f} s): {rss / 1024:.1f} MiB, "
          f"{(rss - before) * 1024 // len(socks)} bytes each; {cpu:.2f} s of processor in 5 s; target 100 MiB, 0")
    server.kill()
    return 0


def in_a_sandbox(bac, program):
    def run(*words):
        return subprocess.run([bac, *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    if not json.loads(run("template", "ls", "--json"))["templates"]:
        print("skipped: no template in the cache: run 'bac template build'")
        return 77
    state = tempfile.mkdtemp(prefix="bac.", dir="/var/tmp")
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_RUNTIME_DIR"] = state
    try:
        run("create", "--name", "idle", "-q", "-m", "2g", "--network", "none", "shell")
        for path in (pathlib.Path(program), HERE / "idle.py", HERE.parent / "proxy/rig.py"):
            run("cp", str(path), f"idle:/tmp/bench/{path.name}")
        print(run("exec", "-u", "root", "-e", f"BENCH_IDLE={COUNT}", "idle", "python3", "/tmp/bench/idle.py", "--here",
                  f"/tmp/bench/{pathlib.Path(program).name}"), end="", flush=True)
    finally:
        subprocess.run([bac, "rm", "--force", "idle"], capture_output=True)
        shutil.rmtree(state, ignore_errors=True)
    return 0


sys.exit(here(sys.argv[2]) if sys.argv[1] == "--here" else in_a_sandbox(*sys.argv[1:]))
