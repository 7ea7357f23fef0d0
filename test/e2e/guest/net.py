"""What root of a guest tries with the network. Each probe prints a line "NAME: RESULT", in order; with arguments only those are run.
A result is what a person would say of it, so that the scenario can compare: an errno's name, or what came. Before each of them a question
for NAME.probe.test (with "-" for "_"), which no rule allows, so that the log shows what is whose."""
import errno
import os
import socket
import ssl
import struct
import subprocess
import sys
import time

probes = []


def probe(fn):
    probes.append(fn)
    return fn


def said(error):
    if isinstance(error, ssl.SSLError):
        return "tls: " + (error.reason or str(error))
    if isinstance(error, (TimeoutError, socket.timeout)):
        return "timeout"
    if isinstance(error, OSError) and error.errno:
        return errno.errorcode.get(error.errno, str(error))
    return f"{type(error).__name__}: {error}"


def tcp(host, port, timeout=15):
    return socket.create_connection((host, port), timeout)


def all_of(sock):
    data = b""
    while part := sock.recv(65536):
        data += part
    return data.decode(errors="replace")


def http(host, text, port=80):
    with tcp(host, port) as s:
        s.sendall(text.encode())
        s.settimeout(15)
        return all_of(s)


def first(text):
    return text.split("\r\n")[0]


def get(host, path="/head", name=None, port=80):
    name = f"{name or host}{'' if port == 80 else f':{port}'}"
    return http(host, f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n", port)


def tls(address, port, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tcp(address, port) as s, context.wrap_socket(s, server_hostname=name) as t:
        t.sendall(b"GET /head HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
        return first(all_of(t))


def question(name, kind=1, raw=None):
    labels = raw or b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    return struct.pack(">HHHHHH", 0x1234, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", kind, 1)


def meaning(reply):
    rcode, answers = reply[3] & 15, struct.unpack(">H", reply[6:8])[0]
    if rcode or not answers:
        return f"rcode {rcode}, {answers} answers"
    return socket.inet_ntoa(reply[-4:])


def dns(name, kind=1, server="198.18.0.1", raw=None):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect((server, 53))
        s.send(question(name, kind, raw))
        return meaning(s.recv(4096))


def dns_tcp(name, server):
    q = question(name)
    with tcp(server, 53) as s:
        s.sendall(struct.pack(">H", len(q)) + q)
        n = struct.unpack(">H", s.recv(2))[0]
        return meaning(s.recv(n))


def sh(command):
    p = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    return (p.stdout + p.stderr).strip()


# ---- what is allowed

@probe
def allowed_http():
    return first(get("allowed.test"))


@probe
def allowed_https():
    return tls("allowed.test", 443, "allowed.test")


@probe
def server_first():
    with tcp("banner.test", 25) as s:
        a = s.recv(100)
        s.sendall(b"word")
        b = s.recv(100)
        s.shutdown(socket.SHUT_WR)
        return (a + b + s.recv(10)).decode().replace("\n", "|")


# ---- and what is not

@probe
def denied_http():
    return get("denied.test").replace("\r\n", "|").replace("\n", "|")


@probe
def denied_https():
    return tls("denied.test", 443, "denied.test")


@probe
def denied_port():
    with tcp("allowed.test", 8080) as s:
        return s.recv(10)


@probe
def literal():
    return tls("1.1.1.1", 443, None)


@probe
def literal_http():
    return first(get("1.1.1.1"))


@probe
def resolve_trick():
    return tls("9.9.9.9", 443, "allowed.test")


@probe
def sni_mismatch():
    return tls("allowed.test", 443, "denied.test")


@probe
def host_mismatch():
    return first(get("allowed.test", name="denied.test"))


@probe
def absolute_mismatch():
    return first(http("allowed.test", "GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n"))


@probe
def no_host():
    return first(http("denied.test", "GET / HTTP/1.0\r\n\r\n"))


@probe
def two_hosts():
    return first(http("allowed.test", "GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: denied.test\r\n\r\n"))


@probe
def smuggled_lengths():
    return first(http("allowed.test", "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"))


@probe
def smuggled_both():
    return first(http("allowed.test", "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n"
                                      "0\r\n\r\nGET / HTTP/1.1\r\nHost: denied.test\r\n\r\n"))


@probe
def folded():
    return first(http("allowed.test", "GET / HTTP/1.1\r\nHost: allowed.test\r\nX: a\r\n Host: denied.test\r\n\r\n"))


@probe
def second_request():
    text = "GET /head HTTP/1.1\r\nHost: {}\r\n{}\r\n"
    answer = http("allowed.test", text.format("allowed.test", "") + text.format("denied.test", "Connection: close\r\n"))
    return " ".join(line for line in answer.replace("\r", "").split("\n") if line.startswith("HTTP/"))


@probe
def redirect():
    return sh("curl -sSL -m 30 -o /dev/null -w '%{http_code} %{url_effective}' http://allowed.test/redirect")


@probe
def decimal_literal():
    return sh("curl -sS -m 30 -o /dev/null -w '%{http_code}' http://16843009/")


@probe
def hex_literal():
    return first(http("198.18.0.1", "GET http://0x01010101/ HTTP/1.1\r\nHost: 0x01010101\r\nConnection: close\r\n\r\n", 3128))


@probe
def connect_denied():
    return http("198.18.0.1", "CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\nConnection: close\r\n\r\n", 3128).replace("\r\n", "|")


@probe
def connect_allowed():
    with tcp("198.18.0.1", 3128) as s:
        s.sendall(b"CONNECT banner.test:25 HTTP/1.1\r\nHost: banner.test:25\r\n\r\n")
        got = b""
        while not got.partition(b"\r\n\r\n")[2].endswith(b"\n") and (more := s.recv(4096)):  # the head, and the server's line
            got += more
        return got.decode().replace("\r\n", "|").replace("\n", "|")


@probe
def connect_trick():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tcp("198.18.0.1", 3128) as s:
        s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n")
        s.recv(4096)
        with context.wrap_socket(s, server_hostname="denied.test") as t:
            return "opened"


@probe
def forward_denied():
    return first(http("198.18.0.1", "GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n", 3128))


@probe
def gateway_other_port():
    return first(get("198.18.0.1", port=8000))


@probe
def udp_443():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect(("1.1.1.1", 443))
        start = time.monotonic()
        s.send(b"quic")
        try:
            return s.recv(100)
        except OSError as e:
            return f"{said(e)} {'at once' if time.monotonic() - start < 2 else 'late'}"


@probe
def icmp():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.settimeout(1)
        s.sendto(b"\x08\0\xf7\xff\0\0\0\0", ("1.1.1.1", 0))
        return s.recv(100)


@probe
def ipv6():
    start = time.monotonic()
    try:
        with socket.create_connection(("2606:4700::1111", 443), 10):
            return "opened"
    except OSError as e:
        return f"{said(e)} {'at once' if time.monotonic() - start < 1 else 'late'}"


@probe
def ipv6_curl():
    start = time.monotonic()
    code = sh("curl -6 -sS -m 20 http://allowed.test/head -o /dev/null; echo $?")
    return f"{code.split()[-1]} {'at once' if time.monotonic() - start < 5 else 'late'}"


@probe
def dns_denied():
    return dns("secret.t.denied.test")


@probe
def dns_elsewhere():
    return dns("secret2.t.denied.test", server="8.8.8.8")


@probe
def dns_elsewhere_tcp():
    return dns_tcp("secret3.t.denied.test", "8.8.8.8")


@probe
def dns_own_tcp():
    return dns_tcp("git.test", "198.18.0.1")


@probe
def dns_aaaa():
    return dns("pypi.test", 28)


@probe
def dns_https():
    return dns("npm.test", 65)


@probe
def dns_txt():
    return dns("secret.denied.test", 16)


@probe
def dns_mx():
    return dns("allowed.test", 15)


@probe
def dns_nul():
    return dns("", raw=b"\x0callowed\0evil\x04test\0")


@probe
def dns_over_tls():
    return tls("8.8.8.8", 853, "dns.google")


@probe
def dns_over_https():
    return tls("1.1.1.1", 443, "cloudflare-dns.com")


@probe
def host_alias_denied():
    return get("host.docker.internal", port=int(os.environ["FORBIDDEN"]))[:12]


@probe
def host_alias_allowed():
    return first(get("host.docker.internal", port=int(os.environ["HTTP"])))


@probe
def metadata():
    return first(get("169.254.169.254"))


@probe
def relay():
    server = subprocess.Popen(["socat", "TCP-LISTEN:7777,fork,reuseaddr", "TCP:denied.test:80"])
    try:
        for _ in range(100):
            try:
                tcp("127.0.0.1", 7777).close()
                break
            except OSError:
                time.sleep(0.1)
        return first(http("127.0.0.1", "GET / HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n", 7777))
    finally:
        server.kill()


@probe
def spoofed_source():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        body = b"spoof"
        udp = struct.pack(">HHHH", 4000, 53, 8 + len(body), 0) + body  # a question's port, too
        for source in ("10.0.0.5", "198.18.0.1", "127.0.0.1"):
            head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source),
                               socket.inet_aton("8.8.8.8"))
            s.sendto(head + udp, ("8.8.8.8", 0))
    return "sent"


@probe
def flushed():
    sh("nft flush ruleset; ip route flush table main; ip rule flush; ip rule add from all lookup main;"
       "ip route add default via 198.18.0.1 dev eth0 onlink; ip addr add 10.9.9.9/24 dev eth0; sysctl -wq net.ipv6.conf.eth0.disable_ipv6=0")
    results = []
    for target in ("denied.test", "1.1.1.1", "allowed.test"):
        try:
            results.append(f"{target} {first(get(target))}")
        except OSError as e:
            results.append(f"{target} {said(e)}")
    return ", ".join(results)


def main():
    for fn in probes:
        if len(sys.argv) > 1 and fn.__name__ not in sys.argv[1:]:
            continue
        dns(fn.__name__.replace("_", "-") + ".probe.test")
        try:
            result = fn()
        except Exception as e:  # whatever it is, it is the result
            result = said(e)
        print(f"{fn.__name__}: {result}", flush=True)


main()
