"""bac-audit by itself: what its peers send, as src/wire/receipt.h has it."""
import os
import socket
import struct

DECISION, END, NOTE = 1, 2, 3
KINDS = ("", "dns", "tcp", "tls", "http", "udp", "icmp", "ip", "file", "policy", "sandbox")
VIAS = ("", "transparent", "forward", "forward-bypass", "network", "dns")


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack(">I", len(b)) + b + b"\0"


def record(event=DECISION, kind="tls", via="transparent", allowed=False, port=443, count=1, flow=0, sent=0, received=0,
           us=0, host="", address="", method="", path="", rule="", reason="", note=""):
    return (struct.pack(">4BHI4Q", event, KINDS.index(kind), VIAS.index(via), allowed, port, count, flow, sent,
                        received, us) + b"".join(map(text, (host, address, method, path, rule, reason, note))))


class Audit:
    def __init__(self, program, directory, name="web", file_size=8 << 20, total_size=64 << 20):
        os.makedirs(directory, 0o700, exist_ok=True)
        self.proxy, proxy = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.supervisor, supervisor = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        orders = os.memfd_create("orders")
        os.write(orders, text(name) + struct.pack(">QQ", file_size, total_size))
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        # above the numbers that they are to have, so that none is overwritten
        high = [os.dup2(fd, 100 + i, inheritable=False)
                for i, fd in enumerate((orders, folder, proxy.fileno(), supervisor.fileno()))]
        self.pid = os.posix_spawn(program, [program], {}, file_actions=[
            (os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)])
        for fd in high + [orders, folder]:
            os.close(fd)
        proxy.close()
        supervisor.close()
        self.written = 0

    def send(self, *records):
        self.proxy.send(b"".join(records))

    def wait(self, count):
        """Until so many records of the proxy are written."""
        while self.written < count:
            answer = self.proxy.recv(4096)
            assert len(answer) == 8, answer
            self.written = struct.unpack(">Q", answer)[0]
        assert self.written == count or count == 0, (self.written, count)

    def alarm(self):
        answer = self.supervisor.recv(4096)
        code, n = struct.unpack(">QI", answer[:12])
        return code, answer[12:12 + n].decode()

    def end(self):
        self.supervisor.close()
        self.proxy.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
