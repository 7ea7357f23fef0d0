#!/usr/bin/env python3
"""git over https on 127.0.0.1, for a scenario.

git-https.py DIRECTORY REPOSITORIES

Makes an authority of its own (DIRECTORY/ca.pem) and a certificate for localhost, writes DIRECTORY/port when it listens, and serves what is below
REPOSITORIES by git's own http-backend until it is killed. DIRECTORY/seen has a line for each request.
"""
import http.server
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.parse

root, repos = pathlib.Path(sys.argv[1]), sys.argv[2]
root.mkdir(parents=True, exist_ok=True)


class Git(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def serve(self):
        at = urllib.parse.urlsplit(self.path)
        with open(root / "seen", "a") as seen:
            seen.write(f"{self.command} {self.path}\n")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": repos, "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": at.path, "QUERY_STRING": at.query, "REQUEST_METHOD": self.command,
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = dict(f.split(": ", 1) for f in head.decode().split("\r\n") if ": " in f)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = serve


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-keyout", str(root / "key.pem"), "-out", str(root / "ca.pem"), "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Git)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(root / "ca.pem", root / "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
(root / "port.new").write_text(str(server.server_port))
(root / "port.new").rename(root / "port")
server.serve_forever()
