#!/usr/bin/env python3
"""bac-proxy where it opens TLS and HTTP/2 is spoken: real clients and real servers. Prints TAP.

    test/proxy/opened-h2.py BAC-PROXY [SCENARIO...]

The world, the guest and the keeper are those of opened.py.
"""
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SYSTEM = "/usr/bin/python3"
if not importlib.util.find_spec("h2") and os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
    os.execv(SYSTEM, [SYSTEM, *sys.argv])

import opened
import rig
from cryptography.hazmat.primitives import serialization
from opened import A, C, KEY, SECRET, Opened, public, row, same

try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.exceptions
except ImportError:
    print("1..0 # SKIP needs python3-h2")
    raise SystemExit(0)

BIG = int(os.environ.get("LARGE", 200 << 20))  # bytes
PATIENCE = 100 + BIG // (5 << 20)
NGHTTPD, PYTHON, GRPC = 7001, 7002, 7003
KEYS = [KEY, opened.use("c", "header", f"c.test:{NGHTTPD}-{GRPC}", service="anthropic", header="x-api-key", format_="%s")]
POLICY = ["allow a.test", f"allow c.test:{NGHTTPD}-{GRPC}"]
VALUES = {"k": SECRET, "c": SECRET}
WITH_US = ("setpriv", "--pdeathsig", "KILL")  # servers end when the test does
asked = []  # heads that came to the Python server


# ---- servers ----

def pem():
    """(key, certificate) as files."""
    cert, key = public.leaf(["c.test", "a.test"])
    names = os.path.join(opened.work, "h2.key"), os.path.join(opened.work, "h2.crt")
    with open(names[0], "wb") as f:
        f.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    with open(names[1], "wb") as f:
        f.write(cert.public_bytes(serialization.Encoding.PEM))
    return names


class H2:
    """A server of HTTP/2: what it does is in the path."""

    def __init__(self, sock):
        self.sock, self.lock = sock, threading.Lock()
        self.c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.paths, self.heads, self.got = {}, {}, {}
        self.c.initiate_connection()
        if getattr(h2.settings.SettingCodes, "ENABLE_CONNECT_PROTOCOL", None):
            self.c.update_settings({h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        self.flush()

    def flush(self):
        self.sock.sendall(self.c.data_to_send())

    def run(self):
        while data := self.sock.recv(65536):
            for e in self.c.receive_data(data):
                self.event(e)
            self.flush()

    def event(self, e):
        if isinstance(e, h2.events.RequestReceived):
            head = dict(e.headers)
            asked.append(head)
            self.paths[e.stream_id], self.heads[e.stream_id], self.got[e.stream_id] = head.get(":path"), head, b""
            getattr(self, "begin_" + self.name(e.stream_id), lambda s: None)(e.stream_id)
        elif isinstance(e, h2.events.DataReceived):
            self.got[e.stream_id] += e.data
            self.c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
            getattr(self, "data_" + self.name(e.stream_id), lambda s, d: None)(e.stream_id, e.data)
        elif isinstance(e, h2.events.TrailersReceived):
            self.heads[e.stream_id].update(e.headers)
        elif isinstance(e, h2.events.StreamEnded):
            getattr(self, "end_" + self.name(e.stream_id), self.end_plain)(e.stream_id)

    def name(self, s):
        return re.sub(r"\W.*", "", (self.paths[s] or "/").strip("/")) or "plain"

    def answer(self, s, status=200, body=b"", end=True, *more):
        self.c.send_headers(s, [(":status", str(status)), *more], end_stream=end and not body)
        if body:
            self.c.send_data(s, body, end_stream=end)

    def end_plain(self, s):
        text = "".join(f"{k}: {v}\n" for k, v in self.heads[s].items()).encode() + b"bytes: %d\n" % len(self.got[s])
        self.answer(s, 200, b"" if self.heads[s][":method"] == "HEAD" else text)

    def end_hints(self, s):
        self.c.send_headers(s, [(":status", "103"), ("link", "</x>")])
        self.answer(s, 200, b"ok")

    def end_trailers(self, s):
        self.answer(s, 200, b"body", False)
        self.c.send_headers(s, [("x-trailer", "seen")], end_stream=True)

    def begin_early(self, s):
        self.answer(s, 413, b"no\n")

    def end_early(self, s):
        pass

    def end_reset(self, s):
        self.answer(s, 200, b"some", False)
        self.c.reset_stream(s, 2)

    def end_refused(self, s):
        self.c.reset_stream(s, 7)

    def end_goaway(self, s):
        """Once, and on the next connection an answer."""
        if sum(h.get(":path") == "/goaway" for h in asked) > 1:
            self.end_plain(s)
            return
        self.flush()
        self.sock.sendall(b"\0\0\10\7\0\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\0")

    def end_events(self, s):
        self.answer(s, 200, b"", False, ("content-type", "text/event-stream"))
        for i in range(20):
            time.sleep(0.05)
            self.c.send_data(s, b"data: %d %f\n\n" % (i, time.time()), end_stream=i == 19)
            self.flush()

    def end_leak(self, s):
        self.answer(s, 200, b"key=" + SECRET + b".", True, ("x-key", SECRET.decode()))

    def begin_socket(self, s):
        self.answer(s, 200, b"early ", False)

    def data_socket(self, s, data):
        self.c.send_data(s, data)

    def end_socket(self, s):
        self.c.end_stream(s)


def python_server(c):
    if c.selected_alpn_protocol() == "h2":
        H2(c).run()


GRPC_SERVER = r"""
import sys, grpc, threading
from concurrent import futures
key, crt, addr = sys.argv[1:4]
def unary(request, context):
    context.set_trailing_metadata((("x-trailer", "seen"), ("x-key-came", dict(context.invocation_metadata()).get("x-api-key", "-"))))
    if request == b"fail":
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as asked")
    return b"re: " + request
def stream(requests, context):
    for r in requests:
        yield b"re: " + r
    context.set_trailing_metadata((("x-trailer", "seen"),))
def count(request, context):
    for i in range(int(request)):
        yield b"x" * 1000
h = grpc.method_handlers_generic_handler("t.T", {"Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Stream": grpc.stream_stream_rpc_method_handler(stream), "Count": grpc.unary_stream_rpc_method_handler(count)})
s = grpc.server(futures.ThreadPoolExecutor(8))
s.add_generic_rpc_handlers((h,))
s.add_secure_port(addr, grpc.ssl_server_credentials([(open(key, "rb").read(), open(crt, "rb").read())]))
s.start()
print("ready", flush=True)
s.wait_for_termination()
"""

GRPC_CLIENT = r"""
import sys, grpc
ca, to = sys.argv[1:3]
ch = grpc.secure_channel(to, grpc.ssl_channel_credentials(open(ca, "rb").read()))
u = ch.unary_unary("/t.T/Unary")
r, call = u.with_call(b"hello", timeout=20)
t = dict(call.trailing_metadata())
print("unary", r, t.get("x-trailer"), t.get("x-key-came"))
try:
    u(b"fail", timeout=20)
except grpc.RpcError as e:
    print("error", e.code().name, e.details(), dict(e.trailing_metadata()).get("x-trailer"))
s = ch.stream_stream("/t.T/Stream")
import queue
q = queue.Queue()
call = s(iter(q.get, None), timeout=20)
got = []
for i in range(5):
    q.put(b"%d" % i)
    got.append(next(call))
q.put(None)
print("stream", got, list(call), dict(call.trailing_metadata()).get("x-trailer"))
print("count", sum(len(x) for x in ch.unary_stream("/t.T/Count")(b"5000", timeout=60)))
call = ch.unary_stream("/t.T/Count")(b"100000")
next(call)
call.cancel()
print("cancel", call.code().name)
print("after", u(b"x", timeout=20))
"""

HTTPX_CLIENT = r"""
import sys, httpx
c = httpx.Client(http2=True, verify=sys.argv[1])
r = c.get(sys.argv[2] + "/a")
print(r.http_version, r.status_code, "x-api-key" in r.text)
r = c.post(sys.argv[2] + "/b", content=b"z" * 300000)
print(r.status_code, "bytes: 300000" in r.text)
print(len({c.get(sys.argv[2] + "/%d" % i).status_code for i in range(50)}))
"""

def start():
    key, crt = pem()
    docs = os.path.join(opened.work, "docs")
    os.mkdir(docs)
    for name, n in (("small", 100), ("big", BIG)):
        with open(os.path.join(docs, name), "wb") as f:
            f.truncate(n)
    if shutil.which("nghttpd"):
        subprocess.Popen([*WITH_US, "nghttpd", "-a", C, "-d", docs, "--echo-upload", str(NGHTTPD), key, crt],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait(NGHTTPD)
    context = public.context(["c.test"], ("h2",))
    rig.serve(C, PYTHON, opened.over_tls(context, python_server))
    if importlib.util.find_spec("grpc"):
        p = subprocess.Popen([*WITH_US, opened.SYSTEM, "-c", GRPC_SERVER, key, crt, f"{C}:{GRPC}"], stdout=subprocess.PIPE)
        p.stdout.readline()


def wait(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection((C, port)).close()
            return
        except OSError:
            time.sleep(0.02)
    raise rig.Failed(f"nobody listens on port {port}")


# ---- clients ----

def inside(r, *command, timeout=100, env=None):
    """(exit status, output) of a command in the guest that finds c.test."""
    with tempfile.NamedTemporaryFile("w", dir=opened.work, suffix=".hosts") as f:
        f.write("127.0.0.1 localhost\n" + "".join(f"{r.address(n)} {n}\n" for n in ("a.test", "c.test")))
        f.flush()
        done = subprocess.run(["nsenter", f"--net=/proc/{r.guest.holder.pid}/ns/net", "unshare", "--mount", "sh", "-c",
                               'mount --bind "$0" /etc/hosts && exec "$@"', f.name, *command],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": opened.work, **(env or {})})
    return done.returncode, done.stdout.decode(errors="replace")


def curl(r, port, path, *args, **more):
    return r.curl(f"https://c.test:{port}{path}", *args, name="c.test", http="--http2", **more)


def opened_h2(what, **more):
    return opened.opened(what, POLICY, KEYS, values=VALUES, **more)


# ---- scenarios ----

def basics():
    with opened_h2("basics") as r:
        code, out = curl(r, PYTHON, "/x?y=1", "-o", "-", "-w", "%{http_version} %{http_code}")
        row(code == 0 and out.endswith("2 200") and ":path: /x?y=1\n" in out, "curl over HTTP/2", (code, out, r.says))
        row(f"x-api-key: {SECRET.decode()}\n" in out, "the server sees the key", out)
        got = r.audit.wait(kind="http", event="decision", allowed=True)
        row(got and got["path"] == "/x" and got["note"] == "credential: anthropic", "the receipt names the service", got)
        got = r.audit.wait(kind="http", event="end")
        row(got and got["received"] > 10, "and its end has bytes", got)
        code, out = curl(r, PYTHON, "/x", "-H", "x-api-key: mine")
        row("mine" not in out and SECRET.decode() in out, "what the client sent is overwritten", out)
        code, out = curl(r, PYTHON, "/p", "-d", "a=b")
        row("content-length: 3\n" in out and "bytes: 3\n" in out, "POST", out)
        code, out = curl(r, PYTHON, "/h", "-I")
        row("HTTP/2 200" in out, "HEAD", out)
        code, out = curl(r, PYTHON, "/hints", "-i")
        row("HTTP/2 103" in out and "link: </x>" in out and out.endswith("ok"), "103", out)
        code, out = curl(r, PYTHON, "/trailers", "-i")
        row("x-trailer: seen" in out and "body" in out, "trailers", out)
        code, out = r.curl(f"https://c.test:{PYTHON}/y", "-w", "%{http_version}", name="c.test")
        row(code == 0 and out.endswith("1.1"), "a client of HTTP/1.1, a server of HTTP/2 alone", (code, out))
        code, out = r.curl("https://a.test/z", "-w", "%{http_version}", http="--http2")
        row(code == 0 and out.endswith("1.1"), "a server of HTTP/1.1: so is the client's", (code, out))


def faults():
    with opened_h2("faults") as r:
        code, out = curl(r, PYTHON, "/reset")
        row(code == 92, "a stream that the server resets", (code, out))
        code, out = curl(r, PYTHON, "/ok")
        row(code == 0, "and the connection lives", (code, out))
        code, out = curl(r, PYTHON, "/refused", "-i")
        row("502 " in out or code == 92, "a stream that the server refuses twice", (code, out))
        code, out = curl(r, PYTHON, "/goaway")
        row(code == 0 and ":path: /goaway" in out, "GOAWAY before it was begun with: another connection", (code, out))
        code, out = curl(r, PYTHON, "/early", "-i", "-T", os.path.join(opened.work, "docs", "big"))
        row("413" in out, "an upload that the server refuses early", (code, out[-300:]))
        code, out = curl(r, PYTHON, "/x", "-i", "-H", "Host: b.test")
        row("421" in out, "another :authority", out)
        r.policy([f"allow c.test:{PYTHON} GET /ok"])
        code, out = curl(r, PYTHON, "/no", "-i")
        row("HTTP/2 403" in out and "refused by network policy" in out, "a denied path", out)
        code, out = curl(r, PYTHON, "/ok", "-i", "-d", "x")
        row("HTTP/2 403" in out, "a denied method", out)
        before = len(asked)
        code, out = inside(r, "nghttp", "-nv", f"https://c.test:{PYTHON}/ok", "-H", "te: gzip")
        row("PROTOCOL_ERROR" in out and len(asked) == before, "what is malformed comes to no server", out[-500:])


def large():
    if not shutil.which("nghttpd"):
        return
    with opened_h2("large") as r:
        base = r.rss()
        t = time.monotonic()
        code, out = curl(r, NGHTTPD, "/big", "-o", "/dev/null", "-w", "%{size_download}", timeout=PATIENCE)
        print(f"# {BIG / 1e6 / (time.monotonic() - t):.0f} MB/s down")
        same("a large download", (code, out), (0, str(BIG)))
        t = time.monotonic()
        code, out = curl(r, NGHTTPD, "/up", "-o", "/dev/null", "-w", "%{size_upload}", "-T", os.path.join(opened.work, "docs", "big"), timeout=PATIENCE)
        print(f"# {BIG / 1e6 / (time.monotonic() - t):.0f} MB/s up")
        same("a large upload, which comes back", (code, out), (0, str(BIG)))
        row(r.rss() - base < 8192, "memory stays flat", (base, r.rss()))
        code, out = curl(r, NGHTTPD, "/big", "-o", "/dev/null", "--limit-rate", "100K", "--max-time", "2")
        row(code == 28 and r.rss() - base < 12288, "with a slow reader too", (code, base, r.rss()))


def many():
    if not shutil.which("h2load"):
        return
    with opened_h2("many") as r:
        code, out = inside(r, "h2load", "-n", "1000", "-c", "1", "-m", "100", f"https://c.test:{NGHTTPD}/small")
        row("1000 succeeded" in out and "status codes: 1000 2xx" in out, "1,000 requests on one connection", out[-600:])
        code, out = inside(r, "h2load", "-n", "2000", "-c", "20", "-m", "10", f"https://c.test:{NGHTTPD}/small")
        row("2000 succeeded" in out, "2,000 on 20 connections", out[-600:])
        code, out = inside(r, "nghttp", "-ns", "-m", "50", f"https://c.test:{NGHTTPD}/small")
        row(code == 0 and "200" in out, "nghttp", out[-600:])


def together():
    """Requests that come in one piece ask for the key once, and each has it."""
    with opened_h2("together") as r:
        n, before = 20, len(asked)
        code, out = inside(r, "nghttp", "-n", f"https://c.test:{PYTHON}/first", *(f"https://c.test:{PYTHON}/t{i}" for i in range(n)))
        mine = [h for h in asked[before:] if h[":path"].startswith("/t")]
        row(code == 0 and len(mine) == n and all(h.get("x-api-key") == SECRET.decode() for h in mine), "each has the key", (code, out[-300:], mine))
        questions = sum(a[0] == "value" for a in r.keeper.asked)
        row(0 < questions <= n // 2, "the keeper was asked less often", questions)
        r.keeper.values = {name: b"sk-of-tomorrow-0123456789" for name in VALUES}
        code, out = curl(r, PYTHON, "/later")
        row("x-api-key: sk-of-tomorrow-0123456789" in out, "who comes later has what is in force then", out)


def events():
    with opened_h2("events") as r:
        with r.guest.popen(["curl", "-sN", "--http2", "--cacert", r.ca, "--resolve", f"c.test:{PYTHON}:{r.address('c.test')}",
                            f"https://c.test:{PYTHON}/events"], stdout=subprocess.PIPE) as p:
            late = [time.time() - float(line.split()[2]) for line in p.stdout if line.strip()]
        row(len(late) == 20 and max(late) < 0.25, "events come as they are sent", late)


def grpc():
    if not importlib.util.find_spec("grpc"):
        return
    with opened_h2("grpc") as r:
        code, out = inside(r, opened.SYSTEM, "-c", GRPC_CLIENT, r.ca, f"c.test:{GRPC}")
        row(f"unary b're: hello' seen {SECRET.decode()}" in out, "unary, with trailers and the key", out[-1500:])
        row("error FAILED_PRECONDITION as asked seen" in out, "an error, which is trailers alone", out[-1500:])
        row("stream [b're: 0', b're: 1', b're: 2', b're: 3', b're: 4'] [] seen" in out, "both ways at once", out[-1500:])
        row("count 5000000" in out, "5,000 messages", out[-1500:])
        row("cancel CANCELLED" in out and "after b're: x'" in out, "a call that is cancelled", out[-1500:])


def httpx():
    if not importlib.util.find_spec("httpx"):
        return
    with opened_h2("httpx") as r:
        code, out = inside(r, opened.SYSTEM, "-c", HTTPX_CLIENT, r.ca, f"https://c.test:{PYTHON}")
        row(out.startswith("HTTP/2 200 True\n200 True\n1\n"), "httpx", out[-1500:])


scenarios = {f.__name__: f for f in (basics, faults, large, many, together, events, grpc, httpx)}
world = opened.world


def world_and_servers():
    world()
    start()


opened.world = world_and_servers
opened.main(scenarios)
