"""bac-layer by hand: archives made byte by byte, and what becomes of them. For hostile.py and mount.py."""
import os
import struct
import subprocess
import tempfile

LIMITS = "2000000:68719476736:68719476736:400"
TO_END = str(2**64 - 1)
KINDS = ["", "dir", "file", "symlink", "char", "block", "fifo", "hard", "whiteout", "opaque", "end"]


# ---- archives ----

def octal(n, width):
    return b"%0*o\0" % (width - 1, n)


def number(n, width):
    """As tar writes it: octal if it fits, else in base 256."""
    if 0 <= n < 8 ** (width - 1):
        return octal(n, width)
    return b"\x80" + n.to_bytes(width - 1, "big") if n >= 0 else n.to_bytes(width, "big", signed=True)


def seal(h):
    h = h[:148] + b" " * 8 + h[156:]
    return h[:148] + b"%06o\0 " % sum(h) + h[156:]


def pad(data, step=512):
    return data + b"\0" * (-len(data) % step)


def header(name, kind=b"0", size=0, link=b"", mode=0o644, uid=0, gid=0, mtime=1, dev=(0, 0), magic=b"ustar\00000"):
    h = name[:100].ljust(100, b"\0") + number(mode, 8) + number(uid, 8) + number(gid, 8) + number(size, 12)
    h += number(mtime, 12) + b" " * 8 + kind + link[:100].ljust(100, b"\0") + magic + b"\0" * 64
    h += octal(dev[0], 8) + octal(dev[1], 8)
    return seal(h.ljust(512, b"\0"))


def record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    n = len(body)
    while len(str(n).encode() + body) != n:
        n = len(str(n).encode() + body)
    return str(n).encode() + body


def pax(records, kind=b"x"):
    body = b"".join(record(k, v) for k, v in records)
    return header(b"pax", kind, len(body)) + pad(body)


def entry(name, data=b"", kind=b"0", xs=(), **more):
    """One entry; what does not fit in the old header goes into a pax one."""
    name = os.fsencode(name)
    xs = list(xs)
    if len(name) > 100:
        xs.append((b"path", name))
    if len(more.get("link", b"")) > 100:
        xs.append((b"linkpath", more["link"]))
    return (pax(xs) if xs else b"") + header(name, kind, len(data), **more) + pad(data)


def folder(name, **more):
    return entry(name, kind=b"5", mode=more.pop("mode", 0o755), **more)


def symlink(name, target, **more):
    return entry(name, kind=b"2", link=target, **more)


def hard(name, target, data=b"", **more):
    return entry(name, data, kind=b"1", link=target, **more)


END = b"\0" * 1024


# ---- runs ----

def files_of(*pairs):
    """Descriptors for a child at these numbers: a shell does the moving."""
    return " ".join(f"{to}<>{path!r}" for to, path in pairs)


class Layer:
    """What bac-layer made of an archive."""

    def __init__(self, program, where, data):
        self.blob, self.tree = where + "/blob", where + "/tree"
        for f in (self.blob, self.tree):
            with open(f, "wb"):
                pass
        with tempfile.TemporaryFile() as f:
            f.write(data)
            f.flush()
            f.seek(0)
            self.run = subprocess.run(["sh", "-c", f'exec "$@" {files_of((3, self.blob), (4, self.tree))}', "sh", program,
                                       "apply", LIMITS, "0", TO_END], stdin=f, capture_output=True, timeout=120)
        self.good = self.run.returncode == 0
        self.message = self.run.stderr.decode(errors="replace").strip()
        self.said = self.run.stdout.decode().split("\n")
        self.entries = list(entries(open(self.tree, "rb").read())) if self.good else []


def text(b, at):
    n = struct.unpack_from(">I", b, at)[0]
    return b[at + 4:at + 4 + n], at + 5 + n


def entries(tree):
    """What a tree says, as dictionaries."""
    assert tree[:8] == b"BACTREE1"
    at = 8
    while at < len(tree):
        n = struct.unpack_from(">I", tree, at)[0]
        r = tree[at + 4:at + 4 + n]
        at += 4 + n
        e = {"kind": KINDS[r[0]]}
        e["path"], i = text(r, 1)
        if r[0] <= 6:
            e["mode"], e["uid"], e["gid"], e["mtime"], e["ns"] = struct.unpack_from(">HIIqI", r, i)
            i += 22
        if r[0] in (2, 10):
            e["size"], e["offset"] = struct.unpack_from(">QQ", r, i)
            i += 16
        if r[0] in (3, 7):
            e["target"], i = text(r, i)
        if r[0] in (4, 5):
            e["major"], e["minor"] = struct.unpack_from(">II", r, i)
            i += 8
        e["attrs"] = {}
        while i < len(r):
            prefix, k, v = struct.unpack_from(">BBH", r, i)
            e["attrs"][{1: b"user.", 6: b"security."}[prefix] + r[i + 4:i + 4 + k]] = r[i + 4 + k:i + 4 + k + v]
            i += 4 + k + v
        if e["kind"] != "end":
            yield e


def merge(program, trees, meta):
    with open(meta, "wb"):
        pass
    pairs = [(3, meta)] + [(4 + i, t) for i, t in enumerate(trees)]
    return subprocess.run(["bash", "-c", f'exec "$@" {files_of(*pairs)}', "sh", program, "merge", str(len(trees))],
                          capture_output=True, timeout=120)
