#!/usr/bin/env python3
"""Functions of at most 100 lines (over 60 is counted and named), files of at most 1,500 (over
1,000 is named). Argument: the top of the tree.

clang-format puts the braces of a function alone in the first column and those of nothing else, so
no parser is needed. A function begins where its declaration does, as ctags counts.
"""
import sys

import tree

FUNCTION_MAX, FUNCTION_BUDGET = 100, 60
FILE_MAX, FILE_BUDGET = 1500, 1000


def functions(lines):
    """(first line, lines, name) of each function, counted from 1."""
    start = None
    for n, line in enumerate(lines):
        if line == "{":
            start = n
            while start > 0 and lines[start - 1] and lines[start - 1][-1] not in "};/\\":
                start -= 1
        elif line == "}" and start is not None:
            name = " ".join(lines[start:n + 1]).split("(")[0].split()[-1].lstrip("*")
            yield start + 1, n + 1 - start, name
            start = None


faults, over, total = [], [], 0
for f in tree.files(sys.argv[1], ".c", ".h", ".py", ".sh"):
    lines = f.read_text(errors="replace").splitlines()
    if len(lines) > FILE_MAX:
        faults.append(f"{f}: {len(lines)} lines; {FILE_MAX} is the most")
    elif len(lines) > FILE_BUDGET:
        print(f"note: {f}: {len(lines)} lines; over {FILE_BUDGET} a file wants to be two")
    if f.suffix not in (".c", ".h"):
        continue
    for line, n, name in functions(lines):
        total += 1
        if n > FUNCTION_MAX:
            faults.append(f"{f}:{line}: {name}() has {n} lines; {FUNCTION_MAX} is the most")
        elif n > FUNCTION_BUDGET:
            over.append(f"note: {f}:{line}: {name}() has {n} lines")
print(*over, sep="\n")
print(f"{len(over)} of {total} functions are over the budget of {FUNCTION_BUDGET} lines")
tree.finish(faults, "length")
