#!/usr/bin/env python3
"""What the log costs. Argument: bac-audit. BENCH_SECONDS (60): how long the steady part takes.

steady     1,000 receipts a second, each a datagram of its own and answered: processor time of bac-audit, and how long a receipt
           takes until it is in the file
most       as many as it takes, one receipt a datagram and 32 a datagram
plain      the same bytes written by one process that does nothing else, in pieces of 64 KiB
"""
import os
import pathlib
import select
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "audit"))
import rig

RATE = 1000
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
ONE = rig.record(kind="http", allowed=True, port=443, flow=1234567, host="registry.example.com", address="192.0.2.17",
                 method="GET", path="/packages/some/package/name", rule="01234567-89ab-cdef-0123-456789abcdef",
                 reason="domain-allowed")


def cpu_s(pid):
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def switches(pid):
    return sum(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
               if "ctxt_switches" in line)


def size(log):
    return sum(p.stat().st_size for p in pathlib.Path(log).glob("*.jsonl"))


def steady(program, log):
    a = rig.Audit(program, log, total_size=1 << 40)
    total = int(RATE * SECONDS)
    sent_at = []
    waits = []
    a.send(ONE)
    a.wait(1)
    base, cpu, start = 1, cpu_s(a.pid), time.monotonic()
    while len(waits) < total:
        now = time.monotonic()
        while len(sent_at) < total and start + len(sent_at) / RATE <= now:
            sent_at.append(time.monotonic())
            a.send(ONE)
        left = start + len(sent_at) / RATE - time.monotonic() if len(sent_at) < total else 1
        if select.select([a.proxy], [], [], max(left, 0))[0]:
            a.written = int.from_bytes(a.proxy.recv(64), "big")
            now = time.monotonic()
            waits += [now - sent_at[i] for i in range(len(waits), a.written - base)]
    took = time.monotonic() - start
    cpu = cpu_s(a.pid) - cpu
    waits.sort()
    print(f"steady: {total / took:.0f} receipts a second for {took:.0f} s: {100 * cpu / took:.2f} % of one core "
          f"({cpu / total * 1e6:.1f} us a receipt), answered after {waits[total // 2] * 1e6:.0f} us (half), "
          f"{waits[total * 99 // 100] * 1e6:.0f} us (99 %), {waits[-1] * 1e6:.0f} us (all); "
          f"{rss_kib(a.pid)} KiB resident, {size(log) / total:.0f} bytes a receipt")
    time.sleep(0.5)  # head follows
    before = switches(a.pid)
    time.sleep(3)
    print(f"idle: {switches(a.pid) - before} wake-ups in 3 s")
    a.end()


def most(program, log, batch):
    a = rig.Audit(program, log, total_size=1 << 40)
    datagram = ONE * batch
    sent, start, window = 0, time.monotonic(), 64 * batch
    while time.monotonic() < start + 5:
        while sent - a.written < window:
            a.proxy.send(datagram)
            sent += batch
        a.written = int.from_bytes(a.proxy.recv(64), "big")
    a.wait(sent)
    took, cpu, n = time.monotonic() - start, cpu_s(a.pid), size(log)
    print(f"most, {batch:2} a datagram: {sent / took:.0f} receipts a second, {n / took / 1e6:.0f} MB/s, "
          f"{cpu / sent * 1e6:.2f} us of processor time a receipt")
    a.end()
    return n, took


def plain(log, n, top):
    data = b"".join(p.read_bytes() for p in sorted(pathlib.Path(log).glob("*.jsonl")))
    fd = os.open(f"{top}/plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    start, cpu = time.monotonic(), time.process_time()
    for at in range(0, len(data), 65536):
        os.write(fd, data[at:at + 65536])
    took, cpu = time.monotonic() - start, time.process_time() - cpu
    os.close(fd)
    print(f"plain: the same {n / 1e6:.0f} MB in {took:.2f} s, {n / took / 1e6:.0f} MB/s, {cpu:.2f} s of processor time")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as top:
        steady(program, f"{top}/steady")
        most(program, f"{top}/one", 1)
        n, _ = most(program, f"{top}/many", 32)
        plain(f"{top}/many", n, top)


main()
