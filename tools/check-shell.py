#!/usr/bin/env python3
"""shellcheck over every shell script; .shellcheckrc says what is off. And the list of packages: an alternative that is
also on a line of its own would be there already, and its line never be missed. Argument: the top of the tree."""
import pathlib
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


def packages(path):
    lines = [(n, line.split()[1].split("|")) for n, line in enumerate(path.read_text().splitlines(), 1)
             if line and not line.startswith("#")]
    first = {names[0] for _, names in lines}
    return [f"{path.name}:{n}: the alternative {other} is a package of the list" for n, names in lines for other in names[1:] if other in first]


if not shutil.which("shellcheck"):
    tree.skip("shellcheck is not installed")
scripts = [f for f in tree.files(sys.argv[1]) if is_shell(f)]
done = subprocess.run(["shellcheck", "-f", "gcc", *scripts], stdout=subprocess.PIPE, text=True)
tree.finish(done.stdout.splitlines() + packages(pathlib.Path(sys.argv[1]) / "tools/packages.txt"), f"shell ({len(scripts)} scripts)")
