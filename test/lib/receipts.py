#!/usr/bin/env python3
"""Is each probe on the log? receipts.py CHAIN... <TABLE

The probes of test/e2e/guest/net.py announce themselves by a question for NAME.probe.test, so that a record belongs to
the last name before it; what is folded (dropped packets) may come a second later and is looked for in all that follows.
TABLE: lines "NAME FIELD=VALUE...", for each record that must be there; "NAME -" for a probe that nothing leaves the
guest for. Prints "ok NAME" or "no NAME what was found" for each line, and "no NAME" for a probe without a line.
"""
import json
import shlex
import sys

LATE = ("udp", "icmp", "ip")
sections, order, now = {}, [], None
for path in sys.argv[1:]:
    for record in map(json.loads, open(path, encoding="utf-8")):
        host = record.get("host", "")
        if host.endswith(".probe.test"):
            now = host.partition(".")[0].replace("-", "_")
            if now not in sections:
                sections[now] = []
                order.append(now)
        elif now and record["event"] == "decision":
            sections[now].append(record)


def found(name, want):
    rest = [r for later in order[order.index(name):] for r in sections[later] if r["kind"] in LATE]
    return any(all(str(r.get(k, "")) == v for k, v in want.items()) for r in sections[name] + rest)


named = set()
for line in sys.stdin:
    name, *fields = shlex.split(line)
    named.add(name)
    if name in sections and (fields == ["-"] or found(name, dict(f.split("=", 1) for f in fields))):
        print(f"ok {name} {' '.join(fields)}")
    else:
        seen = [{k: r.get(k) for k in ("kind", "via", "decision", "host", "port", "reason")} for r in sections.get(name, [])]
        print(f"no {name} {' '.join(fields)}: {seen}")
for name in order:
    if name not in named:
        print(f"no {name}: it has no line in the table")
