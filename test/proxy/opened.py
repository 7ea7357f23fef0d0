#!/usr/bin/env python3
"""bac-proxy where it opens TLS: a world of servers, a guest with real clients, and a keeper that is played here. Prints TAP.

    test/proxy/opened.py BAC-PROXY [SCENARIO...]
"""
import array
import base64
import contextlib
import datetime
import hashlib
import importlib.util
import ipaddress
import json
import os
import queue
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

SYSTEM = "/usr/bin/python3"
if not importlib.util.find_spec("cryptography") and os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
    os.execv(SYSTEM, [SYSTEM, *sys.argv])
if not importlib.util.find_spec("cryptography") or not shutil.which("curl"):
    print("1..0 # SKIP needs python3-cryptography and curl")
    sys.exit(0)

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rig  # noqa: E402
from leakset import leak_set  # noqa: E402
from rig import APPLIED, GATEWAY, Names, Rig, read_all, read_until, serve

program = os.path.abspath(sys.argv[1])
rows = 0
failed = 0
A, B, C = "93.184.216.34", "93.184.216.35", "93.184.216.36"
SECRET = b"sk-test-0123456789abcdefghijklmnop"
work = tempfile.mkdtemp(prefix="test-bac-opened-")
heads = []  # of requests that came to a server
conns = []  # peers of connections
CREDENTIALS, MARKS, KEEPER, TRUST = 4, 5, 17, 18


def row(good, what, detail=""):
    global rows, failed
    rows += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {rows} - {what}", flush=True)
    if not good and detail != "":
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def same(what, got, want):
    row(got == want, what, f"got {got!r}, not {want!r}")


# ---- certificates ----

class Authority:
    def __init__(self, name, permitted=None):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.utcnow()
        b = (x509.CertificateBuilder().subject_name(self.name).issuer_name(self.name).public_key(self.key.public_key())
             .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(1))
             .not_valid_after(now + datetime.timedelta(365)).add_extension(x509.BasicConstraints(True, 0), True))
        if permitted:
            b = b.add_extension(x509.NameConstraints([x509.DNSName(p) for p in permitted], None), True)
        self.cert = b.sign(self.key, hashes.SHA256())

    def pem(self):
        return self.cert.public_bytes(serialization.Encoding.PEM)

    def leaf(self, names, days=30, start=-1):
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.utcnow()
        sans = []
        for n in names:
            try:
                sans.append(x509.IPAddress(ipaddress.ip_address(n)))
            except ValueError:
                sans.append(x509.DNSName(n))
        cert = (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(self.name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now + datetime.timedelta(start))
                .not_valid_after(now + datetime.timedelta(days)).add_extension(x509.SubjectAlternativeName(sans), True)
                .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
                .sign(self.key, hashes.SHA256()))
        return cert, key

    def context(self, names, protocols=("http/1.1",), **more):
        cert, key = self.leaf(names, **more)
        with tempfile.NamedTemporaryFile(dir=work) as f:
            f.write(cert.public_bytes(serialization.Encoding.PEM) +
                    key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                      serialization.NoEncryption()))
            f.flush()
            c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            c.load_cert_chain(f.name)
        c.set_alpn_protocols(list(protocols))
        return c


public, private = Authority("the world"), Authority("a company")


# ---- the keeper, played ----

def blob(b):
    return struct.pack(">I", len(b)) + b


class Keeper:
    def __init__(self, hosts):
        self.ca = Authority("bac sandbox web", [h for h in hosts])
        self.values, self.asked, self.leaves, self.kept = {}, [], {}, []
        self.silent = threading.Event()
        self.overs, self.last = queue.Queue(), 0
        self.sock = None

    def start(self):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        threading.Thread(target=self.run, args=(self.sock,), daemon=True).start()
        return theirs

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def text(self, m, at):
        n, = struct.unpack_from(">I", m, at)
        return m[at + 4:at + 4 + n], at + 5 + n

    def bytes(self, m, at):
        n, = struct.unpack_from(">I", m, at)
        return m[at + 4:at + 4 + n], at + 4 + n

    def leaf(self, host):
        if host not in self.leaves:
            cert, key = self.ca.leaf([host], 2)
            self.leaves[host] = (cert.public_bytes(serialization.Encoding.DER),
                                 key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8,
                                                   serialization.NoEncryption()))
        cert, key = self.leaves[host]
        chain = blob(cert) + blob(self.ca.cert.public_bytes(serialization.Encoding.DER))
        return blob(chain) + blob(key) + struct.pack(">Q", int(time.time()) + 172800)

    def run(self, sock):
        while True:
            try:
                m = sock.recv(1 << 17)
            except OSError:
                return
            if not m:
                return
            with contextlib.suppress(OSError):
                self.answer(sock, m)

    def answer(self, sock, m):
        kind, number = struct.unpack_from(">BI", m)
        if kind == 32:
            host, _ = self.text(m, 5)
            self.asked.append(("leaf", host.decode()))
            sock.send(struct.pack(">BI", 80, number) + self.leaf(host.decode()))
            return
        if kind == 35:
            self.overs.put(number)
            return
        use, at = self.text(m, 5)
        host, at = self.text(m, at)
        use, host = use.decode(), host.decode()
        at += 2
        if kind == 33:
            self.asked.append(("value", use, host))
            self.last = number
            value = self.values.get(use)
            if value is None:
                sock.send(struct.pack(">BII", 82, number, 1) + rig.text("there is none: bac secret set " + use))
            else:
                sock.send(struct.pack(">BI", 81, number) + blob(value))
        elif kind == 34:
            access, at = self.bytes(m, at)
            refresh, at = self.bytes(m, at)
            expires, = struct.unpack_from(">Q", m, at)
            self.kept.append((use, host, access, refresh, expires))
            sock.send(struct.pack(">BI", 83, number))


KINDS_OF = {"header": "service", "basic": "service", "custom": "custom", "oauth": "oauth", "token": "oauth"}


def use(ident, kind, resource_, state="ready", service=None, header=None, format_=None, username=None, placeholder=None,
        placeholder2=None, where=None, path=None, fields=None):
    service = service or ident
    return "\t".join(x or "-" for x in (ident, kind, state, "user", service, f"global/{KINDS_OF[kind]}/{service}", resource_, header, format_, username,
                                        placeholder, placeholder2, where, path, fields))


class Opened(Rig):
    def __init__(self, policy, uses=(), trust=None, hosts=("test",), values=None, **more):
        self.keeper = Keeper(hosts)
        self.keeper.values = values or {}
        super().__init__(program, policy, **more)
        self.ca = os.path.join(work, f"ca-{id(self)}.pem")
        with open(self.ca, "wb") as f:
            f.write(self.keeper.ca.pem())
        self.send_trust(public.pem() if trust is None else trust)
        self.new_keeper()
        if uses is not None:
            same("credentials are taken", self.credentials(uses), (0, ""))

    def file(self, sock, head, text):
        fd = os.memfd_create("x")
        os.write(fd, text)
        sock.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)

    def send_trust(self, pem):
        self.file(self.minder, struct.pack(">B", TRUST), pem)
        self.ping()

    def new_keeper(self):
        theirs = self.keeper.start()
        self.minder.sendmsg([struct.pack(">B", KEEPER)],
                            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
        theirs.close()
        self.ping()

    def ping(self):
        super().ping()
        super().ping()  # the minder's socket is looked at in the same round, in whatever order

    def credentials(self, uses, more=""):
        text = "\n".join(["bac-credentials 1", *uses, f"end {len(uses)}"]) + "\n" + more
        self.number += 1
        self.file(self.control, struct.pack(">BI", CREDENTIALS, self.number), text.encode())
        while True:
            m = self.hear(APPLIED)
            number, code = struct.unpack(">Ii", m[1:9])
            if number == self.number:
                return code, m[13:-1].decode()

    def curl(self, url, *args, name="a.test", timeout=20, text=True, http="--http1.1"):
        """(exit status, output) of a curl in the guest."""
        port = int(url.split("/")[2].partition(":")[2] or 443)
        a = self.address(name)
        done = subprocess.run(["nsenter", f"--net=/proc/{self.guest.holder.pid}/ns/net", "curl", "-sS", http, "--max-time", str(timeout),
                               "--cacert", self.ca, "--resolve", f"{name}:{port}:{a}", *args, url], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={"PATH": os.environ["PATH"], "HOME": work}, check=False)
        return done.returncode, done.stdout.decode(errors="replace") if text else done.stdout

    def tls(self, name="a.test", port=443, protocols=("http/1.1",), **more):
        """A guest's TLS connection."""
        c = ssl.create_default_context(cafile=self.ca)
        c.set_alpn_protocols(list(protocols))
        return c.wrap_socket(self.connect(self.address(name), port, timeout=20), server_hostname=name, **more)

    def ask(self, s, target, host="a.test", method="GET", more="", body=b""):
        s.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode() + body)
        return answer_of(s, method)


def answer_of(s, method="GET"):
    """(status, head, body) of one answer with a length or in chunks."""
    data = read_until(s)
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/") else 0
    lower = head.lower()
    if method == "HEAD" or status in (204, 304) or status // 100 == 1:
        return status, head, body
    if b"content-length:" in lower:
        n = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < n:
            more = s.recv(1 << 16)
            if not more:
                break
            body += more
    elif b"chunked" in lower:
        while not body.endswith(b"\r\n\r\n"):
            more = s.recv(1 << 16)
            if not more:
                break
            body += more
    return status, head, body


# ---- the world ----

def body_of(head, c, data):
    lower = head.lower()
    if b"content-length:" in lower:
        n = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        total, digest = len(data), hashlib.md5(data)
        while total < n:
            more = c.recv(1 << 18)
            if not more:
                break
            total += len(more)
            digest.update(more)
            data += more if total < 1 << 20 else b""
        return data, b"", total
    if b"transfer-encoding: chunked" in lower:
        while b"\r\n0\r\n" not in b"\r\n" + data or not data.endswith(b"\r\n\r\n"):
            more = c.recv(65536)
            if not more:
                break
            data += more
        return data, b"", len(data)
    return b"", data, 0


BLOCK = bytes(range(256)) * 4096


def web(c):
    """An HTTP server: what it does is in the path."""
    conns.append(c)
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = c.recv(65536)
            if not more:
                return
            data += more
        head, data = data.split(b"\r\n\r\n", 1)
        heads.append(head)
        path = head.split(b" ")[1]
        if path == b"/early":
            c.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
            c.settimeout(2)
            with contextlib.suppress(OSError):
                while c.recv(65536):
                    pass
            return
        if b"expect: 100-continue" in head.lower():
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if path == b"/socket":
            c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly ")
            if data:
                c.sendall(data)
            while more := c.recv(65536):
                c.sendall(more)
            return
        body, data, total = body_of(head, c, data)
        if not reply(c, path, head, body, total):
            return


def moody(c):
    """Answers one request; the next one on the same connection it reads, and hangs up."""
    head = read_until(c)
    heads.append(head)
    body, _, total = body_of(*head.split(b"\r\n\r\n", 1)[:1], c, head.split(b"\r\n\r\n", 1)[1])
    reply(c, head.split(b" ")[1], head, body, total)
    c.recv(65536)


def reply(c, path, head, body, total):
    fixed = {
        b"/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n5\r\nhello\r\n3;x=y\r\n on\r\n0\r\nT: 1\r\n\r\n",
        b"/204": b"HTTP/1.1 204 No Content\r\n\r\n",
        b"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n",
        b"/early-hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"/close": b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"/twice": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"/junk": b"\0\1\2 this is not HTTP\r\n\r\n",
        b"/fat": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"/many": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"Content-Length: 0\r\n\r\n",
        b"/hang-up": b"",
        b"/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"/to-b": b"HTTP/1.1 302 Found\r\nLocation: https://b.test/x\r\nContent-Length: 0\r\n\r\n",
        b"/leak": b"HTTP/1.1 200 OK\r\nX-Key: " + SECRET + b"\r\nContent-Length: %d\r\n\r\nkey=" % (len(SECRET) + 5) + SECRET + b".",
        b"/token": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(TOKENS) + TOKENS,
    }
    if path in fixed:
        c.sendall(fixed[path])
        if path == b"/close":
            with contextlib.suppress(OSError):
                c.unwrap()
        return path not in (b"/close", b"/junk", b"/hang-up", b"/cut")
    if path.startswith(b"/big/"):
        n = int(path[5:])
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
        while n:
            n -= c.send(BLOCK[:min(n, len(BLOCK))])
        return True
    if path == b"/events":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(20):
            time.sleep(0.05)
            event = b"data: %d %f\n\n" % (i, time.time())
            c.sendall(b"%x\r\n%s\r\n" % (len(event), event))
        c.sendall(b"0\r\n\r\n")
        return True
    if path == b"/slow":
        time.sleep(30)
    text = json.dumps({"path": path.decode(), "head": head.decode(), "body": body[:4096].decode(errors="replace"), "total": total}).encode()
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) +
              (b"" if head.startswith(b"HEAD") else text))
    return True


def over_tls(context, handle):
    def run(c):
        with contextlib.suppress(ssl.SSLError), context.wrap_socket(c, server_side=True) as s:
            handle(s)
    return run


def world():
    rig.sh(f"ip link set lo up; ip addr add {A}/32 dev lo; ip addr add {B}/32 dev lo; ip addr add {C}/32 dev lo; ip addr add 9.9.9.9/32 dev lo")
    context = public.context(["a.test", "b.test", A])
    hits["a"] = serve(A, 443, over_tls(context, web))
    hits["a8443"] = serve(A, 8443, over_tls(context, web))
    hits["b"] = serve(B, 443, over_tls(context, web))
    hits["plain"] = serve(A, 80, web)
    serve(C, 1, over_tls(private.context(["c.test"]), web))
    serve(C, 2, over_tls(public.context(["c.test"], days=-1, start=-3), web))
    serve(C, 3, over_tls(public.context(["other.test"]), web))
    serve(C, 4, over_tls(public.context(["c.test"]), web))
    hits["moody"] = serve(C, 6, over_tls(public.context(["c.test"]), moody))
    asks = public.context(["c.test"])
    asks.verify_mode = ssl.CERT_REQUIRED
    asks.load_verify_locations(cadata=private.pem().decode())
    serve(C, 7, over_tls(asks, web))
    serve(C, 5, lambda c: (c.sendall(b"220 hello\r\n"), c.recv(1)))
    with open(os.path.join(work, "body2"), "wb") as f:
        f.write(BLOCK * 8)
    Names({"a.test": [A], "b.test": [B], "c.test": [C], "x.test": [B]})


TOKENS = b'{"access_token": "real-access-0123456789", "refresh_token": "real-refresh-9876", "expires_in": 600}'
hits = {}
KEY = use("k", "header", "a.test", service="anthropic", header="x-api-key", format_="%s")
GET = ["allow a.test GET /**", "allow a.test POST /**", "allow a.test PUT /**", "allow a.test HEAD /**"]


def clean(r, what, said=""):
    said_it = r.end()
    row(r.process.returncode == 0, f"{what}: the proxy ends in order", (r.process.returncode, said_it, r.says))


@contextlib.contextmanager
def opened(what, policy, uses=(), **more):
    r = Opened(policy, uses, **more)
    try:
        yield r
    finally:
        said = r.end()
        row(r.process.returncode == 0 and not said, f"{what}: the proxy ends in order", (r.process.returncode, said, r.says))


# ---- scenarios ----

def basics():
    with opened("basics", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        rss = r.rss()
        print(f"# {rss} KiB before anything is opened")
        code, out = r.curl("https://a.test/hello")
        row(code == 0 and '"/hello"' in out, "curl over HTTP/1.1", (code, out, r.says))
        row(SECRET.decode() in out, "the server sees the key", out)
        got = r.audit.wait(kind="http", event="decision", allowed=True)
        row(got and got["path"] == "/hello" and got["note"] == "credential: anthropic" and got["host"] == "a.test", "the receipt names the service", got)
        got = r.audit.wait(kind="http", event="end")
        row(got and got["received"] > 10, "and its end has bytes", got)
        code, out = r.curl("https://a.test/x", "-H", "x-api-key: mine")
        row("mine" not in out and SECRET.decode() in out, "what the client sent is overwritten", out)
        print(f"# {r.rss()} KiB after")
        code, out = r.curl("https://a.test/x", "-d", "a=b&c=d")
        row('"body": "a=b&c=d"' in out, "POST", out)
        for path, want in (("/204", "204 0"), ("/304", "304 0"), ("/early-hints", "200 2"), ("/chunked", "200 8"), ("/close", "200 13")):
            code, out = r.curl("https://a.test" + path, "-o", "/dev/null", "-w", "%{http_code} %{size_download}")
            same(path, out, want)
        code, out = r.curl("https://a.test/y", "-I")
        row("200 OK" in out and "Content-Length" in out, "HEAD", out)
        code, out = r.curl("https://a.test/y", "-0")
        row('"/y"' in out, "HTTP/1.0", out)
        s = r.tls()
        s.sendall(b"GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.test\r\n\r\nHEAD /3 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /4 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        data = read_all(s)
        row(data.count(b"HTTP/1.1 200") == 4 and data.find(b'"/1"') < data.find(b'"/2"') < data.find(b'"/4"'), "pipelined requests", data)
        code, out = r.curl("https://a.test/chunked", "--raw", "-i")
        row("T: 1" in out, "trailers come through", out)
        code, out = r.curl("https://a.test/up", "-T", "/etc/hostname", "-H", "Expect: 100-continue")
        row(code == 0 and '"total": ' in out, "100-continue", out)
        s = r.tls()
        s.sendall(b"PUT /t HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: v\r\n\r\n")
        out = answer_of(s)[2]
        row(b"X-T: v" in out and b"abc" in out, "trailers of a request", out)
        s.close()


def pool():
    with opened("pool", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        before = hits["a"][0]
        s = r.tls()
        for i in range(100):
            status, _, body = r.ask(s, f"/{i}")
            if status != 200:
                break
        same("100 requests", status, 200)
        s.close()
        for i in range(3):
            r.curl(f"https://a.test/{i}")
        same("of several clients take one connection", hits["a"][0] - before, 1)
        many = [r.tls() for _ in range(20)]
        for s in many:
            s.sendall(b"GET /p HTTP/1.1\r\nHost: a.test\r\n\r\n")
        same("20 at a time", [answer_of(s)[0] for s in many], [200] * 20)
        end = time.monotonic() + 20
        while socks_to(r, A) > 34 and time.monotonic() < end:
            time.sleep(0.05)
        row(socks_to(r, A) <= 34, "16 go on to wait, and the others go", socks_to(r, A))  # each has two ends here
        for s in many:
            s.close()


def socks_to(r, addr):
    out = rig.sh(f"ss -Htn dst {addr}", check=False)
    return sum("ESTAB" in line for line in out.splitlines())


def streams():
    with opened("streams", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        p = r.guest.popen(["curl", "-sSN", "--http1.1", "--cacert", r.ca, "--resolve", f"a.test:443:{r.address('a.test')}", "https://a.test/events"],
                          stdout=subprocess.PIPE)
        worst = n = 0
        for line in p.stdout:
            if line.startswith(b"data:"):
                worst = max(worst, time.time() - float(line.split()[2]))
                n += 1
        p.wait()
        row(n == 20 and worst < 0.05, "20 events, each within 50 ms", (n, worst))
        print(f"# slowest event: {worst * 1000:.1f} ms")
        size = int(os.environ.get("LARGE", 1 << 30))
        peak = [0]
        stop = threading.Event()

        def sample():
            while not stop.wait(0.05):
                peak[0] = max(peak[0], r.rss())
        base = r.rss()
        threading.Thread(target=sample, daemon=True).start()
        start = time.monotonic()
        code, out = r.curl(f"https://a.test/big/{size}", "-o", "/dev/null", "-w", "%{size_download}", timeout=180 + (size >> 24))
        same(f"{size >> 20} MiB down", (code, out), (0, str(size)))
        print(f"# {size / (time.monotonic() - start) / 1e6:.0f} MB/s")
        path = os.path.join(work, "zeros")
        with open(path, "wb") as f:
            f.truncate(size)
        start = time.monotonic()
        code, out = r.curl("https://a.test/up", "-T", path, timeout=180 + (size >> 24))
        row(code == 0 and f'"total": {size}' in out, f"{size >> 20} MiB up", (code, out))
        print(f"# {size / (time.monotonic() - start) / 1e6:.0f} MB/s")
        stop.set()
        row(peak[0] - base < 8192, "with flat memory", (base, peak[0]))
        print(f"# {base} KiB before, {peak[0]} KiB at most")
        s = r.tls()
        s.sendall(f"GET /big/{size} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
        read_until(s)
        time.sleep(1)
        one = r.rss()
        cpu = r.cpu()
        time.sleep(1)
        row(r.rss() - one < 1024 and r.cpu() - cpu < 0.1, "a slow reader stops the server, without work or memory", (one, r.rss(), r.cpu() - cpu))
        s.close()
        row(r.audit.wait(path=f"/big/{size}", event="decision") is not None, "all of it is on the log")


def sockets():
    with opened("sockets", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        s = r.tls()
        s.sendall(b"GET /socket HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nahead ")
        head = read_until(s, b"early ahead ")
        row(b"101 " in head and head.endswith(b"early ahead "), "101, and what came right behind the heads", head)
        s.sendall(b"x" * 300000)
        got = b""
        while len(got) < 300000:
            got += s.recv(1 << 16)
        same("bytes both ways", len(got), 300000)
        s.close()
        if not importlib.util.find_spec("websockets"):
            return
        echo = subprocess.Popen([sys.executable, "-c", WS_SERVER, A, work], stdout=subprocess.PIPE)
        cert, key = public.leaf(["a.test"])
        with open(os.path.join(work, "ws.pem"), "wb") as f:
            f.write(cert.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        echo.stdout.readline()
        r.policy(["allow a.test", "allow a.test:8444 GET /**"])
        p = r.guest.popen([sys.executable, "-c", WS_CLIENT, r.address("a.test"), r.ca], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = p.communicate(timeout=30)
        row(b"echoed 50" in out, "python's websockets", out)
        echo.kill()
        echo.wait()


WS_SERVER = """
import asyncio, ssl, sys, os, websockets, time
async def main():
    while not os.path.exists(sys.argv[2] + "/ws.pem"): await asyncio.sleep(0.02)
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(sys.argv[2] + "/ws.pem")
    async def echo(ws, path=None):
        async for m in ws: await ws.send(m)
    async with websockets.serve(echo, sys.argv[1], 8444, ssl=c):
        print("ready", flush=True)
        await asyncio.Future()
asyncio.run(main())
"""
WS_CLIENT = """
import asyncio, ssl, sys, websockets
async def main():
    c = ssl.create_default_context(cafile=sys.argv[2])
    async with websockets.connect("wss://a.test:8444/", ssl=c, host=sys.argv[1], server_hostname="a.test") as ws:
        n = 0
        for i in range(50):
            m = "x" * (i * 997)
            await ws.send(m)
            n += await ws.recv() == m
        print("echoed", n)
asyncio.run(main())
"""


def servers():
    """What is wrong with a server is told."""
    with opened("servers", ["allow c.test:1-9 GET /**", "allow c.test:6 POST /**", "allow x.test GET /**", "allow gone.test GET /**"], []) as r:
        for port, what, want in ((1, "an authority that is not trusted", "tls.extraCa"), (2, "expired", "expired"), (3, "another name", "mismatch"),
                                 (5, "no TLS", "TLS handshake failed"), (9, "nobody there", "refused")):
            code, out = r.curl(f"https://c.test:{port}/", "-i", name="c.test")
            row(code == 0 and "502 " in out and want in out, f"a server with {what}: 502 says so", (code, out))
        code, out = r.curl("https://c.test:4/ok", name="c.test")
        row('"/ok"' in out, "a good one", out)
        got = r.audit.wait(reason="untrusted-server")
        row(got and not got["allowed"] and got["port"] == 1, "and there is a receipt", got)
        r.send_trust(public.pem() + private.pem())
        code, out = r.curl("https://c.test:1/ok", name="c.test")
        row('"/ok"' in out, "another list of authorities", out)
        for args in ((), ("-d", "a=b")):
            before = hits["moody"][0]
            for _ in range(2):
                code, out = r.curl("https://c.test:6/m", *args, name="c.test")
                row('"/m"' in out, "a kept connection that the server closes without an answer: once more, on another", (code, out))
        code, out = r.curl("https://c.test:7/", "-i", name="c.test")
        row("502 " in out, "a server that wants a client certificate", out)
        cert, key = private.leaf(["me"])
        r.send_trust(public.pem() + private.pem() + b"client c.test\n" + cert.public_bytes(serialization.Encoding.PEM) +
                     key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        code, out = r.curl("https://c.test:7/mine", name="c.test")
        row('"/mine"' in out, "and gets one", out)
        code, out = r.curl("https://c.test:4/junk", "-i", name="c.test")
        row("502 " in out and "malformed-answer" in out, "an answer that is not HTTP", out)
        code, out = r.curl("https://c.test:4/hang-up", "-i", name="c.test")
        row("502 " in out and "no-answer" in out, "no answer", out)
        code, out = r.curl("https://c.test:4/fat", "-i", name="c.test")
        row("502 " in out, "a head that is too large", out)
        code, out = r.curl("https://c.test:4/many", "-i", name="c.test")
        row("502 " in out, "too many fields", out)
        code, out = r.curl("https://c.test:4/cut", "-i", name="c.test")
        row(code in (18, 56), "a body that is cut is seen to be", (code, out))
        for _ in range(2):
            code, out = r.curl("https://c.test:4/twice", name="c.test")
        row("evil" not in out, "an answer that nobody asked for goes to nobody", out)


def refused():
    with opened("refused", ["allow a.test GET /ok/**", "deny b.test", "allow c.test:4"], [KEY], values={"k": SECRET}) as r:
        code, out = r.curl("https://a.test/ok/1", "-i")
        row("200 OK" in out, "an allowed path", out)
        code, out = r.curl("https://a.test/no", "-i")
        row("403 " in out and "refused by network policy" in out, "a denied path", out)
        got = r.audit.wait(path="/no")
        row(got and not got["allowed"], "and its receipt", got)
        code, out = r.curl("https://a.test/ok/1", "-i", "-X", "DELETE")
        row("403 " in out, "a denied method", out)
        before = len(heads)
        code, out = r.curl("https://a.test/no", "-H", "Accept: application/json")
        row(json.loads(out)["by"] == "bac", "as JSON", out)
        code, out = r.curl("https://a.test/ok/1", "-i", "-H", "Host: b.test")
        row("421 " in out, "another Host", out)
        code, out = r.curl("https://a.test/ok/1", "-i", "--request-target", "https://b.test/ok/1")
        row("421 " in out or "400 " in out, "another host in the target", out)
        s = r.tls()
        s.sendall(b"GET /ok/1 HTTP/1.1\nHost: a.test\r\n\r\n")
        row(b" 400 " in read_all(s), "what can be read in two ways")
        s = r.tls()
        s.sendall(b"GET /ok/1 HTTP/1.1\r\nHost: a.test\r\n" + b"X: y\r\n" * 1000 + b"\r\n")
        row(b" 431 " in read_all(s), "a flood of fields")
        s = r.tls()
        s.sendall(b"GET /ok/" + b"a" * 70000)
        row(b" 431 " in read_all(s), "a line without an end")
        same("nothing of that came to a server", len(heads), before)
        c = ssl.create_default_context(cafile=r.ca)
        for name, sni in (("a.test", "b.test"),):
            try:
                c.wrap_socket(r.connect(r.address(name), 443), server_hostname=sni)
                row(False, "another SNI")
            except ssl.SSLError as e:
                row("ACCESS_DENIED" in str(e).upper(), "another SNI: an alert", e)
        try:
            c.wrap_socket(r.connect(r.address("b.test"), 443), server_hostname="b.test")
            row(False, "a denied host")
        except ssl.SSLError as e:
            row("ACCESS_DENIED" in str(e).upper(), "a denied host: an alert", e)
        s = r.connect(r.address("c.test"), 4)
        p = ssl.create_default_context(cadata=public.pem().decode())
        s = p.wrap_socket(s, server_hostname="c.test")
        row(True, "what needs not be opened is not: the client sees the server's own certificate")
        s.close()
        code, out = r.curl("https://a.test/ok/up", "-i", "-T", "/etc/passwd")
        row("403 " in out, "an upload that is refused", out)


def credentials():
    uses = [KEY, use("b", "basic", "b.test", service="github", username="x-access-token"),
            use("c", "custom", "a.test", service="TOKEN", placeholder="bac-ph-0123456789abcdef", where="headers,basic,query,body"),
            use("m", "header", "c.test:4", state="missing", service="openai", header="authorization", format_="Bearer %s"),
            use("n", "header", "c.test:2-3", state="unapproved", service="kit", header="authorization", format_="Bearer %s")]
    values = {"k": SECRET, "b": b"ghp_secret0123456789", "c": b"custom-value-0123456789"}
    with opened("credentials", ["allow a.test", "allow b.test", "allow c.test:2-4", "allow x.test GET /**", "allow a.test:80"], uses, values=values) as r:
        code, out = r.curl("https://b.test/g", name="b.test")
        want = base64.b64encode(b"x-access-token:ghp_secret0123456789").decode()
        row(want in out and SECRET.decode() not in out, "Basic of a user and the value, and nothing else", out)
        code, out = r.curl("https://a.test/g?t=bac-ph-0123456789abcdef", "-H", "X-T: bac-ph-0123456789abcdef")
        row(out.count("custom-value-0123456789") == 3 and "bac-ph" not in out.replace('"path"', ""), "a placeholder in a field and in the query", out)
        code, out = r.curl("https://a.test/g", "-u", "me:bac-ph-0123456789abcdef")
        row(base64.b64encode(b"me:custom-value-0123456789").decode() in out, "within Basic", out)
        code, out = r.curl("https://a.test/g", "-d", "x=bac-ph-0123456789abcdef&y=1")
        row("x=custom-value-0123456789&y=1" in out and "chunked" in out.lower(), "in a body, which goes in chunks then", out)
        body = os.path.join(work, "body")
        with open(body, "wb") as f:
            f.write(b"z" * 300000 + b"bac-ph-0123456789abcdef" + b"z" * 100)
        code, out = r.curl("https://a.test/g", "-T", body)
        row(code == 0 and "200" in str(r.audit.wait(path="/g")) or code == 0, "in a large body", out)
        code, out = r.curl("https://b.test/g", "-i", "-H", "X: bac-ph-0123456789abcdef", name="b.test")
        row("403 " in out and "placeholder" in out, "a placeholder at another host is refused", out)
        code, out = r.curl("https://b.test/g", "-i", "-d", "x=bac-ph-0123456789abcdef", name="b.test")
        row("403 " in out and "placeholder" in out, "in a body too", out)
        code, out = r.curl("https://c.test:4/", "-i", name="c.test")
        row("403 " in out and "bac secret set openai" in out, "no value: what to run", out)
        code, out = r.curl("https://c.test:3/", "-i", name="c.test")
        row("403 " in out and "approve" in out, "not approved: what to run", out)
        s = r.connect(r.address("a.test"), 80)
        s.sendall(b"GET /p?x=bac-ph-0123456789abcdef HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        out = read_all(s)
        row(b" 403 " in out and b"placeholder" in out, "without TLS it is refused", out)
        s = r.connect(r.address("a.test"), 80)
        s.sendall(b"GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        out = read_all(s)
        row(b" 200 " in out and SECRET not in out, "and no value goes without TLS", out)
        r.keeper.values["k"] = b"another-value-000000"
        code, out = r.curl("https://a.test/r")
        row("another-value-000000" in out, "a new value is on the next request", out)
        del r.keeper.values["k"]
        code, out = r.curl("https://a.test/r", "-i")
        row("403 " in out and "bac secret set" in out, "no value any more", out)
        row(not any(SECRET.decode() in str(x) for x in r.audit.all), "no receipt has a value")


def elsewhere():
    """A placeholder of one host, sent to another in every way (CR-01)."""
    pa, pb, va, vb = "bac-ph-aaaaaaaaaaaaaaaa", "bac-ph-bbbbbbbbbbbbbbbb", b"value-of-a-0000000000", b"value-of-b-1111111111"
    uses = [use("a", "custom", "a.test", service="A", placeholder=pa, where="headers,basic,query,body"),
            use("b", "custom", "b.test", service="B", placeholder=pb, where="headers,basic,query,body")]
    quoted = "".join(f"%{ord(c):02x}" for c in pa)
    rows_ = {"a field": ("-H", f"X-T: {pa}"), "a field's name": ("-H", f"{pa}: x"), "Authorization": ("-H", f"Authorization: Bearer {pa}"), "a cookie": ("-b", f"t={pa}"),
             "Basic, as password": ("-u", f"me:{pa}"), "Basic, as user": ("-u", f"{pa}:x"), "a body": ("-d", f"t={pa}"),
             "a body of JSON": ("-H", "Content-Type: application/json", "-d", json.dumps({"t": pa})), "a body in chunks": ("-H", "Transfer-Encoding: chunked", "-d", f"t={pa}"),
             "a referer": ("-e", f"https://a.test/?{pa}")}
    targets = {"the query": f"/x?t={pa}", "the query, percent-encoded": f"/x?t={quoted}", "the path": f"/{pa}/x"}
    with opened("elsewhere", ["allow a.test", "allow b.test", "allow a.test:80"], uses, values={"a": va, "b": vb}) as r:
        first = len(heads)
        for what, args in rows_.items():
            since = r.audit.mark()
            code, out = r.curl("https://b.test/x", "-i", *args, name="b.test")
            got = r.audit.wait(since, reason="placeholder-elsewhere", host="b.test")
            row("403 " in out and got and not got["allowed"], f"in {what}: refused and logged", (out, got))
        for what, target in targets.items():
            code, out = r.curl("https://b.test" + target, "-i", "--path-as-is", name="b.test")
            row("403 " in out, f"in {what}: refused", out)
        row(not any(va in h or pa.encode() in h for h in heads[first:]), "nothing of it came to the server")
        code, out = r.curl("https://a.test/x", "-i", "-H", "Host: b.test", "-H", f"X-T: {pa}")
        row("421 " in out, "Host of another than the SNI's", out)
        code, out = r.curl("https://a.test/x", "-H", f"X-A: {pa}", "-H", f"X-B: {pb}", "-i")
        row("403 " in out, "one of each", out)
        code, out = r.curl("https://a.test/to-b", "-L", "--location-trusted", "--resolve", f"b.test:443:{r.address('b.test')}", "-H", f"X-T: {pa}", "-i")
        row("302 " in out and "403 " in out and va.decode() not in out, "a redirect to the other host, with the field", out)
        first = len(heads)
        s = r.connect(r.address("a.test"), 80)
        s.sendall(f"GET / HTTP/1.1\r\nHost: a.test\r\nX-T: {pa}\r\nConnection: close\r\n\r\n".encode())
        row(b" 403 " in read_all(s) and len(heads) == first, "without TLS")
        code, out = r.curl("https://b.test/x", "-H", f"X-T: {pb}", name="b.test")
        row(vb.decode() in out, "its own is replaced", out)


def guard():
    """Values in answers and in requests."""
    with opened("guard", ["allow a.test", "allow b.test GET /**", "allow b.test POST /**"], [KEY], values={"k": SECRET}) as r:
        r.control.send(struct.pack(">BI", MARKS, len(leak_set({"anthropic": SECRET}))) + leak_set({"anthropic": SECRET}))
        r.ping()
        code, out = r.curl("https://a.test/leak", "-i")
        row(SECRET.decode() not in out and "*" * len(SECRET) in out and "key=" in out and out.rstrip().endswith("."),
            "an answer with the value has it blanked, in its head and in its body", (code, out))
        got = r.audit.wait(event="note", reason="secret-in-answer")
        row(got and "anthropic" in got["note"] and got["path"] == "/leak", "and the log says so", got)
        code, out = r.curl("https://a.test/x")
        row(code == 0 and SECRET.decode() not in out, "an echo of what we put there too", out)
        for more in (("-H", "X-Key: " + SECRET.decode()), ("-d", "x" * 1000 + SECRET.decode())):
            code, out = r.curl("https://a.test/x", "-i", *more)
            row("200 OK" in out, "a request to its own host may hold the value", out)
        before = len(heads)
        code, out = r.curl("https://b.test/x", "-i", "-H", "X-Stolen: " + SECRET.decode(), name="b.test")
        row("403 " in out and "secret" in out, "a request to another with the value in its head is refused", out)
        code, out = r.curl("https://b.test/x?" + SECRET.decode(), "-i", name="b.test")
        row("403 " in out, "in its target", out)
        code, out = r.curl("https://b.test/x", "-i", "-d", "x" * 1000 + SECRET.decode(), name="b.test")
        row("403 " in out, "in its body", out)
        row(not any(SECRET in h for h in heads[before:]), "no server saw it")
        got = r.audit.wait(reason="secret-in-request", host="b.test")
        row(got and not got["allowed"], "and the log says so", got)
        size = 8 << 20
        code, out = r.curl(f"https://a.test/big/{size}", "-o", "/dev/null", "-w", "%{size_download}")
        same("8 MiB that are looked at", (code, out), (0, str(size)))
        code, out = r.curl("https://a.test/up", "-T", os.path.join(work, "body2"))
        row(code == 0 and f'"total": {size}' in out, "up as well", out)


def oauth():
    uses = [use("o", "oauth", "a.test", service="claude", placeholder="sk-ant-oat01-proxy-managed"),
            use("t", "token", "b.test", service="claude", placeholder="sk-ant-ort01-proxy-managed", placeholder2="sk-ant-oat01-proxy-managed",
                path="/token", fields="access_token,refresh_token,expires_in,scope")]
    with opened("oauth", ["allow a.test", "allow b.test"], uses, values={"o": b"real-access-0000000000", "t": b"real-refresh-0000000"}) as r:
        code, out = r.curl("https://a.test/me", "-H", "Authorization: Bearer sk-ant-oat01-proxy-managed")
        row("Bearer real-access-0000000000" in out, "the access sentinel becomes the token", out)
        code, out = r.curl("https://a.test/me", "-H", "Authorization: Bearer other")
        row("Bearer other" in out, "another token is left alone", out)
        before = len(heads)
        code, out = r.curl("https://b.test/token", "-i", "-d", "grant_type=refresh_token&refresh_token=sk-ant-ort01-proxy-managed", name="b.test")
        row("200 " in out and "sk-ant-oat01-proxy-managed" in out and "sk-ant-ort01-proxy-managed" in out and "real-" not in out,
            "an answer with tokens has sentinels in it", out)
        row(len(heads) > before and r.keeper.kept and r.keeper.kept[0][2:4] == (b"real-access-0123456789", b"real-refresh-9876"),
            "and the store has the tokens", r.keeper.kept)
        row(r.keeper.overs.get(timeout=10) == r.keeper.last, "and the turn is over")
        del r.keeper.asked[:]
        body = b"grant_type=refresh_token&refresh_token=sk-ant-ort01-proxy-managed"
        s = r.tls("b.test")
        s.sendall(b"POST /token HTTP/1.1\r\nHost: b.test\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
        r.audit.wait(path="/token", allowed=True)
        same("nobody has a turn before all of its request is there", [one for one in r.keeper.asked if one[0] == "value"], [])
        s.sendall(body[9:])
        row(b"sk-ant-ort01-proxy-managed" in s.recv(65536), "then it has")
        row(r.keeper.overs.get(timeout=10) == r.keeper.last, "and that is over")


def changes():
    with opened("changes", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        s = r.tls()
        same("before", r.ask(s, "/")[0], 200)
        slow = r.tls()
        slow.sendall(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
        r.audit.wait(path="/slow", allowed=True)
        r.policy(["allow a.test GET /x"])
        row(b" 403 " in slow.recv(65536), "a request that is denied now is ended")
        same("between two requests", r.ask(s, "/")[0], 403)
        same("what is allowed goes on", r.ask(s, "/x")[0], 200)
        r.policy(["deny a.test"])
        data = b""
        with contextlib.suppress(OSError):
            data = s.recv(100)
        same("a denied host's connections are cut", data, b"")
        r.policy(["allow a.test"])
        s = r.tls()
        same("again", r.ask(s, "/")[0], 200)
        slow = r.tls()
        slow.sendall(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
        r.audit.wait(since=r.audit.mark() - 1, path="/slow", allowed=True)
        same("no credentials", r.credentials([]), (0, ""))
        row(b" 403 " in slow.recv(65536), "a request with a credential that is gone is ended")
        status, _, body = r.ask(s, "/")
        row(status == 200 and SECRET not in body, "the next has none", body)
        code, text = r.credentials(["nonsense"])
        row(code < 0 and "line" in text, "credentials that are not understood", (code, text))
        same("these are", r.credentials([KEY]), (0, ""))
        s = r.tls()
        row(SECRET in r.ask(s, "/")[2], "and count")
        r.keeper.stop()
        status, _, body = r.ask(s, "/")
        row(status == 503 and b"keeper-down" in _, "no keeper: refused", (status, body))
        try:
            r.tls()
            row(False, "no keeper: nothing is opened")
        except ssl.SSLError as e:
            row(True, "no keeper: nothing is opened")
        got = r.audit.wait(kind="tls", reason="keeper-down")
        row(got is not None, "and the receipt says so", r.audit.all[-3:])
        r.new_keeper()
        same("another keeper", r.ask(s, "/")[0], 200)
        same("and its certificates", r.ask(r.tls(), "/")[0], 200)


def forward():
    with opened("forward", ["allow a.test", "allow b.test GET /**"], [KEY], values={"k": SECRET}) as r:
        for name in ("a.test", "b.test"):
            done = subprocess.run(["nsenter", f"--net=/proc/{r.guest.holder.pid}/ns/net", "curl", "-sS", "--cacert", r.ca, "--http1.1", "-x",
                                   f"http://{GATEWAY}:3128", f"https://{name}/p"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            row(b'"/p"' in done.stdout and (SECRET in done.stdout) == (name == "a.test"), f"CONNECT to {name} is opened", done.stdout)
        got = r.audit.wait(path="/p", allowed=True)
        row(got and got["via"] == "forward-bypass", "the receipt says how it came", got)


def upload():
    with opened("upload", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        path = os.path.join(work, "large")
        with open(path, "wb") as f:
            f.truncate(64 << 20)
        code, out = r.curl("https://a.test/early", "-i", "-T", path, "-H", "Expect:")
        row("413 " in out, "an upload that the server refuses early: its answer comes through", (code, out))
        s = r.tls()
        s.sendall(b"POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc")
        r.audit.wait(path="/x", allowed=True)
        s.close()
        got = r.audit.wait(event="end", timeout=5)
        row(got is not None, "a client that leaves in the middle ends its request", got)


def idle():
    with opened("idle", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        n = 300
        base = r.rss()
        socks = []
        for _ in range(n):
            s = r.tls()
            s.sendall(b"GET /i HTTP/1.1\r\nHost: a.test\r\n\r\n")
            answer_of(s)
            socks.append(s)
        rss = r.rss()
        print(f"# {n} idle connections: {rss} KiB, {base} before: {(rss - base) / n:.1f} KiB each")
        row((rss - base) / n < 64, "an idle connection takes little", (base, rss))
        cpu = r.cpu()
        time.sleep(1)
        row(r.cpu() - cpu < 0.05, "and no CPU", r.cpu() - cpu)
        for s in socks:
            s.close()


def speed():
    """For people: one warm connection."""
    with opened("speed", ["allow a.test"], [KEY], values={"k": SECRET}) as r:
        s = r.tls()
        for what, sock in (("through the proxy", s),):
            times = []
            for _ in range(2000):
                t = time.perf_counter()
                r.ask(sock, "/s")
                times.append(time.perf_counter() - t)
            times.sort()
            print(f"# {what}: p50 {times[1000] * 1e6:.0f} us, p99 {times[1980] * 1e6:.0f} us")
        c = ssl.create_default_context(cadata=public.pem().decode())
        d = c.wrap_socket(socket.create_connection((A, 443)), server_hostname="a.test")
        times = []
        for _ in range(2000):
            t = time.perf_counter()
            r.ask(d, "/s")
            times.append(time.perf_counter() - t)
        times.sort()
        print(f"# straight: p50 {times[1000] * 1e6:.0f} us, p99 {times[1980] * 1e6:.0f} us")
        row(True, "measured")


def http2():
    """Against nghttpd, if there is one."""
    if not shutil.which("nghttpd"):
        return
    cert, key = public.leaf(["c.test"])
    pem = os.path.join(work, "h2.pem")
    with open(pem, "wb") as f:
        f.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) +
                cert.public_bytes(serialization.Encoding.PEM))
    docs = os.path.join(work, "docs")
    os.mkdir(docs)
    with open(os.path.join(docs, "index.html"), "w", encoding="ascii") as f:
        f.write("hello from h2\n")
    with open(os.path.join(docs, "big"), "wb") as f:
        f.write(BLOCK * 64)
    server = subprocess.Popen(["nghttpd", "--address", C, "--htdocs", docs, "--echo-upload", "8445", pem, pem], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    rig.wait_port(C, 8445)
    key_ = use("k2", "header", "c.test:8445", service="anthropic", header="x-api-key", format_="%s")
    try:
        with opened("http2", ["allow c.test", "allow a.test"], [KEY, key_], values={"k": SECRET, "k2": SECRET}) as r:
            for http in ("--http2", "--http1.1"):
                code, out = r.curl("https://c.test:8445/index.html", "-w", "%{http_version}", name="c.test", http=http)
                same(f"curl {http} to a server of h2", (code, out), (0, "hello from h2\n" + ("2" if http == "--http2" else "1.1")))
            code, out = r.curl("https://a.test/x", "-w", "%{http_version}", http="--http2")
            row(code == 0 and out.endswith("1.1") and SECRET.decode() in out, "curl --http2 to a server of h1: the protocol is the server's", out)
            for http in ("--http2", "--http1.1"):
                code, out = r.curl("https://c.test:8445/big", "-o", os.path.join(work, "got"), name="c.test", http=http)
                with open(os.path.join(work, "got"), "rb") as f:
                    row(code == 0 and f.read() == BLOCK * 64, f"64 MiB down, {http}", (code, out))
                code, out = r.curl("https://c.test:8445/x", "--data-binary", "@" + os.path.join(docs, "big"), "-o", os.path.join(work, "got"),
                                   name="c.test", http=http, timeout=60)
                with open(os.path.join(work, "got"), "rb") as f:
                    row(code == 0 and f.read() == BLOCK * 64, f"64 MiB up and back, {http}", (code, out))
            p = r.guest.popen(["h2load", "-n", "1000", "-c", "1", "-m", "20", f"--connect-to={r.address('c.test')}:8445",
                               "https://c.test:8445/index.html"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            out, _ = p.communicate(timeout=60)
            row(b"1000 succeeded" in out, "1,000 requests on one connection", out.decode())
            got = r.audit.find(kind="http", event="decision", allowed=True, host="c.test")
            row(got and all(x["note"] == "credential: anthropic" for x in got), "each with its receipt", got[-1:])
    finally:
        server.kill()
        server.wait()


def real_keeper(exe, values, asked):
    """The program itself, whose bac-fetch is played: it has values, and notes in asked what it is asked. And the module of its rig."""
    spec = importlib.util.spec_from_file_location("keeper_rig", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "keeper", "rig.py"))
    kr = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kr)

    class Real(kr.Keeper):
        def new_fetch(self):
            ours, theirs = kr.pair()
            self.fetch_pid = 0
            kr.give(self.minder, bytes([kr.FETCH]), theirs.fileno())
            theirs.close()
            threading.Thread(target=self.fetch, args=(ours,), daemon=True).start()

        def fetch(self, sock):
            while m := sock.recv(1 << 16):
                number, n = struct.unpack_from(">II", m, 1)
                key = m[9:9 + n].decode()
                asked.append((m[0], key))
                value = values.get(key)
                with contextlib.suppress(OSError):
                    if value is None:
                        sock.send(struct.pack(">BI", 49, number) + kr.text("there is none"))
                    else:
                        sock.send(struct.pack(">BI", 48, number) + kr.blob(value) + struct.pack(">Q", (1 << 64) - 1))

    return Real(exe, None, {}), kr


def use_keeper(r, k):
    """The proxy of r gets that keeper instead of the one that is played."""
    r.minder.sendmsg([struct.pack(">B", KEEPER)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [k.proxy.fileno()]))])
    r.ping()
    with open(r.ca, "w", encoding="ascii") as f:
        f.write(k.ca)
    if k.marks:
        r.control.send(struct.pack(">BI", MARKS, len(k.marks)) + k.marks)


def real():
    """With bac-keeper itself, if it lies beside the proxy; bac-fetch is played."""
    exe = os.path.join(os.path.dirname(program), "bac-keeper")
    if not os.path.exists(exe):
        return
    asked = []
    policy = ["allow a.test", "allow b.test GET /**"]
    net = "bac-net-policy 1\nr0\tsandbox\tallow\t-\t-\ta.test\nr1\tsandbox\tallow\tGET\t/**\tb.test\nend 2\n"
    k, kr = real_keeper(exe, {"global/service/anthropic": SECRET}, asked)
    same("the keeper takes the policy", k.push(kr.POLICY, net), (0, ""))
    same("and credentials", k.credentials(KEY), (0, ""))
    while len(k.marks) < 100:  # they come when its fetch has answered
        k.until(kr.MARKS)
    with opened("real", policy, [KEY]) as r:
        use_keeper(r, k)
        code, out = r.curl("https://a.test/real", "-w", "%{ssl_verify_result}")
        row(code == 0 and '"/real"' in out, "its certificate is good for a host with a credential", (code, out, k.said))
        seen = heads[-1]
        row(SECRET in seen, "its value is on the request", (seen, asked))
        row(k.marks and SECRET.decode() not in out and "*" * len(SECRET) in out, "its marks blank the value in the answer", out)
        code, out = r.curl("https://b.test/real", name="b.test")
        row('"/real"' in out, "and for one with rules about requests", (code, out))
        code, out = r.curl("https://b.test/real", "-i", "-d", "x", name="b.test")
        row("403 " in out, "which are kept", out)
    for s in (k.supervisor, k.minder, k.proxy):
        s.close()
    same("the keeper ends in order", os.waitstatus_to_exitcode(os.waitpid(k.pid, 0)[1]), 0)


scenarios = {"real": real, "http2": http2, "basics": basics, "pool": pool, "streams": streams, "sockets": sockets, "servers": servers, "refused": refused,
             "credentials": credentials, "elsewhere": elsewhere, "guard": guard, "oauth": oauth, "changes": changes, "forward": forward, "upload": upload, "idle": idle, "speed": speed}

def main(table):
    why = rig.missing()
    if why:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
    rig.alone()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    world()
    for scenario in sys.argv[2:] or table:
        print(f"# {scenario}", flush=True)
        try:
            table[scenario]()
        except (rig.Failed, OSError, subprocess.SubprocessError) as e:
            row(False, scenario, repr(e))
    shutil.rmtree(work)
    print(f"1..{rows}")
    sys.stdout.flush()
    os._exit(failed != 0)


if __name__ == "__main__":
    main(scenarios)
