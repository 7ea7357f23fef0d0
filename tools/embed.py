#!/usr/bin/env python3
"""Write a C header that holds text files as strings: embed.py OUTPUT FILE...

data/completion/engine.bash becomes  static const char engine_bash[] = "...";
"""
import pathlib
import re
import sys


def literal(line):
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("?", "\\?")
    return f'\t"{escaped}\\n"'


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("#pragma once\n")
    for name in map(pathlib.Path, sys.argv[2:]):
        lines = name.read_text(encoding="utf-8").splitlines()
        symbol = re.sub(r"\W", "_", name.name)
        out.write(f"static const char {symbol}[] =\n" + "\n".join(map(literal, lines)) + ";\n")
