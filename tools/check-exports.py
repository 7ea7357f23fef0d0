#!/usr/bin/env python3
"""What a .c exports is declared in a header of its own room, and somebody outside that .c uses it.
Argument: the top of the tree.

A function that is neither static nor declared is one that nobody may call; one that is declared and
that nobody calls is dead. What only a test calls is printed as a note.
"""
import collections
import pathlib
import re
import sys

import tree

NOT_CALLED = {"main", "LLVMFuzzerTestOneInput", "LLVMFuzzerInitialize"}
DEFINITION = re.compile(r"^(?!.*\bstatic\b|#|typedef\b|else\b|return\b)[a-z_][\w \t]*[ \t*](\w+)\(")

top = pathlib.Path(sys.argv[1])
sources = tree.files(top, ".c", ".h")
text = {f: f.read_text(errors="replace") for f in sources}
users = collections.defaultdict(set)
for f in sources:
    for word in set(re.findall(r"\w+", text[f])):
        users[word].add(f)


def used_inline(header, name):
    """Named more than once: declared, and called by an inline function or a macro."""
    return text[header].count(name) > 1


faults = []
for f in sources:
    if f.suffix != ".c" or f.name.startswith(("test-", "fuzz-")):
        continue
    lines = text[f].splitlines()
    for n, line in enumerate(lines, 1):
        found = DEFINITION.match(line)
        if not found or line.endswith(";") or found[1] in NOT_CALLED:
            continue
        name = found[1]
        if not any(u.suffix == ".h" and u.parent == f.parent for u in users[name]):
            faults.append(f"{f}:{n}: {name}() is in no header of its room: make it static")
            continue
        callers = [u for u in users[name] if u != f and (u.suffix == ".c" or used_inline(u, name))]
        if not callers:
            faults.append(f"{f}:{n}: {name}() is exported and nobody else calls it")
        elif all(u.name.startswith(("test-", "fuzz-")) for u in callers):
            print(f"note: {f}:{n}: only tests call {name}()")
tree.finish(faults, "exports")
