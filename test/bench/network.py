#!/usr/bin/env python3
"""How fast a guest's bytes go to a server of the host through the proxy, against the same device without one.

network.py BAC PLAIN     PLAIN: test/bench/plain.c

Two sandboxes: one as it is, one in which PLAIN takes the place of bac-proxy: the same device with the same offloads, namespace
and listening socket, the host's own congestion control as a routed connection has it, and no second connection behind it. The same client in both. They take turns, and which of the two is first changes;
what counts is the median of the ratios of neighbours, since the rates of a small machine drift.
Target: 0.9 of the plain rate. BENCH_RUNS (15) pairs of BENCH_MIB (256) each. Exits with 77 where there is no template.
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

BAC, PLAIN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
RUNS, MIB = int(os.environ.get("BENCH_RUNS", "15")), int(os.environ.get("BENCH_MIB", "256"))
CLIENT = """
import socket, sys, time
host, port, what, n = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
piece = bytearray(1 << 20)
with socket.create_connection((host, port), 60) as s:
    begin = time.monotonic()
    if what == "get":
        s.sendall(b"get %d\\n" % n)
        got = 0
        while k := s.recv_into(piece):
            got += k
        assert got == n, got
    else:
        s.sendall(b"put\\n")
        for _ in range(n >> 20):
            s.sendall(piece)
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""
    print(n / (time.monotonic() - begin) / 1e6)
"""


def bac(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def main():
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="bench.", dir="/var/tmp"))
    server = None
    for name in ("STATE_HOME", "RUNTIME_DIR"):
        (tmp / name).mkdir(mode=0o700)
        os.environ[f"XDG_{name}"] = str(tmp / name)
    try:
        if not json.loads(bac(BAC, "template", "ls", "--json"))["templates"]:
            print("skipped: no template in the cache")
            return 77
        (tmp / "plain").mkdir()
        for program in BAC.parent.glob("bac*"):
            if program.is_file():
                shutil.copy(program, tmp / "plain")
        shutil.copy(PLAIN, tmp / "plain/bac-proxy")
        server = subprocess.Popen([PLAIN, tmp / "port"])
        while not (tmp / "port").exists() or not (tmp / "port").read_text().endswith("\n"):
            time.sleep(0.02)
        os.environ["BAC_NET_CONNECT_TO"] = f"speed.test:9=127.0.0.1:{(tmp / 'port').read_text().strip()}"
        bac(BAC, "policy", "init", "deny-all")
        bac(BAC, "create", "--name", "proxied", "-m", "512m", "--allow-network", "speed.test:9", "shell")
        bac(tmp / "plain/bac", "create", "--name", "plain", "-m", "512m", "shell")
        ways = [("proxied", "speed.test"), ("plain", "192.0.2.1")]
        for what in ("get", "put"):
            rates = {"proxied": [], "plain": []}
            for i in range(RUNS + 1):
                for name, host in ways[::1 if i % 2 else -1]:
                    rate = float(bac(BAC, "exec", name, "python3", "-c", CLIENT, host, "9", what, str(MIB << 20)))
                    if i:  # the first is for the emulator, which translates as it goes
                        rates[name].append(rate)
            a, b = (statistics.median(rates[name]) for name in ("proxied", "plain"))
            pairs = sorted(x / y for x, y in zip(rates["proxied"], rates["plain"]))
            print(f"{what:<8} {a:>8.1f} MB/s against {b:.1f} MB/s without a proxy  ratio {statistics.median(pairs):.2f} "
                  f"(quartiles {pairs[len(pairs) // 4]:.2f} to {pairs[len(pairs) * 3 // 4]:.2f})  target 0.9", flush=True)
        return 0
    finally:
        subprocess.run([BAC, "rm", "--all", "--force"], capture_output=True)
        if server:
            server.kill()
        shutil.rmtree(tmp, ignore_errors=True)


sys.exit(main())
