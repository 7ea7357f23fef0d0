#!/usr/bin/env python3
"""What a registry does not do by itself, for test/e2e/p-registry.sh.

registry.py proxy DIR PORT     in front of a registry that speaks HTTP on PORT of this machine. DIR/port: where it listens. DIR/log: the
                               path of each blob that was asked for. Files in DIR say what it does to blobs:
                                   cut     half of it, then the connection ends
                                   stall   the first whole; half of every other, then nothing (DIR/stalled appears)
registry.py tokens DIR REALM   a registry that gives out no token itself: it wants one from the URL REALM
registry.py push PORT NAME TAG TYPE   an artifact of this type into a registry that speaks HTTP
"""
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


class Proxy(Handler):
    lock = threading.Lock()
    whole = 0

    def do_GET(self):
        home = self.server.home
        back = http.client.HTTPConnection("127.0.0.1", self.server.back)
        back.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for k, v in self.headers.items():  # Accept comes several times
            back.putheader(k, v)
        back.endheaders()
        answer = back.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for k, v in answer.getheaders():
            if k.lower() not in ("connection", "transfer-encoding", "date", "server"):
                self.send_header(k, v)
        self.end_headers()
        if self.command == "HEAD":
            return
        blob = "/blobs/" in self.path and body[:2] == b"\x1f\x8b"  # a layer
        if blob:
            with open(home / "log", "a") as log:
                log.write(self.path + "\n")
        with self.lock:
            first = blob and Proxy.whole == 0
            if first:
                Proxy.whole = 1
        if blob and (home / "cut").exists():
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
        elif blob and (home / "stall").exists() and not first:
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            (home / "stalled").touch()
            self.connection.recv(1)  # until it hangs up
            self.close_connection = True
        else:
            self.wfile.write(body)

    do_HEAD = do_GET


class Tokens(Handler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", f'Bearer realm="{self.server.realm}",service="x",scope="repository:a:pull"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET


def serve(handler, home, **more):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.home = home
    for k, v in more.items():
        setattr(server, k, v)
    home.mkdir(parents=True, exist_ok=True)
    (home / "port.new").write_text(str(server.server_port))
    os.rename(home / "port.new", home / "port")
    server.serve_forever()


def put_blob(port, name, data):
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("POST", f"/v2/{name}/blobs/uploads/")
    r = c.getresponse()
    r.read()
    where = r.getheader("Location").split("//", 1)[1].split("/", 1)[1]
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("PUT", f"/{where}&digest={digest}", body=data, headers={"Content-Type": "application/octet-stream"})
    r = c.getresponse()
    if r.status != 201:
        sys.exit(f"blob: {r.status} {r.read()}")
    return {"digest": digest, "size": len(data)}


def push(port, name, tag, kind):
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": kind, **put_blob(port, name, b"{}")},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **put_blob(port, name, b"chart")}]}
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.request("PUT", f"/v2/{name}/manifests/{tag}", body=json.dumps(manifest), headers={"Content-Type": manifest["mediaType"]})
    r = c.getresponse()
    if r.status != 201:
        sys.exit(f"manifest: {r.status} {r.read()}")


if __name__ == "__main__":
    if sys.argv[1] == "proxy":
        serve(Proxy, pathlib.Path(sys.argv[2]), back=int(sys.argv[3]))
    elif sys.argv[1] == "tokens":
        serve(Tokens, pathlib.Path(sys.argv[2]), realm=sys.argv[3])
    else:
        push(int(sys.argv[2]), *sys.argv[3:6])
