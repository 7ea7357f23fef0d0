"""bac-keeper and bac-fetch with real sockets; the supervisor, the minder and the proxy are played here, as src/wire/keeper.h has them."""
import array
import os
import select
import socket
import struct

CONFIG, CREDENTIALS, POLICY, PING, PROXY, FETCH = 1, 2, 3, 4, 16, 17
LEAF, VALUE, TOKENS, OVER = 32, 33, 34, 35
PONG, APPLIED, READY, SAY, CA, MARKS, BREACH = 64, 65, 66, 67, 68, 69, 70
LEAF_IS, VALUE_IS, NO, KEPT = 80, 81, 82, 83
MISSING, UNAPPROVED, FAILED, LONGER = 1, 2, 3, 4
NAMES = {v: k for k, v in list(globals().items()) if isinstance(v, int) and k.isupper() and v > 4}


def text(s):
    b = s.encode()
    return struct.pack(">I", len(b)) + b + b"\0"


def blob(b):
    return struct.pack(">I", len(b)) + b


class Reader:
    def __init__(self, b):
        self.b = b

    def take(self, n):
        part, self.b = self.b[:n], self.b[n:]
        assert len(part) == n
        return part

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def blob(self):
        return self.take(self.u32())

    def text(self):
        s = self.blob().decode()
        assert self.take(1) == b"\0"
        return s


def pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for s in (a, b):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
    return a, b


def give(sock, data, fd):
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])


def hear(sock, seconds=20):
    """One message: its type and a reader of the rest; None: the end."""
    if not select.select([sock], [], [], seconds)[0]:
        raise TimeoutError("nothing was said")
    try:
        data = sock.recv(1 << 19)
    except ConnectionResetError:
        return None
    return (data[0], Reader(data[1:])) if data else None


def silent(sock):
    return not select.select([sock], [], [], 0)[0]


def spawn(program, fds, env):
    high = [os.dup2(fd, 100 + i, inheritable=False) for i, fd in enumerate(fds)]
    pid = os.posix_spawn(program, [program], env, file_actions=[(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)])
    for fd in high:
        os.close(fd)
    return pid


def memory(s):
    fd = os.memfd_create("text")
    os.write(fd, s.encode())
    return fd


def use(id, resource, key, kind="header", state="ready", service="svc", placeholder="-", placeholder2="-", path="-", fields="-"):
    header, form = ("authorization", "Bearer %s") if kind == "header" else ("-", "-")
    return "\t".join((id, kind, state, "user", service, key, resource, header, form, "-", placeholder, placeholder2, "-", path, fields))


def cred_text(*uses):
    return "".join(line + "\n" for line in ("bac-credentials 1", *uses, f"end {len(uses)}"))


class Keeper:
    def __init__(self, keeper, fetch, env, name="web"):
        self.fetch_program, self.env = fetch, env
        self.supervisor, s = pair()
        self.minder, m = pair()
        self.supervisor.send(bytes([CONFIG]) + text(name) + text("0" * 32))
        self.pid = spawn(keeper, (s.fileno(), m.fileno()), {})
        s.close()
        m.close()
        self.number = self.asked = 0
        self.ca, self.marks, self.said = "", b"", []
        self.until(READY)
        self.new_fetch()
        self.new_proxy()

    def new_fetch(self):
        ours, theirs = pair()
        self.fetch_pid = spawn(self.fetch_program, (theirs.fileno(),), self.env)
        give(self.minder, bytes([FETCH]), ours.fileno())
        ours.close()
        theirs.close()

    def new_proxy(self):
        self.proxy, theirs = pair()
        give(self.minder, bytes([PROXY]), theirs.fileno())
        theirs.close()
        self.ping()  # the minder's socket is read in the same turn or the next
        self.ping()

    def ping(self):
        self.number += 1
        self.supervisor.send(bytes([PING]) + struct.pack(">I", self.number))
        self.until(PONG)

    def until(self, want):
        """Hear the supervisor's side until this comes; the rest is kept."""
        while True:
            got = hear(self.supervisor)
            assert got, "the keeper is gone"
            what, r = got
            if what == CA:
                self.ca = r.text()
            elif what == MARKS:
                self.marks = r.blob()
            elif what == SAY:
                self.said.append(r.text())
            if what == want:
                return r

    def push(self, what, s):
        self.number += 1
        fd = memory(s)
        give(self.supervisor, bytes([what]) + struct.pack(">I", self.number), fd)
        os.close(fd)
        r = self.until(APPLIED)
        assert r.u32() == self.number
        return struct.unpack(">i", r.take(4))[0], r.text()

    def credentials(self, *uses):
        return self.push(CREDENTIALS, cred_text(*uses) + "env A=b\n")

    def send(self, what, body):
        self.asked += 1
        self.proxy.send(bytes([what]) + struct.pack(">I", self.asked) + body)
        return self.asked

    def answer(self):
        got = hear(self.proxy)
        if not got:
            return "closed", None
        what, r = got
        assert r.u32() == self.asked
        if what == NO:
            return r.u32(), r.text()
        if what == VALUE_IS:
            return "value", r.blob().decode()
        if what == LEAF_IS:
            chain, key = r.blob(), r.blob()
            parts = Reader(chain)
            return "leaf", (parts.blob(), parts.blob(), key, r.u64())
        return NAMES[what], None

    def value(self, id, host, port=443):
        self.send(VALUE, text(id) + text(host) + struct.pack(">H", port))
        return self.answer()

    def over(self, number):
        self.proxy.send(bytes([OVER]) + struct.pack(">I", number))

    def leaf(self, host, port=443):
        self.send(LEAF, text(host) + struct.pack(">H", port))
        return self.answer()

    def tokens(self, id, host, access, refresh):
        self.send(TOKENS, text(id) + text(host) + struct.pack(">H", 443) + blob(access.encode()) + blob(refresh.encode()) +
                  struct.pack(">Q", 0) + text(""))
        return self.answer()

    def end(self):
        """How the two end when the supervisor hangs up."""
        for s in (self.supervisor, self.minder, self.proxy):
            s.close()
        return tuple(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (self.pid, self.fetch_pid))
