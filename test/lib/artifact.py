#!/usr/bin/env python3
"""Kits as artifacts in a registry, pushed by hand.

artifact.py URL REPOSITORY TAG DIRECTORY [v1|v2|empty|odd|two|link|bomb|many]

Pushes the kit in DIRECTORY and prints the digest of its manifest. v2: the specification is the configuration and one tar layer has home/agent and
workspace; v1: one layer that is a ZIP; empty: no files, as an empty JSON layer; odd: of a type that is no kit's; two: two layers; link: a layer with a link out; bomb, many: one that unpacks to
70 MiB, or to 9,000 files.
"""
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import urllib.request
import zipfile

url, repo, tag, folder = sys.argv[1:5]
how = sys.argv[5] if len(sys.argv) > 5 else "v2"
top = pathlib.Path(folder)
KIT = "application/vnd.docker.sandbox.kit."


def request(method, path, data=None, **headers):
    if path.startswith("/"):
        path = url + path
    return urllib.request.urlopen(urllib.request.Request(path, data, headers, method=method))


def push(media, data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    where = request("POST", f"/v2/{repo}/blobs/uploads/").headers["Location"]
    where += ("&" if "?" in where else "?") + "digest=" + digest
    request("PUT", where, data, **{"Content-Type": "application/octet-stream"})
    return {"mediaType": media, "digest": digest, "size": len(data)}


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for ours, theirs in (("files/home", "home/agent"), ("files/workspace", "workspace")):
            for f in sorted((top / ours).rglob("*")):
                if f.is_file():
                    info = tarfile.TarInfo(f"{theirs}/{f.relative_to(top / ours)}")
                    info.size, info.mode, info.uid, info.gid = f.stat().st_size, 0o644, 1000, 1000
                    t.addfile(info, f.open("rb"))
        if how == "bomb":
            info = tarfile.TarInfo("home/agent/zeros")
            info.size = 70 << 20
            t.addfile(info, io.BytesIO(bytes(info.size)))
        for i in range(9000 if how == "many" else 0):
            t.addfile(tarfile.TarInfo(f"home/agent/{i}"))
        if how == "link":
            info = tarfile.TarInfo("home/agent/out")
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            t.addfile(info)
    return gzip.compress(out.getvalue(), mtime=0)


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for f in sorted(top.rglob("*")):
            if f.is_file():
                z.writestr(str(f.relative_to(top)), f.read_bytes(), 8)
    return out.getvalue()


spec = (top / "spec.yaml").read_bytes()
layer = "application/vnd.oci.image.layer.v1.tar+gzip"
kind = "application/vnd.example.other" if how == "odd" else KIT + "v2"
config = push(KIT + "v2.spec+yaml", spec)
layers = [push(layer, tar())]
if how == "v1":
    kind = KIT + "v1"
    config = push("application/vnd.oci.empty.v1+json", b"{}")
    layers = [push(KIT + "v1.content.zip", zipped())]
elif how == "empty":
    layers = [push("application/vnd.oci.empty.v1+json", b"{}")]
elif how == "two":
    layers *= 2
manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                       "artifactType": kind, "config": config, "layers": layers}).encode()
request("PUT", f"/v2/{repo}/manifests/{tag}", manifest,
        **{"Content-Type": "application/vnd.oci.image.manifest.v1+json"})
print("sha256:" + hashlib.sha256(manifest).hexdigest())
