#!/usr/bin/env python3
"""Looks for byte sequences where they must not be. grep.py WANTED MARKER WHERE...

WANTED is a file with one sequence a line; MARKER one that is expected to be found ("-": none), so that a search that sees nothing is noticed. WHERE is a
file or folder (holes of sparse files are passed over), "processes" (arguments and environment of all that may be read), or memory:PID (what
that process shares by a memory file: a guest's memory; needs root).

Prints a line for each find, and at the end what was looked at.
"""
import os
import sys

KEEP = 4096
wanted = [w.encode() for w in open(sys.argv[1]).read().split()]
marker = None if sys.argv[2] == "-" else sys.argv[2].encode()
looked, finds, marked = 0, [], False


def pieces(fd):
    """The data of a file, in pieces that overlap."""
    size, at = os.fstat(fd).st_size, 0
    if not size:  # of proc
        yield os.read(fd, 1 << 24)
        return
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        stop, tail = os.lseek(fd, at, os.SEEK_HOLE), b""
        while at < stop:
            data = os.pread(fd, min(1 << 24, stop - at), at)
            if not data:
                return
            at += len(data)
            yield tail + data
            tail = (tail + data)[-KEEP:]


def look(path, name):
    global looked, marked
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        for data in pieces(fd):
            looked += len(data)
            marked |= bool(marker) and marker in data
            if any(w in data for w in wanted):
                finds.append(name)
                return
    except OSError:
        pass
    finally:
        os.close(fd)


def processes():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for what in ("cmdline", "environ"):
            look(f"/proc/{pid}/{what}", f"/proc/{pid}/{what}")


def memory(pid):
    seen = set()
    for line in open(f"/proc/{pid}/maps"):
        span, _, _, _, inode, *name = line.split()
        if name and "memfd:" in name[0] and inode not in seen:
            seen.add(inode)
            look(f"/proc/{pid}/map_files/{span}", f"memory of {pid}")


for where in sys.argv[3:]:
    if where == "processes":
        processes()
    elif where.startswith("memory:"):
        memory(where[7:])
    elif os.path.isdir(where):
        for folder, _, files in os.walk(where):
            for file in files:
                if os.path.isfile(f"{folder}/{file}"):
                    look(f"{folder}/{file}", f"{folder}/{file}")
    else:
        look(where, where)
for find in finds:
    print("found in", find)
print("looked at", f"{looked >> 20} MiB" + (", the marker was there" if marked else ""))
