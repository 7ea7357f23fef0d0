#!/usr/bin/env python3
"""Images by hand, for tests and benchmarks.

images.py make DIR [TREE]    in DIR: the archives and layouts that test/e2e/o-images.sh loads, and want (what TREE, a static build of
                             test/e2e/guest/tree.c, says of /probe in each)
images.py big DIR MIB        a docker-archive of about this size
images.py save FILE TAG [NAME=FILE...] PROGRAM...
                             what 'docker save TAG' writes: a root with files of ours, and programs of this host with what they are linked to

The root is as small as a distribution can be: busybox, and where the host has musl its loader with a program that needs it."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tarfile

BUSYBOX = "/bin/busybox"
APPLETS = "sh ash cat ls stat echo env id pwd mkdir rm cp mv ln chmod chown test true false uname mount umount grep sed wc head " \
          "hostname sleep find sort tr dd df date".split()
NS = 1_600_000_000_123456789


class Entry:
    """One name of a layer."""

    def __init__(self, path, kind="f", mode=0o644, uid=0, gid=0, data=b"", target="", xattrs=None, ns=NS, dev=(0, 0)):
        self.path, self.kind, self.mode, self.uid, self.gid = path, kind, mode, uid, gid
        self.data, self.target, self.xattrs, self.ns, self.dev = data, target, xattrs or {}, ns, dev

    def info(self):
        t = tarfile.TarInfo(self.path)
        t.type = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE,
                  "p": tarfile.FIFOTYPE, "c": tarfile.CHRTYPE, "b": tarfile.BLKTYPE}[self.kind]
        t.mode, t.uid, t.gid, t.linkname = self.mode, self.uid, self.gid, self.target
        t.devmajor, t.devminor = self.dev
        t.size = len(self.data)
        t.mtime = self.ns // 10**9
        t.pax_headers = {"mtime": f"{self.ns // 10**9}.{self.ns % 10**9:09d}"}
        for k, v in self.xattrs.items():
            t.pax_headers[f"SCHILY.xattr.{k}"] = v.decode("latin-1") if v.isascii() else v.decode("utf-8", "surrogateescape")
        return t


def layer(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape") as tar:
        for e in entries:
            tar.addfile(e.info(), io.BytesIO(e.data) if e.data else None)
    return out.getvalue()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def config(layers, **inner):
    return json.dumps({"architecture": "amd64", "os": "linux", "config": inner,
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(x) for x in layers]}}).encode()


def docker(path, images, compress=None):
    """images: [(tags, config, layers)]."""
    members, manifest = {}, []
    for tags, conf, layers in images:
        members[sha(conf) + ".json"] = conf
        for x in layers:
            members[sha(x) + "/layer.tar"] = x
        manifest.append({"Config": sha(conf) + ".json", "RepoTags": tags, "Layers": [sha(x) + "/layer.tar" for x in layers]})
    members["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(path, "w:" + (compress or "")) as tar:
        for name, data in members.items():
            t = tarfile.TarInfo(name)
            t.size = len(data)
            tar.addfile(t, io.BytesIO(data))


def blob(root, data):
    path = root / "blobs/sha256" / sha(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"digest": "sha256:" + sha(data), "size": len(data)}


OCI = "application/vnd.oci.image."


def oci_manifest(root, conf, layers, squeeze=True, config_type=OCI + "config.v1+json", layer_type=None):
    kind = layer_type or OCI + ("layer.v1.tar+gzip" if squeeze else "layer.v1.tar")
    packed = [gzip.compress(x, 1, mtime=0) if squeeze else x for x in layers]
    manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
                "config": {"mediaType": config_type, **blob(root, conf)},
                "layers": [{"mediaType": kind, **blob(root, x)} for x in packed]}
    return {"mediaType": OCI + "manifest.v1+json", **blob(root, json.dumps(manifest).encode())}


def oci_index(root, entries, top=True):
    index = json.dumps({"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": entries}).encode()
    if top:
        (root / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        (root / "index.json").write_bytes(index)
        return None
    return {"mediaType": OCI + "index.v1+json", **blob(root, index)}


def named(desc, name):
    return {**desc, "annotations": {"org.opencontainers.image.ref.name": name}}


def on(desc, arch, system="linux"):
    return {**desc, "platform": {"os": system, "architecture": arch}}


# ---- a root

def musl():
    loader = pathlib.Path("/lib/ld-musl-x86_64.so.1")
    if not loader.exists():
        return []
    out = [Entry("lib/ld-musl-x86_64.so.1", mode=0o755, data=loader.resolve().read_bytes())]
    program = "int printf(const char *, ...); int main(void) { printf(\"musl runs\\n\"); return 0; }"
    try:
        subprocess.run(["musl-gcc", "-x", "c", "-", "-o", "/tmp/images-musl.%d" % os.getpid()], input=program.encode(), check=True)
        path = pathlib.Path("/tmp/images-musl.%d" % os.getpid())
        out.append(Entry("usr/bin/musl-hello", mode=0o755, data=path.read_bytes()))
        path.unlink()
    except (OSError, subprocess.CalledProcessError):
        pass
    return out


def base(tree=None):
    dirs = "bin etc etc/ssl home lib proc root sbin sys tmp usr usr/bin usr/lib var var/tmp etc/profile.d".split()
    entries = [Entry(d, "d", 0o755) for d in dirs]
    entries.append(Entry("bin/busybox", mode=0o755, data=pathlib.Path(BUSYBOX).read_bytes()))
    entries += [Entry("bin/" + a, "l", 0o777, target="busybox") for a in APPLETS]
    entries += [Entry("etc/passwd", data=b"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"),
                Entry("etc/group", data=b"root:x:0:\nnode:x:1000:\nwheel:x:10:root\n"),
                Entry("etc/shadow", mode=0o600, data=b"root:*:19000:0:::::\n"),
                Entry("etc/os-release", data=b'ID=tiny\nPRETTY_NAME="Tiny"\n'),
                Entry("etc/resolv.conf", "l", 0o777, target="../run/nowhere/resolv.conf")]
    if tree:
        entries.append(Entry("usr/bin/tree", mode=0o755, data=pathlib.Path(tree).read_bytes()))
    return entries + musl()


CAPS = bytes.fromhex("0100000200040000000000000000000000000000")  # cap_net_bind_service+ep


def probe():
    """Everything that a layer can say."""
    rnd = random.Random(1).randbytes
    names = ["plain", "ünïcode", "with space", "n" * 255, "quote'\"$x"]
    out = [Entry("probe", "d", 0o751, 5, 6)]
    out += [Entry("probe/" + n, mode=0o640, uid=1000, gid=7, data=n.encode() * 9, ns=NS + i) for i, n in enumerate(names)]
    out += [Entry("probe/empty", mode=0o400), Entry("probe/block", data=rnd(4096)), Entry("probe/odd", data=rnd(1000001)),
            Entry("probe/setuid", mode=0o4755, data=b"x"), Entry("probe/sticky", "d", 0o3777, 1, 2),
            Entry("probe/hard-a", mode=0o600, uid=4000000, gid=4000001, data=rnd(5000)), Entry("probe/hard-z", "h", target="probe/hard-a"),
            Entry("probe/link", "l", 0o777, 8, 9, target="../no/where"), Entry("probe/long-link", "l", 0o777, target="x/" * 500 + "y"),
            Entry("probe/fifo", "p", 0o620), Entry("probe/null", "c", 0o666, dev=(1, 3)), Entry("probe/disk", "b", 0o660, 0, 6, dev=(259, 300)),
            Entry("probe/attrs", data=b"a", xattrs={"user.one": b"1", "user.two": b"x" * 300}),
            Entry("probe/caps", mode=0o755, data=b"c", xattrs={"security.capability": CAPS}),
            Entry("probe/old", data=b"o", ns=1), Entry("probe/late", data=b"l", ns=4_000_000_000_000000001),
            Entry("probe/gone", data=b"g"), Entry("probe/replaced", data=b"first"),
            Entry("probe/hidden", "d", 0o755), Entry("probe/hidden/a", data=b"a"), Entry("probe/hidden/b", data=b"b"),
            Entry("probe/mode", "d", 0o755), Entry("probe/mode/stays", data=b"s"),
            Entry("probe/many", "d", 0o755)]
    out += [Entry(f"probe/many/{i:04d}", data=b"%d" % i) for i in range(700)]
    return out


def second():
    return [Entry("probe/.wh.gone"), Entry("probe/replaced", mode=0o600, uid=3, data=b"second"),
            Entry("probe/hidden", "d", 0o700), Entry("probe/hidden/.wh..wh..opq"), Entry("probe/hidden/new", data=b"n"),
            Entry("probe/mode", "d", 0o500, 77, 78), Entry("probe/hard-m", "h", target="probe/hard-a"),
            Entry("probe/second", data=b"2" * 10000)]


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def want(layers):
    """What tree.c says of /probe, by our own reading of the layers."""
    tree = {}
    for entries in layers:
        below = dict(tree)
        for e in entries:
            name = e.path.rsplit("/", 1)[-1]
            folder = e.path.rsplit("/", 1)[0]
            if name == ".wh..wh..opq":
                for p in [p for p in below if p.startswith(folder + "/") and tree.get(p) is below[p]]:
                    del tree[p]
            elif name.startswith(".wh."):
                tree.pop(folder + "/" + name[4:], None)
            elif e.kind == "h":
                tree[e.path] = tree[e.target]
            else:
                tree[e.path] = e
    lines, first = [], {}
    mine = {p: e for p, e in tree.items() if p == "probe" or p.startswith("probe/")}
    for p in sorted(mine, key=lambda p: [x.encode() for x in p.split("/")]):
        e = mine[p]
        name = "/" + p[6:] if p != "probe" else "/"
        kind = {"f": 0o100000, "d": 0o040000, "l": 0o120000, "p": 0o010000, "c": 0o020000, "b": 0o060000}[e.kind]
        line = f"{name} {kind | e.mode:06o} {e.uid} {e.gid} {e.ns // 10**9}.{e.ns % 10**9:09d}"
        if e.kind == "f":
            line += f" {len(e.data)} {fnv(e.data):016x} {first.setdefault(id(e), name)}"
        if e.kind in "cb":
            line += " %d:%d" % e.dev
        if e.kind == "l":
            line += " -> " + e.target
        line += "".join(f" {k}={e.xattrs[k].hex()}" for k in sorted(e.xattrs))
        lines.append(line)
    return "\n".join(lines) + "\n"


def make(root, tree):
    root.mkdir(parents=True, exist_ok=True)
    one, two = base(tree) + probe(), second()
    a, b = layer(one), layer(two)
    run = {"Env": ["PATH=/usr/bin:/bin:/opt/x", "GREETING=hello there", "HOME=/nowhere"], "Cmd": ["sh", "-c", "echo $GREETING from $0 $(id -un)", "cmd"],
           "WorkingDir": "/srv/app", "Labels": {"a": "b"}}
    c1, c2 = config([a], **run), config([a, b], **run)
    docker(root / "one.tar", [(["tiny:1", "docker.io/library/tiny:latest"], c1, [a])])
    docker(root / "both.tar.gz", [(["tiny:1"], c1, [a]), (["tiny:2"], c2, [a, b])], "gz")
    (root / "want1").write_text(want([one]))
    (root / "want2").write_text(want([one, two]))

    lay = root / "layout"
    m2 = oci_manifest(lay, c2, [a, b])
    m1 = oci_manifest(lay, c1, [a], squeeze=False)
    arm = oci_manifest(lay, c1.replace(b"amd64", b"arm64"), [a])
    nested = oci_index(lay, [on(arm, "arm64"), on(m2, "amd64"),
                             {**m1, "platform": {"os": "unknown", "architecture": "unknown"},
                              "annotations": {"vnd.docker.reference.type": "attestation-manifest"}}], top=False)
    oci_index(lay, [named(nested, "layout:2"), named(m1, "docker.io/library/layout:1")])
    with tarfile.open(root / "oci.tar", "w") as tar:
        for p in sorted(lay.rglob("*")):
            tar.add(p, str(p.relative_to(lay)))

    many = [a] + [layer([Entry("probe/n%03d" % i, data=b"%d" % i), Entry("probe/top", data=b"%d" % i)]) for i in range(126)]
    docker(root / "many.tar", [(["many"], config(many), many)])
    docker(root / "too-many.tar", [(["many"], config(many + [a]), many + [a])])
    user = config([a], User="node", Entrypoint=["/bin/sh", "-c", 'echo "entry $USER $@"', "x"], Cmd=["from cmd"])
    docker(root / "user.tar", [(["user"], user, [a])])
    scratch = layer([Entry("app", mode=0o755, data=b"\x7fELF")])
    docker(root / "scratch.tar", [(["scratch"], config([scratch]), [scratch])])
    refuse(root, a, c1)


def refuse(root, a, c1):
    """What must be refused, each with its message."""
    lay = root / "arm"
    oci_index(lay, [on(oci_manifest(lay, c1.replace(b"amd64", b"arm64"), [a]), "arm64")])
    docker(root / "arm.tar", [(["arm"], c1.replace(b"amd64", b"arm64"), [a])])
    lay = root / "artifact"
    oci_index(lay, [oci_manifest(lay, b"{}", [b"x"], config_type="application/vnd.cncf.helm.config.v1+json")])
    lay = root / "foreign"
    oci_index(lay, [oci_manifest(lay, c1, [a], layer_type=OCI + "layer.nondistributable.v1.tar+gzip")])
    whole = (root / "one.tar").read_bytes()
    (root / "cut.tar").write_bytes(whole[:len(whole) // 2])
    other = layer([Entry("x", data=b"y")])
    docker(root / "damaged.tar", [(["x"], config([other]), [a])])
    lay = root / "bad-digest"
    m = oci_manifest(lay, c1.replace(sha(a).encode(), sha(other).encode()), [other])
    oci_index(lay, [m])
    manifest = json.loads((lay / "blobs/sha256" / m["digest"][7:]).read_bytes())
    path = lay / "blobs/sha256" / manifest["layers"][0]["digest"][7:]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    lay = root / "missing"
    m = oci_manifest(lay, c1.replace(sha(a).encode(), sha(other).encode()), [other])
    oci_index(lay, [m])
    manifest = json.loads((lay / "blobs/sha256" / m["digest"][7:]).read_bytes())
    (lay / "blobs/sha256" / manifest["layers"][0]["digest"][7:]).unlink()
    with tarfile.open(root / "nothing.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("hello"))
    (root / "text").write_text("no archive\n")


def big(root, mib):
    """Like a distribution: many small files, some large ones, compressible by half."""
    rnd = random.Random(7)
    root.mkdir(parents=True, exist_ok=True)
    layers, left = [], mib << 20
    entries, size = base(), 0
    i = 0
    while left > 0:
        n = rnd.choice([300, 2000, 9000, 40000, 200000, 3 << 20]) + rnd.randrange(500)
        data = rnd.randbytes(n // 2) + bytes(n - n // 2)
        if i % 500 == 0:
            entries.append(Entry(f"usr/d{i // 500}", "d", 0o755))
        entries.append(Entry(f"usr/d{i // 500}/f{i}", data=data))
        left, size, i = left - n, size + n, i + 1
        if size > (mib << 20) // 5:
            layers.append(layer(entries))
            entries, size = [], 0
            i = (i // 500 + 1) * 500
    if entries:
        layers.append(layer(entries))
    docker(root / "big.tar", [(["big"], config(layers, Cmd=["sh"]), layers)])


def linked(programs):
    """Programs of this host, their libraries and their loader, each where it is here."""
    out = {os.path.abspath(p): os.path.abspath(p) for p in programs}
    for line in subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.search(r"(?:=> )?(/\S+) \(0x", line)
        if found:
            out[found[1]] = found[1]
    return out


def save(path, tag, words):
    files = dict(w.split("=", 1) for w in words if "=" in w)
    files = {"/" + k.lstrip("/"): v for k, v in files.items()} | linked([w for w in words if "=" not in w])
    entries = base()
    there = {e.path for e in entries}
    for applet in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if "bin/" + applet not in there:
            entries.append(Entry("bin/" + applet, "l", 0o777, target="busybox"))
    for name in sorted(files):
        for above in list(pathlib.PurePath(name[1:]).parents)[-2::-1]:
            if str(above) not in there:
                entries.append(Entry(str(above), "d", 0o755))
                there.add(str(above))
        entries = [e for e in entries if e.path != name[1:]]
        entries.append(Entry(name[1:], mode=0o755, data=pathlib.Path(files[name]).read_bytes()))
    x = layer(entries)
    docker(path, [([tag], config([x], Env=["PATH=/usr/local/bin:/usr/bin:/bin"], Cmd=["sh"]), [x])])


if __name__ == "__main__":
    if sys.argv[1] == "save":
        save(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    elif sys.argv[1] == "make":
        make(pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    else:
        big(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
