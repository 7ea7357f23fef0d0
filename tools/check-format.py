#!/usr/bin/env python3
"""Every .c and .h is as clang-format 14 leaves it. Argument: the top of the tree.

Versions of clang-format disagree about details; the tree follows the one of Debian 12, and with
only another one at hand this check is skipped.
"""
import re
import shutil
import subprocess
import sys

import tree

WANTED = "14"

tool = shutil.which(f"clang-format-{WANTED}") or shutil.which("clang-format")
if not tool:
    tree.skip("clang-format is not installed")
version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True).stdout
if not re.search(rf"version {WANTED}\.", version):
    tree.skip(f"needs clang-format {WANTED}, here is: {version.strip()}")
sources = tree.files(sys.argv[1], ".c", ".h")
done = subprocess.run([tool, "--dry-run", "-Werror", *sources], stderr=subprocess.PIPE, text=True)
first = {}  # of each file
for line in done.stderr.splitlines():
    if ": error:" in line:
        first.setdefault(line.split(":")[0], line)
faults = list(first.values())
if done.returncode and not faults:
    faults = [done.stderr]
tree.finish(faults, "format (clang-format -i FILE mends it)")
