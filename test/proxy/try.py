#!/usr/bin/env python3
"""bac-proxy with real sockets, in network namespaces of the test. Prints TAP.

    test/proxy/try.py BAC-PROXY [SCENARIO...]
"""
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

import rig
from rig import GATEWAY, HOST, Names, Rig, read_all, read_until, serve

program = os.path.abspath(sys.argv[1])
rows = 0
failed = 0
A, B, PRIVATE, METADATA, DEAD = "93.184.216.34", "93.184.216.35", "10.9.8.7", "169.254.169.254", "93.184.216.99"
V6 = "2606:2800:220:1::1"
heads = []  # requests that came to a server of HTTP, whole heads
names = None
work = tempfile.mkdtemp(prefix="test-bac-proxy-")


def row(good, what, detail=""):
    global rows, failed
    rows += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {rows} - {what}", flush=True)
    if not good and detail != "":
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def same(what, got, want):
    row(got == want, what, f"got {got!r}, not {want!r}")


# ---- the world ----

def body_of(head, c, data):
    """What is left of a request's body behind its head."""
    lower = head.lower()
    if b"content-length:" in lower:
        n = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        while len(data) < n:
            data += c.recv(65536)
        return data[:n], data[n:]
    if b"transfer-encoding: chunked" in lower:
        while b"0\r\n\r\n" not in data:
            data += c.recv(65536)
        return data, b""
    return b"", data


def web(c):
    """An HTTP server: what it does is in the path."""
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = c.recv(65536)
            if not more:
                return
            data += more
        head, data = data.split(b"\r\n\r\n", 1)
        heads.append(head)
        if head.count(b" ") < 2:
            return  # something else than HTTP may go here too
        path = head.split(b" ")[1]
        if path == b"/early":
            c.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
            return
        if b"100-continue" in head:
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, data = body_of(head, c, data)
        if path == b"/upgrade":
            c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst ")
            while data or (data := c.recv(65536)):
                c.sendall(data)
                data = b""
            return
        if not answer(c, path, head, body):
            return


def answer(c, path, head, body):
    fixed = {
        b"/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n on\r\n0\r\nT: 1\r\n\r\n",
        b"/204": b"HTTP/1.1 204 No Content\r\n\r\n",
        b"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
        b"/redirect": b"HTTP/1.1 302 Found\r\nLocation: http://b.test/\r\nContent-Length: 0\r\n\r\n",
        b"/early-hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"/close": b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"/both": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"/twice": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"/junk": b"\0\1\2 this is not HTTP\r\n\r\n",
        b"/split": b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: evil=1\r\nContent-Length: 0\r\n\r\n",
        b"/fat": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"/hang-up": b"",
        b"/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    }
    if path in fixed:
        c.sendall(fixed[path])
        return path not in (b"/close", b"/junk", b"/hang-up", b"/cut")
    if path.startswith(b"/big/"):
        n = int(path[5:])
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
        block = bytes(range(256)) * 256
        while n:
            n -= c.send(block[:min(n, len(block))])
        return True
    text = b"%s %d\n" % (path, len(body))
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Sum: %s\r\n\r\n" % (len(text), hashlib.md5(body).hexdigest().encode())
              + (b"" if head.startswith(b"HEAD") else text))
    return True


def tls(c):
    s = tls_context.wrap_socket(c, server_side=True)
    with s:
        while data := s.recv(65536):
            s.sendall(b"tls " + data)


def greeter(c):
    c.sendall(b"220 hello\r\n")
    while data := c.recv(65536):
        c.sendall(b"you said " + data)


def echo(c):
    while data := c.recv(65536):
        c.sendall(data)


def after_eof(c):
    """Says how much it got when the client has ended, and only then."""
    n = 0
    while data := c.recv(1 << 20):
        n += len(data)
    c.sendall(b"%d bytes" % n)


def source(c):
    """1 GiB."""
    block = bytes(1 << 20)
    for _ in range(1024):
        c.sendall(block)


def resetter(c):
    c.recv(1)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


hits = {}


def world():
    """Servers and names; hits[...] counts connections."""
    global names, tls_context
    rig.sh("ip link set lo up; sysctl -qw net.ipv6.conf.lo.disable_ipv6=0")
    for a in ("9.9.9.9", A, B, PRIVATE, METADATA, "100.100.100.200"):
        rig.sh(f"ip addr add {a}/32 dev lo")
    for i in range(20):
        rig.sh(f"ip addr add 93.184.217.{i}/32 dev lo")
    rig.sh(f"ip -6 addr add {V6}/128 dev lo nodad", check=False)
    rig.sh("nft add table ip w; nft add chain ip w out '{ type filter hook output priority 0; }'; "
           f"nft add rule ip w out ip daddr {DEAD} drop; nft add chain ip w in '{{ type filter hook input priority 0; }}'")
    rig.sh(f"ip addr add {DEAD}/32 dev lo")
    rig.sh(f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=a.test "
           f"-addext subjectAltName=DNS:a.test,DNS:b.test -keyout {work}/key -out {work}/crt 2>/dev/null")
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls_context.load_cert_chain(f"{work}/crt", f"{work}/key")
    for what, addr, port, handle in [
            ("a80", A, 80, web), ("a8080", A, 8080, web), ("a443", A, 443, tls), ("a25", A, 25, greeter), ("a7", A, 7, echo),
            ("a9", A, 9, after_eof), ("a19", A, 19, source), ("a666", A, 666, resetter), ("b80", B, 80, web),
            ("b443", B, 443, tls), ("private", PRIVATE, 80, web), ("metadata", METADATA, 80, web),
            ("alibaba", "100.100.100.200", 80, web), ("loopback", "127.0.0.1", 18095, web)]:
        hits[what] = serve(addr, port, handle)
    for i in range(20):
        hits[f"r{i}"] = serve(f"93.184.217.{i}", 80, web)
    turn = [0]

    def rotate():
        turn[0] += 1
        return [f"93.184.217.{turn[0] % 20}"]

    rebind = [0]

    def rebinding():
        rebind[0] += 1
        return [A] if rebind[0] <= 2 else [PRIVATE]

    names = Names({"a.test": [A], "b.test": [B], "private.test": [PRIVATE], "meta.test": [METADATA], "both.test": [PRIVATE, A],
                   "rotating.test": rotate, "rebinding.test": rebinding, "dead.test": [DEAD, A], "gone.test": [DEAD],
                   "dual.test": [V6, A], "lo.test": ["127.0.0.1"], "long.test": [A], "closed.test": ["93.184.217.1"], "empty.test": []})


def request(target, host="a.test", method="GET", more="", body=b""):
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode() + body


def split(answer):
    """(status, fields, body)."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode(errors="replace").split("\r\n")
    words = lines[0].split(" ")
    fields = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, fields, body


def ask(r, target, name="a.test", port=80, **more):
    """One request on a connection of its own. (status, fields, body)"""
    more["more"] = more.get("more", "") + "Connection: close\r\n"
    host = more.pop("host", name if port == 80 else f"{name}:{port}")
    with r.connect(r.address(name), port) as s:
        s.sendall(request(target, host, **more))
        return split(read_all(s))


def clean(r, what, said=""):
    """The proxy of this scenario lives and had nothing to say."""
    row(r.process.poll() is None, f"{what}: the proxy lives")


def at_once(r, addr, port):
    """What a client sees that may be reset before its connect() has returned."""
    try:
        with r.connect(addr, port) as s:
            return read_all(s)
    except ConnectionResetError:
        return b"<reset>"


# ---- scenarios ----

def dns():
    asked = len(names.asked)
    with Rig(program, ["allow a.test", "allow *.sub.test:443", "deny bad.sub.test"]) as r:
        a = r.lookup("a.test")
        same("A of a name that is allowed", (a[0], len(a[1]), a[1][0][:3]), (0, 1, bytes([198, 18, 1])))
        same("again: the same", r.lookup("A.TEST.")[1], a[1])
        same("by TCP", r.lookup("a.test", tcp=True)[1], a[1])
        same("asked of 8.8.8.8", r.lookup("a.test", server="8.8.8.8")[1], a[1])
        same("asked of 8.8.8.8 by TCP", r.lookup("a.test", server="8.8.8.8", tcp=True)[1], a[1])
        same("AAAA is empty, at once", r.lookup("a.test", 28), (0, []))
        same("HTTPS is empty", r.lookup("a.test", 65), (0, []))
        for kind, what in ((15, "MX"), (16, "TXT"), (33, "SRV"), (2, "NS"), (6, "SOA"), (255, "ANY"), (5, "CNAME"), (10, "NULL")):
            same(f"{what} is refused", r.lookup("a.test", kind)[0], 5)
        b = r.lookup("secret.denied.test")
        same("a name that is denied gets an address of the other range", (b[0], b[1][0][:2]), (0, bytes([198, 19])))
        same("so does one that a rule denies", r.lookup("bad.sub.test")[1][0][:2], bytes([198, 19]))
        same("a name with one port", r.lookup("x.sub.test")[1][0][:3], bytes([198, 18, 1]))
        reverse = ".".join(reversed(socket.inet_ntoa(a[1][0]).split("."))) + ".in-addr.arpa"
        same("PTR of ours", r.lookup(reverse, 12), (0, [b"\1a\4test\0"]))
        same("PTR of another is refused", r.lookup("34.216.184.93.in-addr.arpa", 12)[0], 5)
        same("the gateway", r.address("gateway.docker.internal"), GATEWAY)
        same("the host", r.address("Host.Docker.Internal"), HOST)
        same("localhost is the sandbox", r.address("localhost"), "127.0.0.1")
        same("no name: NXDOMAIN", r.lookup(b"a\0b.test")[0], 3)
        same("an address is no name", r.lookup("134744072")[0], 3)
        same("IDNA: as it is written on the wire", r.lookup("xn--mnchen-3ya.test")[0], 0)
        same("nothing of it left the host", names.asked[asked:], [])
        row(r.audit.wait(kind="dns", allowed=False, host="secret.denied.test"), "denied: on the log")
        same("allowed: on the log, once", len(r.audit.some(1, kind="dns", allowed=True, host="a.test")), 1)
        row(r.audit.wait(kind="dns", reason="type-refused", host="a.test"), "types: on the log")
        row(r.audit.wait(kind="dns", reason="not-a-name"), "no names: on the log")
        with r.guest.inside():
            u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for junk in (b"", b"x", b"\0" * 12, os.urandom(40), os.urandom(512), b"\0\1\1\0\0\2\0\0\0\0\0\0" + b"\1a\0\0\1\0\1" * 2):
            u.sendto(junk, (GATEWAY, 53))
        t = r.connect(GATEWAY, 53)
        t.sendall(struct.pack(">H", 40) + os.urandom(40))
        t.close()
        t = r.connect(GATEWAY, 53)
        q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\1a\4test\0\0\1\0\1"
        t.sendall((struct.pack(">H", len(q)) + q) * 5)
        got = b""
        while len(got) < 5 * 42:
            more = t.recv(4096)
            if not more:
                break
            got += more
        row(got.count(b"\1a\4test") == 5, "five questions at once by TCP", got)
        same("after junk it answers", r.lookup("a.test")[1], a[1])
        if shutil.which("dig"):
            out = r.guest.sh("dig +time=2 +tries=1 +ednsopt=15 @1.1.1.1 mx a.test", check=False)
            row("REFUSED" in out and "EDE: 15" in out, "dig reads why", out)
        clean(r, "dns")


def http():
    with Rig(program, ["allow a.test"]) as r:
        heads.clear()
        same("GET", ask(r, "/x")[0::2], (200, b"/x 0\n"))
        same("HEAD", ask(r, "/x", method="HEAD")[0::2], (200, b""))
        same("204", ask(r, "/204")[0::2], (204, b""))
        same("304 with a length", ask(r, "/304")[0::2], (304, b""))
        same("chunked", ask(r, "/chunked")[0::2], (200, b"5\r\nhello\r\n3;x=y\r\n on\r\n0\r\nT: 1\r\n\r\n"))
        same("until the end", ask(r, "/close")[0::2], (200, b"until the end"))
        body = os.urandom(3 << 20)
        same("POST of 3 MiB", ask(r, "/post", method="POST", more=f"Content-Length: {len(body)}\r\n", body=body)[1]["x-sum"],
             hashlib.md5(body).hexdigest())
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (b"abc", b"d" * 70000)) + b"0\r\n\r\n"
        same("POST in chunks", ask(r, "/post", method="POST", more="Transfer-Encoding: chunked\r\n", body=chunks)[2],
             b"/post %d\n" % len(chunks))
        got = ask(r, "/big/50000000")
        same("50 MB come", (got[0], len(got[2]), hashlib.md5(got[2]).hexdigest()),
             (200, 50000000, hashlib.md5((bytes(range(256)) * 195313)[:50000000]).hexdigest()))
        many(r)
        expect(r)
        upgrade(r)
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(b"GET /old HTTP/1.0\r\n\r\n")
            same("HTTP/1.0 without Host goes by the name", split(read_all(s))[0], 200)
        same("another port", ask(r, "/y", port=8080)[0], 200)
        same("an early refusal by the server", ask(r, "/early", method="POST", more="Content-Length: 9\r\n", body=b"123456789")[0],
             413)
        hints = ask(r, "/early-hints")
        row(hints[0] == 103 and hints[2].endswith(b"ok"), "103 before 200", hints)
        seen = r.audit.find(kind="http", allowed=True, method="GET", path="/x", host="a.test")
        row(len(seen) == 1 and seen[0]["via"] == "transparent" and seen[0]["rule"] == "r0", "a receipt a request", seen)
        end = r.audit.wait(event="end", flow=seen[0]["flow"])
        row(end and end["received"] > 30 and end["sent"] > 20, "and its end, with bytes", end)
        for path, status in (("/both", 502), ("/junk", 502), ("/split", 502), ("/fat", 502), ("/hang-up", 502)):
            got = ask(r, path)
            row(got[0] == status and b"evil" not in got[2], f"a server's answer that is malformed: {path}", got)
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(request("/cut"))
            row(read_all(s).endswith(b"short<reset>"), "an answer that is cut is seen to be cut")
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(request("/twice"))
            data = read_all(s)
            row(b"evil" not in data, "an answer that nobody asked for is not passed on", data)
        clean(r, "http")


def many(r):
    with r.connect(r.address("a.test"), 80) as s:
        s.sendall(b"".join(request(f"/p{i}") for i in range(50)))
        data = b""
        while data.count(b"HTTP/1.1 200") < 50 or not data.endswith(b"/p49 0\n"):
            more = s.recv(65536)
            if not more:
                break
            data += more
        row([b"/p%d 0" % i in data for i in range(50)] == [True] * 50, "50 requests sent ahead, each answered", data[-200:])
        for i in range(20):
            s.sendall(request(f"/k{i}"))
            got = read_until(s, b"/k%d 0\n" % i)
        row(got.startswith(b"HTTP/1.1 200"), "20 more on the same connection, one by one")
        for byte in request("/slow"):
            s.sendall(bytes([byte]))
        row(b"/slow 0" in read_until(s, b"/slow 0\n"), "a head that comes byte by byte")


def expect(r):
    with r.connect(r.address("a.test"), 80) as s:
        s.sendall(request("/put", method="PUT", more="Expect: 100-continue\r\nContent-Length: 5\r\n"))
        same("100-continue", read_until(s).split(b"\r\n")[0], b"HTTP/1.1 100 Continue")
        s.sendall(b"12345")
        row(b"/put 5" in read_until(s, b"/put 5\n"), "and then the body")


def upgrade(r):
    with r.connect(r.address("a.test"), 80) as s:
        s.sendall(request("/upgrade", more="Connection: Upgrade\r\nUpgrade: echo\r\n") + b"early ")
        data = read_until(s, b"early ")
        row(b" 101 " in data and data.endswith(b"first early "), "upgrade: what was sent ahead, both ways", data)
        s.sendall(b"ping")
        same("upgrade: bytes", s.recv(100), b"ping")
        s.shutdown(socket.SHUT_WR)
        same("upgrade: the end", read_all(s), b"")
    before = len(heads)
    with r.connect(r.address("a.test"), 80) as s:
        s.sendall(request("/h2c", more="Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"))
        read_until(s, b"0\n")
    row(b"pgrade" not in heads[before] and b"HTTP2" not in heads[before], "an offer of h2c is taken out", heads[before])


def refused():
    with Rig(program, ["allow a.test:8080", "deny bad.test"]) as r:
        before = [h[0] for h in hits.values()]
        got = ask(r, "/x?y", name="denied.test")
        text = got[2].decode()
        row(got[0] == 403 and text.startswith("bac: refused by network policy: denied.test:80\n"), "403 says what", got)
        row("bac policy allow network --sandbox web denied.test:80" in text and "every route ends here" in text,
            "and what a human can do", text)
        same("a deny rule", ask(r, "/", name="bad.test")[0], 403)
        got = ask(r, "/x", name="denied.test", more="Accept: application/json\r\n")
        row(got[0] == 403 and json.loads(got[2])["host"] == "denied.test", "as JSON", got)
        same("HEAD", ask(r, "/x", name="denied.test", method="HEAD")[0::2], (403, b""))
        seen = r.audit.some(2, kind="http", allowed=False, host="denied.test", method="GET", path="/x")
        same("one receipt each", len(seen), 2)
        with r.connect(r.address("denied.test"), 80) as s:
            s.sendall(request("/1", "denied.test"))
            read_until(s, b"here.\n")
            s.sendall(request("/2", "denied.test"))
            row(b" 403 " in read_until(s, b"here.\n"), "the connection can be used again")
        with r.connect(r.address("denied.test"), 80) as s:
            s.sendall(request("/", "denied.test", method="POST", more="Content-Length: 5000000\r\n", body=bytes(3 << 20)))
            row(b" 403 " in read_all(s), "POST: the answer is read although the body is not")
        with r.connect(r.address("denied.test"), 22) as s:
            start = time.monotonic()
            same("a client that waits for the server: reset", read_all(s), b"<reset>")
            row(0.8 < time.monotonic() - start < 2, "within a second or two")
        row(r.audit.wait(kind="tcp", allowed=False, host="denied.test", port=22, via="network"), "and on the log")
        with r.connect(A, 80) as s:
            s.sendall(request("/", A))
            row(b" 403 " in read_all(s), "an address that no rule names")
        same("one of ours that stands for nothing: reset", at_once(r, "198.18.200.200", 80), b"<reset>")
        row(r.audit.wait(reason="unknown-address"), "and on the log")
        same("the gateway's other ports", at_once(r, GATEWAY, 81), b"<reset>")
        for raw in (b"GET / HTTP/1.0\r\n\r\n", b"GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n",
                    b"GET / HTTP/1.1\r\nHost: denied.test\r\nHost: a.test\r\n\r\n"):
            with r.connect(r.address("denied.test"), 8080) as s:
                s.sendall(raw)
                got = split(read_all(s))
                row(got[0] in (403, 400, 421), f"refused: {raw[:30]!r}", got)
        same("no server saw any of it", [h[0] for h in hits.values()], before)
        clean(r, "refused")


SMUGGLING = {
    "two lengths": b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "two equal lengths": b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
    "length and chunked": b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "xchunked": b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a tab before chunked": b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "space before the colon": b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length : 5\r\n\r\n12345",
    "a folded line": b"GET / HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n",
    "a bare LF": b"GET / HTTP/1.1\nHost: a.test\n\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n",
    "a NUL": b"GET / HTTP/1.1\r\nHost: a.test\r\nX: a\0b\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nX: y\r\n\r\n",
    "a sign in the length": b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\n12345",
    "an absolute form of another": b"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "a space in the target": b"GET / x HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "userinfo": b"GET http://a.test@b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
    "chunked with 1.0": b"POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another Host": b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
    "another port in Host": b"GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n",
    "an address in Host": b"GET / HTTP/1.1\r\nHost: 93.184.216.35\r\n\r\n",
    "a dot behind another": b"GET / HTTP/1.1\r\nHost: b.test.\r\n\r\n",
    "CONNECT": b"CONNECT b.test:80 HTTP/1.1\r\nHost: b.test:80\r\n\r\n",
    "HTTP/2 in words": b"GET / HTTP/2.0\r\nHost: a.test\r\n\r\n",
}


def smuggling():
    with Rig(program, ["allow a.test", "allow b.test"]) as r:
        for what, raw in SMUGGLING.items():
            heads.clear()
            mark = r.audit.mark()
            with r.connect(r.address("a.test"), 80) as s:
                s.sendall(raw)
                s.settimeout(3)
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_WR)
                got = split(read_all(s))
            row(got[0] in (400, 421, 431) and not heads, f"smuggling: {what}: {got[0]}", (got, heads))
            row(r.audit.wait(since=mark, allowed=False, kind="http", timeout=2), f"smuggling: {what}: on the log",
                r.audit.all[mark:])
        heads.clear()
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n\r\n")
            data = read_all(s)
        row(b"200" not in data, "a chunk without a size ends the connection", data)
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: A.TEST.:80\r\nConnection: close\r\n\r\n")
            same("the same host, written otherwise", split(read_all(s))[0], 200)
        heads.clear()
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 3\r\n\r\n")
            read_all(s)
        row(b"Secret" not in heads[0] and b"Keep-Alive" not in heads[0], "fields of one hop end here", heads)
        clean(r, "smuggling")


def hello(name):
    """The ClientHello of this machine's OpenSSL."""
    c = ssl.create_default_context()
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    o = c.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        o.do_handshake()
    return out.read()


def with_ech(data):
    """The same with an extension of encrypted_client_hello (0xfe0d)."""
    ext = struct.pack(">HH", 0xfe0d, 4) + b"\0\1\2\3"
    at = 9 + 34
    at += 1 + data[at]
    at += 2 + struct.unpack(">H", data[at:at + 2])[0]
    at += 1 + data[at]
    n, = struct.unpack(">H", data[at:at + 2])
    body = data[9:at] + struct.pack(">H", n + len(ext)) + data[at + 2:] + ext
    return data[:3] + struct.pack(">H", len(body) + 4) + b"\1" + len(body).to_bytes(3, "big") + body


def wrapped(r, addr, sni, port=443):
    """What a TLS client gets: an answer, or the error's words."""
    c = ssl.create_default_context()
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    with r.connect(addr, port) as s:
        try:
            with c.wrap_socket(s, server_hostname=sni) as t:
                t.sendall(b"hi")
                return t.recv(100)
        except (ssl.SSLError, ConnectionError) as e:
            return str(e)


def tls_():
    with Rig(program, ["allow a.test", f"allow {B}:443", "allow http.test GET /ok/**"]) as r:
        a = r.address("a.test")
        same("TLS", wrapped(r, a, "a.test"), b"tls hi")
        seen = r.audit.find(kind="tls", allowed=True, host="a.test")
        row(len(seen) == 1 and seen[0]["via"] == "transparent", "one receipt", seen)
        end = r.audit.wait(event="end", flow=seen[0]["flow"])
        row(end and end["sent"] > 300 and end["received"] > 500 and end["address"] == f"{A}:443", "its end says bytes and address",
            end)
        same("without SNI: by name", wrapped(r, a, None), b"tls hi")
        before = hits["a443"][0]
        row("ACCESS_DENIED" in wrapped(r, a, "b.test").upper().replace(" ", "_"), "another SNI: alert", wrapped(r, a, "b.test"))
        row(r.audit.wait(kind="tls", allowed=False, reason="sni-mismatch", note="SNI b.test"), "and on the log")
        same("the server saw nothing of it", hits["a443"][0], before)
        row("ACCESS_DENIED" in wrapped(r, r.address("denied.test"), "denied.test").upper().replace(" ", "_"),
            "a denied name: alert")
        row(r.audit.wait(kind="tls", allowed=False, host="denied.test"), "and on the log")
        row("ACCESS_DENIED" in wrapped(r, r.address("denied.test"), "a.test").upper().replace(" ", "_"),
            "a denied name with the SNI of an allowed one")
        same("an address that a rule names: the SNI is only logged", wrapped(r, B, "b.test"), b"tls hi")
        row(r.audit.wait(kind="tls", allowed=True, host=B, note="SNI b.test"), "and is")
        row("ACCESS_DENIED" in wrapped(r, A, "a.test").upper().replace(" ", "_"),
            "--resolve: an address without a rule, with the SNI of an allowed name")
        for what, data, good in (("in one piece", hello("a.test"), True), ("with ECH, same outer name", with_ech(hello("a.test")), True),
                                 ("with ECH, another outer name", with_ech(hello("b.test")), False)):
            with r.connect(a, 443) as s:
                s.sendall(data)
                got = s.recv(1)
                row((got == b"\x16") == good, f"ClientHello {what}", got)
        with r.connect(a, 443) as s:
            data = hello("a.test")
            for i in range(0, len(data), 50):
                s.sendall(data[i:i + 50])
                time.sleep(0.002)
            row(s.recv(1) == b"\x16", "a ClientHello in pieces")
        before = hits["a443"][0]
        for what, data in (("malformed", b"\x16\3\1\0\5\1\0\0\1\0"), ("of SSL 2", b"\x80\x2e\1\0\2" + bytes(41)),
                           ("two names", hello("a.test").replace(b"\0\0\0\x0b\0\t\0\0\6a.test", b"\0\0\0\x0b\0\t\0\0\1a\0\0\2b"))):
            with r.connect(a, 443) as s:
                s.sendall(data)
                s.settimeout(1)
                got = read_all(s)
                row(b"\x16" not in got, f"a ClientHello that is {what}", got)
        row("ACCESS_DENIED" in wrapped(r, r.address("http.test"), "http.test").upper().replace(" ", "_"),
            "TLS where rules speak of requests, and no keeper to open it")
        row(r.audit.wait(kind="tls", allowed=False, reason="keeper-down"), "on the log")
        # the client is silent first, and then speaks of another host
        with r.connect(a, 443) as s:
            time.sleep(0.2)
            s.sendall(hello("b.test"))
            row(read_all(s)[:1] == b"\x15", "a late ClientHello is looked at too")
        with r.connect(r.address("a.test"), 80) as s:
            time.sleep(0.2)
            s.sendall(request("/", "b.test"))
            same("a late request too", split(read_all(s))[0], 421)
        clean(r, "tls")


def raw():
    with Rig(program, ["allow a.test", "allow closed.test"]) as r:
        a = r.address("a.test")
        with r.connect(a, 25) as s:
            start = time.monotonic()
            same("the server speaks first", s.recv(100), b"220 hello\r\n")
            row(time.monotonic() - start < 0.5, "without waiting for long")
            s.sendall(b"EHLO x\r\n")
            same("and is answered", s.recv(100), b"you said EHLO x\r\n")
        row(r.audit.wait(kind="tcp", allowed=True, port=25, via="network"), "on the log as tcp")
        with r.connect(a, 7) as s:
            s.sendall(b"\1\2\3")
            same("the client speaks first", s.recv(3), b"\1\2\3")
            s.shutdown(socket.SHUT_WR)
            same("the end comes back", read_all(s), b"")
        with r.connect(a, 9) as s:
            block = os.urandom(1 << 20)
            for _ in range(64):
                s.sendall(block)
            s.shutdown(socket.SHUT_WR)
            same("64 MiB, half-close, and then the answer", read_all(s), b"67108864 bytes")
        with r.connect(a, 666) as s:
            s.sendall(b"\1")
            same("a reset of the server's is a reset", read_all(s), b"<reset>")
        with r.connect(r.address("closed.test"), 81) as s:
            same("a port that is closed: reset", read_all(s), b"<reset>")
        row(r.audit.wait(rule="<dial failed>", host="closed.test"), "on the log")
        with r.connect(r.address("closed.test"), 81) as s:
            s.sendall(request("/", "closed.test:81"))
            got = split(read_all(s))
            row(got[0] == 502 and b"refused" in got[2], "HTTP is told: 502", got)
        for word in (b"x", b"NOOP"):
            with r.connect(a, 7) as s:
                s.sendall(word)
                same(f"{word}: no request, though it could have become one", s.recv(9), word)
                s.sendall(b"\1")
                same("and on", s.recv(9), b"\1")
        with r.connect(a, 8080) as s:
            s.sendall(b"GE")
            time.sleep(2)
            s.sendall(b"T / HTTP/1.1\r\nHost: b.test\r\n\r\n")
            same("a request that is cut in two", read_all(s), b"<reset>")
        row(r.audit.wait(reason="split-request"), "on the log")
        s = r.connect(a, 7)
        s.sendall(b"hello\n")
        s.recv(6)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        mark = r.audit.mark()
        s.close()
        row(r.audit.wait(since=mark, event="end", port=7), "a reset of the client's ends it")
        gib(r, a)
        order(r)
        slow(r, a)
        clean(r, "raw")


def gib(r, a):
    with r.connect(a, 19, timeout=60) as s:
        n, cpu, start, view = 0, r.cpu(), time.monotonic(), memoryview(bytearray(1 << 20))
        while k := s.recv_into(view):
            n += k
        wall = time.monotonic() - start
        same("1 GiB", n, 1 << 30)
        print(f"# 1 GiB in {wall:.2f} s, {r.cpu() - cpu:.2f} s of the proxy's CPU")


def order(r):
    """A reader that stops and goes: copied and spliced pieces by turns, and each byte in its place."""
    draw, size = random.Random(3), 10000000
    want = (bytes(range(256)) * (size // 256 + 1))[:size]
    for _ in range(3):
        with r.connect(r.address("a.test"), 80) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            s.sendall(request(f"/big/{size}", more="Connection: close\r\n"))
            data = bytearray(read_until(s))
            while more := s.recv(draw.choice([100, 5000, 70000, 500000])):
                data += more
                if draw.random() < 0.01:
                    time.sleep(draw.choice([0.001, 0.01]))
        row(data.partition(b"\r\n\r\n")[2] == want, "a reader that stops and goes gets each byte in its place", len(data))


def slow(r, a):
    """Somebody who does not read holds up nobody, and nothing piles up."""
    stuck = [r.connect(a, 19) for _ in range(20)]
    for s in stuck:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    time.sleep(0.5)
    with r.connect(a, 7) as s:
        start = time.monotonic()
        s.sendall(b"\1")
        s.recv(1)
        row(time.monotonic() - start < 0.5, "20 that do not read hold up nobody")
    cpu = r.cpu()
    time.sleep(0.5)
    row(r.cpu() - cpu < 0.1, "and cost nothing", r.cpu() - cpu)
    row(r.rss() < 60000, "nothing piles up", r.rss())
    for s in stuck:
        s.close()


def forward():
    with Rig(program, ["allow a.test", "allow http.test GET /ok/**", "allow lo.test"], connect=[f"http.test:80={A}:80"]) as r:
        def send(data, wait=None):
            with r.connect(GATEWAY, 3128) as s:
                s.sendall(data)
                return read_until(s, wait) if wait else read_all(s)

        heads.clear()
        got = split(send(b"GET http://a.test/f?q HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: x\r\nProxy-Connection: close\r\n"
                         b"Connection: close\r\n\r\n"))
        same("absolute form", (got[0], got[2]), (200, b"/f?q 0\n"))
        row(heads and heads[0].startswith(b"GET /f?q HTTP/1.1\r\nHost: a.test") and b"Proxy" not in heads[0], "as the server sees it", heads)
        row(r.audit.wait(kind="http", via="forward", allowed=True, path="/f"), "on the log as forward")
        same("a denied host: 403", split(send(b"GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n"))[0], 403)
        same("CONNECT to it: 403", split(send(b"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n", b"here.\n"))[0], 403)
        same("https in absolute form", split(send(b"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"))[0], 400)
        got = split(send(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"))
        row(got[0] == 400 and b"proxy" in got[2], "origin form: 400 with a word", got)
        row(split(send(hello("a.test")))[0] in (0, 400), "TLS to the proxy itself")
        row(split(send(b"\0\1\2\3\r\n\r\n"))[0] in (0, 400), "junk")
        with r.connect(GATEWAY, 3128) as s:
            s.sendall(b"".join(b"GET http://a.test/%d HTTP/1.1\r\nHost: a.test\r\n\r\n" % i for i in range(3)))
            s.sendall(b"GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n")
            s.sendall(b"GET http://a.test:8080/last HTTP/1.1\r\nHost: a.test:8080\r\n\r\n")
            data = read_until(s, b"/last 0\n")
            row(data.count(b" 200 ") == 4 and data.count(b" 403 ") == 1, "different hosts on one connection", data)
        with r.connect(GATEWAY, 3128) as s:
            s.sendall(b"CONNECT a.test:25 HTTP/1.1\r\n\r\n")
            same("CONNECT without Host is HTTP/1.1 no more", split(read_until(s))[0], 400)
        with r.connect(GATEWAY, 3128) as s:
            s.sendall(b"CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25\r\n\r\n")
            data = read_until(s, b"hello\r\n")
            row(data.startswith(b"HTTP/1.1 200") and data.endswith(b"220 hello\r\n"), "CONNECT, and the server speaks first", data)
            s.sendall(b"NOOP\r\n")
            same("CONNECT: bytes", s.recv(100), b"you said NOOP\r\n")
        row(r.audit.wait(via="forward-bypass", allowed=True, host="a.test", port=25), "on the log as forward-bypass")
        same("CONNECT where nobody listens: 502", split(send(b"CONNECT a.test:99 HTTP/1.1\r\nHost: a.test:99\r\n\r\n"))[0], 502)
        got = split(send(b"CONNECT lo.test:18095 HTTP/1.1\r\nHost: lo.test:18095\r\n\r\n"))
        row(got[0] == 403 and b"loopback" in got[2], "CONNECT to a name that leads to the loopback: 403", got)
        tunnel(r)
        if shutil.which("curl"):
            out = r.guest.sh(f"curl -sS -k --max-time 5 -x http://{GATEWAY}:3128 https://a.test/ -d x", check=False)
            row("tls " in out or "HTTP/0.9" in out, "curl by CONNECT", out)
            out = r.guest.sh(f"curl -sS --max-time 5 -x http://{GATEWAY}:3128 http://a.test/curl", check=False)
            row("/curl 0" in out, "curl by absolute form", out)
        clean(r, "forward")


def tunnel(r):
    """What goes through a tunnel is looked at as anything else."""
    def connect(what):
        s = r.connect(GATEWAY, 3128)
        s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (what, what))
        same(f"CONNECT {what.decode()}", split(read_until(s))[0], 200)
        return s

    with connect(b"a.test:443") as s:
        s.sendall(hello("b.test"))
        row(read_all(s)[:1] == b"\x15", "another SNI inside: alert")
    with connect(b"a.test:443") as s:
        s.sendall(hello("a.test"))
        row(s.recv(1) == b"\x16", "the same: answered")
    with connect(b"a.test:80") as s:
        s.sendall(request("/in-tunnel"))
        row(b"/in-tunnel 0" in read_until(s, b" 0\n"), "HTTP inside")
        s.sendall(request("/in-tunnel", "b.test"))
        row(b" 421 " in read_until(s), "with another Host")
    with connect(b"http.test:80") as s:
        s.sendall(request("/ok/1", "http.test"))
        row(b"/ok/1 0" in read_until(s, b" 0\n"), "requests that a rule allows")
        s.sendall(request("/no", "http.test"))
        row(b" 403 " in read_until(s, b"here.\n"), "and one that it does not")


def requests():
    """Rules on methods and paths."""
    rules = ["allow a.test GET /ok/**", "deny a.test GET /ok/secret/**", "allow b.test", "deny b.test DELETE /**"]
    with Rig(program, rules) as r:
        for name, method, path, want in (("a.test", "GET", "/ok/x", 200), ("a.test", "POST", "/ok/x", 403), ("a.test", "GET", "/no", 403),
                                         ("a.test", "GET", "/ok/secret/x", 403), ("a.test", "GET", "/ok/../ok/secret/x", 403),
                                         ("a.test", "GET", "/ok/%73ecret/x", 403), ("a.test", "GET", "/ok/secret%2Fx", 403),
                                         ("a.test", "GET", "/ok//secret/x", 403), ("b.test", "GET", "/any", 200),
                                         ("b.test", "DELETE", "/any", 403)):
            same(f"{method} {path} of {name}", ask(r, path, name=name, method=method)[0], want)
        with r.connect(r.address("a.test"), 80) as s:
            s.sendall(request("/ok/1") + request("/no") + request("/ok/2"))
            data = read_until(s, b"/ok/2 0\n")
            row([b"/ok/1 0" in data, b" 403 " in data, b"/ok/2 0" in data] == [True] * 3, "three sent ahead, each decided", data)
        with r.connect(r.address("a.test"), 25) as s:
            s.settimeout(1)
            s.sendall(b"EHLO x\r\n")
            same("another protocol there: reset", read_all(s), b"<reset>")
        clean(r, "requests")


def addresses():
    """Where a name leads."""
    with Rig(program, ["allow **", "allow localhost:18095"]) as r:
        before = {k: hits[k][0] for k in ("private", "metadata", "alibaba")}
        for name, word in (("private.test", "private"), ("meta.test", "metadata"), ("lo.test", "loopback")):
            got = ask(r, "/", name=name)
            row(got[0] == 403 and word in got[2].decode(), f"{name} leads where ** does not: {word}", got)
            row(r.audit.wait(host=name, allowed=False, reason="private-address"), "on the log")
        for addr in (PRIVATE, METADATA, "100.100.100.200", "127.0.0.2", "224.0.0.1", "198.18.0.5", "10.0.0.1"):
            with contextlib.suppress(OSError), r.connect(addr, 80, timeout=3) as s:
                s.sendall(request("/", addr))
                got = split(read_all(s))
                row(got[0] in (403, 421), f"{addr} itself", got)
        same("of two addresses the public one is taken", ask(r, "/", name="both.test")[0], 200)
        same("first it is public", ask(r, "/", name="rebinding.test")[0], 200)
        r.resolver("nameserver 9.9.9.9\nnameserver 9.9.9.9\n")  # the answer is forgotten
        same("then it is not", ask(r, "/", name="rebinding.test")[0], 403)
        same("none of them was reached", {k: hits[k][0] for k in before}, before)
        good = sum(ask(r, "/", name="rotating.test")[0] == 200 for _ in range(60))
        same("20 addresses in turn, 60 requests", good, 60)
        row(sum(hits[f"r{i}"][0] > 0 for i in range(20)) >= 1, "really in turn")
        with r.connect(HOST, 18095) as s:
            s.sendall(request("/host", "host.docker.internal:18095", more="Connection: close\r\n"))
            same("the host's loopback where a rule allows it", split(read_all(s))[2], b"/host 0\n")
        with r.connect(HOST, 18096) as s:
            s.sendall(request("/host", "host.docker.internal:18096", more="Connection: close\r\n"))
            same("and not at another port", split(read_all(s))[0], 403)
        start = time.monotonic()
        same("one address of two is dead", ask(r, "/", name="dead.test")[0], 200)
        row(time.monotonic() - start < 1.5, "the other is tried soon", time.monotonic() - start)
        same("IPv6 is dead, IPv4 is not", ask(r, "/", name="dual.test")[0], 200)
        with r.connect(r.address("gone.test"), 80, timeout=15) as s:
            start = time.monotonic()
            s.sendall(request("/", "gone.test"))
            same("nobody answers: 502", split(read_all(s))[0], 502)
            row(9 < time.monotonic() - start < 12, "after ten seconds", time.monotonic() - start)
        for name in ("nowhere.test", "empty.test"):
            got = ask(r, "/", name=name)
            row(got[0] == 502 and b"no such name" in got[2], f"{name}: 502 that says why", got)
        names.long.add("long.test")
        same("an answer that is too long for a datagram is fetched by TCP", ask(r, "/", name="long.test")[0], 200)
        r.resolver(f"# none\nnameserver {A}\noptions timeout:1\n")
        got = ask(r, "/", name="b.test")
        row(got[0] == 502 and b"name servers" in got[2], "a name server that is none: 502", got)
        r.resolver(f"nameserver {A}\nnameserver 9.9.9.9\n")
        same("the second is asked", ask(r, "/", name="b.test")[0], 200)
        r.resolver("")
        row(b"name servers" in ask(r, "/", name="both.test")[2], "none at all is the one on this machine")
        r.resolver("nameserver fe80::1%eth0\nnameserver nonsense\nnameserver 9.9.9.9")
        same("what cannot be used is left out", ask(r, "/", name="b.test")[0], 200)
        r.resolver("nameserver 9.9.9.9\n", f"127.0.0.1 localhost\n{A}\thosts.test  other.test # x\n")
        same("the host's hosts file", (ask(r, "/", name="hosts.test")[0], ask(r, "/", name="Other.test")[0]), (200, 200))
        clean(r, "addresses")


def detours():
    with Rig(program, ["allow x.test", "deny y.test"], connect=["x.test:443=127.0.0.1:18095", f"x.test:80={A}:8080", f"y.test:80={A}:80",
                                                                "nonsense", "x.test:1=host:2"]) as r:
        asked = len(names.asked)
        same("connectTo", ask(r, "/d", name="x.test")[0], 200)
        same("to the loopback", ask(r, "/d", name="x.test", port=443)[0], 200)
        same("a denied one stays denied", ask(r, "/d", name="y.test")[0], 403)
        same("nothing was looked up", len(names.asked), asked)
        row(len(r.says) == 2, "what is nonsense is said", r.says)


def socks(c):
    data = c.recv(2)
    methods = c.recv(data[1])
    if 2 in methods:
        c.sendall(b"\5\2")
        v = c.recv(2)
        user = c.recv(v[1])
        n = c.recv(1)[0]
        password = c.recv(n)
        ok = (user, password) == (b"me", b"p:w")
        c.sendall(b"\1\0" if ok else b"\1\1")
        if not ok:
            return
    else:
        c.sendall(b"\5\0")
    head = c.recv(5)
    host = c.recv(head[4]).decode()
    port, = struct.unpack(">H", c.recv(2))
    ways.append(("socks", host, port))
    u = socket.create_connection(({"a.test": A}.get(host, host), port))
    c.sendall(b"\5\0\0\1" + bytes(6))
    both(c, u)


def both(c, u):
    def one(x, y):
        with contextlib.suppress(OSError):
            while data := x.recv(65536):
                y.sendall(data)
            y.shutdown(socket.SHUT_WR)

    t = threading.Thread(target=one, args=(u, c), daemon=True)
    t.start()
    one(c, u)
    t.join()


def http_proxy(c):
    head = read_until(c)
    first = head.split(b"\r\n")[0].decode()
    ways.append(("http", first, b"Proxy-Authorization: Basic bWU6cDp3" in head))
    if b"Basic bWU6cDp3" not in head:
        c.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    if first.startswith("CONNECT"):
        u = socket.create_connection((A, int(first.split()[1].rsplit(":", 1)[1])))
        c.sendall(b"HTTP/1.1 200 fine\r\nX: y\r\n\r\n")
        both(c, u)
    else:
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nby proxy\n")


ways = []


def upstreams():
    serve("127.0.0.1", 1080, socks)
    serve("127.0.0.1", 8118, http_proxy)
    for upstream in ("socks5h://me:p%3Aw@127.0.0.1:1080", "http://me:p%3Aw@127.0.0.1:8118"):
        kind = upstream.split(":")[0]
        with Rig(program, ["allow a.test", "allow b.test:80", f"allow {B}:443"], upstream=upstream, no_proxy=".b.test,x") as r:
            ways.clear()
            asked = len(names.asked)
            got = ask(r, "/u")
            same(f"{kind}: plain HTTP", got[0], 200)
            same(f"{kind}: TLS", wrapped(r, r.address("a.test"), "a.test"), b"tls hi")
            with r.connect(r.address("a.test"), 25) as s:
                same(f"{kind}: the server speaks first", s.recv(100), b"220 hello\r\n")
            same(f"{kind}: nothing was looked up here", len(names.asked), asked)
            row(len(ways) == 3, f"{kind}: all by the host's proxy", ways)
            if kind == "http":
                with r.connect(r.address("a.test"), 80) as s:
                    time.sleep(0.3)  # dialled as a tunnel, before it turns out to be HTTP
                    heads.clear()
                    s.sendall(request("/tunnelled", more="Connection: close\r\n"))
                    row(b"/tunnelled 0" in read_all(s) and b"Authorization" not in heads[0] and
                        heads[0].startswith(b"GET /tunnelled "), "http: a tunnel's end does not see the password", heads)
                same("http: in absolute form", ways[0], ("http", "GET http://a.test/u HTTP/1.1", True))
                row(b"by proxy" in got[2], "http: its answer", got)
            ways.clear()
            same(f"{kind}: no_proxy", ask(r, "/", name="b.test")[0], 200)
            same(f"{kind}: directly", ways, [])
            same(f"{kind}: denied stays denied", ask(r, "/", name="private.test")[0], 403)
        bad = upstream.replace("me:", "you:")
        with Rig(program, ["allow a.test"], upstream=bad) as r:
            got = wrapped(r, r.address("a.test"), "a.test")
            row(isinstance(got, str), f"{kind}: a wrong password", got)
            row(r.audit.wait(rule="<dial failed>", host="a.test"), f"{kind}: on the log",
                r.audit.all)
    with Rig(program, ["allow a.test"], upstream="gopher://x") as r:
        same("one that cannot be used: nothing goes out", ask(r, "/")[0], 502)
        row(r.says, "and that is said")


def swap():
    with Rig(program, ["allow a.test", "allow b.test"]) as r:
        quiet = r.connect(r.address("a.test"), 7)
        quiet.sendall(b"\1")
        quiet.recv(1)
        other = r.connect(r.address("b.test"), 80)
        other.sendall(request("/", "b.test"))
        read_until(other, b" 0\n")
        ws = r.connect(r.address("a.test"), 80)
        ws.sendall(request("/upgrade", more="Connection: Upgrade\r\nUpgrade: echo\r\n"))
        read_until(ws, b"first ")
        tunnelled = r.connect(GATEWAY, 3128)
        tunnelled.sendall(b"CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25\r\n\r\n")
        read_until(tunnelled, b"hello\r\n")
        start = time.monotonic()
        same("another policy", r.policy(["allow b.test"]), (0, ""))
        for what, s in (("an open connection", quiet), ("an open WebSocket", ws), ("an open tunnel", tunnelled)):
            same(f"{what} that is denied now: reset", read_all(s), b"<reset>")
        row(time.monotonic() - start < 2, "within two seconds", time.monotonic() - start)
        row(r.audit.wait(allowed=False, host="a.test", note="the policy has changed: the connection is closed"), "on the log")
        other.sendall(request("/again", "b.test"))
        row(b"/again 0" in read_until(other, b" 0\n"), "one that is allowed goes on")
        same("new ones are refused", ask(r, "/")[0], 403)
        code, why = r.policy(b"garbage")
        row(code < 0 and why, "a policy that is none is answered", (code, why))
        same("and everything is denied", (read_all(other), ask(r, "/", name="b.test")[0]), (b"<reset>", 403))
        same("until there is one", (r.policy(["allow b.test"])[0], ask(r, "/", name="b.test")[0]), (0, 200))
        long = r.connect(r.address("b.test"), 80)
        long.sendall(request("/big/100000000", "b.test"))
        long.recv(1000)
        same("a CIDR that is denied", r.policy(["allow b.test", f"deny {B}/32"])[0], 0)
        row(read_all(long).endswith(b"<reset>"), "ends a download from it")
        clean(r, "swap")


def stall():
    with Rig(program, ["allow a.test"]) as r:
        a = r.address("a.test")
        before = hits["a80"][0], hits["a7"][0], len(names.asked)
        r.audit.stall(True)
        s, t = r.connect(a, 80), r.connect(a, 7)
        s.sendall(request("/stalled"))
        t.sendall(b"\1")
        u = r.connect(GATEWAY, 3128)
        u.sendall(b"CONNECT a.test:7 HTTP/1.1\r\nHost: a.test:7\r\n\r\n")
        time.sleep(1)
        same("the log takes nothing: nothing is dialled or looked up", (hits["a80"][0], hits["a7"][0], len(names.asked)), before)
        r.ping()
        row(True, "the proxy answers its supervisor")
        r.audit.stall(False)
        row(b"/stalled 0" in read_until(s, b" 0\n"), "when it does, it goes on")
        same("raw too", t.recv(1), b"\1")
        for c in (s, t, u):
            c.close()
        # a flood while the log is stalled: no memory without bound, nothing lost
        r.audit.stall(True)
        base = r.rss()
        socks = []
        for _ in range(3000):
            with contextlib.suppress(OSError):
                c = r.connect("198.18.250.250", 80, timeout=0.2)
                socks.append(c)
        row(r.rss() - base < 20000, "a flood of refusals while it is stalled", r.rss() - base)
        r.audit.stall(False)
        same("afterwards it works", ask(r, "/after")[0], 200)
        r.audit.sock.close()
        r.audit.theirs.close()
        with contextlib.suppress(rig.Failed):
            r.hear(rig.SAY)
    stop()


def stop():
    """Somebody stops it."""
    with Rig(program, ["allow a.test"]) as r:
        s = r.connect(r.address("a.test"), 7)
        os.kill(r.process.pid, 19)
        s.sendall(b"\1")
        s.settimeout(1)
        with contextlib.suppress(OSError):
            same("stopped: nothing passes", s.recv(1), "nothing")
        row(True, "stopped: nothing passes")
        os.kill(r.process.pid, 18)
        s.settimeout(5)
        same("it goes on", s.recv(1), b"\1")


def control():
    for what, send in (("garbage", b"garbage"), ("an empty message", b"\1"), ("a message of its own", struct.pack(">B", rig.READY)),
                       ("a policy without a file", struct.pack(">BI", rig.POLICY, 9))):
        with Rig(program, []) as r:
            r.control.send(send)
            row(r.process.wait(10) is not None, f"{what} from the supervisor: it ends")
    with Rig(program, []) as r:
        r.minder.send(struct.pack(">BI", rig.PING, 1))
        row(r.process.wait(10) is not None, "the minder may not ask what the supervisor may: it ends")
    r = Rig(program, [])
    same("it ends with its supervisor", r.end(), "")
    same("and says nothing", r.process.returncode, 0)
    with Rig(program, b"garbage") as r:
        same("a first policy that is none: it serves, and denies", ask(r, "/")[0], 403)
    with Rig(program, ["allow a.test"]) as r:
        open_files = os.listdir(f"/proc/{r.process.pid}/fd")
        with open(f"/proc/{r.process.pid}/status", encoding="ascii") as f:
            status = dict(x.split(":", 1) for x in f.read().splitlines())
        same("sealed", (status["Seccomp"].strip(), status["NoNewPrivs"].strip()), ("2", "1"))
        row(len(open_files) < 20, "few descriptors", open_files)


def dropped():
    with Rig(program, ["allow **"]) as r:
        with r.guest.inside():
            u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
            gre = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47)
            raw_ip = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        u.settimeout(1)
        u.connect(("1.1.1.1", 443))
        for _ in range(5):
            with contextlib.suppress(OSError):
                u.send(b"quic")
        start = time.monotonic()
        with contextlib.suppress(OSError):
            u.send(b"quic")
            u.recv(1)
        row(time.monotonic() - start < 0.5, "UDP is refused at once")
        icmp.sendto(b"\10\0\xf7\xff\0\0\0\0", ("8.8.8.8", 0))
        gre.sendto(b"x" * 20, ("8.8.4.4", 0))
        got = r.audit.wait(kind="udp", host="1.1.1.1", port=443)
        row(got and got["count"] >= 2 and not got["allowed"], "UDP is on the log, folded", got)
        row(r.audit.wait(kind="icmp", host="8.8.8.8"), "ICMP is")
        row(r.audit.wait(kind="ip", host="8.8.4.4", note="protocol 47"), "others are")
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, 17, 0, socket.inet_aton("10.0.0.5"), socket.inet_aton("8.8.8.8"))
        raw_ip.sendto(head + struct.pack(">HHHH", 4000, 53, 8, 0), ("8.8.8.8", 0))
        row(r.audit.wait(kind="udp", host="8.8.8.8", port=53, note="forged source"), "a question with another's address is")
        mark = r.audit.mark()
        for i in range(2000):
            with contextlib.suppress(OSError):
                u.connect((f"1.2.{i >> 8}.{i & 255}", 4000 + i))
                u.send(b"x")
        time.sleep(2.5)
        row(len(r.audit.find(since=mark, kind="udp")) < 200, "a scan does not fill it", len(r.audit.all) - mark)
        clean(r, "dropped")


def clients():
    """Programs as they are, which know of no proxy."""
    resolv = f"{work}/resolv.conf"
    with open(resolv, "w", encoding="ascii") as f:
        f.write(f"nameserver {GATEWAY}\noptions timeout:2 attempts:2\n")
    rig.sh(f"git init -q --bare {work}/repo.git; cd {work} && git init -q src && cd src && echo hi >file && git add file && "
           f"git -c user.name=x -c user.email=x@x commit -qm x && git push -q {work}/repo.git HEAD:refs/heads/main && "
           f"cd {work}/repo.git && git symbolic-ref HEAD refs/heads/main && git update-server-info")
    files = subprocess.Popen([sys.executable, "-m", "http.server", "-b", A, "-d", work, "8090"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    www = subprocess.Popen(["openssl", "s_server", "-accept", f"{A}:4433", "-cert", f"{work}/crt", "-key", f"{work}/key", "-www",
                            "-quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for port in (8090, 4433):
        rig.wait_port(A, port)
    commands = [
        ("curl -sS http://a.test/c", "/c 0"), ("curl -sS -k https://a.test:4433/", "Ciphers"), ("wget -qO- http://a.test/w", "/w 0"),
        ("curl -sS -k --cacert {w}/crt https://a.test:4433/", "Ciphers"),
        ("git clone -q http://a.test:8090/repo.git {w}/clone && cat {w}/clone/file", "hi"),
        ("openssl s_client -connect a.test:443 -servername a.test </dev/null 2>&1", "CN = a.test"),
        ("openssl s_client -connect a.test:443 -servername b.test </dev/null 2>&1", "access denied"),
        ("nodejs -e 'fetch(\"http://a.test/n\").then(r=>r.text()).then(console.log)'", "/n 0"),
        ("python3 -c 'import urllib.request as u; print(u.urlopen(\"http://a.test/p\").read())'", "/p 0"),
        ("curl -sS http://b.test/x", "bac policy allow network --sandbox web b.test:80"),
        ("curl -sS -k https://b.test/x 2>&1", "access denied"),
        ("curl -sS --resolve a.test:80:" + B + " http://a.test/ 2>&1", "refused by network policy"),
        ("curl -sS --max-time 9 http://1570726947/ 2>&1", "policy: 93.159.100.35:80"), ("curl -sS --max-time 9 http://0x5db8d823/ 2>&1", B),
        ("curl -sS -L http://a.test/redirect 2>&1", "refused by network policy: b.test:80"),
        ("curl -sS -6 --max-time 9 http://a.test/ 2>&1", "curl: ("),
        ("getent hosts a.test", "198.18.1"),
    ]
    with Rig(program, ["allow a.test"]) as r:
        for command, want in commands:
            if not shutil.which(command.split()[0]):
                continue
            inner = f"mount --bind {resolv} /etc/resolv.conf && {command.format(w=work)}"
            start = time.monotonic()
            out = r.guest.popen(["unshare", "-m", "sh", "-c", inner], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env={"PATH": os.environ["PATH"], "HOME": work}).communicate()[0]
            row(want in out and time.monotonic() - start < 8, command, out[-600:])
        clean(r, "clients")
    for process in (files, www):
        process.kill()
        process.wait()


PIECES = [b"GET / HTTP/1.1\r\n", b"Host: a.test\r\n", b"Host: b.test\r\n", b"\r\n", b"POST /post HTTP/1.1\r\n", b"Content-Length: 5\r\n",
          b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"12345", b"CONNECT a.test:7 HTTP/1.1\r\n",
          b"GET http://a.test/ HTTP/1.1\r\n", b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: x\r\n",
          b"GET /chunked HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET /big/300000 HTTP/1.1\r\nHost: a.test\r\n\r\n",
          b"GET /cut HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET /hang-up HTTP/1.1\r\nHost: a.test\r\n\r\n",
          b"GET /early-hints HTTP/1.1\r\nHost: a.test\r\n\r\n", b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"\0", b"\x16\3\1",
          b"Expect: 100-continue\r\n", b"GET /upgrade HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
          b"x" * 3000]


def storm():
    """Clients without sense or manners, while policies come and go; BAC_STORM_S seconds (3) of it."""
    draw = random.Random(int(os.environ.get("BAC_STORM_SEED", "1")))
    until = time.monotonic() + float(os.environ.get("BAC_STORM_S", "3"))
    policies = [["allow a.test"], ["allow a.test", "allow b.test"], [], ["allow **", "deny b.test"], ["allow a.test GET /**"],
                ["allow **", f"deny {A}/32"]]
    with Rig(program, policies[0], keep=False) as r:
        where = [(r.address("a.test"), 80), (r.address("a.test"), 443), (r.address("a.test"), 7), (r.address("b.test"), 80),
                 (GATEWAY, 3128), (A, 80), (r.address("a.test"), 25), (r.address("a.test"), 19), (GATEWAY, 53)]
        n, socks = 0, []
        while time.monotonic() < until:
            n += 1
            if n % 50 == 0:
                r.policy(draw.choice(policies))
            with contextlib.suppress(OSError):
                s = r.connect(*draw.choice(where), timeout=0.2)
                s.setblocking(False)
                socks.append(s)
            for _ in range(draw.randrange(6)):
                s = draw.choice(socks)
                with contextlib.suppress(OSError):
                    s.send(b"".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 6))))
                with contextlib.suppress(OSError):
                    if draw.random() < 0.5:
                        s.recv(draw.choice([1, 1000, 100000]))
            if len(socks) > 60:
                s = socks.pop(draw.randrange(len(socks)))
                with contextlib.suppress(OSError):
                    if draw.random() < 0.3:
                        s.shutdown(socket.SHUT_WR)
                        socks.append(s)
                        continue
                    if draw.random() < 0.5:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        for s in socks:
            s.close()
        print(f"# {n} connections, {r.rss()} KiB")
        same("after it: a policy", r.policy(["allow a.test"]), (0, ""))
        same("and a request", ask(r, "/")[0], 200)
        deadline = time.monotonic() + 10
        while len(os.listdir(f"/proc/{r.process.pid}/fd")) > 70 and time.monotonic() < deadline:
            time.sleep(0.1)
        row(len(os.listdir(f"/proc/{r.process.pid}/fd")) <= 70, "no descriptor is left open",
            len(os.listdir(f"/proc/{r.process.pid}/fd")))
        clean(r, "storm")


ECHO = """
import select, socket, sys
l = socket.socket(); l.setsockopt(1, 2, 1); l.bind((sys.argv[1], 8007)); l.listen(4096)
e = select.epoll(); e.register(l, 1); c = {}
print("ready", flush=True)
while True:
    for fd, _ in e.poll():
        if fd == l.fileno():
            s, _ = l.accept(); c[s.fileno()] = s; e.register(s, 1)
            continue
        try:
            data = c[fd].recv(65536)
        except OSError:
            data = b""
        if data:
            c[fd].send(data)
        else:
            c.pop(fd).close()
"""


def idle():
    """As many as may be open here, up to 10,000; the server has a process and descriptors of its own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    n = min(10000, (hard - 400) // 2)
    server = subprocess.Popen([sys.executable, "-c", ECHO, A], stdout=subprocess.PIPE)
    server.stdout.readline()
    with Rig(program, ["allow a.test"], keep=False) as r:
        a = r.address("a.test")
        base = r.rss()
        start = time.monotonic()
        socks = []
        for _ in range(n):
            s = r.connect(a, 8007, timeout=20)
            s.sendall(b"\1")
            socks.append(s)
        for s in socks:
            s.recv(1)
        wall = time.monotonic() - start
        rss = r.rss()
        row(rss * 10000 / n < 100 * 1024, f"{n} idle connections: 10,000 take less than 100 MiB", rss)
        print(f"# {n} connections: {rss} KiB, {base} before: {(rss - base) * 1024 // n} bytes each; made in {wall:.1f} s")
        cpu = r.cpu()
        time.sleep(1)
        row(r.cpu() - cpu < 0.05, "and no CPU", r.cpu() - cpu)
        socks[n // 2].sendall(b"\2")
        same("each is alive", socks[n // 2].recv(1), b"\2")
        start = time.monotonic()
        r.policy([])
        same("all are closed by another policy", read_all(socks[n - 1]), b"<reset>")
        row(time.monotonic() - start < 5, "soon", time.monotonic() - start)
        for s in socks:
            s.close()
    server.kill()
    server.wait()
    few()


def few():
    with Rig(program, ["allow a.test"], fds=600) as r:
        a = r.address("a.test")
        socks = []
        for _ in range(300):
            s = r.connect(a, 7)
            s.sendall(b"\1")
            socks.append(s)
        for _ in range(20):
            r.ping()
            if r.says:
                break
            time.sleep(0.1)
        row(any("open" in x for x in r.says), "no room: one line says so", r.says)
        for s in socks[:290]:
            s.close()
        same("when there is, those that waited are served", socks[-1].recv(1), b"\1")
        for s in socks[290:]:
            s.close()


scenarios = {"dns": dns, "http": http, "refused": refused, "smuggling": smuggling, "tls": tls_, "raw": raw, "forward": forward,
             "requests": requests, "addresses": addresses, "detours": detours, "upstreams": upstreams, "swap": swap, "stall": stall,
             "control": control, "clients": clients, "storm": storm, "dropped": dropped, "idle": idle}

why = rig.missing()
if why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
rig.alone()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
world()
for name in sys.argv[2:] or scenarios:
    print(f"# {name}", flush=True)
    try:
        scenarios[name]()
    except (rig.Failed, OSError) as e:
        row(False, name, repr(e))
shutil.rmtree(work)
print(f"1..{rows}")
sys.stdout.flush()
os._exit(failed != 0)
