#!/usr/bin/env python3
"""Say everything that happens to some folders and what lies in them, by inotify(7), until told to end.

watch.py FOLDER...    prints "ready", then one line an event: NAME FOLDER FILE
"""
import ctypes
import os
import signal
import struct
import sys

NAMES = {1: "access", 2: "modify", 4: "attrib", 8: "close-write", 16: "close", 32: "open", 64: "moved-from",
         128: "moved-to", 256: "create", 512: "delete", 1024: "delete-self", 2048: "move-self"}
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_CLOEXEC)
where = {}
for folder in sys.argv[1:]:
    wd = libc.inotify_add_watch(fd, folder.encode(), sum(NAMES))
    if wd < 0:
        sys.exit(f"watch.py: {folder}: {os.strerror(ctypes.get_errno())}")
    where[wd] = folder
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print("ready", flush=True)
while True:
    data = os.read(fd, 65536)
    at = 0
    while at < len(data):
        wd, mask, _, n = struct.unpack_from("iIII", data, at)
        name = data[at + 16:at + 16 + n].rstrip(b"\0").decode(errors="replace")
        at += 16 + n
        for bit, what in NAMES.items():
            if mask & bit:
                print(what, where.get(wd, "?"), name, flush=True)
