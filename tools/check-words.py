#!/usr/bin/env python3
"""Words and marks that do not belong in the tree. Argument: the top of the tree.

Each rule: a pattern, the reason, and the files it is about (None: all). The patterns are written
so that they do not match themselves.
"""
import re
import sys

import tree

CODE = (".c", ".h", ".build", ".sh", ".py")
RULES = [
    # Only the wildcard form of a policy rule, and a kit, which says what it needs, may name a package
    # registry; which one a machine uses is that machine's configuration.
    (r"(?<!\*\*\.)\b(?:[\w-]+\.)*(?:npmjs\.or[g]|pypi\.or[g]|pythonhosted\.or[g]|crates\.i[o])\b",
     "names the host of a package registry", None),
    (r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b(?![-X])", "unfinished work", CODE),
    (r"not implemente[d]", "unfinished work", CODE),
    (r"(?<![\w/.])/(?:home/(?!agent\b)[a-z]+|wor[k])/", "a path of one machine",
     (".c", ".h", ".build", ".py")),
    (r"[ \t]+$", "space at the end of the line", CODE + (".md", ".txt", ".yml")),
    (r"\r", "carriage return", None),
]

faults = []
for f in tree.files(sys.argv[1]):
    try:
        lines = f.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        continue  # not a text
    for n, line in enumerate(lines, 1):
        for pattern, why, where in RULES:
            if where and f.suffix not in where:
                continue
            if f.name.startswith("test-") and why == "a path of one machine":
                continue
            if "kits" in f.parts and why == "names the host of a package registry":
                continue
            found = re.search(pattern, line)
            if found:
                faults.append(f"{f}:{n}: '{found[0]}': {why}")
    if lines[-1]:
        faults.append(f"{f}:{len(lines)}: no newline at the end")
tree.finish(faults, "words")
