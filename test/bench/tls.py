#!/usr/bin/env python3
"""What it costs that bac-proxy opens TLS, beside squid with ssl-bump and mitmproxy, in one run. No machine: network namespaces.

tls.py BAC-PROXY BAC-AUDIT BENCH-TLS BENCH-RELAY [WAY...]

The same client (bench/tls.c: HTTP/1.1, a thread a connection) in the guest's namespace, the same nginx behind; each way is
a CONNECT of the client to a proxy that opens it. bac-proxy has a credential put on each request and each written to the
log by bac-audit before it goes on; squid runs without log and cache, mitmdump quiet. "bare" is bench/relay.c: the two ends of TLS and
nothing else: something to go by with few connections; with many a thread each is slower than one loop. "bare, asking" has two others that each request waits for, as bac-proxy has its
keeper and its log. Ways take turns BENCH_RUNS (default 3) times,
the medians count; BENCH_S (default 4) is the length of one measurement. Columns: new connections (handshake and one
request) a second; requests a second on 1, 32 and 256 connections that stay; time of a request on one warm connection, less that of the
straight way; MB/s of 256 MiB. bac-keeper lies beside bac-proxy. Exits with 77 where something is missing, and says what.
"""
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "proxy"))
import rig  # noqa: E402

PROXY, AUDIT, CLIENT, RELAY = (os.path.abspath(x) for x in sys.argv[1:5])
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
SECONDS = os.environ.get("BENCH_S", "4")
NET = "bac-net-policy 1\nr0\tsandbox\tallow\t-\t-\ta.test:9443\nend 1\n"
NEAR, BODY = "172.31.0.1", 256 << 20
WITH_US = ("setpriv", "--pdeathsig", "KILL")  # they end when this does
SERVICE = f"bactls{os.getpid()}"
CERTGEN = "/usr/lib/squid/security_file_certgen"

NGINX = """
user root; worker_processes 1; error_log {work}/nginx.log; pid {work}/nginx.pid; daemon off; master_process off;
events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s; sendfile on; tcp_nopush on;
  client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
  server {{ listen {server}:9443 ssl; ssl_certificate {work}/a.pem; ssl_certificate_key {work}/a.pem; root {work}/www;
    location = /small {{ return 200 "hello, hello, hello\\n"; }} }} }}
"""
SQUID = """
http_port {near}:3129 ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=16MB tls-cert={work}/ca.pem
sslcrtd_program {certgen} -s {work}/certs -M 16MB
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
tls_outgoing_options cafile={work}/public.pem
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


def need():
    for program in ("nginx", "squid", "mitmdump"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"no {program}"
    if not os.path.exists(CERTGEN):
        return "a squid without ssl-bump"
    return rig.missing()


why = need()
if why:
    print("skipped: " + why)
    sys.exit(77)
import opened  # noqa: E402
from cryptography.hazmat.primitives import serialization  # noqa: E402

work = opened.work


def private_pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def files():
    cert, key = opened.public.leaf(["a.test"])
    put = {"a.pem": cert.public_bytes(serialization.Encoding.PEM) + private_pem(key), "public.pem": opened.public.pem()}
    ca = opened.Authority("squid")
    put["ca.pem"] = ca.pem() + private_pem(ca.key)
    put["hosts"] = f"127.0.0.1 localhost\n{opened.A} a.test\n".encode()
    texts = {"nginx.conf": NGINX, "squid.conf": SQUID}
    for name, body in texts.items():
        put[name] = body.format(work=work, near=NEAR, server=opened.A, certgen=CERTGEN).encode()
    os.chmod(work, 0o777)
    for name, body in put.items():
        pathlib.Path(work, name).write_bytes(body)
    os.mkdir(work + "/www")
    with open(work + "/www/big", "wb") as f:
        f.truncate(BODY)


def world():
    files()
    rig.sh(f"ip link set lo up; ip addr add {opened.A}/32 dev lo; ip addr add 9.9.9.9/32 dev lo")
    rig.Names({"a.test": [opened.A]})
    kid = subprocess.Popen([*WITH_US, "nginx", "-c", work + "/nginx.conf"], stderr=subprocess.DEVNULL)
    rig.wait_port(opened.A, 9443)
    return [kid]


def squid():
    rig.sh(f"{CERTGEN} -c -s {work}/certs -M 16MB; chown -R proxy {work}/certs")
    return subprocess.Popen([*WITH_US, "squid", "-N", "-n", SERVICE, "-f", work + "/squid.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mitm():
    command = ["mitmdump", "-q", "--listen-host", NEAR, "-p", "3130", "--set", f"confdir={work}/mitm", "--set",
               f"ssl_verify_upstream_trusted_ca={work}/public.pem", "--set", "stream_large_bodies=1m"]
    return subprocess.Popen([*WITH_US, "unshare", "--mount", "sh", "-c", f'mount --bind {work}/hosts /etc/hosts && exec "$@"', "sh", *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Way:
    def __init__(self, name, to, port, ca, run):
        self.name, self.to, self.port, self.ca, self.run = name, to, port, ca, run
        self.figures = {}

    def client(self, mode, connections, path="/small"):
        p = self.run([CLIENT, self.to, str(self.port), "a.test", "9443", self.ca, mode, str(connections), SECONDS, path],
                     stdout=subprocess.PIPE, text=True)
        out = p.communicate(timeout=300)[0].split()
        if len(out) != 6 or int(out[0]) == 0:
            raise rig.Failed(f"{self.name}, {mode} {connections}: {out}")
        if int(out[5]):
            print(f"# {self.name}, {mode} {connections}: {out[5]} errors")
        n, s, p50, p99, size = int(out[0]), float(out[1]), int(out[2]), int(out[3]), int(out[4])
        return n / s, p50, p99, size / 1e6 / s

    def note(self, what, value):
        self.figures.setdefault(what, []).append(value)

    def measure(self):
        self.note("new", self.client("new", 8)[0])
        for n in (1, 32, 256):
            rate, p50, p99, _ = self.client("keep", n)
            self.note(f"c{n}", rate)
            if n == 1:
                self.note("p50", p50)
                self.note("p99", p99)
        self.note("mb", self.client("body", 1, "/big")[3])

    def median(self, what):
        return statistics.median(self.figures[what])


COLUMNS = [("new/s", "new"), ("1: req/s", "c1"), ("32: req/s", "c32"), ("256: req/s", "c256"), ("MB/s", "mb")]


def show(ways):
    straight, bac, *others = ways
    print(f"{'':16}" + "".join(f"{head:>12}" for head, _ in COLUMNS) + f"{'+p50 us':>10}{'+p99 us':>10}")
    for w in ways:
        added = [w.median(p) - straight.median(p) for p in ("p50", "p99")]
        print(f"{w.name:16}" + "".join(f"{w.median(key):12.0f}" for _, key in COLUMNS) + "".join(f"{x:10.0f}" for x in added))
    for w in others:
        print(f"bac-proxy against {w.name}: " + ", ".join(f"{head} {bac.median(key) / w.median(key):.2f}" for head, key in COLUMNS) +
              f", added p50 {(w.median('p50') - straight.median('p50')) / max(1, bac.median('p50') - straight.median('p50')):.2f} times as much")


def bare(port, others):
    return subprocess.Popen([*WITH_US, RELAY, NEAR, port, "a.test", opened.A, "9443", work + "/a.pem", work + "/public.pem", others])


def ways(r, kids, only):
    out = [Way("straight", "-", 9443, work + "/public.pem", subprocess.Popen),
           Way("bac-proxy", rig.GATEWAY, 3128, r.ca, r.guest.popen)]
    others = (("bare", 3131, "public.pem", lambda: bare("3131", "0")), ("bare, asking", 3132, "public.pem", lambda: bare("3132", "2")),
              ("squid", 3129, "ca.pem", squid), ("mitmproxy", 3130, "mitm/mitmproxy-ca-cert.pem", mitm))
    for name, port, ca, start in others:
        if only and name not in only:
            continue
        kids.append(start())
        rig.wait_port(NEAR, port)
        out.append(Way(name, NEAR, port, f"{work}/{ca}", r.guest.popen))
    return out


def main():
    rig.alone()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    kids = world()
    rig.Audit = lambda keep: rig.RealAudit(AUDIT, work + "/log")
    opened.program = PROXY
    key = opened.use("k", "header", "a.test:9443", service="anthropic", header="x-api-key", format_="%s")
    keeper, kr = opened.real_keeper(os.path.join(os.path.dirname(PROXY), "bac-keeper"), {"global/service/anthropic": opened.SECRET}, [])
    if keeper.push(kr.POLICY, NET) != (0, "") or keeper.credentials(key) != (0, ""):
        raise SystemExit("the keeper does not take its orders")
    while len(keeper.marks) < 100:
        keeper.until(kr.MARKS)
    r = opened.Opened(["allow a.test:9443"], [key], values={"k": opened.SECRET})
    opened.use_keeper(r, keeper)
    failed = 0
    try:
        rig.sh(f"ip link add near0 type veth peer name near1; ip link set near1 netns {r.guest.holder.pid}; "
               f"ip addr add {NEAR}/30 dev near0; ip link set near0 up")
        r.guest.sh("ip addr add 172.31.0.2/30 dev near1; ip link set near1 up; sysctl -qw net.ipv4.tcp_tw_reuse=1")
        rows = ways(r, kids, sys.argv[5:])
        for _ in range(RUNS):
            for w in rows:
                w.measure()
        show(rows)
    except rig.Failed as e:
        print(e)
        for log in pathlib.Path(work).glob("*.log"):
            print(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
        failed = 1
    finally:
        for k in kids:
            k.kill()
            k.wait()
        r.audit.end()
        r.audit.sock = socket.socket()
        print(r.end(), end="")
        shutil.rmtree(work, ignore_errors=True)
        for left in pathlib.Path("/dev/shm").glob(SERVICE + "-*"):  # squid's, which was killed
            left.unlink()
    sys.stdout.flush()
    os._exit(failed)


main()
