"""The files of the source tree, for the style checks. Built things and other people's code are not
ours to check."""
import os
import pathlib
import sys

SKIP = {".git", "__pycache__", "subprojects", "fuzz"}  # test/fuzz: corpora, any bytes


def files(top, *suffixes):
    """Every file of ours below top, sorted; with suffixes only those."""
    found = []
    for here, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if d not in SKIP and not is_build(pathlib.Path(here, d))]
        for name in names:
            if not suffixes or name.endswith(suffixes):
                found.append(pathlib.Path(here, name))
    return sorted(found)


def is_build(path):
    return (path / "meson-private").exists() or path.name.startswith("build")


def finish(faults, what):
    """Print the faults, one a line, and end with the status that Meson wants."""
    for line in faults:
        print(line)
    print(f"{what}: {len(faults)} faults")
    sys.exit(bool(faults))


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)
