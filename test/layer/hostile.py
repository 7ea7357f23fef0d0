#!/usr/bin/env python3
"""Hostile layers: each is refused with a message that says why, or is stored as docs/protocol/layer.md says. Prints TAP.

    test/layer/hostile.py BAC-LAYER TEST-IMAGE-LAYER

Each archive goes twice: to bac-layer by hand, in an empty folder that must stay so, and through the cache (the unit test's program, which
says what came of it and looks that nothing is left).
"""
import bz2
import gzip
import lzma
import os
import random
import shutil
import subprocess
import sys
import tempfile

from rig import END, Layer, entry, folder, hard, header, merge, pad, pax, symlink

program, store = map(os.path.abspath, sys.argv[1:3])
work = tempfile.mkdtemp(prefix="test-bac-hostile-")
canary = work + "/outside"
fine = entry("fine", b"x")
deep = "/".join(["d" * 100] * 40)


def said(layer):
    """The entries, in short."""
    out = []
    for e in layer.entries:
        s = e["kind"] + " " + os.fsdecode(e["path"])
        if "target" in e:
            s += " -> " + os.fsdecode(e["target"])
        out.append(s)
    return out


def sparse(name, size, pieces, data):
    """GNU's old form."""
    h = bytearray(header(name, b"S", len(data), magic=b"ustar  \0"))
    for i, (at, n) in enumerate(pieces):
        h[386 + 24 * i:386 + 24 * i + 24] = b"%011o\0%011o\0" % (at, n)
    h[483:495] = b"%011o\0" % size
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h) + pad(data)


def damaged(b, at, value=0xff):
    at %= len(b)
    return b[:at] + bytes([b[at] ^ value]) + b[at + 1:]


# always the same: what a damaged bit makes of bzip2 depends on what is in it (other bytes, of which the check sum behind them tells, or no tar archive)
tar = folder("d") + entry("d/f", random.Random(1).randbytes(50000)) + entry("z", b"end") + END
gz, xz, bz = gzip.compress(tar), lzma.compress(tar), bz2.compress(tar)
zst = subprocess.run(["zstd", "-q"], input=tar, capture_output=True).stdout if shutil.which("zstd") else None
bomb = gzip.compress(header(b"bomb", size=600 << 20) + b"\0" * (600 << 20) + END, 9)
attr = b"SCHILY.xattr."

# name, bytes, and: a message (of apply, or of merge), or what is stored
cases = [
    # paths
    ("a path that leads up", entry("../evil", b"x"), "holds '../evil', which leads out of it"),
    ("a path that leads up from below", entry("a/b/../../../evil", b"x"), "leads out of it"),
    ("a path that leads up and stays", entry("a/../b", b"x"), "leads out of it"),
    ("a directory that leads up", folder("a/.."), "leads out of it"),
    ("an absolute path loses its slash", entry("/" + canary.lstrip("/"), b"x"), ["file " + canary[1:]]),
    ("slashes and dots", entry(".//a/.//./b/", kind=b"5"), ["dir a/b"]),
    ("an empty name is the top", entry("", b"x"), "the archive's top is not a directory"),
    ("the top as a link", symlink("./", b"/etc"), "the archive's top is not a directory"),
    ("the top as a whiteout", entry(".wh.", b""), "which hides nothing"),
    ("a name of 255 bytes", entry("n" * 255, b"x"), ["file " + "n" * 255]),
    ("a name of 256 bytes", entry("n" * 256, b"x"), "a name that is too long"),
    ("a path of 4,095 bytes", entry((deep + "/" + "e" * 100)[:4095], b"x"), ["file " + (deep + "/" + "e" * 100)[:4095]]),
    ("a path of 4,096 bytes", entry(("p" * 127 + "/") * 32 + "x", b"x"), "a name that is too long"),
    ("a path of a megabyte", entry("x/" * 400000 + "y", b"x"), "a name that is too long"),
    ("a name that ends at its NUL", pax([(b"path", b"a\0/../../evil")]) + header(b"x", size=1) + pad(b"x"), ["file a"]),
    ("names in any bytes", entry(b"\xff\xfe \n\t\\'\"*", b"x"), ["file \udcff\udcfe \n\t\\'\"*"]),
    ("names in any bytes, by pax", pax([(b"path", b"\xff/\xc3\xa4")]) + header(b"x", size=1) + pad(b"x"),
     ["file \udcff/\xe4"]),
    # links
    ("a symbolic link out, stored as text", symlink("l", b"../../../../etc/passwd"), ["symlink l -> ../../../../etc/passwd"]),
    ("a symbolic link to nothing", symlink("l", b""), "leads to nothing"),
    ("a symbolic link that is too long", symlink("l", b"t" * 4096), "too long"),
    ("a file through a link stays inside", symlink("l", canary.encode()) + entry("l/x", b"x"),
     ["symlink l -> " + canary, "file l/x"]),
    ("a loop of links on the way", symlink("a", b"b") + symlink("b", b"a") + entry("a/x", b"x"), "too many symbolic links"),
    ("links that double", folder("l0") + b"".join(symlink("l%d" % i, b"l%d/../l%d" % (i - 1, i - 1)) for i in range(1, 40)) + entry("l39/x", b"x"),
     "too many symbolic links"),
    ("a hard link out", hard("h", b"../../etc/passwd"), "a link to '../../etc/passwd', which leads out"),
    ("a hard link to an absolute path is one inside", hard("h", b"/etc/passwd"), "'h' links to 'etc/passwd', which is not in the image"),
    ("a hard link to what is nowhere", fine + hard("h", b"missing"), "links to 'missing', which is not in the image"),
    ("a hard link to what comes later", hard("h", b"fine") + fine, "which is not in the image"),
    ("a hard link to itself", hard("h", b"./h"), "which links to itself"),
    ("a hard link to a directory", folder("d") + hard("h", b"d"), "which is a directory"),
    ("a hard link to the top", hard("h", b"."), "links to a directory"),
    ("a hard link with a content", fine + pax([]) + hard("h", b"fine", b"body"), "a link with a content"),
    ("a hard link through a symbolic one", folder("d") + entry("d/f", b"x") + symlink("l", b"/../../d") + hard("h", b"l/f"),
     ["dir d", "file d/f", "symlink l -> /../../d", "hard h -> l/f"]),
    # what replaces what
    ("a file below a file", entry("a", b"x") + entry("a/b", b"x"), "'a/b' is below 'a', which is not a directory"),
    ("a file below a device", entry("a", kind=b"3", dev=(1, 3)) + entry("a/b", b"x"), "which is not a directory"),
    ("the same name a thousand times", b"".join(entry("a", b"%d" % i) for i in range(1000)), ["file a"] * 1000),
    ("a file for a directory that is full", folder("d") + entry("d/x", b"x") + entry("d", b"x"), ["dir d", "file d/x", "file d"]),
    # whiteouts
    ("a whiteout of nothing", entry(".wh..", b""), "hides nothing"),
    ("a whiteout that leads up", entry("a/.wh...", b""), "hides nothing"),
    ("a file below a whiteout", entry("a/.wh.b/c", b"x"), "which is below a whiteout"),
    ("whiteouts", entry("a/.wh.b", b"junk") + entry("c/.wh..wh..opq") + entry(".wh..wh..opq"), ["whiteout a/b", "opaque c", "opaque "]),
    ("what aufs notes", entry(".wh..wh.plnk/1.2", b"x"), "which is below a whiteout"),
    ("what aufs notes, as a file", entry(".wh..wh.aufs", b"x") + fine, ["file fine"]),
    # owners, devices, attributes
    ("a user beyond 32 bits", entry("a", uid=2**40), "which is no user and group"),
    ("the user -1", entry("a", uid=2**32 - 1), "which is no user and group"),
    ("a group below 0, by pax", entry("a", xs=[(b"gid", b"-5")]), "which is no user and group"),
    ("a device", entry("dev/sda", kind=b"4", dev=(8, 0)), ["block dev/sda"]),
    ("a device beyond all", entry("a", kind=b"3", dev=(0o10000, 0)), "numbers that none can have"),
    ("attributes that are left out", entry("a", xs=[(attr + b"trusted.overlay.opaque", b"y"), (attr + b"security.selinux", b"x"),
                                                      (attr + b"user.overlay.redirect", b"/")]), {"attrs": {}, "dropped": 3}),
    ("attributes that are kept", entry("a", xs=[(attr + b"user.x", b"\0\xff"), (attr + b"security.capability", b"cap")]),
     {"attrs": {b"user.x": b"\0\xff", b"security.capability": b"cap"}, "dropped": 0}),
    ("an attribute without a name", entry("a", xs=[(attr + b"user.", b"x")]), "an attribute that is too long"),
    ("a large attribute", entry("a", xs=[(attr + b"user.x", b"v" * 65536)]), "an attribute that is too long"),
    ("many attributes", entry("a", xs=[(attr + b"user.%d" % i, b"x") for i in range(65)]), "too many attributes"),
    ("set-user-ID, kept", entry("a", mode=0o6755), {"mode": 0o6755}),
    ("times before 1970 in nanoseconds", entry("a", xs=[(b"mtime", b"-1.5")]), {"mtime": -2, "ns": 500000000}),
    # sizes
    ("a file larger than the archive", header(b"a", size=1 << 30) + b"x" * 512, "damaged: Truncated"),
    ("a file of 2^62 bytes", header(b"a", size=1 << 62) + b"x" * 512, "larger than a file of an image"),
    ("a size below 0", header(b"a", size=-1), "damaged"),
    ("a hole of a terabyte", sparse(b"a", 1 << 40, [((1 << 40) - 3, 3)], b"end"), "damaged"),
    ("a hole of 100 GB", entry("a", pad(b"1\n99999999999\n1\n") + b"x", xs=[(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
                                                (b"GNU.sparse.realsize", b"100000000000"), (b"GNU.sparse.name", b"a")]),
     "larger than a file of an image"),
    ("holes out of order", sparse(b"a", 4096, [(2048, 512), (0, 512)], b"x" * 1024), "damaged"),
    ("a hole behind the end", sparse(b"a", 100, [(4096, 512)], b"x" * 512), "damaged"),
    ("a bomb", bomb, "more than 400 times its size: this is a bomb"),
    # archives
    ("nothing", b"", "the archive is empty"),
    ("an empty archive", END, []),
    ("no archive", b"j" * 5000, "not a tar archive"),
    ("text in front", b"#!/bin/sh\n" + fine + END, "not a tar archive"),
    ("a wrong check sum", fine + damaged(entry("b", b"x"), 3), "damaged"),
    ("garbage behind the end", fine + END + b"garbage", "garbage behind the end of the archive"),
    ("padding behind the end", fine + END + b"\0" * 100000, ["file fine"]),
    ("a second archive behind the end", fine + END + entry("evil", b"x") + END, "garbage behind the end of the archive"),
    ("cut within a file", entry("a", b"x" * 5000)[:2000], "damaged: Truncated"),
    ("cut within a header", fine + fine[:100], "damaged"),
    ("a name of a gigabyte", header(b"L", b"L", 1 << 30, magic=b"ustar  \0") + b"x" * 5000, "damaged: Special header too large"),
    ("a pax header of a gigabyte", header(b"x", b"x", 1 << 30) + b"x" * 5000, "damaged"),
    ("pax records that are none", header(b"x", b"x", 10) + pad(b"99999 a=b\n") + fine, "damaged"),
    ("header upon header", pax([(b"comment", b"x")]) * 2000 + fine, "damaged"),
    # compression
    ("gzip that is damaged", damaged(gz, len(gz) // 2), "compressed data is damaged"),
    ("gzip with a wrong check sum", damaged(gz, -6), "compressed data is damaged"),
    ("gzip that is cut", gz[:-20], "compressed data is cut off"),
    ("gzip with garbage behind", gz + b"garbage", "garbage behind the compressed data"),
    ("gzip in two members", gzip.compress(tar[:1000]) + gzip.compress(tar[1000:]), ["dir d", "file d/f", "file z"]),
    ("gzip in gzip", gzip.compress(gz), "not a tar archive"),
    ("gzip's head alone", b"\x1f\x8b", "compressed data is cut off"),
    ("xz that is damaged", damaged(xz, len(xz) // 2), "compressed data is damaged"),
    ("xz that is cut", xz[:-30], "compressed data is damaged"),
    ("xz with garbage behind", xz + b"garbage!", "compressed data"),
    ("xz in xz", lzma.compress(xz), "compressed data is damaged: not xz"),
    ("bzip2 that is damaged", damaged(bz, len(bz) // 2), "compressed data is damaged"),
    ("bzip2 with garbage behind", bz + b"garbage!", "garbage behind the compressed data"),
]
if zst:
    cases += [
        ("zstd that is damaged", damaged(zst, len(zst) // 2), "compressed data is damaged"),
        ("zstd that is cut", zst[:-30], "compressed data is damaged"),
        ("zstd with garbage behind", zst + b"garbage!", "compressed data is damaged"),
    ]

rows = failed = 0


def row(good, what, detail=""):
    global rows, failed
    rows += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {rows} - {what}", flush=True)
    if not good:
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def as_stored(layer, want):
    if isinstance(want, list):
        return said(layer) == want
    e = layer.entries[0]
    done = [s for s in layer.said if s.startswith("done ")][0].split()
    return all(want[k] == (int(done[7]) if k == "dropped" else e[k]) for k in want)


def judge(name, data, want):
    """By hand: (good, why not)."""
    layer = Layer(program, work, data)
    message = layer.message
    if layer.good:
        run = merge(program, [layer.tree], work + "/meta")
        message = run.stderr.decode(errors="replace").strip()
        if run.returncode == 0 and not isinstance(want, str):
            return as_stored(layer, want), f"{said(layer)[:9]} {layer.said}"
    if not isinstance(want, str):
        return False, message
    return want in message and "\n" not in message, message or "it was taken"


def main():
    os.mkdir(work + "/empty")
    os.chdir(work + "/empty")
    for name, data, want in cases:
        good, why = judge(name, data, want)
        row(good, name, why)
        with open(work + "/archive", "wb") as f:
            f.write(data)
        run = subprocess.run([store, program, work + "/archive"], capture_output=True, text=True, errors="replace", timeout=120)
        good = run.returncode == 0 and (want in run.stdout if isinstance(want, str) else run.stdout.startswith("taken "))
        row(good, name + ", through the cache", run.stdout + run.stderr)
    row(os.listdir(".") == [] and not os.path.exists(canary), "nothing came of them elsewhere", os.listdir("."))
    print(f"1..{rows}")


try:
    main()
finally:
    os.chdir("/")
    shutil.rmtree(work)
sys.exit(1 if failed else 0)
