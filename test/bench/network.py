#!/usr/bin/env python3
"""How fast bytes get from a guest to a server and back: through the proxy, against plain routing.

network.py BAC    BENCH_MIB (default 512) each way, BENCH_RUNS (default 3)

Both guests are the same kernel under the same QEMU with the same device, and send with the same program (busybox). One is a
sandbox: its bytes end at the proxy, which dials the server. The other is a machine that says nothing else, whose tap is
routed into a network namespace where the server is. Target: 0.9 of plain routing.
Needs root (namespaces, taps, routes) and a static busybox. Exits with 77 where it cannot run.
"""
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
