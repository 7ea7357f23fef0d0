"""As much of WebSocket (RFC 6455) as a server of text messages needs."""
import base64
import hashlib
import json
import struct

MAX = 64 << 20
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def accept(h):
    digest = hashlib.sha1((h.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    h.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
                  base64.b64encode(digest) + b"\r\n\r\n")


def send(wfile, code, data):
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data)) if len(data) < 65536 else b"\x7f" + struct.pack(">Q", len(data))
    wfile.write(bytes([0x80 | code]) + size + data)


def write(wfile, document):
    send(wfile, TEXT, json.dumps(document).encode())


def read(rfile, wfile):
    """The next message, whole; None at the end. Answers pings."""
    whole = b""
    while len(head := rfile.read(2)) == 2:
        size = head[1] & 0x7f
        if size >= 126:
            size = int.from_bytes(rfile.read(2 if size == 126 else 8), "big")
        if size + len(whole) > MAX:
            return None
        mask = rfile.read(4)
        data = rfile.read(size)
        data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
        code = head[0] & 0x0f
        if code == CLOSE:
            send(wfile, CLOSE, data)
            return None
        if code == PING:
            send(wfile, PONG, data)
        elif code != PONG:
            whole += data
            if head[0] & 0x80:
                return whole
    return None
