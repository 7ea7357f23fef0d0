#!/usr/bin/env python3
"""Fail if a file includes a room that its own room may not include.

rooms.txt, one line a room:  name: room room ...   (base is implied for all)
Arguments: rooms.txt and the source folders. A folder named 'guest' is one room.
"""
import pathlib
import re
import sys

listing = next(a for a in sys.argv[1:] if a.endswith(".txt"))
rules = {}
for line in open(listing, encoding="utf-8"):
    line = line.split("#")[0].strip()
    if line:
        room, _, may = line.partition(":")
        rules[room] = set(may.split()) | {room, "base"}

bad = 0
for src in (pathlib.Path(a) for a in sys.argv[1:] if a != listing):
    for f in sorted(src.rglob("*.[ch]")):
        room = src.name if src.name in rules else f.relative_to(src).parts[0]
        if room not in rules:
            print(f"{f}: room '{room}' is not in {listing}")
            bad += 1
            continue
        if f.name.startswith(("test-", "fuzz-")):
            continue  # tests may look anywhere
        text = f.read_text(errors="replace")
        for n, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
            if m and m[1] in rules and m[1] not in rules[room]:
                print(f"{f}:{n}: {room}/ may not include {m[1]}/")
                bad += 1
sys.exit(bool(bad))
