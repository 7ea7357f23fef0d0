# shellcheck shell=bash
# shellcheck disable=SC2154  # world is the walker's
# example.com answers to who is let through, agents are stand-ins, and somebody answers what the page asks.
public || return
deadline 300
python3 - "$world/port" <<'PYTHON' &
import http.server
import os
import sys


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"An example\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = http.server.HTTPServer(("127.0.0.1", 0), Page)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
PYTHON
wait_for 20 test -e "$world/port" || return
read -r port <"$world/port" || [ -n "$port" ]
export BAC_NET_CONNECT_TO=example.com:80=127.0.0.1:$port BAC_SECRETS_STORE=file
answer 'bac exec -it first bash*' 'exit\r'
answer 'bac secret set anthropic*' 'sk-ant-api03-not-a-real-key-0123456789\r'
answer 'bac run claude*' 'exit\r'
answer 'bac rm first *' 'first.*N. ' 'y\r'
answer 'bac secret rm anthropic*' 'y\r'
