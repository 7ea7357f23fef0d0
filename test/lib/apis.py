#!/usr/bin/env python3
"""Services that want credentials, on 127.0.0.1 for a scenario, and what they were shown.

apis.py DIRECTORY

Makes an authority of its own (DIRECTORY/ca.pem) and a certificate of it for the names below, DIRECTORY/ports (lines NAME=PORT, when all listen)
and DIRECTORY/seen: a line of JSON for each request, with what came in Authorization, x-api-key and x-goog-api-key in clear: nobody but the scenario reads it. A
server that checks a credential compares it with the file DIRECTORY/key-NAME as it is then.

h1     http/1.1 only   /echo, /sse, /clock, /download?bytes, /upload, /key (says x-api-key back), /to-other (leads there), /crates/ (a registry for
                       `cargo search`), git under /git/, an npm registry under /npm/, a WebSocket at /ws, and a provider of tokens at /v1/oauth/token: a refresh
                       token is good once (DIRECTORY/refresh has the one that is good), and the login ends when one comes twice (DIRECTORY/reused)
h2     h2 only         /echo, /sse, /download?bytes, /upload, /trailers
plain  without TLS     as h1
own    http/1.1 only   as h1, for own.test, which an authority of its own vouches for (DIRECTORY/own.pem)
grpc   gRPC            /test.Echo/{Unary,Stream,Both}, method and messages are bytes; answers with trailers
"""
import asyncio
import base64
import hashlib
import http.server
import json
import os
import pathlib
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

NAMES = ["api.anthropic.com", "platform.claude.com", "api.openai.com", "github.com", "api.github.com", "generativelanguage.googleapis.com", "api.mistral.ai",
         "api.test", "h2.test", "ws.test", "npm.test", "git.test", "grpc.test", "other.test",
         "acme.test", "also.acme.test"]
EVENTS, EVENT_S = 20, 0.1
PIECE = b"\0" * 65536
KEYS = ("authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization")

root = pathlib.Path(sys.argv[1])
root.mkdir(parents=True, exist_ok=True)
log = open(root / "seen", "a", buffering=1)
ports = {}


def saw(server, connection, method, host, path, headers, size):
    log.write(json.dumps({"server": server, "connection": connection, "method": method, "host": host, "path": path, "body": size,
                          **{k: v for k, v in headers.items() if k in KEYS}}) + "\n")


def key(name):
    try:
        return (root / f"key-{name}").read_text()
    except OSError:
        return None


def event(i):
    return f"data: {i} {time.time_ns()}\n\n".encode()


# ---- http/1.1

renewing = threading.Lock()


def tokens(request):
    """One request for new tokens; each takes a while, as they do."""
    shown = json.loads(b"".join(request.pieces()))["refresh_token"]
    file = root / "refresh"
    with renewing:
        good = shown == file.read_text()
        fresh = os.urandom(24).hex()
        if good:
            file.write_text(f"refresh-{fresh}")
        else:
            (root / "reused").write_text(shown)
    time.sleep(0.3)
    request.see(0)
    if not good:
        return request.plain(400, b'{"error":"invalid_grant","error_description":"refresh token reused"}')
    return request.plain(200, json.dumps({"access_token": f"access-{fresh}", "refresh_token": f"refresh-{fresh}", "expires_in": 3600,
                                          "scope": "user:inference"}).encode(), ("Content-Type", "application/json"))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def plain(self, code, body, *headers):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pieces(self):
        """The body, however it is framed."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 1 << 20))
            if not piece:
                raise OSError("the body is cut off")
            left -= len(piece)
            yield piece

    def see(self, size):
        saw(self.server.name, f"{self.client_address[1]}", self.command, self.headers.get("Host"), self.path,
            {k.lower(): v for k, v in self.headers.items()}, size)

    def any(self):
        where = urllib.parse.urlsplit(self.path)
        if where.path.startswith("/git/"):
            return git(self, where)
        if where.path.startswith("/npm/"):
            return npm(self, where)
        if where.path == "/ws":
            return web_socket(self)
        if where.path == "/v1/oauth/token":
            return tokens(self)
        size, digest = 0, hashlib.sha256()
        for piece in self.pieces():
            size += len(piece)
            if size < 1 << 24:
                digest.update(piece)
        self.see(size)
        if where.path == "/sse":
            return self.events()
        if where.path == "/download":
            return self.download(int(where.query))
        if where.path == "/clock":
            return self.plain(200, b"%d\n" % time.time_ns())
        if where.path == "/to-other":
            return self.plain(302, b"", ("Location", "https://other.test/echo"))
        if where.path == "/crates/config.json":
            return self.plain(200, b'{"dl":"https://api.test/crates/dl","api":"https://api.test/crates"}')
        if where.path == "/crates/api/v1/crates":
            return self.plain(200, b'{"crates":[{"name":"tiny","max_version":"1.0.0","description":"WORD"}],"meta":{"total":1}}')
        if where.path == "/key":
            return self.plain(200, (self.headers.get("x-api-key") or "none").encode() + b"\n")
        return self.plain(200, json.dumps({"server": self.server.name, "method": self.command, "path": self.path, "host": self.headers.get("Host"),
                                           "bytes": size, "sha256": digest.hexdigest()}).encode() + b"\n")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = any

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(EVENTS):
            text = event(i)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            time.sleep(EVENT_S)
        self.wfile.write(b"0\r\n\r\n")

    def download(self, left):
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left:
            self.wfile.write(PIECE[:left])
            left -= len(PIECE[:left])


def git(h, where):
    """git http-backend, behind a check of Basic."""
    body = b"".join(h.pieces())
    h.see(len(body))
    want = key("git")
    if h.headers.get("Authorization") != "Basic " + base64.b64encode(f"x-access-token:{want}".encode()).decode():
        return h.plain(401, b"who are you?\n", ("WWW-Authenticate", 'Basic realm="git"'))
    env = {**os.environ, "GIT_PROJECT_ROOT": str(root / "git"), "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": h.command, "REMOTE_USER": "x",
           "REMOTE_ADDR": "127.0.0.1", "PATH_INFO": where.path[4:], "QUERY_STRING": where.query, "CONTENT_LENGTH": str(len(body)),
           "CONTENT_TYPE": h.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": h.headers.get("Content-Encoding", ""),
           "GIT_PROTOCOL": h.headers.get("Git-Protocol", "")}
    out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=False).stdout
    head, _, answer = out.partition(b"\r\n\r\n")
    code, fields = 200, []
    for line in head.decode().split("\r\n"):
        name, _, value = line.partition(": ")
        if name == "Status":
            code = int(value.split()[0])
        elif name:
            fields.append((name, value))
    return h.plain(code, answer, *fields)


def npm(h, where):
    """As much of a registry as `npm publish`, `npm view` and `npm install` want."""
    body = b"".join(h.pieces())
    h.see(len(body))
    name = urllib.parse.unquote(where.path[5:])
    if h.headers.get("Authorization") != f"Bearer {key('npm')}":
        return h.plain(401, b'{"error":"unauthorized"}', ("WWW-Authenticate", "Bearer"))
    path = root / ("npm-" + name.replace("/", "_"))
    if name == "-/whoami":
        return h.plain(200, b'{"username":"agent"}', ("Content-Type", "application/json"))
    if h.command == "PUT":
        packument = json.loads(body)
        for file, what in packument.pop("_attachments").items():
            (root / ("npm-" + f"{name}/-/{file}".replace("/", "_"))).write_bytes(base64.b64decode(what["data"]))
        path.write_text(json.dumps(packument))
        return h.plain(201, b'{"ok":true}', ("Content-Type", "application/json"))
    if path.exists():
        return h.plain(200, path.read_bytes(), ("Content-Type", "application/octet-stream" if "/-/" in name else "application/json"))
    return h.plain(404, b'{"error":"not found"}', ("Content-Type", "application/json"))


def web_socket(h):
    """Echoes text and binary messages, answers ping (RFC 6455)."""
    h.see(0)
    want = key("ws")
    if want and h.headers.get("Authorization") != f"Bearer {want}":
        return h.plain(401, b"who are you?\n")
    accept = hashlib.sha1((h.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    # the first message comes right behind the answer
    hello = b"hello"
    h.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
                  base64.b64encode(accept) + b"\r\n\r\n" + bytes([0x81, len(hello)]) + hello)
    h.close_connection = True
    while True:
        head = h.rfile.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 0x7f
        if size >= 126:
            size = int.from_bytes(h.rfile.read(2 if size == 126 else 8), "big")
        mask = h.rfile.read(4)
        data = h.rfile.read(size)
        data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
        code = head[0] & 0x0f
        first = head[0] & 0xf0 | (10 if code == 9 else code)
        length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size)
        h.wfile.write(bytes([first]) + length + data)
        if code == 8:
            return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def web(name, tls):
    server = Server(("127.0.0.1", 0), Handler)
    server.name = name
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    ports[name] = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()


# ---- h2

class H2(asyncio.Protocol):
    count = 0

    def __init__(self):
        import h2.config
        import h2.connection
        import h2.events
        self.events = h2.events
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.heads, self.sizes, self.room = {}, {}, {}
        H2.count += 1
        self.number = H2.count

    def connection_made(self, transport):
        self.transport = transport
        self.conn.initiate_connection()
        self.conn.update_settings({4: 1 << 20})
        self.conn.increment_flow_control_window(1 << 20)
        self.flush()

    def flush(self):
        self.transport.write(self.conn.data_to_send())

    def connection_lost(self, _):
        self.dead = True
        for room in self.room.values():
            room.set()

    dead = False

    def data_received(self, data):
        try:
            events = self.conn.receive_data(data)
        except Exception:
            self.flush()
            self.transport.close()
            return
        for e in events:
            self.on(e)
        self.flush()

    def on(self, e):
        ev = self.events
        if isinstance(e, ev.RequestReceived):
            self.heads[e.stream_id] = dict(e.headers)
            self.sizes[e.stream_id] = 0
        elif isinstance(e, ev.DataReceived):
            self.sizes[e.stream_id] += len(e.data)
            self.conn.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
        elif isinstance(e, ev.WindowUpdated):
            for stream, room in self.room.items():
                if e.stream_id in (0, stream):
                    room.set()
        elif isinstance(e, ev.StreamReset):
            self.heads.pop(e.stream_id, None)
            if e.stream_id in self.room:
                self.room[e.stream_id].set()
        elif isinstance(e, ev.StreamEnded):
            asyncio.ensure_future(self.answer(e.stream_id))

    async def send(self, stream, data, end=False):
        room = self.room.setdefault(stream, asyncio.Event())
        at = 0
        while at < len(data):
            while not (n := min(self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size, len(data) - at)):
                room.clear()
                await room.wait()
                if self.dead or stream not in self.heads:
                    raise ConnectionError
            self.conn.send_data(stream, data[at:at + n])
            at += n
            self.flush()
        if end:
            self.conn.end_stream(stream)
            self.flush()

    async def answer(self, stream):
        head, size = self.heads[stream], self.sizes[stream]
        path, _, query = head[":path"].partition("?")
        saw("h2", self.number, head[":method"], head.get(":authority"), head[":path"], head, size)
        try:
            if path == "/sse":
                self.conn.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
                for i in range(EVENTS):
                    await self.send(stream, event(i))
                    await asyncio.sleep(EVENT_S)
                await self.send(stream, b"", True)
            elif path == "/download":
                left = int(query)
                self.conn.send_headers(stream, [(":status", "200"), ("content-length", query)])
                while left:
                    await self.send(stream, PIECE[:left])
                    left -= len(PIECE[:left])
                    await asyncio.sleep(0)
                await self.send(stream, b"", True)
            elif path == "/trailers":
                self.conn.send_headers(stream, [(":status", "200"), ("trailer", "x-end")])
                await self.send(stream, b"body\n")
                self.conn.send_headers(stream, [("x-end", "came")], end_stream=True)
                self.flush()
            else:
                body = json.dumps({"server": "h2", "connection": self.number, "method": head[":method"], "path": head[":path"],
                                   "host": head.get(":authority"), "bytes": size}).encode() + b"\n"
                self.conn.send_headers(stream, [(":status", "200"), ("content-length", str(len(body)))])
                await self.send(stream, body, True)
        except Exception:
            pass
        finally:
            self.room.pop(stream, None)
            self.heads.pop(stream, None)
            self.sizes.pop(stream, None)


def h2_server(context):
    async def main():
        server = await asyncio.get_running_loop().create_server(H2, "127.0.0.1", 0, ssl=context)
        ports["h2"] = server.sockets[0].getsockname()[1]
        await server.serve_forever()
    asyncio.run(main())


# ---- gRPC

def grpc_server():
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def note(context, method, size):
        saw("grpc", context.peer(), "POST", "grpc", method, {k: v for k, v in context.invocation_metadata() if isinstance(v, str)}, size)
        context.set_trailing_metadata((("x-end", method),))

    def unary(data, context):
        note(context, "Unary", len(data))
        return b"echo " + data

    def stream(data, context):
        note(context, "Stream", len(data))
        for i in range(5):
            yield b"%d %s" % (i, data)

    def both(requests, context):
        note(context, "Both", 0)
        for data in requests:
            yield b"echo " + data

    class Handlers(grpc.GenericRpcHandler):
        def service(self, details):
            return {"/test.Echo/Unary": grpc.unary_unary_rpc_method_handler(unary),
                    "/test.Echo/Stream": grpc.unary_stream_rpc_method_handler(stream),
                    "/test.Echo/Both": grpc.stream_stream_rpc_method_handler(both)}.get(details.method)

    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((Handlers(),))
    credentials = grpc.ssl_server_credentials([((root / "key.pem").read_bytes(), (root / "cert.pem").read_bytes())])
    ports["grpc"] = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    return server


# ---- all of them

def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def certificates():
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=authority of a test",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", "-keyout", root / "ca.key", "-out", root / "ca.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=api.test", "-keyout", root / "key.pem",
            "-out", root / "cert.csr")
    (root / "ext").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in NAMES) + "\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-days", "2", "-in", root / "cert.csr", "-CA", root / "ca.pem", "-CAkey", root / "ca.key", "-CAcreateserial",
            "-extfile", root / "ext", "-out", root / "cert.pem")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=own.test",
            "-addext", "subjectAltName=DNS:own.test", "-keyout", root / "own.key", "-out", root / "own.pem")


def context(protocol, name=""):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(root / f"{name or 'cert'}.pem", root / f"{name or 'key'}{'.key' if name else '.pem'}")
    made.set_alpn_protocols([protocol])
    return made


certificates()
web("h1", context("http/1.1"))
web("plain", None)
web("own", context("http/1.1", "own"))
wanted = {"h1", "plain", "own"}
held = []
try:
    import h2 as _h2  # noqa: F401
    threading.Thread(target=h2_server, args=(context("h2"),), daemon=True).start()
    wanted.add("h2")
except ImportError:
    pass
try:
    held.append(grpc_server())
except ImportError:
    pass
while not wanted <= ports.keys():
    time.sleep(0.01)
(root / "ports.new").write_text("".join(f"{name}={port}\n" for name, port in ports.items()))
os.rename(root / "ports.new", root / "ports")
threading.Event().wait()
