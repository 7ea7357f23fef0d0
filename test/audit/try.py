#!/usr/bin/env python3
"""bac-audit writes, and bac policy log, bac audit verify and a stranger read. Arguments: bac, bac-audit."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import rig
import stranger

bac, program = sys.argv[1:3]
shown = 0


def ok(what, true, more=""):
    global shown
    shown += 1
    print(f"{'ok' if true else 'not ok'} {shown} - {what}")
    if not true:
        print(f"# {more}")


def run(*args):
    p = subprocess.run([bac, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return p.returncode, p.stdout, p.stderr


def hostile():
    return rig.record(kind="http", host=b"\x1b]0;owned\x07.example", path=b"/\xff\r\nx\xe2\x80\xae", port=80,
                      via="forward", reason="default-deny", note="\u009b31m")


def tables(log):
    code, out, _ = run("policy", "log", "web")
    blocked, allowed = out.split("\n\n")
    rows = [line.split() for line in blocked.splitlines()]
    ok("blocked requests are counted by destination", code == 0 and blocked.startswith("Blocked requests:\nSANDBOX") and
       any(r[:6] == ["web", "network", "evil.example:443", "transparent", "-", "default-deny"] and r[-1] == "5"
           for r in rows), out)
    ok("allowed ones have a table of their own, with the rule's first digits",
       "good.example:443" in allowed and " 01234567 " in allowed and "good.example:443" not in blocked, out)
    ok("a question about a name has a row only where nothing was connected", "asked.example " in blocked and
       "good.example " not in allowed, out)
    ok("what a guest called its host cannot reach the terminal", "\\u001b]0;owned\\u0007" in out and
       all(c == "\n" or " " <= c <= "~" for c in out), out)
    ok("a path of a workspace is of type filesystem", " /w/.git/config " in run("policy", "log", "--type", "filesystem")[1] and
       "evil" not in run("policy", "log", "--type", "filesystem")[1] and
       ".git/config" not in run("policy", "log", "--type", "network")[1])
    code, out, _ = run("policy", "log", "web", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    raw = b"".join(p.read_bytes() for p in sorted(log.glob("*.jsonl"))).decode()
    ok("--json prints the records as they are", code == 0 and out == raw and len(lines) == 10, out)
    ok("of the end of a flow it tells bytes and duration", any(
        r["event"] == "end" and r["sent"] == 10 and r["received"] == 20 and r["duration_ms"] == 1.5 for r in lines))
    ok("--json --limit prints the last", run("policy", "log", "--json", "--limit", "2")[1] ==
       "".join(line + "\n" for line in raw.splitlines()[-2:]))
    ok("-q prints destinations alone", run("policy", "log", "-q", "--limit", "1")[1].count("\n") == 2)
    ok("another type is refused", run("policy", "log", "--type", "x")[0] == 2)
    ok("a name that never was is an error", run("policy", "log", "nobody")[0] == 1 and run("audit", "verify", "nobody")[0] == 1)


def follow(host, bring, *args):
    """What is shown of a record that bring() brings while somebody looks on."""
    p = subprocess.Popen([bac, "policy", "log", "-f", *args], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()  # it watches before it reads: whatever comes after the first line is seen
    bring()
    for line in p.stdout:
        if host in line:
            break
    p.kill()
    p.wait()
    p.stdout.close()
    return line


def more(a, host):
    a.send(rig.record(host=host, allowed=True))
    a.wait(a.written + 1)


def another(directory, host):
    a = rig.Audit(program, str(directory), name="other")
    more(a, host)
    a.end()


def verify(log):
    code, out, _ = run("audit", "verify")
    ok("verify says that it holds", code == 0 and out == "web (0123456789ab): holds, 12 records, 1 to 12\n", out)
    ok("and so does a stranger", stranger.fault(log) is None, stranger.fault(log))
    path = log / "000001.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"port":80,', b'"port":81,', 1))
    code, out, _ = run("audit", "verify", "web")
    ok("verify names the first broken record", code == 1 and out.count("\n") == 1 and "broken at record 7, 000001.jsonl line 7:" in out, out)
    path.write_bytes(b"\n".join(whole.split(b"\n")[:-2]) + b"\n")
    code, out, _ = run("audit", "verify", "web")
    ok("a log that was cut shows", code == 1 and "record 12 had been written" in out, out)
    path.write_bytes(whole)
    ok("put back, it holds again", run("audit", "verify", "web", "-q") == (0, "", ""))


def crash(log):
    a = rig.Audit(program, str(log))
    for _ in range(50):
        a.send(*[rig.record(host="a.example")] * 20)
    os.kill(a.pid, 9)
    a.end()
    with open(max(glob.glob(str(log / "*.jsonl"))), "ab") as f:
        f.write(b'{"seq":999,"time"')
    a = rig.Audit(program, str(log))
    a.send(rig.record(host="b.example"))
    a.wait(1)
    ok("a writer that was killed leaves a log that holds", a.end() == 0 and run("audit", "verify", "-q")[0] == 0,
       run("audit", "verify"))
    out = run("policy", "log", "--json", "--limit", "3")[1]
    ok("and the next one notes what it cut off", "was not finished and was cut off" in out, out)


def main():
    with tempfile.TemporaryDirectory() as top:
        for name in ("STATE", "CACHE", "CONFIG", "DATA"):
            os.environ[f"XDG_{name}_HOME"] = f"{top}/{name}"
        os.environ["XDG_RUNTIME_DIR"] = f"{top}/run"
        os.mkdir(f"{top}/run", 0o700)
        ok("without logs the tables are empty", run("policy", "log")[1].count("  none\n") == 2)
        log = pathlib.Path(top, "STATE/bac/audit/0123456789ab")
        a = rig.Audit(program, str(log))
        rule = "01234567-89ab-cdef-0123-456789abcdef"
        a.send(rig.record(host="evil.example", reason="default-deny", count=3))
        a.send(*[rig.record(host="evil.example", reason="default-deny")] * 2)
        a.send(rig.record(kind="dns", via="dns", host="good.example", port=0, allowed=True),
               rig.record(host="good.example", allowed=True, flow=1, rule=rule, reason="domain-allowed"),
               rig.record(kind="dns", via="dns", host="asked.example", port=53))
        a.send(hostile(), rig.record(event=rig.END, host="good.example", allowed=True, flow=1, sent=10, received=20, us=1500))
        a.send(rig.record(kind="file", via="", port=0, method="open", path="/w/.git/config", rule="**/.git/config", reason="protected"))
        a.send(rig.record(event=rig.NOTE, kind="sandbox", via="", port=0, note="started"))
        a.wait(10)
        tables(log)
        ok("--follow shows what comes", "allowed  web  late.example:443  transparent" in
           follow("late.example", lambda: more(a, "late.example")))
        line = follow("later.example", lambda: more(a, "later.example"), "--json", "web")
        ok("--follow --json likewise", json.loads(line)["host"] == "later.example", line)
        other = log.parent / "ba9876543210"
        line = follow("begun.example", lambda: another(other, "begun.example"))
        ok("and a log that is begun meanwhile", "allowed  other  begun.example:443" in line, line)
        shutil.rmtree(other)
        ok("bac-audit ends with its supervisor", a.end() == 0)
        verify(log)
        crash(log)
        print(f"1..{shown}")


main()
