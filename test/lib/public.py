#!/usr/bin/env python3
"""The public names that a page of docs/ speaks of, on 127.0.0.1: the proxy that leads out of this network knows them and no other.

public.py DIRECTORY NAME=PORT... NAME=npm... [PACKAGE@VERSION=PROGRAM...]

CONNECT NAME:443 to the proxy ends at TLS with a certificate of DIRECTORY/ca.pem, and behind that at what speaks HTTP on PORT of this machine, or at a small
npm registry which has these packages: PROGRAM of one is a script that stands in for the real one. It says so and what it was told; on a terminal it waits for
a line. DIRECTORY/env says, when all listens, what bac needs to know of it (settings, as variables of a shell).
"""
import hashlib
import http.server
import io
import json
import os
import pathlib
import select
import socket
import socketserver
import ssl
import subprocess
import sys
import tarfile
import threading
import urllib.parse

STAND_IN = """#!/bin/sh
echo "NAME is a stand-in of the test and does nothing. It was told: $*"
[ ! -t 0 ] || { printf 'NAME> '; read -r line; }
"""


class Npm(http.server.BaseHTTPRequestHandler):
    """One version of each package; server.packages: {name: (version, tarball)}."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        name = urllib.parse.unquote(self.path.partition("?")[0]).strip("/")
        tarball = name.endswith(".tgz")
        known = self.server.packages.get(name.removesuffix(".tgz"))
        if not known:
            body, code = b"{}", 404
        elif tarball:
            body, code = known[1], 200
        else:
            body, code = json.dumps(self.packument(name, *known)).encode(), 200
        self.send_response(code)
        self.send_header("Content-Type", "application/octet-stream" if tarball else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def packument(self, name, version, tarball, program):
        dist = {"tarball": f"https://{self.headers['Host']}/{name}.tgz", "shasum": hashlib.sha1(tarball).hexdigest()}
        return {"name": name, "dist-tags": {"latest": version},
                "versions": {version: {"name": name, "version": version, "bin": {program: "run"}, "dist": dist}}}


def package(name, version, program):
    out = io.BytesIO()
    files = {"package.json": json.dumps({"name": name, "version": version, "bin": {program: "run"}}), "run": STAND_IN.replace("NAME", program)}
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return version, out.getvalue(), program


class Way(socketserver.BaseRequestHandler):
    """A CONNECT, and what passes through it."""

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head and len(head) < 8192:
            piece = self.request.recv(4096)
            if not piece:
                return
            head += piece
        words = head.split(b"\r\n")[0].decode(errors="replace").split()
        name, _, port = (words + ["", ""])[1].partition(":")
        behind = self.server.names.get(name) if words[0] == "CONNECT" and port == "443" else None
        if not behind:
            self.request.sendall(b"HTTP/1.1 502 no such name\r\nContent-Length: 0\r\n\r\n")
            return
        self.request.sendall(b"HTTP/1.1 200 here\r\n\r\n")
        try:
            with self.server.tls.wrap_socket(self.request, server_side=True) as front, socket.create_connection(("127.0.0.1", behind)) as back:
                splice(front, back)
        except OSError:
            pass  # somebody has hung up


def splice(front, back):
    while True:
        ready = [front] if front.pending() else select.select([front, back], [], [])[0]
        for one, other in ((front, back), (back, front)):
            if one in ready:
                data = one.recv(65536)
                if not data:
                    return
                other.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


def certificate(root, names):
    """An authority, and a certificate of it for the names."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=CA of the test", "-keyout", root / "ca.key", "-out", root / "ca.pem")
    openssl("req", *key, "-subj", "/CN=names", "-keyout", root / "key.pem", "-out", root / "req.pem")
    (root / "ext").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names))
    openssl("x509", "-req", "-in", root / "req.pem", "-CA", root / "ca.pem", "-CAkey", root / "ca.key", "-CAcreateserial", "-days", "2",
            "-out", root / "cert.pem", "-extfile", root / "ext")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(root / "cert.pem", root / "key.pem")
    return context


def main():
    root = pathlib.Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    npm = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Npm)
    npm.daemon_threads, npm.packages = True, {}
    names = {}
    for word in sys.argv[2:]:
        name, _, what = word.rpartition("=")
        if "@" in name:
            name, _, version = name.rpartition("@")
            npm.packages[name] = package(name, version, what)
        else:
            names[name] = npm.server_port if what == "npm" else int(what)
    server = Server(("127.0.0.1", 0), Way)
    server.names, server.tls = names, certificate(root, names)
    threading.Thread(target=npm.serve_forever, daemon=True).start()
    (root / "env.new").write_text(f"export BAC_NET_UPSTREAM_PROXY=http://127.0.0.1:{server.server_address[1]} BAC_TLS_EXTRA_CA={root}/ca.pem\n")
    os.rename(root / "env.new", root / "env")
    server.serve_forever()


main()
