#!/usr/bin/env python3
"""How the proxy's HTTP/2 server reacts to frames that are malformed, out of place or too many (RFC 9113).

Argument: test-h2-serve, the front alone behind a listening socket. Each row sends bytes of its own on a
connection of its own and says what must come back; every row but those that end the connection is followed
by a PING that must be answered. The rows follow the sections of RFC 9113; those of h2spec are among them.

Where nghttp2 decides otherwise than the letter of the RFC, the row says so:
 * a request with a smaller number than one before, which was never used, is ignored (5.1.1 wants the end of
   the connection): nghttp2 does not tell it from a late frame of a stream that is gone;
 * a change of INITIAL_WINDOW_SIZE that makes one stream's window too large resets that stream (6.9.2: the
   connection);
 * frames on streams that are long gone are ignored (5.1 lets a peer be late).
"""
import os
import socket
import struct
import subprocess
import sys

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONT = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIO = 1, 1, 4, 8, 32
(NO, PROTOCOL, INTERNAL, FLOW, TIMEOUT, CLOSED, SIZE, REFUSED, CANCEL, COMPRESSION, CONNECT, CALM) = range(12)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LIVE = b"is alive"


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    n = len(payload) if length is None else length
    return struct.pack(">I", n)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def number(value, bits, first=0):
    """RFC 7541 5.1"""
    top = (1 << bits) - 1
    if value < top:
        return bytes([first | value])
    out = [first | top]
    value -= top
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def literal(name, value):
    """Without indexing, without Huffman."""
    name, value = (x.encode("latin1") if isinstance(x, str) else x for x in (name, value))
    return b"\0" + number(len(name), 7) + name + number(len(value), 7) + value


def block(*fields):
    return b"".join(literal(n, v) for n, v in fields)


def fields(method="GET", path="/", scheme="https", authority="a.example", *more, drop=()):
    named = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)]
    return [f for f in named if f[0] not in drop and f[1] is not None] + list(more)


def get(stream=1, *more, flags=END_STREAM | END_HEADERS, **how):
    how = {**dict(method="GET", path="/", scheme="https", authority="a.example"), **how}
    drop = how.pop("drop", ())
    f = fields(how["method"], how["path"], how["scheme"], how["authority"], *more, drop=drop)
    return frame(HEADERS, flags, stream, block(*f))


def post(stream=1, *more, path="/", **how):
    return get(stream, *more, flags=END_HEADERS, method="POST", path=path, **how)


def raw(stream, payload, flags=END_STREAM | END_HEADERS):
    return frame(HEADERS, flags, stream, payload)


def setting(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *p) for p in pairs))


def window(stream, n):
    return frame(WINDOW, 0, stream, struct.pack(">I", n))


def rst(stream, code=CANCEL):
    return frame(RST, 0, stream, struct.pack(">I", code))


def prio(stream, on=0, weight=15):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", on, weight))


START = PREFACE + setting()
OK = block(*fields())
SMALL = [("x", "y")]


# ---- what must come back ----

INDEXED = dict(zip(range(0x88, 0x8f), "200 204 206 304 400 404 500".split()))
DIGITS = {f"{i:05b}": str(i) for i in range(3)} | {f"{22 + i:06b}": str(i) for i in range(3, 10)}


def status_in(head):
    """The status, which is first in an answer's block; None where there is none (RFC 7541, appendices A and B)."""
    while head[0] >> 5 == 1:  # the table's size
        n = 1 if head[0] & 31 < 31 else 2
        while n > 1 and head[n - 1] & 128:
            n += 1
        head = head[n:]
    if head[0] in INDEXED:
        return INDEXED[head[0]]
    if head[0] not in (0x08, 0x18, 0x48):
        return None
    text = head[2:2 + (head[1] & 127)]
    if not head[1] & 128:
        return text.decode()
    bits = "".join(f"{b:08b}" for b in text)
    out = ""
    while len(out) < 3:
        n = 5 if bits[:5] in DIGITS else 6
        out += DIGITS[bits[:n]]
        bits = bits[n:]
    return out


class Peer:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.settimeout(20)
        self.bytes = b""
        self.status = None
        self.seen = []

    def send(self, data):
        try:
            self.s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        try:
            got = self.s.recv(65536)
        except ConnectionResetError:
            got = b""
        self.bytes += got
        return bool(got)

    def next(self):
        """(kind, flags, stream, payload), or None at the end."""
        while len(self.bytes) < 9 or len(self.bytes) < 9 + int.from_bytes(self.bytes[:3], "big"):
            if not self.more():
                return None
        n = int.from_bytes(self.bytes[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", self.bytes[3:9])
        payload, self.bytes = self.bytes[9:9 + n], self.bytes[9 + n:]
        one = (kind, flags, stream, payload)
        self.seen.append(describe(one))
        if kind == HEADERS:
            self.status = status_in(payload) or self.status
        return one


def describe(f):
    if f is None:
        return "the end"
    kind, flags, stream, payload = f
    name = "DATA HEADERS PRIORITY RST SETTINGS PUSH PING GOAWAY WINDOW CONT".split()[kind]
    tail = int.from_bytes(payload[4:8] if kind == GOAWAY else payload[:4], "big") if kind in (GOAWAY, RST) else ""
    return f"{name}({stream}) {tail}".strip()


def goaway(*codes):
    """The connection is ended with one of these codes, and closed."""
    def run(p):
        while (f := p.next()):
            if f[0] == GOAWAY:
                code = int.from_bytes(f[3][4:8], "big")
                while p.next():
                    pass
                return code in codes
        return False
    run.ends = True
    return run


def closed(p):
    """With or without GOAWAY."""
    while p.next():
        pass
    return True


closed.ends = True


def reset(stream, *codes):
    def run(p):
        while (f := p.next()):
            if f[0] == RST and f[2] == stream:
                return int.from_bytes(f[3][:4], "big") in codes
            if f[0] == GOAWAY:
                return False
        return False
    return run


def either(stream, *codes):
    """An error of the stream, or of the connection, which RFC 9113 5.4.2 leaves to us."""
    def run(p):
        while (f := p.next()):
            if (f[0] == RST and f[2] == stream) or f[0] == GOAWAY:
                code = int.from_bytes(f[3][4:8] if f[0] == GOAWAY else f[3][:4], "big")
                p.over = f[0] == GOAWAY
                return code in codes
        return False
    return run


def status(stream, code, body=None):
    def run(p):
        got = None
        text = b""
        while (f := p.next()):
            if f[2] != stream or f[0] not in (HEADERS, DATA, RST):
                if f[0] == GOAWAY:
                    return False
                continue
            if f[0] == RST:
                return False
            if f[0] == HEADERS and got is None:
                got = p.status
            if f[0] == DATA:
                text += f[3]
            if f[1] & END_STREAM:
                return got == str(code) and (body is None or text == body)
        return False
    return run


def alive(p):
    """Nothing bad."""
    return True


def head_of(stream, code):
    """The head alone: the stream stays open."""
    def run(p):
        while (f := p.next()):
            if f[0] == HEADERS and f[2] == stream:
                return p.status == str(code)
            if f[0] in (RST, GOAWAY):
                return False
        return False
    return run


def last(stream, code, body):
    """The answer, and then the end."""
    def run(p):
        return status(stream, code, body)(p) and closed(p)
    run.ends = True
    return run


def small_windows(p):
    """One byte at a time."""
    n = 0
    while (f := p.next()):
        if f[0] == DATA:
            n += len(f[3])
            if len(f[3]) > 1:
                return False
            p.send(window(1, 1))
            if f[1] & END_STREAM or n >= 19:
                return n == 19
    return False


# ---- the rows ----

MANY = [(f"x-{i}", "y") for i in range(140)]
BIG = [(f"x-{i}", "v" * 7000) for i in range(10)]


def split(stream, payload, n, size=None):
    """HEADERS and n CONTINUATIONs."""
    size = size or -(-len(payload) // (n + 1))
    parts = [payload[i * size:(i + 1) * size] for i in range(n + 1)]
    return (frame(HEADERS, END_STREAM, stream, parts[0]) +
            b"".join(frame(CONT, END_HEADERS if i == n else 0, stream, p) for i, p in enumerate(parts) if i))


def bad_field(name, value, why):
    return ("8.2", why, START + get(1, (name, value)), reset(1, PROTOCOL))


ROWS = [
    ("3.4", "a preface of HTTP/1", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", goaway(PROTOCOL)),
    ("3.4", "a preface that is nearly right", PREFACE[:-1] + b"x" + setting(), goaway(PROTOCOL)),
    ("3.4", "no SETTINGS first but HEADERS", PREFACE + get(), goaway(PROTOCOL)),
    ("3.4", "no SETTINGS first but PING", PREFACE + frame(PING, 0, 0, LIVE), goaway(PROTOCOL)),
    ("3.4", "SETTINGS first that only acknowledge", PREFACE + frame(SETTINGS, ACK), goaway(PROTOCOL)),
    ("3.4", "preface and SETTINGS", START, alive),
    ("4.1", "an unknown type", START + frame(0x16, 0, 0, b"x" * 8) + get(), status(1, 200)),
    ("4.1", "an unknown type on an idle stream", START + frame(0x16, 255, 7, b"x") + get(), status(1, 200)),
    ("4.1", "flags that are not defined", START + frame(PING, 0xfe, 0, LIVE), alive),
    ("4.1", "the reserved bit", START + frame(HEADERS, 5, 0x80000001, OK), status(1, 200)),
    ("4.2", "DATA of 16384 bytes", START + post(path="/echo") + frame(DATA, 1, 1, b"x" * 16384),
     status(1, 200, b"x" * 16384)),
    ("4.2", "DATA of 16385 bytes", START + post() + frame(DATA, 1, 1, b"x" * 16385), either(1, SIZE)),
    ("4.2", "HEADERS of 16385 bytes", START + raw(1, OK + literal("x", "y" * 16384)), goaway(SIZE)),
    ("4.2", "a length of 2^24-1", START + frame(DATA, 0, 1, b"", 0xffffff), goaway(SIZE, PROTOCOL)),
    ("4.2", "SETTINGS of 5 bytes", START + frame(SETTINGS, 0, 0, b"x" * 5), goaway(SIZE)),
    ("4.2", "SETTINGS of 7 bytes", START + frame(SETTINGS, 0, 0, b"\0" * 7), goaway(SIZE)),
    ("4.2", "PING of 7 bytes", START + frame(PING, 0, 0, b"x" * 7), goaway(SIZE)),
    ("4.2", "PING of 9 bytes", START + frame(PING, 0, 0, b"x" * 9), goaway(SIZE)),
    ("4.2", "RST_STREAM of 3 bytes", START + post() + frame(RST, 0, 1, b"x" * 3), goaway(SIZE)),
    ("4.2", "RST_STREAM of 5 bytes", START + post() + frame(RST, 0, 1, b"x" * 5), goaway(SIZE)),
    ("4.2", "WINDOW_UPDATE of 3 bytes", START + frame(WINDOW, 0, 0, b"\0\0\1"), goaway(SIZE)),
    ("4.2", "WINDOW_UPDATE of 5 bytes", START + frame(WINDOW, 0, 0, b"\0\0\0\1\0"), goaway(SIZE)),
    ("4.2", "PRIORITY of 4 bytes", START + frame(PRIORITY, 0, 1, b"\0" * 4), either(1, SIZE)),
    ("4.2", "PRIORITY of 6 bytes", START + frame(PRIORITY, 0, 1, b"\0" * 6), either(1, SIZE)),
    ("4.2", "GOAWAY of 7 bytes", START + frame(GOAWAY, 0, 0, b"\0" * 7), goaway(SIZE)),
    ("4.2", "HEADERS with priority of 4 bytes", START + frame(HEADERS, 0x25, 1, b"\0" * 4), goaway(SIZE)),
    ("4.3", "index 0", START + raw(1, b"\x80"), goaway(COMPRESSION)),
    ("4.3", "an index that is not there", START + raw(1, b"\xff\x50"), goaway(COMPRESSION)),
    ("4.3", "a name by an index that is not there", START + raw(1, b"\x7f\x50\1x"), goaway(COMPRESSION)),
    ("4.3", "a number without an end", START + raw(1, b"\xff" + b"\xff" * 10), goaway(COMPRESSION)),
    ("4.3", "a text that is cut off", START + raw(1, OK + b"\0\1x\x20y"), goaway(COMPRESSION)),
    ("4.3", "Huffman that is filled up with zeros", START + raw(1, OK + b"\0\1x\x81\x00"), goaway(COMPRESSION)),
    ("4.3", "Huffman with too much filling", START + raw(1, OK + b"\0\1x\x82\x1f\xff\xff"[:6] + b"\xff"), goaway(COMPRESSION)),
    ("4.3", "Huffman with EOS", START + raw(1, OK + b"\0\1x\x84\xff\xff\xff\xff"), goaway(COMPRESSION)),
    ("4.3", "a table larger than we said", START + raw(1, number(4097, 5, 0x20) + OK), goaway(COMPRESSION)),
    ("4.3", "a table's size behind a field", START + raw(1, OK + b"\x20"), goaway(COMPRESSION)),
    ("4.3", "a table's size in front", START + raw(1, b"\x20" + number(4096, 5, 0x20) + OK), status(1, 200)),
    ("4.3", "PRIORITY within a block", START + frame(HEADERS, 1, 1, OK) + prio(1) , goaway(PROTOCOL)),
    ("4.3", "DATA within a block", START + frame(HEADERS, 0, 1, OK) + frame(DATA, 1, 1, b"x"), goaway(PROTOCOL)),
    ("4.3", "PING within a block", START + frame(HEADERS, 1, 1, OK) + frame(PING, 0, 0, LIVE), goaway(PROTOCOL)),
    ("4.3", "another HEADERS within a block", START + frame(HEADERS, 1, 1, OK) + get(3), goaway(PROTOCOL)),
    ("4.3", "an unknown type within a block", START + frame(HEADERS, 1, 1, OK) + frame(0x16), goaway(PROTOCOL)),
    ("5.1", "idle: DATA", START + frame(DATA, 1, 1, b"x"), goaway(PROTOCOL)),
    ("5.1", "idle: RST_STREAM", START + rst(1), goaway(PROTOCOL)),
    ("5.1", "idle: WINDOW_UPDATE", START + window(1, 1), goaway(PROTOCOL)),
    ("5.1", "idle: CONTINUATION", START + frame(CONT, 4, 1, OK), goaway(PROTOCOL)),
    ("5.1", "half-closed: DATA", START + get(path="/stall") + frame(DATA, 1, 1, b"x"), either(1, CLOSED, PROTOCOL)),
    ("5.1", "half-closed: HEADERS", START + get(path="/stall") + get(), either(1, CLOSED, PROTOCOL)),
    ("5.1", "half-closed: CONTINUATION", START + get(path="/stall") + frame(CONT, 4, 1, OK), goaway(CLOSED, PROTOCOL)),
    ("5.1", "half-closed: WINDOW_UPDATE, PRIORITY", START + get() + window(1, 1) + prio(1), status(1, 200)),
    ("5.1", "reset by us: DATA that was on its way", START + post(1, ("te", "x")) + frame(DATA, 1, 1, b"x"), reset(1, PROTOCOL)),
    ("5.1", "reset by the client: DATA", START + post() + rst(1) + frame(DATA, 1, 1, b"x"), either(1, CLOSED)),
    ("5.1", "reset by the client: HEADERS", START + post() + rst(1) + get(), either(1, CLOSED)),
    ("5.1", "reset by the client: WINDOW_UPDATE", START + post() + rst(1) + window(1, 1), alive),
    ("5.1.1", "an even number", START + get(2), goaway(PROTOCOL)),
    ("5.1.1", "number 0", START + get(0), goaway(PROTOCOL)),
    ("5.1.1", "a smaller number, never used: ignored", START + get(5) + get(3), status(5, 200)),
    ("5.1.1", "a number that is in use", START + post() + get(1, flags=END_HEADERS), either(1, PROTOCOL, CLOSED)),
    ("5.1.2", "more streams than allowed",
     START + b"".join(post(i * 2 + 1) for i in range(129)), either(257, REFUSED, PROTOCOL)),
    ("5.1.2", "as many streams as allowed", START + b"".join(post(i * 2 + 1) for i in range(127)) + get(255), status(255, 200)),
    ("5.3", "PRIORITY on itself", START + prio(1, 1), either(1, PROTOCOL)),
    ("5.3", "HEADERS that depend on themselves",
     START + frame(HEADERS, 0x25, 1, struct.pack(">IB", 1, 15) + OK), either(1, PROTOCOL)),
    ("5.3", "PRIORITY of an idle stream", START + prio(9) + get(), status(1, 200)),
    ("6.1", "DATA on stream 0", START + frame(DATA, 1, 0, b"x"), goaway(PROTOCOL)),
    ("6.1", "padding as long as the frame", START + post() + frame(DATA, 9, 1, b"\5abcd"), goaway(PROTOCOL)),
    ("6.1", "padding longer than the frame", START + post() + frame(DATA, 9, 1, b"\xffabcd"), goaway(PROTOCOL)),
    ("6.1", "padded DATA without its length", START + post() + frame(DATA, 9, 1, b""), goaway(PROTOCOL, SIZE)),
    ("6.1", "padded DATA", START + post(path="/echo") + frame(DATA, 8, 1, b"\3abc\0\0\0") + frame(DATA, 9, 1, b"\3\0\0\0"),
     status(1, 200, b"abc")),
    ("6.1", "300 KiB of padding alone: the window comes back",
     START + post(path="/echo") + frame(DATA, 8, 1, b"\xff" + b"\0" * 255) * 200 + frame(DATA, 1, 1, b"x"), status(1, 200, b"x")),
    ("6.2", "HEADERS with padding longer than the frame", START + frame(HEADERS, 13, 1, b"\xff" + OK), goaway(PROTOCOL)),
    ("6.2", "padded HEADERS with priority",
     START + frame(HEADERS, 0x2d, 1, b"\2" + struct.pack(">IB", 0, 1) + OK + b"\0\0"), status(1, 200)),
    ("6.3", "PRIORITY on stream 0", START + prio(0), goaway(PROTOCOL)),
    ("6.4", "RST_STREAM on stream 0", START + rst(0), goaway(PROTOCOL)),
    ("6.4", "RST_STREAM with an unknown code", START + post() + rst(1, 0xff) + get(3), status(3, 200)),
    ("6.5", "SETTINGS with ACK and payload", START + frame(SETTINGS, 1, 0, b"\0" * 6), goaway(SIZE)),
    ("6.5", "SETTINGS on a stream", START + frame(SETTINGS, 0, 1), goaway(PROTOCOL)),
    ("6.5.2", "ENABLE_PUSH 2", START + setting((2, 2)), goaway(PROTOCOL)),
    ("6.5.2", "INITIAL_WINDOW_SIZE 2^31", START + setting((4, 1 << 31)), goaway(FLOW)),
    ("6.5.2", "MAX_FRAME_SIZE 16383", START + setting((5, 16383)), goaway(PROTOCOL)),
    ("6.5.2", "MAX_FRAME_SIZE 2^24", START + setting((5, 1 << 24)), goaway(PROTOCOL)),
    ("6.5.2", "an unknown setting", START + setting((0xff, 1)) + get(), status(1, 200)),
    ("6.5.2", "HEADER_TABLE_SIZE 0", START + setting((1, 0)) + get(), status(1, 200)),
    ("6.5.2", "HEADER_TABLE_SIZE 2^32-1", START + setting((1, 0xffffffff)) + get(), status(1, 200)),
    ("6.5.2", "MAX_HEADER_LIST_SIZE 0", START + setting((6, 0)) + get(), status(1, 200)),
    ("6.5.2", "the last of several values counts", START + setting((4, 100), (4, 1)) + get(), small_windows),
    ("6.5", "40 settings in a frame", START + setting(*[(0xff, i) for i in range(40)]), goaway(CALM)),
    ("6.6", "PUSH_PROMISE of a client", START + get() + frame(PUSH, 4, 1, struct.pack(">I", 2) + OK), goaway(PROTOCOL)),
    ("6.7", "PING on a stream", START + frame(PING, 0, 1, LIVE), goaway(PROTOCOL)),
    ("6.7", "PING with ACK", START + frame(PING, 1, 0, b"not that"), alive),
    ("6.8", "GOAWAY on a stream", START + frame(GOAWAY, 0, 1, b"\0" * 8), goaway(PROTOCOL)),
    ("6.8", "GOAWAY with an unknown code: what is under way is finished",
     START + post(path="/echo") + frame(GOAWAY, 0, 0, b"\0" * 4 + b"\0\0\0\xff") + frame(DATA, 1, 1, b"x"),
     last(1, 200, b"x")),
    ("6.9", "WINDOW_UPDATE of 0", START + window(0, 0), goaway(PROTOCOL)),
    ("6.9", "WINDOW_UPDATE of 0 on a stream", START + post() + window(1, 0), either(1, PROTOCOL)),
    ("6.9.1", "a window above 2^31-1", START + window(0, 0x7fffffff), goaway(FLOW)),
    ("6.9.1", "a stream's window above 2^31-1", START + post() + window(1, 0x7fffffff), either(1, FLOW)),
    ("6.9.1", "a window of one byte", START + setting((4, 1)) + get(), small_windows),
    ("6.9.1", "more DATA than the stream's window",
     START + post(path="/stall") + frame(DATA, 0, 1, b"x" * 16384) * 5, either(1, FLOW)),
    ("6.9.1", "more DATA than the connection's window",
     START + b"".join(post(i * 2 + 1, path="/stall") for i in range(17)) +
     b"".join(frame(DATA, 0, i * 2 + 1, b"x" * 16384) * 4 for i in range(17)), goaway(FLOW)),
    ("6.9.2", "a window that becomes negative",
     START + setting((4, 10)) + get() + setting((4, 2)) + window(1, 8) + setting((4, 100)), status(1, 200)),
    ("6.9.2", "a change that makes a window too large", START + post() + window(1, 0x7fff0000) + setting((4, 0x7fffffff)),
     either(1, FLOW)),
    ("6.10", "a CONTINUATION", START + split(1, OK, 1), status(1, 200)),
    ("6.10", "8 CONTINUATIONs", START + split(1, OK, 8), status(1, 200)),
    ("6.10", "empty ones without an end", START + frame(HEADERS, 1, 1, OK) + frame(CONT, 0, 1) * 40, goaway(CALM)),
    ("6.10", "large ones without an end",
     START + frame(HEADERS, 1, 1, OK) + frame(CONT, 0, 1, literal("x", "y" * 16000)) * 40, goaway(CALM)),
    ("6.10", "on stream 0", START + frame(HEADERS, 1, 1, OK[:9]) + frame(CONT, 4, 0, OK[9:]), goaway(PROTOCOL)),
    ("6.10", "on another stream", START + frame(HEADERS, 1, 1, OK[:9]) + frame(CONT, 4, 3, OK[9:]), goaway(PROTOCOL)),
    ("6.10", "behind END_HEADERS", START + get(path="/stall") + frame(CONT, 4, 1, b""), goaway(PROTOCOL, CLOSED)),
    ("6.10", "behind a CONTINUATION with END_HEADERS", START + split(1, OK, 1) + frame(CONT, 4, 1, b""), goaway(PROTOCOL, CLOSED)),
    ("8.1", "a second HEADERS without END_STREAM", START + post() + raw(1, block(*SMALL), END_HEADERS), either(1, PROTOCOL)),
    ("8.1", "trailers", START + post() + frame(DATA, 0, 1, b"x") + raw(1, block(*SMALL)), status(1, 200)),
    ("8.1", "trailers with a pseudo field", START + post() + raw(1, block((":path", "/"))), reset(1, PROTOCOL)),
    ("8.1", "trailers with Transfer-Encoding", START + post() + raw(1, block(("transfer-encoding", "x"))), reset(1, PROTOCOL)),
    ("8.1", "trailers with a field that looks like Content-Length", START + post() + raw(1, block(("content_length", "1"))),
     reset(1, PROTOCOL)),
    ("8.1", "129 trailers", START + post() + raw(1, block(*MANY[:129])), reset(1, PROTOCOL)),
    ("8.1.1", "Content-Length, and less", START + post(1, ("content-length", "2")) + frame(DATA, 1, 1, b"x"), reset(1, PROTOCOL)),
    ("8.1.1", "Content-Length, and more", START + post(1, ("content-length", "1")) + frame(DATA, 0, 1, b"xy"), reset(1, PROTOCOL)),
    ("8.1.1", "Content-Length, and nothing", START + get(1, ("content-length", "1")), reset(1, PROTOCOL)),
    ("8.1.1", "Content-Length in several frames",
     START + post(1, ("content-length", "3"), path="/echo") + frame(DATA, 0, 1, b"a") + frame(DATA, 1, 1, b"bc"),
     status(1, 200, b"abc")),
    bad_field("content-length", "+5", "Content-Length +5"),
    bad_field("content-length", "5, 5", "Content-Length 5, 5"),
    bad_field("content-length", "-1", "Content-Length -1"),
    bad_field("content-length", "99999999999999999999", "Content-Length beyond 2^63"),
    bad_field("content-length", "", "an empty Content-Length"),
    ("8.2", "two Content-Length", START + post(1, ("content-length", "1"), ("content-length", "1")), reset(1, PROTOCOL)),
    bad_field("X-Upper", "y", "a name in upper case"),
    bad_field("connection", "keep-alive", "Connection"),
    bad_field("keep-alive", "5", "Keep-Alive"),
    bad_field("proxy-connection", "x", "Proxy-Connection"),
    bad_field("transfer-encoding", "chunked", "Transfer-Encoding"),
    bad_field("upgrade", "websocket", "Upgrade"),
    bad_field("te", "gzip", "TE other than trailers"),
    bad_field("te", "trailers, gzip", "TE with more than trailers"),
    bad_field("x y", "z", "a name with a space"),
    bad_field("x:y", "z", "a name with a colon"),
    bad_field(b"x\0y", "z", "a name with NUL"),
    bad_field(b"x\x80", "z", "a name that is not ASCII"),
    bad_field("", "z", "an empty name"),
    bad_field("x", b"a\0b", "a value with NUL"),
    bad_field("x", b"a\r\nhost: b", "a value with CR LF"),
    bad_field("x", b"a\nb", "a value with LF"),
    bad_field("x", b"a\x7fb", "a value with DEL"),
    ("8.2", "a field that looks like Content-Length", START + get(1, ("content_length", "5")), status(1, 400)),
    ("8.2", "a field that looks like Transfer-Encoding", START + get(1, ("transfer_encoding", "x")), status(1, 400)),
    ("8.2", "TE trailers", START + get(1, ("te", "trailers")), status(1, 200)),
    ("8.2.3", "crumbs of a cookie", START + get(1, ("cookie", "a=1"), ("cookie", "b=2")), status(1, 200)),
    ("8.2.3", "hundreds of crumbs", START + get(1, *[("cookie", "a=1")] * 300), status(1, 431)),
    ("8.3", "an unknown pseudo field", START + get(1, (":x", "y")), reset(1, PROTOCOL)),
    ("8.3", "a pseudo field of answers", START + get(1, (":status", "200")), reset(1, PROTOCOL)),
    ("8.3", "a pseudo field behind others",
     START + raw(1, block((":method", "GET"), (":scheme", "https"), ("x", "y"), (":path", "/"), (":authority", "a"))),
     reset(1, PROTOCOL)),
    *[("8.3.1", f"two {n}", START + get(1, (n, v)), reset(1, PROTOCOL))
      for n, v in ((":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.example"))],
    *[("8.3.1", f"no {n}", START + get(drop=(n,)), reset(1, PROTOCOL)) for n in (":method", ":scheme", ":path", ":authority")],
    ("8.3.1", "an empty :path", START + get(path=""), reset(1, PROTOCOL)),
    ("8.3.1", "an empty :method", START + get(method=""), reset(1, PROTOCOL)),
    ("8.3.1", "a :path without a slash", START + get(path="x"), reset(1, PROTOCOL)),
    ("8.3.1", "a :path that is an address", START + get(path="https://b.example/"), reset(1, PROTOCOL)),
    ("8.3.1", "* with GET", START + get(path="*"), reset(1, PROTOCOL)),
    ("8.3.1", "* with OPTIONS", START + get(method="OPTIONS", path="*"), status(1, 200)),
    ("8.3.1", "a space in :path", START + get(path="/a b HTTP/1.1"), either(1, PROTOCOL)),
    ("8.3.1", "LF in :path", START + get(path="/a\nb"), either(1, PROTOCOL)),
    ("8.3.1", "a fragment in :path", START + get(path="/a#b"), status(1, 400)),
    ("8.3.1", "a :method with a space", START + get(method="GET /"), either(1, PROTOCOL)),
    ("8.3.1", "a :method of 30 letters", START + get(method="M" * 30), status(1, 400)),
    ("8.3.1", "a :scheme that is no scheme", START + get(scheme="ht tp"), either(1, PROTOCOL)),
    ("8.3.1", "another :scheme", START + get(scheme="ftp"), status(1, 400)),
    ("8.3.1", "user information in :authority", START + get(authority="me@a.example"), status(1, 400)),
    ("8.3.1", "an empty :authority", START + get(authority=""), either(1, PROTOCOL)),
    ("8.3.1", ":authority with a path", START + get(authority="a.example/x"), either(1, PROTOCOL)),
    ("8.3.1", ":authority that ends in a number", START + get(authority="1.2.3.4.5"), status(1, 400)),
    ("8.3.1", "Host that disagrees", START + get(1, ("host", "b.example")), status(1, 400)),
    ("8.3.1", "Host that disagrees about the port", START + get(1, ("host", "a.example:444")), status(1, 400)),
    ("8.3.1", "Host that agrees", START + get(1, ("host", "A.example:443")), status(1, 200)),
    ("8.3.1", "Host alone", START + get(1, ("host", "a.example"), drop=(":authority",)), status(1, 200)),
    ("8.3.1", "two Host", START + get(1, ("host", "a.example"), ("host", "a.example")), reset(1, PROTOCOL)),
    ("8.5", "CONNECT with :path", START + get(method="CONNECT"), reset(1, PROTOCOL)),
    ("8.5", "CONNECT without :authority", START + raw(1, block((":method", "CONNECT"))), reset(1, PROTOCOL)),
    ("8.5", "CONNECT without a port", START + raw(1, block((":method", "CONNECT"), (":authority", "a.example"))), status(1, 400)),
    ("8441", "extended CONNECT",
     START + raw(1, block((":method", "CONNECT"), (":protocol", "websocket"), *fields(drop=(":method",))), END_HEADERS) +
     frame(DATA, 0, 1, b"hello"), head_of(1, 200)),
    ("8441", ":protocol with GET",
     START + raw(1, block((":method", "GET"), (":protocol", "websocket"), *fields(drop=(":method",)))), either(1, PROTOCOL)),
    ("8441", ":protocol without :path",
     START + raw(1, block((":method", "CONNECT"), (":protocol", "websocket"), (":authority", "a.example"))), reset(1, PROTOCOL)),
    ("10.5.1", "129 fields", START + get(1, *MANY[:129]), status(1, 431)),
    ("10.5.1", "128 fields", START + get(1, *MANY[:128]), status(1, 200)),
    ("10.5.1", "fields of 70 KiB", START + split(1, block(*fields(), *BIG), 5), status(1, 431)),
    ("10.5.1", "fields of 4 MiB by way of an index",
     START + raw(1, OK + b"\x40\1x" + number(4000, 7) + b"v" * 4000 + b"\xbe" * 1000), status(1, 431)),
    ("10.5.1", "a :path of 20 KiB", START + split(1, block(*fields(path="/" + "a" * 20000)), 2), status(1, 431)),
    ("9.1", "HEAD", START + get(method="HEAD"), head_of(1, 200)),
    ("10.5", "requests that are taken back",
     START + b"".join(get(i * 2 + 1, path="/stall") + rst(i * 2 + 1) for i in range(600)), goaway(CALM)),
    ("10.5", "requests that make us reset them",
     START + b"".join(get(i * 2 + 1, path="/stall") + window(i * 2 + 1, 0) for i in range(600)), goaway(CALM, PROTOCOL)),
    ("10.5", "PINGs", START + frame(PING, 0, 0, LIVE) * 5000, goaway(CALM)),
    ("10.5", "SETTINGS", START + setting() * 5000, goaway(CALM)),
    ("10.5", "PRIORITYs", START + prio(1) * 5000, goaway(CALM)),
    ("10.5", "WINDOW_UPDATEs", START + window(0, 1) * 5000, goaway(CALM)),
    ("10.5", "empty DATA", START + post() + frame(DATA, 0, 1) * 5000, goaway(CALM)),
    ("10.5", "frames of an unknown type, which cost nothing", START + frame(0x16) * 5000, alive),
]


def run(port, row):
    section, name, data, expect = row
    p = Peer(port)
    p.over = False
    p.send(data)
    try:
        good = expect(p)
        if good and not getattr(expect, "ends", False) and not p.over:
            p.send(frame(PING, 0, 0, LIVE))
            good = False
            while (f := p.next()):
                if f[0] == PING and f[1] & ACK and f[3] == LIVE:
                    good = True
                    break
    except socket.timeout:
        p.seen.append("nothing more")
        good = False
    p.s.close()
    return good, p.seen


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(64)
        s.setblocking(False)
        os.set_inheritable(s.fileno(), True)
        server = subprocess.Popen([sys.argv[1], str(s.fileno())], pass_fds=[s.fileno()])
        port = s.getsockname()[1]
        print(f"1..{len(ROWS) + 1}")
        bad = 0
        for n, row in enumerate(ROWS, 1):
            good, seen = run(port, row)
            bad += not good
            print(f"{'ok' if good else 'not ok'} {n} - {row[0]}: {row[1]}", flush=True)
            if not good:
                print(f"# came: {', '.join(seen)[-300:]}")
        good = server.poll() is None
        print(f"{'ok' if good else 'not ok'} {len(ROWS) + 1} - the server is there", flush=True)
        server.terminate()
        server.wait()
        return 1 if bad or not good else 0


sys.exit(main())
