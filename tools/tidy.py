#!/usr/bin/env python3
"""clang-tidy over the program's own source, one process a file, as many at once as there are cores.
A file that was found clean is not looked at again until it, a header of ours that it reads, or the rules change.

Arguments: the build folder, then files (default: every .c that the build compiles, apart from tests
and fuzzers). The rules and their reasons are in .clang-tidy; they are those of clang-tidy 14, and
with only another version at hand the check is skipped.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import tree

WANTED = "14"
TESTS = pathlib.Path(__file__).resolve().parent.parent / "test"
GCC_ONLY = ("-ftrivial-auto-var-init", "-fno-lto", "-fanalyzer", "-specs=")


def commands(build):
    """The compile commands of our sources, without what only gcc takes; one for each file."""
    kept = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path.name.startswith(("test-", "fuzz-")) or path.is_relative_to(TESTS) or path.suffix != ".c":
            continue
        words = [w for w in entry["command"].split(" ") if not w.startswith(GCC_ONLY)]
        kept[path] = {**entry, "file": str(path), "command": " ".join(words)}
    return kept


def key(entry, rules):
    """What a verdict depends on: the rules, the command, the file and all of our headers that it reads."""
    words = shlex.split(entry["command"])
    words = [w for i, w in enumerate(words) if w != "-o" and words[i - 1] != "-o" and w not in ("-MD", "-c")
             and w != "-MQ" and words[i - 1] != "-MQ" and w != "-MF" and words[i - 1] != "-MF"]
    done = subprocess.run([*words, "-MM"], cwd=entry["directory"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    if done.returncode:
        return None
    found = hashlib.sha256(rules + entry["command"].encode())
    for name in done.stdout.replace("\\\n", " ").partition(":")[2].split():
        found.update(b"\0" + name.encode() + b"\0" + pathlib.Path(entry["directory"], name).read_bytes())
    return found.hexdigest()


def check(tool, database, directory, path):
    done = subprocess.run([tool, "--quiet", "-p", database, str(path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = []
    for line in done.stdout.splitlines():
        place = re.match(r"(\S+?)(:\d+:\d+: (?:error|warning):.*)", line)
        if place:  # paths are relative to the build folder, or lead through it
            absolute = os.path.join(directory, place[1])
            found.append(os.path.relpath(absolute) + place[2].replace(",-warnings-as-errors", ""))
    if done.returncode and not found:
        found = [f"{path}: clang-tidy failed: {(done.stdout + done.stderr)[-800:]}"]
    return found


tool = shutil.which(f"clang-tidy-{WANTED}") or shutil.which("clang-tidy")
if not tool:
    tree.skip("clang-tidy is not installed")
version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True).stdout
if not re.search(rf"version {WANTED}\.", version):
    tree.skip(f"needs clang-tidy {WANTED}")
build = pathlib.Path(sys.argv[1]).resolve()
kept = commands(build)
wanted = [pathlib.Path(a).resolve() for a in sys.argv[2:]] or sorted(kept)
rules = version.encode() + (pathlib.Path(__file__).parent.parent / ".clang-tidy").read_bytes()
# An empty file for each verdict "nothing found", named by what it depends on: good for every checkout.
clean = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "bac-check", "tidy")
clean.mkdir(parents=True, exist_ok=True)


def once(path):
    mark = key(kept[path], rules)
    if mark and (clean / mark).exists():
        return []
    found = check(tool, database, build, path)
    if mark and not found:
        (clean / mark).touch()
    return found


with tempfile.TemporaryDirectory() as database, \
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    pathlib.Path(database, "compile_commands.json").write_text(json.dumps(list(kept.values())))
    found = list(pool.map(once, wanted))
unique = dict.fromkeys(line for lines in found for line in lines)
tree.finish(list(unique), f"clang-tidy ({len(wanted)} files)")
