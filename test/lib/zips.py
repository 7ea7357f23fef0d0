#!/usr/bin/env python3
"""ZIPs that no kit should be: zips.py DIRECTORY makes one for each of these names."""
import io
import pathlib
import stat
import struct
import sys
import zipfile

SPEC = b'schemaVersion: "2"\nkind: mixin\nname: z\n'
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)


def make(name, *members, spec=True):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        if spec:
            z.writestr("spec.yaml", SPEC)
        for info, text in members:
            z.writestr(info, text)
    (out / name).write_bytes(data.getvalue())
    return data.getvalue()


def info(name, mode, method=0):
    i = zipfile.ZipInfo(name)
    i.create_system, i.external_attr, i.compress_type = 3, mode << 16, method
    return i


make("up.zip", ("../evil", "x"))
make("absolute.zip", ("/tmp/evil", "x"))
make("backslash.zip", ("files\\home\\x", "x"))
make("link.zip", (info("files/home/l", stat.S_IFLNK | 0o777), "/etc/passwd"))
make("device.zip", (info("files/home/d", stat.S_IFCHR | 0o666), ""))
make("bomb.zip", (info("files/home/zeros", stat.S_IFREG | 0o644, 8), bytes(40 << 20)))
make("nospec.zip", ("a/spec.yaml", SPEC), spec=False)
make("many.zip", *((f"files/home/{i}", "") for i in range(5000)))
make("file-and-folder.zip", ("files/home/a", "x"), ("files/home/a/b", "x"))
make("exec.zip", (info("files/home/run", stat.S_IFREG | 0o755), "#!/bin/sh\n"))
import warnings
warnings.simplefilter("ignore")
make("twice.zip", ("files/home/a", "x"), ("files/home/a", "y"))
good = make("good.zip", ("files/home/a", "text"))
(out / "cut.zip").write_bytes(good[:-30])
(out / "front.zip").write_bytes(b"MZ" + good)
(out / "behind.zip").write_bytes(good + b"x")
at = good.index(b"PK\1\2")
locked = bytearray(good)
for where in (6, at + 8):
    locked[where] |= 1
(out / "encrypted.zip").write_bytes(locked)
(out / "zip64.zip").write_bytes(good[:-22] + struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0))
(out / "text.zip").write_bytes(b"hello")
