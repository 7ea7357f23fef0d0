# shellcheck shell=bash
# shellcheck disable=SC2154  # world: the walker's
[ -x /bin/busybox ] || { skip_page 'no /bin/busybox: sudo apt install busybox-static'; return 0; }
bac policy init balanced
python3 "$lib/images.py" make "$world/images" || return
cp -r "$world/images/layout" .
python3 - "$world/images/one.tar" image.tar <<'PYTHON'
import io, json, sys, tarfile
with tarfile.open(sys.argv[1]) as old, tarfile.open(sys.argv[2], "w") as new:
    for member in old:
        data = old.extractfile(member).read()
        if member.name == "manifest.json":
            data = json.dumps([{**json.loads(data)[0], "RepoTags": ["team/image:1"]}]).encode()
        member.size = len(data)
        new.addfile(member, io.BytesIO(data))
PYTHON
answer 'bac template rm *' '\? ' 'y\r'
