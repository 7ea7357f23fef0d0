#!/usr/bin/env python3
"""Layers, merged, and read by a kernel: what is there must be what a model says, in every mode, owner, time, attribute, link and byte.
Prints TAP; needs root and erofs in this kernel.

    test/layer/mount.py BAC-LAYER [SEED]

With --keep FOLDER in front, nothing is mounted: the disk and a list of what must be on it go there, for another kernel.
"""
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile

from rig import END, Layer, entry, hard, merge, pad, symlink

keep = None
if sys.argv[1] == "--keep":
    keep = os.path.abspath(sys.argv[2])
    del sys.argv[1:3]
program = os.path.abspath(sys.argv[1])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
TYPES = {"dir": stat.S_IFDIR, "file": stat.S_IFREG, "symlink": stat.S_IFLNK, "char": stat.S_IFCHR, "block": stat.S_IFBLK,
         "fifo": stat.S_IFIFO}
ATTR = b"SCHILY.xattr."


# ---- the model ----

class Image:
    """Paths to entries; names of one file share theirs."""

    def __init__(self):
        self.at = {b"": dict(kind="dir", mode=0o755, uid=0, gid=0, mtime=0, ns=0, attrs={})}
        self.layers = []
        self.data = []

    def below(self, path):
        return [p for p in self.at if p and (not path or p.startswith(path + b"/"))]

    def begin(self):
        """A new layer; whiteouts see what is below it only."""
        self.lower = dict(self.at)
        self.data = []

    def end(self):
        self.layers.append(b"".join(self.data) + END)

    def parents(self, path):
        parts = path.split(b"/")[:-1]
        for i in range(1, len(parts) + 1):
            self.at.setdefault(b"/".join(parts[:i]), dict(kind="dir", mode=0o755, uid=0, gid=0, mtime=0, ns=0, attrs={}))

    def put(self, path, e):
        self.parents(path)
        old = self.at.get(path)
        if old and old["kind"] == "dir" != e["kind"]:
            for p in self.below(path):
                del self.at[p]
        self.at[path] = e

    def add(self, path, kind, data=b"", target=b"", dev=(0, 0), mode=0o644, uid=0, gid=0, mtime=1, ns=0, attrs=None):
        attrs = attrs or {}
        e = dict(kind=kind, mode=0o777 if kind == "symlink" else mode, uid=uid, gid=gid, mtime=mtime, ns=ns, attrs=attrs)
        if kind == "file":
            e.update(size=len(data), sha=hashlib.sha256(data).hexdigest())
        if kind == "symlink":
            e["target"] = target
        if kind in ("char", "block"):
            e["dev"] = dev
        xs = [(ATTR + k, v) for k, v in attrs.items()]
        whole = abs(mtime * 10**9 + ns)
        xs.append((b"mtime", b"%s%d.%09d" % (b"-" if mtime < 0 else b"", whole // 10**9, whole % 10**9)))
        more = dict(xs=xs, mode=mode, uid=uid, gid=gid, dev=dev)
        kinds = {"file": b"0", "char": b"3", "block": b"4", "dir": b"5", "fifo": b"6"}
        if kind == "symlink":
            self.data.append(symlink(path, target, **more))
        else:
            self.data.append(entry(path or b"./", data, kinds[kind], **more))
        self.put(path, e)

    def link(self, path, target):
        e = self.at[target]
        self.data.append(hard(path, target))
        if self.at.get(path) is not e:
            self.put(path, e)

    def whiteout(self, path):
        head, _, tail = path.rpartition(b"/")
        self.data.insert(0, entry((head + b"/" if head else b"") + b".wh." + tail))
        self.hide([path] + self.below(path))

    def opaque(self, path):
        self.data.insert(0, entry((path + b"/" if path else b"") + b".wh..wh..opq"))
        self.hide(self.below(path))

    def hide(self, paths):
        for p in paths:
            if p in self.lower and self.at.get(p) is self.lower[p]:
                del self.at[p]

    def manifest(self):
        names = {}
        for p, e in self.at.items():
            names.setdefault(id(e), []).append(p)
        out = {}
        for p, e in self.at.items():
            m = {k: v for k, v in e.items() if k not in ("kind", "attrs", "target", "dev")}
            m["mode"] = TYPES[e["kind"]] | e["mode"]
            m["attrs"] = {os.fsdecode(k): v.hex() for k, v in e["attrs"].items()}
            if e["kind"] == "symlink":
                m["target"] = os.fsdecode(e["target"])
            if "dev" in e:
                m["dev"] = list(e["dev"])
            m["names"] = sorted(os.fsdecode(x) for x in names[id(e)]) if e["kind"] != "dir" else []
            out[os.fsdecode(p)] = m
        return out


# ---- what is there ----

def look(top):
    out, inodes = {}, {}
    todo = [b""]
    while todo:
        p = todo.pop()
        full = os.path.join(os.fsencode(top), p) if p else os.fsencode(top)
        st = os.lstat(full)
        m = dict(mode=st.st_mode, uid=st.st_uid, gid=st.st_gid, mtime=st.st_mtime_ns // 10**9, ns=st.st_mtime_ns % 10**9)
        m["attrs"] = {k: os.getxattr(full, k, follow_symlinks=False).hex() for k in os.listxattr(full, follow_symlinks=False)}
        m["names"] = []
        if stat.S_ISDIR(st.st_mode):
            subdirs = 0
            for n in os.listdir(full):
                q = p + b"/" + n if p else n
                subdirs += stat.S_ISDIR(os.lstat(os.path.join(full, n)).st_mode)
                todo.append(q)
            assert st.st_nlink == 2 + subdirs, (p, st.st_nlink)
        else:
            same = inodes.setdefault(st.st_ino, [])
            same.append(os.fsdecode(p))
            m["names"] = same
            m["nlink"] = st.st_nlink
        if stat.S_ISREG(st.st_mode):
            h = hashlib.sha256()
            with open(full, "rb") as f:
                while part := f.read(1 << 20):
                    h.update(part)
            m.update(size=st.st_size, sha=h.hexdigest())
        if stat.S_ISLNK(st.st_mode):
            m["target"] = os.fsdecode(os.readlink(full))
        if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
            m["dev"] = [os.major(st.st_rdev), os.minor(st.st_rdev)]
        out[os.fsdecode(p)] = m
    for m in out.values():
        m["names"] = sorted(m["names"])
        assert m.pop("nlink", len(m["names"])) == len(m["names"]), m
    return out


# ---- images ----

def plain():
    """Each kind of thing once or more, and the edges of each size."""
    i = Image()
    i.begin()
    i.add(b"", "dir", mode=0o1777, uid=5, gid=6, mtime=77, ns=1)
    i.add(b"etc", "dir", mode=0o755, mtime=5, ns=999999999)
    for n in (0, 1, 4095, 4096, 4097, 200000):
        i.add(b"etc/f%d" % n, "file", random.randbytes(n), mode=0o6755, uid=2**32 - 2, gid=70000, mtime=-2 * n, ns=5)
    i.add(b"etc/zeros", "file", b"\0" * 300000 + b"x" + b"\0" * 100000)
    for n in (1, 100, 255, 1000, 4031, 4032, 4033, 4095):
        i.add(b"l%d" % n, "symlink", target=(b"t" * n))
    i.add(b"null", "char", dev=(1, 3), mode=0o666)
    i.add(b"disk", "block", dev=(0xfff, 0xfffff), mode=0o660, gid=6)
    i.add(b"fifo", "fifo", mode=0)
    i.add(b"\xff\n\\ *\x01", "file", b"any bytes")
    i.add(b"capable", "file", b"x", attrs={b"security.capability": bytes.fromhex("0100000200200000000000000000000000000000"),
                                           b"user.empty": b"", b"user." + b"n" * 250: b"v"})
    i.add(b"attrs", "dir", attrs={b"user.big": random.randbytes(60000), b"user.other": random.randbytes(5000)})
    i.add(b"attrs/l", "symlink", target=b"x" * 50)
    i.link(b"h1", b"etc/f4097")
    i.link(b"attrs/h2", b"h1")
    i.link(b"hl", b"l100")
    i.add(b"no/entry/for/these", "file", b"x")
    for n in range(330):  # a directory of several blocks, and of names of all lengths
        i.add(b"many/" + b"%d" % n + b"x" * (n % 250), "file", b"%d" % n)
    i.end()
    i.begin()
    i.whiteout(b"etc/f0")
    i.whiteout(b"h1")
    i.opaque(b"many")
    i.add(b"many/new", "file", b"new")
    i.link(b"many/old", b"etc/f4096")
    i.add(b"etc", "dir", mode=0o700, uid=9, attrs={b"user.a": b"b"})
    i.add(b"null", "file", b"a file now")
    i.add(b"attrs", "file", b"no directory")
    i.add(b"fifo", "dir", mode=0o711)
    i.add(b"fifo/x", "symlink", target=b"../x")
    i.end()
    i.begin()
    i.end()
    return i


def wild(rng, layers, steps):
    """Whatever comes."""
    i = Image()
    names = [b"a", b"b", b"c", b"dd", b"e" * 100, b".x", b"!", b"\xfe"]
    for _ in range(layers):
        i.begin()
        lower = [p for p in i.lower if p]
        for p in rng.sample(lower, min(len(lower), rng.randrange(6))):
            # only where the way there is one of directories, below and above
            way = [p[:k] for k in range(len(p)) if p[k:k + 1] == b"/"]
            if all(i.lower.get(w, {}).get("kind") == "dir" for w in way):
                if i.lower[p]["kind"] == "dir" and rng.random() < 0.5:
                    i.opaque(p)
                else:
                    i.whiteout(p)
        for _ in range(steps):
            dirs = [p for p, e in i.at.items() if e["kind"] == "dir" and p.count(b"/") < 4]
            d = rng.choice(dirs)
            path = (d + b"/" if d else b"") + rng.choice(names)
            files = [p for p, e in i.at.items() if e["kind"] != "dir"]
            what = rng.choice(["file", "file", "dir", "dir", "symlink", "fifo", "link", "top"])
            some = dict(mode=rng.randrange(0o10000), uid=rng.randrange(2**32 - 1), mtime=rng.randrange(-2**33, 2**33), ns=rng.randrange(10**9))
            if what in ("file", "dir", "top") and rng.random() < 0.2:  # others cannot have any
                some["attrs"] = {b"user.%d" % k: rng.randbytes(rng.randrange(300)) for k in range(rng.randrange(1, 4))}
            if what == "link" and files:
                target = rng.choice(files)
                if target != path and not target.startswith(path + b"/"):
                    i.link(path, target)
            elif what == "top":
                i.add(b"", "dir", **some)
            elif what in ("file", "dir", "symlink", "fifo"):
                more = dict(data=rng.randbytes(rng.choice([0, 5, 4096, 9000]))) if what == "file" else {}
                if what == "symlink":
                    more = dict(target=b"t" * rng.randrange(1, 300))
                i.add(path, what, **some, **more)
        i.end()
    return i


def large():
    """A directory of 100,000 names, and many folders."""
    i = Image()
    i.begin()
    for n in range(100000):
        i.add(b"d/%07d" % (n * 7919 % 100000), "file")
    for n in range(3000):
        i.add(b"s/%d/x" % n, "symlink", target=b"../%d" % n)
    i.end()
    return i


def huge():
    """A file of more than 4 GiB, most of it a hole, and one behind it."""
    i = Image()
    i.begin()
    size = 5 << 30
    body = pad(b"1\n%d\n3\n" % (size - 3)) + b"end"
    xs = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"huge"), (b"GNU.sparse.realsize", b"%d" % size)]
    i.data.append(entry(b"GNUSparseFile.0/huge", body, xs=xs))
    i.add(b"small", "file", b"behind it")
    i.end()
    return i


# ---- runs ----

rows = failed = 0


def row(good, what, detail=""):
    global rows, failed
    rows += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {rows} - {what}", flush=True)
    if not good:
        print("# " + str(detail)[:3000].replace("\n", "\n# "), flush=True)


def difference(got, want):
    out = [f"missing {p!r}" for p in want if p not in got] + [f"too much {p!r}" for p in got if p not in want]
    for p in want:
        if p in got and got[p] != want[p]:
            out += [f"{p!r} {k}: {got[p].get(k)!r}, not {want[p].get(k)!r}" for k in {*got[p], *want[p]} if got[p].get(k) != want[p].get(k)]
    return "\n".join(out[:20])


def build(work, layers):
    """The disk: the image and the blobs."""
    made = []
    for n, data in enumerate(layers):
        where = f"{work}/{n}"
        os.mkdir(where)
        made.append(Layer(program, where, data))
        assert made[-1].good, made[-1].message
    run = merge(program, [m.tree for m in made], work + "/meta")
    assert run.returncode == 0, run.stderr
    with open(work + "/disk", "wb") as out:
        for f in [work + "/meta"] + [m.blob for m in made]:
            assert os.path.getsize(f) % 4096 == 0
            with open(f, "rb") as part:
                shutil.copyfileobj(part, out)
    return work + "/disk"


def try_one(name, image):
    work = tempfile.mkdtemp(prefix="test-bac-mount-")
    os.mkdir(work + "/mnt")
    try:
        disk = build(work, image.layers)
        want = image.manifest()
        if keep:
            shutil.copy(disk, f"{keep}/{name}.disk")
            with open(f"{keep}/{name}.json", "w") as f:
                json.dump(want, f)
            return
        if shutil.which("fsck.erofs"):
            run = subprocess.run(["fsck.erofs", disk], capture_output=True, text=True)
            row(run.returncode == 0, name + ": fsck.erofs finds nothing", run.stdout + run.stderr)
        subprocess.run(["mount", "-t", "erofs", "-o", "loop,ro", disk, work + "/mnt"], check=True)
        try:
            got = look(work + "/mnt")
        finally:
            subprocess.run(["umount", work + "/mnt"], check=True)
        row(got == want, f"{name}: {len(want)} files are as the model says", difference(got, want))
    finally:
        shutil.rmtree(work)


def try_huge():
    """Its blob is a hole on the disk, too, so the disk is put together in the kernel, not copied."""
    work = tempfile.mkdtemp(prefix="test-bac-mount-")
    os.mkdir(work + "/mnt")
    try:
        layer = Layer(program, work, huge().layers[0])
        run = merge(program, [layer.tree], work + "/meta")
        row(layer.good and run.returncode == 0, "a file of 5 GiB", layer.message + str(run.stderr))
        row(os.stat(layer.blob).st_blocks * 512 < 1 << 20, "its hole takes no room")
        meta = os.path.getsize(work + "/meta")
        with open(work + "/disk", "wb") as out, open(work + "/meta", "rb") as m, open(layer.blob, "rb") as b:
            out.write(m.read())
            out.truncate(meta + os.path.getsize(layer.blob))
            for at in (5 << 30) - 4096, 5 << 30:
                b.seek(at)
                out.seek(meta + at)
                out.write(b.read(4096))
        subprocess.run(["mount", "-t", "erofs", "-o", "loop,ro", work + "/disk", work + "/mnt"], check=True)
        try:
            with open(work + "/mnt/huge", "rb") as f, open(work + "/mnt/small", "rb") as small:
                f.seek(-5, os.SEEK_END)
                got = os.path.getsize(work + "/mnt/huge"), f.read(), small.read()
        finally:
            subprocess.run(["umount", work + "/mnt"], check=True)
        row(got == (5 << 30, b"\0\0end", b"behind it"), "it is read to its end, and what lies behind it", got)
    finally:
        shutil.rmtree(work)


def main():
    random.seed(seed)
    try_one("plain", plain())
    for n in range(12):
        try_one(f"wild {n}", wild(random.Random(seed * 1000 + n), 4, 60))
    try_one("large", large())
    if not keep:
        try_huge()
    print(f"1..{rows}")
    return 1 if failed else 0


if __name__ == "__main__":
    if "--look" in sys.argv:
        print(json.dumps(look(sys.argv[-1])))
        sys.exit(0)
    if not keep and (os.geteuid() != 0 or "erofs" not in open("/proc/filesystems").read()):
        print("1..0 # SKIP needs root and a kernel with erofs")
        sys.exit(0)
    sys.exit(main())
