#!/usr/bin/env python3
"""cppcheck over everything that the build compiles. Argument: the build folder.

Its style group is left out: clang-tidy says the same with fewer mistakes. arrayIndexOutOfBoundsCond is
off: it follows the text of one caller into a loop that stops at the NUL, and does not see the NUL.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import tree

if not shutil.which("cppcheck"):
    tree.skip("cppcheck is not installed")
done = subprocess.run(
    ["cppcheck", f"--project={pathlib.Path(sys.argv[1], 'compile_commands.json')}", "--quiet",
     "-D__x86_64__=1", "--enable=warning,performance,portability", "--inline-suppr",
     "--suppress=arrayIndexOutOfBoundsCond", f"-j{os.cpu_count()}",
     "--template={file}:{line}: {severity}: {message} [{id}]"],
    stderr=subprocess.PIPE, text=True)
faults = [line for line in done.stderr.splitlines() if line]
if done.returncode and not faults:
    faults = [f"cppcheck failed with {done.returncode}"]
tree.finish(faults, "cppcheck")
