#!/usr/bin/env python3
"""The pages of docs/ against the source. Argument: the top of the tree.

* docs/README.md leads to every page, and links between pages lead to files and headings.
* What troubleshooting.md quotes as a message is one: each heading of third order, and each first cell of its tables, is a text
  in backquotes whose parts between marks of omission are found within the texts of src/ and guest/ (what printf fills in is no part of one).
* A command of bac in backquotes, on any page, is one that there is, and so are its options.
"""
import re
import sys
from pathlib import Path

top = Path(sys.argv[1])
docs = top / "docs"
faults = []

STRING = r'"((?:[^"\\\n]|\\.)*)"'
RUN = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+')
DIRECTIVE = re.compile(r"%[-+ #0]*[0-9*]*(?:\.[0-9*]+)?(?:hh?|ll?|z|j|t)?[diuoxXcsfgp]")
ESCAPES = {"n": "\n", "t": "\t"}


def texts_of(source):
    """Each text of a C file: neighbours joined, escapes undone, a NUL where something is filled in."""
    for run in RUN.finditer(source):
        text = "".join(re.findall(STRING, run[0]))
        text = DIRECTIVE.sub("\0", text).replace("%%", "%")
        yield re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text)


def source_files():
    for room in ("src", "guest"):
        for f in sorted((top / room).rglob("*.[ch]")):
            if not f.name.startswith(("test-", "fuzz-")):
                yield f


def quoted_messages(page):
    """The messages that a page is about: line number and text."""
    fenced = False
    for n, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if line.startswith("### "):
            cell = line[4:]
        elif line.startswith("| `"):
            cell = re.split(r"(?<!\\)\|", line)[1].replace("\\|", "|")
        else:
            continue
        for text in re.findall(r"`([^`]+)`", cell):
            yield n, text


def check_messages(page, everything):
    n_seen = 0
    for n, text in quoted_messages(page):
        n_seen += 1
        for part in text.split("…"):
            part = part.strip()
            if part and part not in everything:
                faults.append(f"{page}:{n}: no text of the source has '{part}'")
    if not n_seen:
        faults.append(f"{page}: quotes no message")


def prose(page):
    """Lines outside of fences, with their numbers; words in backquotes are cut out."""
    fenced = False
    for n, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield n, re.sub(r"`[^`]*`(?!\])", "", line)


def links(page):
    for n, line in prose(page):
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", line):
            yield n, target, anchor


def anchors(page):
    """Where links into a page can lead to, as forges make them of headings."""
    for line in page.read_text().split("\n"):
        if re.match("#+ ", line):
            words = line.lstrip("#").strip().lower()
            yield re.sub(r"[^\w -]", "", words).replace(" ", "-")


def check_links():
    pages = [p for p in docs.rglob("*.md") if "protocol" not in p.parts]
    named = {(docs / t).resolve() for _, t, _ in links(docs / "README.md")}
    for page in pages:
        if page != docs / "README.md" and page.resolve() not in named:
            faults.append(f"{docs / 'README.md'}: does not lead to {page.relative_to(docs)}")
        for n, target, anchor in links(page):
            there = page.parent / target if target else page
            if "://" in target:
                continue
            if not there.exists():
                faults.append(f"{page}:{n}: '{target}' is not there")
            elif anchor and anchor not in anchors(there):
                faults.append(f"{page}:{n}: '{target}' has no heading '{anchor}'")


def check_commands():
    tables = "\n".join(f.read_text() for f in source_files() if f.parent.name in ("cli", "base"))
    names = set(re.findall(rf'\.name = "([a-z-]+)"', tables)) | {"help"}
    options = set(re.findall(r'"([a-z][a-z-]+)"', tables)) | {"help", "version"}
    refused = set(re.findall(r'^\t"(.+)",$', (top / "src/cli/cmds.c").read_text(), flags=re.M))
    for page in sorted(docs.rglob("*.md")):
        for n, line in enumerate(page.read_text().split("\n"), 1):
            for words in re.findall(r"`bac ((?:[^`])+)`", line):
                words = words.split(" -- ")[0].split()
                if re.fullmatch(r"[a-z]+", words[0]) and words[0] not in names | refused:
                    faults.append(f"{page}:{n}: there is no 'bac {words[0]}'")
                if words[0] in ("exec", "batch", "env"):
                    continue  # what follows may be another program's
                for w in words:
                    option = re.match(r"--([a-z][a-z-]+)", w)
                    if option and option[1] not in options and f"--{option[1]}" not in refused:
                        faults.append(f"{page}:{n}: bac has no option '--{option[1]}'")


everything = "\1".join(t for f in source_files() for t in texts_of(f.read_text()))
check_messages(docs / "troubleshooting.md", everything)
check_links()
check_commands()
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
