#!/usr/bin/env python3
"""bac-audit on a disk that is full: a small file system of its own, in a namespace of the test. Argument: bac-audit."""
import ctypes
import errno
import os
import pathlib
import select
import sys
import tempfile

import rig
import stranger

NEWNS, NEWUSER = 0x20000, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)


def disk(top):
    """256 KiB at top, that only this process sees; exits with 77 where that cannot be had."""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(NEWNS | (NEWUSER if uid else 0)) < 0:
        print("skipped: no namespace of its own:", os.strerror(ctypes.get_errno()))
        sys.exit(77)
    if uid:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    libc.mount(b"none", b"/", None, 0x44000, None)  # private, with all below
    if libc.mount(b"none", top.encode(), b"tmpfs", 0, b"size=256k") < 0:
        print("skipped: no file system of its own:", os.strerror(ctypes.get_errno()))
        sys.exit(77)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError as e:
            assert e.errno == errno.ENOSPC


def main():
    with tempfile.TemporaryDirectory() as outer:
        top = os.path.join(outer, "disk")
        os.mkdir(top)
        disk(top)
        a = rig.Audit(sys.argv[1], f"{top}/log", file_size=1 << 16, total_size=1 << 20)
        one = rig.record(host="a.example", reason="default-deny")
        a.send(one)
        a.wait(1)
        fill(f"{top}/rest")
        sent = 1
        while not select.select([a.supervisor], [], [], 0)[0]:  # until the last page is full too
            a.send(one)
            sent += 1
            while not select.select([a.proxy, a.supervisor], [], [])[0]:
                pass
            if select.select([a.proxy], [], [], 0)[0]:
                a.written = int.from_bytes(a.proxy.recv(64), "big")
        code, words = a.alarm()
        assert code == errno.ENOSPC and "cannot be written" in words, (code, words)
        a.send(one, one)
        sent += 2
        assert not select.select([a.proxy], [], [], 1.5)[0], "answered without room"
        os.unlink(f"{top}/rest")
        code, words = a.alarm()
        assert code == 0, (code, words)
        a.wait(sent)
        assert a.end() == 0
        wrong = stranger.fault(pathlib.Path(top, "log"))
        assert wrong is None, wrong
        libc.umount2(top.encode(), 2)


main()
