#!/bin/bash
# Templates from images: archives and layouts made here, by hand (test/lib/images.py), loaded, listed, run, removed; what is refused, and how.
# timeout: 3000
#
# case    row, or why there is none
# RG-01   'RG-01: ...' for images in files; registries: p-registry.sh
# DI-01   q-docker.sh
# DI-02   'modules of our kernel ...'; the rest: q-docker.sh
. "${0%/*}/lib.sh"
here=${0%/*}

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -x /bin/busybox ] || skip_all "no /bin/busybox: sudo apt install busybox-static"

own_cache
layers() { find "$XDG_CACHE_HOME/bac/layers" -mindepth 1 -maxdepth 1 -type d ! -name '.*' | wc -l; }
litter() { find "$XDG_CACHE_HOME/bac" -name '.tmp-*' | wc -l; }
blobs() { find "$XDG_CACHE_HOME/bac/layers" -name blob -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }'; }

img=$PWD/img
tree=
! gcc -static -O2 -o "$PWD/tree" "$here/guest/tree.c" 2>/dev/null || tree=$PWD/tree
python3 "$here/../lib/images.py" make "$img" ${tree:+"$tree"} || exit 1

# ---- load
run bac template load "$img/one.tar"
is "docker-archive: loaded" "$rc" 0
like "... and named" "$out" 'Loaded tiny:1 \([0-9a-f]{12}, '
run bac template ls -q
like "all its tags are there, docker.io/library/tiny:latest as tiny" "$out" $'tiny:1\ntiny|tiny\ntiny:1'
before=$(blobs)
run bac template load "$img/both.tar.gz"
is "two images in one, compressed outside" "$rc" 0
like "a layer that is here is said to be" "$err" 'layer 1 of 2 \([0-9a-f]{12}\) is already there'
is "... and stored once: two images, two layers" "$(layers)" 2
[ $(($(blobs) - before)) -lt 65536 ] && pass "the second image stores only what is new" || fail "the second image stores only what is new" "$before $(blobs)"
ok "OCI layout: a nested index, ours of two machines" bac template load "$img/layout"
is "... whose layers are the same" "$(layers)" 2
run bac template inspect layout:2 --json
like "... with its manifest" "$(json 'd["manifest"]' <<<"$out")" '^sha256:[0-9a-f]{64}$'
is "inspect: layers, and who shares them" "$(json '[x["shared_with"] for x in d["layers"]]' <<<"$out")" '[["layout:1"], []]'
is "inspect: the configuration" "$(json 'd["config"]["workdir"] + d["config"]["labels"][0]' <<<"$out")" "/srv/appa=b"
ok "OCI archive, with a tag of ours" bac template load "$img/user.tar" --tag mine/user:7
run bac template ls -q
like "... beside its own" "$out" 'mine/user:7'
fails "--tag with several images" bac template load "$img/both.tar.gz" --tag x
like "... says so" "$err" 'it has 2 images; a tag is for one'
ok "oci-archive" bac template load "$img/oci.tar"
ok "127 layers" bac template load "$img/many.tar"
is "... and each is there" "$(json 'len(d["layers"])' <<<"$("$BAC" template inspect many --json)")" 127
if [ -n "$(type -P skopeo)" ]; then
	skopeo copy -q "docker-archive:$img/one.tar:tiny:1" "oci:$PWD/by-skopeo:sk" 2>/dev/null &&
		ok "what skopeo writes: OCI layout" bac template load "$PWD/by-skopeo" --tag sk
	skopeo copy -q "oci:$PWD/by-skopeo:sk" "docker-archive:$PWD/sk.tar:sk:2" 2>/dev/null &&
		ok "what skopeo writes: docker-archive" bac template load "$PWD/sk.tar"
	is "... is the same layer" "$(json 'len(d["layers"][0]["shared_with"]) > 0' <<<"$("$BAC" template inspect sk --json)")" true
fi

# ---- refused
refused() {
	local file=$1 what=$2 want=$3
	run bac template load "$img/$file"
	[ "$rc" -ne 0 ] && [[ $err =~ $want ]] && pass "refused: $what" || fail "refused: $what" "$(seen "$file")"
}
count=$(layers)
refused arm.tar "another machine's image (docker)" 'is for linux/arm64; sandboxes run linux/amd64'
refused arm "another machine's image (OCI)" 'no image for linux/amd64 \(it has: linux/arm64\)'
refused artifact "an artifact, by its name" 'an artifact \(application/vnd.cncf.helm.config.v1\+json\)'
refused foreign "a layer that may not be passed on" 'layer 1 may not be passed on'
refused too-many.tar "128 layers" 'more than 127'
refused nothing.tar "an archive that is no image" 'neither manifest.json .* nor index.json'
refused text "a file that is no archive" '.'
refused cut.tar "half an archive" '.'
refused damaged.tar "another layer than the configuration says, which is named" 'layer 1 of 1 \([0-9a-f]{12}\)'
refused bad-digest "a blob with another digest, which is named" 'layer 1 of 1|already'
refused missing "a layout without a layer" 'layer 1 of 1 .*|has no'
fails "a file that is not there" bac template load "$img/none.tar"
is "nothing of all that is left" "$(litter) $(layers)" "0 $count"

# ---- run
run bac create -t docker.io/library/tiny:1 --name one --memory 256m --cpus 1 shell
is "a tiny root boots" "$rc" 0
like "... and what it lacks is said, with what to do" "$err" 'the image has no sudo, bash, git'
run bac exec one id
like "agent beside node, who had 1000" "$out" '^uid=1000\(agent\) gid=1000\(agent\) groups=.*10\(wheel\)'
run bac exec -u node one id -u
is "... who is still there" "$out" 1000
run bac exec one sh -c 'echo $HOME $GREETING; echo $PATH; pwd; ls -d /home/agent /tmp'
is "ENV, PATH and WORKDIR are the image's, HOME is not" "$out" $'/home/agent hello there\n/usr/bin:/bin:/opt/x\n/srv/app\n/home/agent\n/tmp'
run bac exec one cat /etc/resolv.conf
like "resolv.conf, where the image has a link to nowhere" "$out" '^nameserver '
run bac exec one sh -c 'cat /etc/hostname; grep -c one /etc/hosts; wc -c </etc/machine-id; head -c 27 /etc/ssl/certs/ca-certificates.crt'
is "names and certificates" "$out" $'one\n1\n33\n-----BEGIN CERTIFICATE-----'
run bac exec one sh -c 'ls /lib/modules/$(uname -r)/modules.dep /usr/lib/modules/$(uname -r)/modules.dep | wc -l'
is "modules of our kernel, where the image has none" "$out" 2
if "$BAC" exec one test -e /usr/bin/musl-hello; then
	run bac exec one musl-hello
	is "musl" "$out" "musl runs"
fi
if [ -n "$tree" ]; then
	run bac exec -u root one tree /probe
	is "content as the layer says it: modes, owners, links, times, attributes" "$(diff <(printf '%s\n' "$out") "$img/want1" | head -c 1500)" ""
fi
ok "it stops" bac stop one
run bac exec one sh -c 'echo again'
is "... and starts again, without a word" "$out$err" "again$(grep -o 'bac: warning: .*' <<<"$err")"
run bac create -t tiny:2 --name two --memory 256m --cpus 1 -q shell
if [ -n "$tree" ]; then
	run bac exec -u root two tree /probe
	is "two layers: whiteouts, opaque folders, what is replaced" "$(diff <(printf '%s\n' "$out") "$img/want2" | head -c 1500)" ""
fi
run bac run --name two
is "bac run without an agent: the image's command" "$out" "hello there from cmd agent"
run bac run --name two shell -- -c 'echo shell $0'
like "... with an agent: a shell" "$rc $out $err" '^0 shell '
run bac create -t user --name user --memory 256m --cpus 1 -q shell
run bac run --name user
is "ENTRYPOINT and CMD as the image's user" "$out" "entry node from cmd"
run bac run --name user -- a b
is "... words take the place of CMD" "$out" "entry node a b"
run bac create -t many --name many --memory 256m --cpus 1 -q shell
run bac exec -u root many sh -c 'cat /probe/top /probe/n000 /probe/n125; ls /probe | grep -c ^n'
is "127 layers run" "$out" "125012$((125 - 120))128"
run bac template load "$img/scratch.tar"
run bac create -t scratch --name scratch --memory 256m --cpus 1 shell
is "an image without a shell is refused" "$rc" 1
like "... for that reason" "$err" 'no shell \(/bin/sh\)'
run bac ls -q
unlike "... and leaves no sandbox" "$out" scratch

# ---- what is shared
run bac template ls
like "ls counts users" "$out" 'tiny:1 +[0-9a-f]{12} +[0-9.]+ [KM]iB +1 sandbox '
if [ "$(id -u)" -eq 0 ]; then
	for p in $(pgrep -f '^[^ ]*qemu-system'); do stat -Lc '%d:%i' "/proc/$p/fd/"* 2>/dev/null; done | sort -u >fds
	stat -Lc '%d:%i' "$XDG_CACHE_HOME"/bac/layers/*/blob | sort -u >files
	[ "$(comm -12 fds files | wc -l)" -ge 3 ] && pass "machines have the very files of the cache" || fail "machines have the very files of the cache" "$(cat fds)"
fi

# ---- rm and prune
fails "a template that a sandbox uses stays" bac template rm -f many
like "... it is named" "$err" 'is used by 1 sandbox; remove first: bac rm many'
bac rm -f many >/dev/null
ok "rm of one tag of several" bac template rm -f tiny
run bac template ls -q
like "... leaves the others" "$out" 'tiny:1'
ok "rm of the last tag" bac template rm -f many
is "... with the layers that nobody else has" "$(layers)" "$((count - 125))"
run bac template prune --dry-run
like "prune shows what no sandbox uses" "$out" scratch
unlike "... and nothing else" "$out" 'tiny:2|user|default'
ok "prune --filter until=1h" bac template prune -f --filter until=1h
run bac template ls -q
like "... leaves what is new" "$out" scratch
ok "prune" bac template prune -f
run bac template ls -q
unlike "... removes it" "$out" scratch
like "... not what is used" "$out" tiny:2
like "... nor the default" "$out" default
bac rm -f one two user >/dev/null 2>&1
ok "prune of all" bac template prune -f
is "no layer is left" "$(layers) $(litter)" "0 0"

# ---- limit and interruption
ok "a limit of the store" bac settings set template.maxSize 1m
fails "... refuses an image" bac template load "$img/one.tar"
like "... with both sizes" "$err" 'the setting template.maxSize is 1(.0)? MiB'
is "... and keeps nothing" "$(layers)" 0
bac settings set template.maxSize 0 >/dev/null
python3 "$here/../lib/images.py" big "$PWD/big" 120
"$BAC" template load "$PWD/big/big.tar" >load.out 2>&1 &
child=$!
wait_for 60 grep -q 'layer 2' load.out
kill -INT $child
wait $child
status=$?
is "SIGINT ends a load" "$status" 130
is "... and leaves nothing" "$(litter) $(layers) $(find "$XDG_CACHE_HOME/bac/templates" -mindepth 1 -maxdepth 1 -type d | wc -l)" "0 0 1"
ok "... the next one is not disturbed" bac template load "$PWD/big/big.tar"

# ---- a real distribution
root=$shared/../bac-test-images/$(printf '%s' "trixie minbase 1" | sha256sum | head -c 16)
if [ ! -s "$root/minbase.tar" ] && [ -n "$(type -P mmdebstrap)" ]; then
	mkdir -p "$root"
	timeout 900 mmdebstrap --variant=minbase --quiet trixie "$root/part.tar" >debstrap.log 2>&1 && mv "$root/part.tar" "$root/minbase.tar"
fi
if [ -s "$root/minbase.tar" ]; then
	python3 - "$here/../lib" "$root/minbase.tar" "$PWD/debian.tar" <<-'PYTHON'
		import sys
		sys.path.insert(0, sys.argv[1])
		import images
		layer = open(sys.argv[2], "rb").read()
		images.docker(sys.argv[3], [(["deb:1"], images.config([layer], Cmd=["bash"]), [layer])])
	PYTHON
	ok "RG-01: a Debian root as an image of a file" bac template load debian.tar
	run bac create -t deb:1 --name deb --memory 512m --cpus 1 shell
	is "... boots" "$rc" 0
	like "... and says what minbase lacks" "$err" 'has no sudo, git; to add: bac exec -u root deb sh -c .apt-get update; apt-get install -y sudo git'
	run bac exec deb bash -c 'id -un; cat /etc/os-release | head -1; dpkg -s base-files >/dev/null && echo dpkg'
	like "... and works" "$out" $'^agent\n.*Debian.*\ndpkg'
else
	skip "RG-01: a Debian root as an image of a file" "mmdebstrap makes no root here: $(tail -n 1 debstrap.log 2>/dev/null)"
fi

# ---- twenty of one template
bac template load -q "$img/both.tar.gz" >/dev/null 2>&1
store() { du -s --block-size=1 "$XDG_CACHE_HOME/bac/templates" "$XDG_CACHE_HOME/bac/layers" | awk '{ s += $1 } END { print s }'; }
disk=$(store)
own=0
for i in $(seq 20); do
	run bac create -t tiny:2 --name "s$i" --memory 192m --cpus 1 -q shell || break
	run bac stop "s$i"
	own=$((own + $(du -s --block-size=1 "$XDG_STATE_HOME/bac/sandboxes/$(json 'd["id"]' <<<"$("$BAC" inspect --json "s$i")")" | cut -f1)))
done
is "twenty sandboxes of one template" "$("$BAC" ls -q | grep -c '^s')" 20
is "... have its bytes once on the disk" "$(store)" "$disk"
[ "$own" -lt $((20 * 8000000)) ] && pass "... and little of their own ($((own / 20)) bytes each)" || fail "... and little of their own" "$own"
for i in $(seq 20); do bac rm -f "s$i" >/dev/null 2>&1; done
