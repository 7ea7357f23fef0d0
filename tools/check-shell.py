#!/usr/bin/env python3
"""shellcheck over every shell script; .shellcheckrc says what is off. Argument: the top of the tree."""
import shutil
import subprocess
import sys

import tree


def is_shell(path):
    if path.suffix in (".sh", ".bash"):
        return True
    if path.suffix or not path.is_file():
        return False
    with path.open("rb") as f:
        first = f.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith((b"sh", b"bash"))


if not shutil.which("shellcheck"):
    tree.skip("shellcheck is not installed")
scripts = [f for f in tree.files(sys.argv[1]) if is_shell(f)]
done = subprocess.run(["shellcheck", "-f", "gcc", *scripts], stdout=subprocess.PIPE, text=True)
tree.finish(done.stdout.splitlines(), f"shell ({len(scripts)} scripts)")
