#!/usr/bin/env python3
"""Each header compiles alone, with the compiler and the flags of the build, and begins with
#pragma once. Arguments: the top of the tree, the build folder."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import tree


def flags(build):
    """The compiler, and what all compile commands say about where and how to read source."""
    seen = {}
    compiler = None
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = [w for w in shlex.split(entry["command"]) if w != "ccache"]
        compiler = compiler or words[0]
        for i, word in enumerate(words):
            if word.startswith(("-D", "-I", "-std=", "-W")) and not word.startswith("-Wl"):
                seen[word] = None
            elif word == "-isystem":
                seen[word + words[i + 1]] = None
    return [compiler, *seen, "-Werror", "-fsyntax-only", "-x", "c", "-include"]


def fault(command, build, header):
    if not header.read_text(errors="replace").startswith("#pragma once\n"):
        return f"{header}:1: does not begin with #pragma once"
    done = subprocess.run([*command, header.resolve(), os.devnull], cwd=build, text=True,
                          stderr=subprocess.PIPE)
    return f"{header}: does not compile alone:\n{done.stderr}" if done.returncode else None


top, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
command = flags(build)
headers = tree.files(top, ".h")
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    found = pool.map(lambda h: fault(command, build, h), headers)
    tree.finish([f for f in found if f], "headers")
