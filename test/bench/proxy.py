#!/usr/bin/env python3
"""What bac-proxy costs, beside squid and tinyproxy, in one run. No machine: two network namespaces and one processor's noise.

proxy.py BAC-PROXY BAC-AUDIT

The same client (wrk, curl, iperf3) in the guest's namespace, the same nginx in the other; each proxy a veth away.
bac-proxy decides by a policy of 500 rules and has each request written to the log by bac-audit before it goes on; squid
and tinyproxy run without a log and, squid, without a cache. The ways take turns, BENCH_RUNS (default 3) times; the medians count.
BENCH_S (default 5) is the length of one measurement. Columns: 50 connections that stay (with the proxy's own processor time
a request), one connection, connections that are new for each request, 1 GiB (with its processor time), memory of an idle
tunnel. Exits with 77 where something is missing, and says what.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "proxy"))
import rig  # noqa: E402

PROXY, AUDIT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
SECONDS = int(os.environ.get("BENCH_S", "5"))
SERVER, NEAR = "93.184.216.34", "172.31.0.1"
IDLE = 2000
work = tempfile.mkdtemp(prefix="bac-bench-")
os.chmod(work, 0o777)

NGINX = """
user root; worker_processes 1; error_log {work}/nginx.log; pid {work}/nginx.pid; daemon off;
events {{ worker_connections 16384; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s; sendfile on; tcp_nopush on;
  client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
  server {{ listen 80; listen 8443; root {work}/www; location = /small {{ return 200 "hello, hello, hello\\n"; }} }} }}
"""
SQUID = """
http_port {near}:3129
acl all_ports port 1-65535
http_access allow all
cache deny all
access_log none
cache_log {work}/squid.log
pid_filename {work}/squid.pid
coredump_dir {work}
cache_effective_user proxy
workers 1
shutdown_lifetime 0 seconds
dns_nameservers 9.9.9.9
max_filedescriptors 16384
pinger_enable off
netdb_filename none
"""
TINYPROXY = """
Port 3130
Listen {near}
Timeout 600
MaxClients 10000
LogLevel Critical
LogFile "{work}/tiny.log"
Allow 0.0.0.0/0
"""


def need():
    for program in ("wrk", "nginx", "curl", "iperf3", "squid", "tinyproxy"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"no {program}"
    return rig.missing()


def world():
    rig.sh(f"ip link set lo up; ip addr add 9.9.9.9/32 dev lo; ip addr add {SERVER}/32 dev lo")
    os.mkdir(work + "/www")
    with open(work + "/www/big", "wb") as f:
        f.truncate(1 << 30)
    conf = {"nginx.conf": NGINX, "squid.conf": SQUID, "tiny.conf": TINYPROXY}
    for name, body in conf.items():
        pathlib.Path(work, name).write_text(body.format(work=work, near=NEAR), encoding="ascii")
    return [subprocess.Popen(["nginx", "-c", work + "/nginx.conf"], stderr=subprocess.DEVNULL)]


def tree_rss(pid):
    """KiB of a process and its children."""
    total, todo = 0, [pid]
    while todo:
        p = todo.pop()
        try:
            with open(f"/proc/{p}/status", encoding="ascii") as f:
                total += next((int(x.split()[1]) for x in f if x.startswith("VmRSS")), 0)
            with open(f"/proc/{p}/task/{p}/children", encoding="ascii") as f:
                todo += map(int, f.read().split())
        except FileNotFoundError:
            pass
    return total


LUA = """
wrk.method = "GET"
local path = "{path}"
request = function() return wrk.format("GET", path, {{["Host"] = "a.test"{more}}}) end
done = function(s, l, r)
  io.write(string.format("@@ %d %d %d %d %d %d\\n", s.requests, s.duration, l:percentile(50), l:percentile(99),
    s.errors.connect + s.errors.read + s.errors.write + s.errors.timeout, s.errors.status))
end
"""


def wrk(r, to, path, connections, close=False):
    """(requests/s, p50 us, p99 us, requests)"""
    script = pathlib.Path(work, "wrk.lua")
    script.write_text(LUA.format(path=path, more=', ["Connection"] = "close"' if close else ""), encoding="ascii")
    done = r.guest.popen(["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "-s", str(script), f"http://{to}"],
                         stdout=subprocess.PIPE, text=True)
    out = done.communicate()[0]
    found = re.search(r"@@ (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", out)
    if not found or int(found[6]):
        raise rig.Failed("wrk: " + out)
    n, us, p50, p99, errors, _ = map(int, found.groups())
    if not n or (errors > n // 100 and not close):
        raise rig.Failed("wrk: " + out)
    return n * 1e6 / us, p50, p99, n


def idle(r, to, port, pid, host):
    """Bytes of memory for each tunnel in which nothing happens."""
    before, socks = tree_rss(pid), []
    for _ in range(IDLE):
        s = r.connect(to, port, 20)
        s.sendall(f"CONNECT {host}:8443 HTTP/1.1\r\nHost: {host}:8443\r\n\r\n".encode())
        if b" 200" not in rig.read_until(s):
            raise rig.Failed("CONNECT is refused")
        socks.append(s)
    time.sleep(0.5)
    each = (tree_rss(pid) - before) * 1024 // len(socks)
    for s in socks:
        s.close()
    return each


def download(r, args):
    """MB/s of 1 GiB."""
    out = r.guest.popen(["curl", "-sS", "-o", "/dev/null", "-w", "%{speed_download}", *args], stdout=subprocess.PIPE,
                        text=True).communicate()[0]
    return float(out or 0) / 1e6


def iperf(r, to, reverse):
    """Gbit/s"""
    out = r.guest.popen(["iperf3", "-J", "-c", to, "-t", str(SECONDS), *(["-R"] if reverse else [])],
                        stdout=subprocess.PIPE, text=True).communicate()[0]
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e9


class Way:
    """One road from the guest to nginx."""

    def __init__(self, name, to, port, path, pid, through, tunnel=None, keep=True):
        self.name, self.to, self.port, self.path, self.pid = name, to, port, path, pid
        self.through, self.tunnel, self.keep = through, tunnel, keep
        self.figures = {}

    def note(self, what, value):
        self.figures.setdefault(what, []).append(value)

    def median(self, what):
        return statistics.median(self.figures[what]) if what in self.figures else None

    def load(self, r, what, connections, close):
        cpu = tree_cpu(self.pid)
        rps, p50, p99, n = wrk(r, f"{self.to}:{self.port}", self.path, connections, close or not self.keep)
        self.note(what + "rps", rps)
        self.note(what + "p50", p50)
        self.note(what + "p99", p99)
        if self.pid:
            self.note(what + "cpu", (tree_cpu(self.pid) - cpu) * 1e6 / n)

    def run(self, r):
        self.load(r, "many ", 50, False)
        self.load(r, "one ", 1, False)
        self.load(r, "new ", 20, True)
        cpu = tree_cpu(self.pid)
        self.note("mb", download(r, self.through))
        if self.pid:
            self.note("cpu a GiB", (tree_cpu(self.pid) - cpu) * 1000)


def tree_cpu(pid):
    """Seconds of a process and the children it has now."""
    total, todo = 0, [pid] if pid else []
    while todo:
        p = todo.pop()
        try:
            with open(f"/proc/{p}/stat", encoding="ascii") as f:
                words = f.read().rsplit(")", 1)[1].split()
            total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
            with open(f"/proc/{p}/task/{p}/children", encoding="ascii") as f:
                todo += map(int, f.read().split())
        except FileNotFoundError:
            pass
    return total


def ways(r, kids):
    url, big = "http://a.test/small", "http://a.test:8443/big"
    inside = r.address("a.test")
    out = [Way("direct", NEAR, 80, "/small", None, [f"http://{NEAR}:8443/big"]),
           Way("bac-proxy, forward", rig.GATEWAY, 3128, url, r.process.pid,
               ["-p", "-x", f"http://{rig.GATEWAY}:3128", big], tunnel="a.test"),
           Way("bac-proxy, transparent", inside, 80, "/small", r.process.pid, [big, "--resolve", f"a.test:8443:{inside}"])]
    for name, port, command in (("squid", 3129, ["squid", "-N", "-n", "bacbench", "-f", work + "/squid.conf"]),
                                ("tinyproxy", 3130, ["tinyproxy", "-d", "-c", work + "/tiny.conf"])):
        kids.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        rig.wait_port(NEAR, port)
        host = SERVER if name == "tinyproxy" else "a.test"  # it looks names up as the machine does
        out.append(Way(name, NEAR, port, f"http://{host}/small", kids[-1].pid,
                       ["-p", "-x", f"http://{NEAR}:{port}", f"http://{host}:8443/big"], tunnel=host, keep=name != "tinyproxy"))
    return out


COLUMNS = [("req/s", "many rps"), ("p50 us", "many p50"), ("p99 us", "many p99"), ("cpu us", "many cpu"), ("1: p50", "one p50"),
           ("1: p99", "one p99"), ("conn/s", "new rps"), ("cpu us", "new cpu"), ("MB/s", "mb"), ("ms/GiB", "cpu a GiB"),
           ("idle B", "idle")]


def show(rows):
    print(" " * 24 + "".join(f"{head:>8}" for head, _ in COLUMNS))
    for x in rows:
        got = [x.median(key) for _, key in COLUMNS]
        print(f"{x.name:24}" + "".join(f"{'':>8}" if v is None else f"{v:8.0f}" for v in got))


def measure(r, kids):
    r.guest.sh("sysctl -qw net.ipv4.tcp_tw_reuse=1")
    rig.sh("sysctl -qw net.ipv4.tcp_tw_reuse=1 net.ipv4.ip_local_port_range=\"1024 65000\"")
    rig.sh(f"ip link add near0 type veth peer name near1; ip link set near1 netns {r.guest.holder.pid}; "
           f"ip addr add {NEAR}/30 dev near0; ip link set near0 up")
    r.guest.sh("ip addr add 172.31.0.2/30 dev near1; ip link set near1 up")
    rig.wait_port(SERVER, 80)
    rows = ways(r, kids)
    for _ in range(RUNS):
        for w in rows:
            w.run(r)
    for w in rows:
        if w.tunnel:
            w.note("idle", idle(r, w.to, w.port, w.pid, w.tunnel))
    show(rows)
    kids.append(subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    rig.wait_port(SERVER, 5201)
    time.sleep(0.5)
    inside = r.address("a.test")
    for reverse in (False, True):
        pairs = [(iperf(r, NEAR, reverse), iperf(r, inside, reverse)) for _ in range(3)]
        direct, through = (statistics.median(x) for x in zip(*pairs))
        print(f"iperf3 {'to' if reverse else 'from'} the guest: direct {direct:.1f}, through bac-proxy {through:.1f} Gbit/s: "
              f"{through / direct:.2f}")


def main():
    why = need()
    if why:
        print("skipped: " + why)
        return 77
    rig.alone()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    kids = world()
    rig.Names({"a.test": [SERVER]})
    rig.Audit = lambda keep: rig.RealAudit(AUDIT, work + "/log")
    rules = [f"allow **.x{i}.example:443" for i in range(499)] + ["allow a.test"]
    r = rig.Rig(PROXY, rules)
    try:
        start = time.monotonic()
        measure(r, kids)
        print(f"processor: bac-proxy {r.cpu():.1f} s, bac-audit {r.audit.cpu():.1f} s of {time.monotonic() - start:.0f} s; "
              f"the log: {sum(f.stat().st_size for f in pathlib.Path(work, 'log').iterdir()) >> 20} MiB")
    finally:
        for k in kids:
            k.kill()
            k.wait()
        r.audit.end()
        r.audit.sock = socket.socket()
        print(r.end(), end="")
        shutil.rmtree(work)
    return 0


sys.exit(main())
