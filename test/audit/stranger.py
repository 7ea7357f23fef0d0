#!/usr/bin/env python3
"""A stranger's check of a log: the four rules of docs/protocol/audit.md, by sha256sum's own hash, without bac.

stranger.py DIR          check the log in DIR
stranger.py --try TOOL   let TOOL (the unit test of the log) write one, check it, and see that changes are found
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

LINE = re.compile(rb'^(\{"seq":[1-9][0-9]*,.*),"hash":"([0-9a-f]{64})"\}$')


def fault(top):
    """None, or what is wrong."""
    last = None
    first = None
    rotated = set()
    records = {}
    head = (top / "head").read_bytes().decode().split()
    for path in sorted(top.glob("*.jsonl"), key=lambda p: int(p.stem)):
        for n, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            where = f"{path.name}:{n}"
            m = LINE.match(line)
            if not m or any(b < 32 or b > 126 for b in line):
                return f"{where}: not a record"
            if hashlib.sha256(m[1] + b"}").hexdigest() != m[2].decode():
                return f"{where}: wrong hash"
            r = json.loads(line)
            if last and (r["seq"] != last["seq"] + 1 or r["prev"] != last["hash"]):
                return f"{where}: does not follow"
            if r["event"] == "rotate" and r["kind"] == "log":
                rotated.add((r["last"], r["last_hash"]))
            records[r["seq"]] = r["hash"]
            last = r
            first = first or r
    if not first:
        return "no records"
    front = (first["seq"] - 1, first["prev"])
    if front != (0, "0" * 64) and front not in rotated:
        return "the front is missing"
    if records.get(int(head[0])) != head[1]:
        return "the record that head names is missing"
    return None


def by_hand(path):
    """The command of the document, for the third line."""
    command = (f"sed -n 3p {path} | sed 's/,\"hash\":\"[0-9a-f]*\"}}$/}}/' | tr -d '\\n' | sha256sum")
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0]


def attempt(tool):
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        subprocess.run([tool, name], check=True)
        assert fault(top) is None, fault(top)
        files = sorted(top.glob("*.jsonl"))
        assert files[0].name != "000001.jsonl", "nothing was rotated away"
        lines = files[0].read_bytes().split(b"\n")
        assert by_hand(files[0]) == json.loads(lines[2])["hash"]
        for change in (lines[:1] + lines[2:], lines[1:], lines[:3] + lines[2:], [lines[1], lines[0], *lines[2:]],
                       [lines[0].replace(b"h", b"x", 1), *lines[1:]]):
            files[0].write_bytes(b"\n".join(change))
            assert fault(top), change
        files[0].write_bytes(b"\n".join(lines))
        assert fault(top) is None
        cut = files[-1].read_bytes()
        files[-1].write_bytes(cut[:-1])
        assert fault(top)
        files[-1].write_bytes(cut)
        files[1].unlink()
        assert fault(top)


if __name__ == "__main__":
    if sys.argv[1] == "--try":
        attempt(sys.argv[2])
    else:
        sys.exit(fault(pathlib.Path(sys.argv[1])))
