#!/usr/bin/env python3
"""What an image costs, against the tools that others use, in the same run.

image.py BAC [PART...]    PART: load create (default: both)

load     'bac template load' of a docker-archive of BENCH_MIB (700) MiB, five layers, against skopeo to an OCI layout and umoci
         unpack (without those: tar of each layer, the fastest there could be); each into an empty folder (target: 1.5 times at most). Peak memory of
         bac and bac-layer
again    the same file again: what is there is not read
create   from the big template and from one of a few MiB: median of BENCH_RUNS (3) (target: no difference)

Works below BENCH_DIR (default: /var/tmp). Exits with 77 where there is no template or no busybox.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BAC = sys.argv[1]
PARTS = sys.argv[2:] or ["load", "create"]
MIB = int(os.environ.get("BENCH_MIB", "700"))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
IMAGES = pathlib.Path(__file__).resolve().parents[1] / "lib/images.py"
NAME = f"image{os.getpid()}"


def row(what, value, unit, against, ratio, target):
    print(f"{what:<10} {value:>10} {unit:<6} against {against}  ratio {ratio}  target {target}", flush=True)


def measured(*argv, **kw):
    """Seconds, and the most memory that it and what it ran had at once, each by itself, in MiB."""
    os.sync()
    began = time.monotonic()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, argv)
    return time.monotonic() - began, used.ru_maxrss >> 10


def timed(*argv, **kw):
    return measured(*argv, **kw)[0]


def others(work, archive):
    """Seconds, and what it was."""
    if shutil.which("skopeo") and shutil.which("umoci"):
        took = timed("skopeo", "copy", f"docker-archive:{archive}", f"oci:{work}/oci:x")
        rootless = ["--rootless"] if os.getuid() else []
        return took + timed("umoci", "unpack", *rootless, "--image", f"{work}/oci:x", f"{work}/bundle"), "skopeo+umoci"
    (work / "out").mkdir()
    (work / "root").mkdir()
    took = timed("tar", "-xf", archive, "-C", work / "out")
    for layer in json.load(open(work / "out/manifest.json"))[0]["Layers"]:
        took += timed("tar", "-xf", work / "out" / layer, "-C", work / "root", "--no-same-owner")
    return took, "tar"


def load(work, archive, env):
    timed("cat", archive)  # both read it from memory
    mine, peak = measured(BAC, "template", "load", "-q", archive, env=env)
    again = timed(BAC, "template", "load", "-q", archive, env=env)
    theirs, what = others(work, archive)
    row("load", f"{mine:.2f}", "s", f"{what} {theirs:.2f} s", f"{mine / theirs:.2f}", "<= 1.5")
    row("again", f"{again:.2f}", "s", f"the first {mine:.2f} s", f"{again / mine:.2f}", "-")
    row("memory", peak, "MiB", f"an image of {MIB} MiB", f"{peak / MIB:.2f}", "-")


def create(tag, env):
    took = []
    for _ in range(RUNS):
        took.append(timed(BAC, "create", "-q", "-t", tag, "--name", NAME, "--memory", "512m", "--cpus", "1", "shell", env=env, cwd="/"))
        subprocess.run([BAC, "rm", "-f", NAME], check=True, env=env, stdout=subprocess.DEVNULL)
    return statistics.median(took)


def link_default(env, cache):
    """The kernels and the default template, by links where that can be."""
    shared = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "bac"
    known = json.loads(subprocess.run([BAC, "template", "ls", "--json"], check=True, capture_output=True).stdout)["templates"]
    known = [t["digest"] for t in known if "default" in t["tags"]]
    if not known:
        print("no template: bac template build")
        sys.exit(77)
    for kind, names in (("templates", known), ("kernels", [p.name for p in (shared / "kernels").glob("*") if (p / "kernel.json").exists()])):
        (cache / "bac" / kind).mkdir(parents=True, exist_ok=True)
        for name in names:
            if subprocess.run(["cp", "-al", shared / kind / name, cache / "bac" / kind], stderr=subprocess.DEVNULL).returncode:
                subprocess.run(["cp", "-a", shared / kind / name, cache / "bac" / kind], check=True)


def main():
    if not os.access("/bin/busybox", os.X_OK):
        print("no /bin/busybox")
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp(prefix="bac-image.", dir=os.environ.get("BENCH_DIR", "/var/tmp")))
    env = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
    try:
        link_default(env, work / "cache")
        subprocess.run([sys.executable, IMAGES, "big", work, str(MIB)], check=True)
        if "load" in PARTS:
            load(work, work / "big.tar", env)
        if "create" in PARTS:
            subprocess.run([BAC, "template", "load", "-q", work / "big.tar"], check=True, env=env, stdout=subprocess.DEVNULL)
            (work / "big.tar").unlink()
            subprocess.run([sys.executable, IMAGES, "make", work / "small"], check=True)
            subprocess.run([BAC, "template", "load", "-q", work / "small/one.tar"], check=True, env=env, stdout=subprocess.DEVNULL)
            small, big = create("tiny:1", env), create("big", env)
            row("create", f"{big:.2f}", "s", f"a small one {small:.2f} s", f"{big / small:.2f}", "1")
    finally:
        subprocess.run([BAC, "rm", "-f", NAME], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
