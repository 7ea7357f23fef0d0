#!/usr/bin/env python3
"""Add up what the parts of ./check have left in a folder, and say it.

    *.json   Meson's log of a test run: a test counts as one, one that speaks TAP as its rows
    *.tap    rows of a scenario
    *.rows   our own: "pass|fail|skip <tab> name <tab> more", one a line

Prints what failed, what was skipped and why, and last "N passed, N failed, N skipped". The status is 1
if anything failed, or nothing was tried.
"""
import json
import pathlib
import re
import sys

MESON = {"OK": "pass", "EXPECTEDFAIL": "pass", "SKIP": "skip"}


def tap(name, text):
    """(result, name, more) of each row; what stands behind a failed row is its more."""
    rows = []
    for line in text.splitlines():
        row = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
        if row:
            title, _, directive = row[2].partition(" # ")
            skipped = re.match(r"SKIP\S* *(.*)", directive, re.I)
            result = "skip" if skipped else "fail" if row[1] else "pass"
            rows.append([result, f"{name}: {title}", skipped[1] if skipped else ""])
        elif re.match(r"1\.\.0", line):
            reason = re.search(r"# *SKIP\S* *(.*)", line, re.I)
            rows.append(["skip", name, reason[1] if reason else "no reason given"])
        elif line.startswith("#") and rows and rows[-1][0] == "fail":
            rows[-1][2] += line[1:].rstrip() + "\n"
    if not re.search(r"^1\.\.\d", text, re.M):
        rows.append(["fail", f"{name}: reaches its end", "no plan was printed\n"])
    return rows


def meson(path):
    for line in path.read_text(errors="replace").splitlines():
        test = json.loads(line)
        name = f"{path.stem}: {test['name'].split(' / ')[-1]}"
        said = test.get("stdout", "")
        result = MESON.get(test["result"], "fail")
        if re.search(r"^(1\.\.\d|(not )?ok \d)", said, re.M) and test["result"] != "TIMEOUT":
            yield from tap(name, said)
        elif result == "skip":
            reason = re.search(r"^skipped: (.*)", said, re.M)
            yield "skip", name, reason[1] if reason else "no reason given"
        else:
            more = "\n".join((said + test.get("stderr", "")).splitlines()[-25:])
            yield result, name, f"{test['result']}\n{more}\n" if result == "fail" else ""


folder = pathlib.Path(sys.argv[1])
rows = []
for path in sorted(folder.glob("**/*.json")):
    rows += meson(path)
for path in sorted(folder.glob("**/*.tap")):
    rows += tap(f"{path.parent.name}: {path.stem}", path.read_text(errors="replace"))
for path in sorted(folder.glob("*.rows")):
    for line in path.read_text(errors="replace").splitlines():
        rows.append((line.split("\t") + ["", ""])[:3])
count = {kind: sum(r[0] == kind for r in rows) for kind in ("pass", "fail", "skip")}
if count["fail"]:
    print("\nFailed:")
for result, name, more in rows:
    if result == "fail":
        print(f"  {name}" + "".join(f"\n      {line}" for line in more.splitlines() if line))
if count["skip"]:
    print("\nSkipped:")
for result, name, why in rows:
    if result == "skip":
        print(f"  {name}: {why}")
print(f"\n{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped", flush=True)
sys.exit(1 if count["fail"] or not count["pass"] else 0)
