#!/usr/bin/env python3
"""walk.py by itself: what it types, what it takes for a failure, and which pages it refuses. There is no bac here; a script takes its place."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# (name, page, rows: (good?, text that the row or what stands below it has))
CASES = [
    ("a command, a variable and a folder that stay", "```sh\nx=1   # a comment\ncd /\n[ $x$PWD = 1/ ]\n```\n", [(1, ":2: x=1"), (1, ":3: cd /"), (1, ":4:")]),
    ("a here document and a continued line", "```sh\ncat >f <<'END'\na\n\nEND\n[ \"$(cat f)\" = \\\n  a ]\n```\n", [(1, ":2: cat"), (1, ":6:")]),
    ("a loop is one command", "```sh\nfor i in 1 2; do\n  echo $i >n\ndone\ngrep -q 2 n\n```\n", [(1, ":2: for"), (1, ":5: grep")]),
    ("a command that fails", "```sh\nfalse\ntrue\n```\n", [(0, "status: 1"), (1, ":3: true")]),
    ("what is printed", "```console\n$ echo 'a  b'; echo c >&2\na b\nc\n$ true\n```\n", [(1, ":2:"), (1, ":5: true")]),
    ("... and is not", "```console\n$ echo a\nb\n```\n", [(0, "it does not print what the page shows")]),
    ("a line that is missing", "```console\n$ echo a\na\nb\n```\n", [(0, "does not print")]),
    ("a line too many", "```console\n$ seq 2\n1\n```\n", [(0, "does not print")]),
    ("dots", "```console\n$ seq 9\n1\n…\n8\n9\n$ echo from 1 to 9\nfrom … to 9\n```\n", [(1, ":2: seq 9"), (1, ":7: echo")]),
    ("dots stand for no end", "```console\n$ seq 9\n1\n…\n8\n```\n", [(0, "does not print")]),
    ("an error that is shown", "```console\n$ bac wrong\nbac: it is wrong\n```\n", [(1, ":2: bac wrong")]),
    ("... and did not come", "```console\n$ echo bac: it is wrong\nbac: it is wrong\n```\n", [(0, "it should have failed")]),
    ("a warning is none", "```console\n$ echo bac: warning: x\nbac: warning: x\n```\n", [(1, ":2:")]),
    ("a file", "```yaml d/f\na: b\n```\n```sh\ngrep -qx 'a: b' d/f\n```\n```sh file=s\nexit 3\n```\n```console\n$ sh s || echo $?\n3\n```\n", [(1, ":5: grep"), (1, ":11: sh s")]),
    ("what is shown", "```text\nfalse\n```\n```json\n{}\n```\n\n| `false` |\n\ntext\n    that goes on\n", []),
    ("a fence in a list", "* a\n\n  ```sh\n  true\n  ```\n", [(1, ":4: true")]),
    ("an indented block", "text\n\n    false\n", [(0, ":3: an indented block")]),
    ("a fence without a language", "```\nfalse\n```\n", [(0, ":1: a fence without a language")]),
    ("an unknown language", "```bash\ntrue\n```\n", [(0, ":1: a fence of the language 'bash'")]),
    ("an unknown word", "```sh maybe\ntrue\n```\n", [(0, ":1: the word 'maybe'")]),
    ("a fence that does not end", "```sh\ntrue\n", [(0, ":1: a fence that does not end")]),
    ("half a command", "```sh\nif true; then\n```\n", [(0, ":2: no whole command")]),
    ("a console without a prompt", "```console\ntrue\n```\n", [(0, ":2: a console block begins with '$ '")]),
    ("what needs an agent", "```sh agents\nfalse\n```\n", [(1, "# SKIP minutes of npm")]),
    ("what the machine lacks", "```sh needs=internet\nfalse\n```\n", [(1, "# SKIP it needs the Internet")]),
    ("what has no reason", "```sh needs=luck\ntrue\n```\n", [(0, ":1: nobody says what 'luck' is")]),
    ("a question, answered", "```sh\nread -p 'Name? ' name # asked\n[ $name = me ]\n[ -n \"$fixture\" ]\n```\n", [(1, ":2:"), (1, ":3:"), (1, ":4:")]),
    ("what takes too long", "```sh\ndeadline 0.5; true\nsleep 100\ntrue\n```\n", [(1, ":2:"), (0, "it did not end in time"), (1, ":4: true")]),
]
BAC = "#!/bin/sh\n[ \"$1\" != wrong ] || { echo 'bac: it is wrong' >&2; exit 1; }\n"
FIXTURE = "fixture=1\nanswer 'read *asked' 'Name. ' 'me\\r'\n"


def walk(top, page):
    for name in ("lib", "docs", "bin", "e"):
        (top / name).mkdir(parents=True)
    for name in ("walk.py", "page.sh"):
        (top / "lib" / name).symlink_to(HERE / name)
    (top / "lib/walk.py").unlink()
    (top / "lib/walk.py").write_text((HERE / "walk.py").read_text())
    (top / "docs/page.sh").write_text(FIXTURE)
    (top / "page.md").write_text(page)
    (top / "bin/bac").write_text(BAC)
    (top / "bin/bac").chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k not in ("PAGES", "AGENTS", "INTERNET")}
    env |= {"BAC": str(top / "bin/bac"), "E2E_DIR": str(top / "e"), "HOME": str(top), "XDG_CACHE_HOME": str(top / "none")}
    return subprocess.run([sys.executable, top / "lib/walk.py", top / "page.md"], env=env, capture_output=True, text=True, timeout=60)


def rows(text):
    found = []
    for line in text.splitlines():
        if row := re.match(r"(not )?ok \d+ - ", line):
            found.append([not row[1], line])
        elif found:
            found[-1][1] += "\n" + line
    return found


def main():
    failed = 0
    for n, (name, page, want) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory(prefix="test-bac.") as top:
            done = walk(pathlib.Path(top), page)
        got = rows(done.stdout)
        good = done.returncode == 0 and len(got) == len(want) and all(
            bool(w[0]) == g[0] and w[1] in g[1] for g, w in zip(got, want))
        failed += not good
        print(f"{'' if good else 'not '}ok {n} - {name}")
        if not good:
            print("".join(f"# {line}\n" for line in (done.stdout + done.stderr).splitlines()), end="")
    print(f"1..{len(CASES)}")
    return failed > 0


sys.exit(main())
