"""bac-proxy between two network namespaces, without a machine. For test/proxy/try.py and test/bench/proxy.py.

    world   the process itself: servers with public addresses on lo, a name server; the proxy dials from here
    box     the sandbox's namespace: TPROXY as bac-net sets it, the proxy's sockets
    guest   a veth away from box: where clients run

The supervisor, the minder and bac-audit are played here. Every wait has a deadline.
"""
import array
import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CONFIG, POLICY, PING, RESOLVER, PONG, APPLIED, READY, SAY = 1, 2, 3, 16, 64, 65, 66, 67
GATEWAY, GUEST, HOST = "198.18.0.1", "198.18.0.2", "198.18.0.5"
KINDS = ["", "dns", "tcp", "tls", "http", "udp", "icmp", "ip", "file", "policy", "sandbox"]
VIAS = ["", "transparent", "forward", "forward-bypass", "network", "dns"]
EVENTS = ["", "decision", "end", "note"]
IP_TRANSPARENT, IP_RECVORIGDSTADDR, CLONE_NEWNET = 19, 20, 0x40000000
TABLE = """
table inet bac {
 chain from_guest {
  type filter hook prerouting priority mangle; policy drop;
  iifname != "bac0" accept
  meta nfproto != ipv4 drop
  ip saddr != 198.18.0.2 drop
  meta l4proto { tcp, udp } th dport 53 meta mark set 1 tproxy ip to 198.18.0.1:53 accept
  meta l4proto tcp meta mark set 1 tproxy ip to 198.18.0.1:1 accept
  meta l4proto udp reject with icmp port-unreachable
 }
}
"""
libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    pass


def missing():
    for program in ("nft", "ip", "nsenter", "unshare"):
        if not shutil.which(program):
            return f"no {program}"
    return None


def alone():
    """Go on in a network namespace of our own, as root of it (a user namespace, if need be)."""
    if os.environ.get("BAC_PROXY_RIG"):
        return
    os.environ["BAC_PROXY_RIG"] = "1"
    wrap = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    os.execvp(wrap[0], [*wrap, sys.executable, *sys.argv])


def sh(command, check=True):
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise Failed(f"{command}: {done.stdout}")
    return done.stdout


class Namespace:
    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "100000"])
        mine = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == mine:
            if time.monotonic() > deadline:
                raise Failed("unshare does nothing")
            time.sleep(0.01)
        self.fd = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)

    def sh(self, command, check=True):
        return sh(f"nsenter --net=/proc/{self.holder.pid}/ns/net sh -c '{command}'", check)

    def popen(self, command, **more):
        return subprocess.Popen(["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *command], **more)

    @contextlib.contextmanager
    def inside(self):
        """Sockets that this thread makes are of that namespace."""
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if libc.setns(self.fd, CLONE_NEWNET) < 0:
            raise Failed("setns: " + os.strerror(ctypes.get_errno()))
        try:
            yield
        finally:
            libc.setns(back, CLONE_NEWNET)
            os.close(back)

    def end(self):
        self.holder.kill()
        self.holder.wait()
        os.close(self.fd)


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack(">I", len(s)) + s + b"\0"


def parse_receipts(data):
    out, at = [], 0
    while at < len(data):
        event, kind, via, allowed, port, count, flow, sent, received, us = struct.unpack_from(">BBBBHIQQQQ", data, at)
        at += struct.calcsize(">BBBBHIQQQQ")
        words = []
        for _ in range(7):
            n, = struct.unpack_from(">I", data, at)
            words.append(data[at + 4:at + 4 + n].decode(errors="replace"))
            at += 5 + n
        host, address, method, path, rule, reason, note = words
        out.append(dict(event=EVENTS[event], kind=KINDS[kind], via=VIAS[via], allowed=bool(allowed), port=port, count=count,
                        flow=flow, sent=sent, received=received, us=us, host=host, address=address, method=method, path=path,
                        rule=rule, reason=reason, note=note))
    return out


class Audit:
    """Takes receipts and says so, unless it is stalled."""

    def __init__(self, keep=True):
        self.sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for s in (self.sock, self.theirs):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.all, self.count, self.keep = [], 0, keep
        self.changed = threading.Condition()
        self.stalled = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                data = self.sock.recv(1 << 17)
            except OSError:
                return
            if not data:
                return
            with self.changed:
                while self.stalled:
                    self.changed.wait()
                got = parse_receipts(data)
                self.count += len(got)
                if self.keep:
                    self.all += got
                self.changed.notify_all()
                try:
                    self.sock.send(struct.pack(">Q", self.count))
                except OSError:
                    return

    def stall(self, on):
        with self.changed:
            self.stalled = on
            self.changed.notify_all()

    def mark(self):
        with self.changed:
            return len(self.all)

    def find(self, since=0, **want):
        return [r for r in self.all[since:] if all(r[k] == v for k, v in want.items())]

    def some(self, n, timeout=5, **want):
        """All receipts like that, once there are n or more; those of refusals come a few ms late."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.find(**want)) >= n, timeout)
            return self.find(**want)

    def wait(self, since=0, timeout=5, **want):
        """The first receipt like that, or None."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while True:
                got = self.find(since, **want)
                if got:
                    return got[0]
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self.changed.wait(left)


class RealAudit:
    """bac-audit itself, with its log in a new folder."""

    def __init__(self, program, folder):
        self.sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sup, sup = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for s in (self.sock, self.theirs):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        os.mkdir(folder, 0o700)
        orders = os.memfd_create("orders")
        os.write(orders, text("web") + struct.pack(">QQ", 8 << 20, 64 << 20))
        fds = [orders, os.open(folder, os.O_RDONLY | os.O_DIRECTORY), self.sock.fileno(), sup.fileno()]
        high = [os.dup2(fd, 200 + i) for i, fd in enumerate(fds)]
        moves = "exec " + " ".join(f"{3 + i}<&{fd} {fd}<&-" for i, fd in enumerate(high))
        self.process = subprocess.Popen(["bash", "-c", moves + '; exec "$@"', "sh", program], close_fds=False, env={})
        for fd in high + fds[:2]:
            os.close(fd)
        sup.close()
        self.sock.close()

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.sup.close()
        self.process.wait(10)


class Rig:
    def __init__(self, program, policy=(), connect=(), upstream="", no_proxy="", wrap=(), resolv="nameserver 9.9.9.9\n",
                 hosts="127.0.0.1 localhost\n", keep=True, fds=None):
        self.program, self.wrap = program, wrap
        self.box, self.guest = Namespace(), Namespace()
        self.number, self.generation = 0, 0
        self.says = []
        self.network()
        self.audit = Audit(keep)
        self.start(policy, connect, upstream, no_proxy, resolv, hosts, fds)

    def network(self):
        sh("ip link set lo up")
        sh(f"ip link add bac0 netns /proc/{self.box.holder.pid}/ns/net type veth peer name eth0 netns "
           f"/proc/{self.guest.holder.pid}/ns/net", check=False)
        if "bac0" not in self.box.sh("ip link"):
            sh(f"ip link add bac0 type veth peer name eth0 && ip link set bac0 netns {self.box.holder.pid} && "
               f"ip link set eth0 netns {self.guest.holder.pid}")
        self.box.sh("sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip link set lo up; ip link set bac0 up; "
                    "ip addr add 198.18.0.1/30 dev bac0; ip rule add fwmark 1 lookup 100; "
                    "ip route add local default dev lo table 100")
        with tempfile.NamedTemporaryFile("w", suffix=".nft") as f:
            f.write(TABLE)
            f.flush()
            self.box.sh("nft -f " + f.name)
        self.guest.sh("ip link set lo up; ip link set eth0 up; ip addr add 198.18.0.2/30 dev eth0; "
                      "ip route add default via 198.18.0.1; sysctl -qw net.ipv4.ip_local_port_range=\"1024 65000\"")
        with self.box.inside():
            tcp = socket.socket()
            tcp.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
            tcp.bind((GATEWAY, 1))
            tcp.listen(4096)
            dns_tcp = socket.socket()
            dns_tcp.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
            dns_tcp.bind((GATEWAY, 53))
            dns_tcp.listen(64)
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
            udp.setsockopt(socket.SOL_IP, IP_RECVORIGDSTADDR, 1)
            udp.bind(("0.0.0.0", 53))
            packet = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            drop_filter(packet)
            packet.bind(("bac0", 3))
        self.sockets = [tcp, dns_tcp, udp, packet]

    def start(self, policy, connect=(), upstream="", no_proxy="", resolv="", hosts="", fds=None):
        self.control, a = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.minder, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for s in (self.control, self.minder, a, b):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.control.settimeout(20)
        self.root = tempfile.mkdtemp(prefix="test-bac-empty-")
        wanted = [a, b, self.audit.theirs, *self.sockets]
        high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100) for s in wanted]
        moves = "exec " + " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(high)) + " " + \
            " ".join(f"{fd}<&-" for fd in high)
        if fds:
            moves = f"ulimit -n {fds}; " + moves
        self.process = subprocess.Popen(["bash", "-c", moves + '; exec "$@"', "sh", *self.wrap, self.program],
                                        close_fds=False, stderr=subprocess.PIPE, env={})
        for fd in high:
            os.close(fd)
        a.close()
        b.close()
        self.config(connect, upstream, no_proxy)
        self.send_policy(policy)
        self.generation += 1
        self.hear(READY)
        self.resolver(resolv, hosts)

    def config(self, connect=(), upstream="", no_proxy=""):
        self.control.send(struct.pack(">B", CONFIG) + text("web") + text(upstream) + text(no_proxy) +
                          struct.pack(">II", self.generation, len(connect)) + b"".join(map(text, connect)))

    def send_policy(self, rules):
        """Rules: 'allow RESOURCE', 'deny RESOURCE', 'allow RESOURCE METHOD PATH'; or a whole text as bytes."""
        if not isinstance(rules, bytes):
            lines = ["bac-net-policy 1"]
            for i, rule in enumerate(rules):
                words = rule.split()
                method = words[2] if len(words) > 2 else "-"
                path = words[3] if len(words) > 3 else "-"
                lines.append("\t".join([f"r{i}", "sandbox", words[0], method, path, words[1]]))
            rules = ("\n".join([*lines, f"end {len(lines) - 1}"]) + "\n").encode()
        fd = os.memfd_create("policy")
        os.write(fd, rules)
        self.number += 1
        self.control.sendmsg([struct.pack(">BI", POLICY, self.number)],
                             [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)

    def policy(self, rules):
        """Another policy; 0 or -errno and why."""
        self.send_policy(rules)
        while True:
            m = self.hear(APPLIED)
            number, code = struct.unpack(">Ii", m[1:9])
            if number == self.number:
                return code, m[13:-1].decode()

    def resolver(self, resolv, hosts="127.0.0.1 localhost\n"):
        self.minder.send(struct.pack(">B", RESOLVER) + text(resolv) + text(hosts))
        self.ping()

    def ping(self):
        self.control.send(struct.pack(">BI", PING, 77))
        self.hear(PONG)

    def hear(self, kind):
        while True:
            try:
                m = self.control.recv(70000)
            except TimeoutError:
                raise Failed("the proxy says nothing") from None
            except ConnectionError:
                m = b""
            if not m:
                raise Failed(f"the proxy hung up: {self.process.wait()} {self.process.stderr.read()!r}")
            if m[0] == SAY:
                self.says.append(m[5:-1].decode())
            if m[0] == kind:
                return m

    def connect(self, host, port, timeout=5, reset=False):
        """A guest's socket, connected."""
        with self.guest.inside():
            s = socket.socket()
            s.settimeout(timeout)
            s.connect((host, port))
        return s

    def lookup(self, name, kind=1, server=GATEWAY, tcp=False):
        """(rcode, [answers as raw rdata]) of a question from the guest."""
        labels = b"".join(bytes([len(x)]) + x for x in (name.encode() if isinstance(name, str) else name).split(b".") if x)
        q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)
        with self.guest.inside():
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
        s.settimeout(5)
        with s:
            s.connect((server, 53))
            if tcp:
                s.send(struct.pack(">H", len(q)) + q)
                n, = struct.unpack(">H", s.recv(2))
                a = s.recv(n)
            else:
                s.send(q)
                a = s.recv(4096)
        return parse_dns(a)

    def address(self, name, **more):
        rcode, answers = self.lookup(name, **more)
        if rcode or not answers:
            raise Failed(f"{name}: rcode {rcode}, {answers}")
        return socket.inet_ntoa(answers[0])

    def rss(self):
        """KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """What it said when it died, or ''."""
        self.control.close()
        self.minder.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        said = self.process.stderr.read().decode(errors="replace")
        self.process.stderr.close()
        self.audit.sock.close()
        self.audit.theirs.close()
        for s in self.sockets:
            s.close()
        self.box.end()
        self.guest.end()
        os.rmdir(self.root)
        return said

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        said = self.end()
        if kind:
            print("# proxy:", self.process.returncode, said, self.says)


def drop_filter(packet):
    """Not ARP, not IPv4 TCP, not IPv4 UDP to port 53 (as bac-net has it): a program of classic BPF."""
    code = [
        (0x30, 0, 0, 0xfffff004),      # ldb type of packet (SKF_AD_PKTTYPE)
        (0x15, 12, 0, 4),              # outgoing: drop
        (0x28, 0, 0, 0xfffff000),      # ldh protocol (SKF_AD_PROTOCOL)
        (0x15, 10, 0, 0x0806),         # ARP: drop
        (0x15, 0, 8, 0x0800),          # not IPv4: keep
        (0x20, 0, 0, 12),              # ld source
        (0x15, 0, 6, 0xc6120002),      # not the guest's: keep
        (0x30, 0, 0, 9),               # ldb protocol
        (0x15, 5, 0, 6),               # TCP: drop
        (0x15, 0, 3, 17),              # not UDP: keep
        (0xb1, 0, 0, 0),               # ldx 4*([0]&0xf)
        (0x48, 0, 0, 2),               # ldh destination port
        (0x15, 1, 0, 53),              # DNS: drop
        (0x06, 0, 0, 0x40000),
        (0x06, 0, 0, 0),
    ]
    program = b"".join(struct.pack("HBBI", *x) for x in code)
    keep = ctypes.create_string_buffer(program)
    packet.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", len(code), ctypes.addressof(keep)))


def parse_dns(a):
    rcode, n = a[3] & 15, struct.unpack(">H", a[6:8])[0]
    at = 12
    while a[at]:
        at += a[at] + 1
    at += 5
    answers = []
    for _ in range(n):
        while a[at] and a[at] < 192:
            at += a[at] + 1
        at += 2 if a[at] >= 192 else 1
        size, = struct.unpack(">H", a[at + 8:at + 10])
        answers.append(a[at + 10:at + 10 + size])
        at += 10 + size
    return rcode, answers


def read_until(s, mark=b"\r\n\r\n", limit=1 << 20):
    data = b""
    while mark not in data and len(data) < limit:
        more = s.recv(65536)
        if not more:
            break
        data += more
    return data


def read_all(s):
    """All until the end; 'reset' behind it, if it was one."""
    data = b""
    try:
        while True:
            more = s.recv(1 << 16)
            if not more:
                return data
            data += more
    except ConnectionResetError:
        return data + b"<reset>"
    except TimeoutError:
        return data + b"<timeout>"


def serve(addr, port, handle):
    """A thread that accepts, and one for each connection: handle(sock)."""
    s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, port))
    s.listen(1024)

    def one(c):
        with c, contextlib.suppress(OSError):
            handle(c)

    def run():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            seen[0] += 1
            threading.Thread(target=one, args=(c,), daemon=True).start()

    seen = [0]
    threading.Thread(target=run, daemon=True).start()
    return seen


def wait_port(addr, port):
    for _ in range(200):
        try:
            socket.create_connection((addr, port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Failed(f"nobody listens on {addr}:{port}")


class Names:
    """A name server on 9.9.9.9: a table of name -> [addresses] or a function of how often it was asked."""

    def __init__(self, table, addr="9.9.9.9"):
        self.table, self.asked = table, []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((addr, 53))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((addr, 53))
        self.tcp.listen(16)
        self.long = set()  # names whose answers do not fit into a datagram
        threading.Thread(target=self.run, daemon=True).start()
        threading.Thread(target=self.run_tcp, daemon=True).start()

    def run_tcp(self):
        while True:
            c, _ = self.tcp.accept()
            with c, contextlib.suppress(OSError):
                while head := c.recv(2):
                    a = self.answer(c.recv(struct.unpack(">H", head)[0]), True)
                    c.sendall(struct.pack(">H", len(a)) + a)

    def run(self):
        while True:
            q, peer = self.sock.recvfrom(4096)
            self.sock.sendto(self.answer(q, False), peer)

    def answer(self, q, tcp):
        at, labels = 12, []
        while q[at]:
            labels.append(q[at + 1:at + 1 + q[at]].decode())
            at += q[at] + 1
        kind, = struct.unpack(">H", q[at + 1:at + 3])
        name = ".".join(labels).lower()
        self.asked.append((name, kind))
        known = self.table.get(name)
        if callable(known):
            known = known()
        answers = b""
        n = 0
        for a in known or ():
            family = socket.AF_INET6 if ":" in a else socket.AF_INET
            if (kind == 28) != (family == socket.AF_INET6):
                continue
            raw = socket.inet_pton(family, a)
            answers += struct.pack(">HHHIH", 0xc00c, kind, 1, 1, len(raw)) + raw
            n += 1
        flags = 0x8180 if known is not None else 0x8183
        if name in self.long and not tcp:
            flags, n, answers = flags | 0x200, 0, b""
        return q[:2] + struct.pack(">HHHHH", flags, 1, n, 0, 0) + q[12:at + 5] + answers
