#!/usr/bin/env python3
"""Servers on 127.0.0.1 for a scenario, and who came to them.

servers.py DIRECTORY [ADDRESS]

Makes DIRECTORY/ports (lines NAME=PORT, when all listen) and DIRECTORY/seen (a line "NAME what" for each connection and
datagram), serves DIRECTORY/www over http and https, and goes on until it is killed.

http, https  files; /hold sends a byte each half second for a minute, /redirect leads to http://denied.test/, /head shows the request
banner       speaks first, then repeats what it is told
forbidden    nobody may come here, udp likewise. With WORLD (in-world) also on its addresses, ports 53, 80, 443 and 853, udp 53 and 443
dns          on ADDRESS, port 53: every name is 127.0.0.1
"""
import http.server
import os
import pathlib
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time

root = pathlib.Path(sys.argv[1])
(root / "www").mkdir(parents=True, exist_ok=True)
log = open(root / "seen", "a", buffering=1)
ports = {}


def saw(name, what):
    log.write(f"{name} {what}\n")


class Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args):
        super().__init__(*args, directory=str(root / "www"))

    def log_message(self, *_):
        pass

    def plain(self, code, body, *headers):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        saw(self.server.name, f"{self.command} {self.headers.get('Host')} {self.path}")
        if self.path == "/redirect":
            self.plain(302, b"", ("Location", "http://denied.test/"))
        elif self.path == "/head":
            self.plain(200, f"hello from {self.server.name}\n".encode())
        elif self.path == "/hold":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for _ in range(120):
                    self.wfile.write(b".")
                    self.wfile.flush()
                    time.sleep(0.5)
            except OSError:
                saw(self.server.name, "hold-closed")
            self.close_connection = True
        else:
            super().do_GET()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        saw(self.server.name, f"POST {self.path} {len(body)}")
        self.plain(200, b"posted %d\n" % len(body))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def web(name, tls):
    server = Server(("127.0.0.1", 0), Files)
    server.name = name
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    ports[name] = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()


class Banner(socketserver.BaseRequestHandler):
    def handle(self):
        saw("banner", "came")
        self.request.sendall(b"220 banner.test speaks first\n")
        while data := self.request.recv(4096):
            self.request.sendall(b"echo " + data)


class Forbidden(socketserver.BaseRequestHandler):
    def handle(self):
        saw("forbidden", "came")


class Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_):
        pass


class Tcp6(Tcp):
    address_family = socket.AF_INET6


def tcp(name, handler, address="127.0.0.1", port=0):
    server = (Tcp6 if ":" in address else Tcp)((address, port), handler)
    if not port:
        ports[name] = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()


def udp(address="127.0.0.1", port=0):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, port))
    if not port:
        ports["udp"] = sock.getsockname()[1]
    while True:
        sock.recv(2048)
        saw("forbidden", "udp came")


def world():
    for address in os.environ.get("WORLD", "").split():
        for port in (53, 80, 443, 853):
            tcp("forbidden", Forbidden, address, port)
        for port in (53, 443):
            threading.Thread(target=udp, args=(address, port), daemon=True).start()


def dns(address):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 53))
    ports["dns"] = 53
    while True:
        question, peer = sock.recvfrom(2048)
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode(errors="replace"))
            at += 1 + question[at]
        kind = question[at + 2]
        saw("dns", f"{'.'.join(labels)} {kind}")
        is_a = kind == 1
        sock.sendto(question[:2] + b"\x81\x80\0\1\0" + bytes([is_a]) + b"\0\0\0\0" + question[12:at + 5]
                    + (b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if is_a else b""), peer)


subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=allowed.test", "-addext", "subjectAltName=DNS:allowed.test", "-keyout", root / "key.pem",
                "-out", root / "cert.pem"], check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(root / "cert.pem", root / "key.pem")
web("http", None)
web("https", context)
tcp("banner", Banner)
tcp("forbidden", Forbidden)
threading.Thread(target=udp, daemon=True).start()
world()
if len(sys.argv) > 2:
    threading.Thread(target=dns, args=(sys.argv[2],), daemon=True).start()
while "udp" not in ports or len(sys.argv) > 2 and "dns" not in ports:
    time.sleep(0.01)
text = "".join(f"{name}={port}\n" for name, port in ports.items())
(root / "ports.new").write_text(text)
os.rename(root / "ports.new", root / "ports")
threading.Event().wait()
