#!/bin/bash
# Images out of registries, and sandboxes as images. The registries are Debian's docker-registry on loopback: one with TLS and a password, one
# with neither, both on the same storage; what goes wrong is made to by damage in that storage and by a proxy of the test.
# timeout: 3000
# alone: it looks for the user's skopeo
#
# case    row, or why there is none
# RG-01   'RG-01: ...'; images in files: o-images.sh; image only in the local store: 'RG-01: same tag ...'
. "${0%/*}/lib.sh"
here=${0%/*}

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -x /bin/busybox ] || skip_all "no /bin/busybox: sudo apt install busybox-static"
for program in skopeo docker-registry openssl; do
	[ -n "$(type -P $program)" ] || skip_all "$program is not installed: sudo apt install $program"
done
PATH=$PATH:/usr/sbin

own_cache
store=$XDG_CACHE_HOME/bac
layers() { find "$store/layers" -mindepth 1 -maxdepth 1 -type d ! -name '.*' 2>/dev/null | wc -l; }
staged() { find "$store/pulls" -mindepth 1 -maxdepth 1 -type d 2>/dev/null | wc -l; }

# ---- the registries
reg=$E2E_DIR/reg
mkdir -p "$reg/data"
hash_of() {
	python3 -W ignore -c 'import crypt, sys; print(crypt.crypt(sys.argv[1], crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))' "$1" 2>/dev/null ||
		{ htpasswd -nbB u "$1" 2>/dev/null | cut -d: -f2; }
}
password=pw-$RANDOM$RANDOM$RANDOM$RANDOM
hash=$(hash_of "$password")
[ -n "$hash" ] || skip_all "no bcrypt here: sudo apt install apache2-utils"
printf 'alice:%s\n' "$hash" >"$reg/htpasswd"
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=CA of the test" -keyout "$reg/ca.key" -out "$reg/ca.pem"
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$reg/key.pem" -out "$reg/req.pem"
	openssl x509 -req -in "$reg/req.pem" -CA "$reg/ca.pem" -CAkey "$reg/ca.key" -CAcreateserial -days 2 -out "$reg/cert.pem" \
		-extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1')
} >"$reg/openssl.log" 2>&1 || { cat "$reg/openssl.log"; exit 1; }
# registry NAME CONFIG...: $port is where it listens
registry() {
	local name=$1
	shift
	{
		printf 'version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}, cache: {}}\n' "$reg/data"
		printf '%s\n' "$@"
	} >"$reg/$name.yml"
	docker-registry serve "$reg/$name.yml" >"$reg/$name.log" 2>&1 &
	ends+=($!)
	wait_for 60 grep -q 'listening on' "$reg/$name.log" || { cat "$reg/$name.log"; exit 1; }
	port=$(sed -n 's/.*listening on 127.0.0.1:\([0-9]*\).*/\1/p' "$reg/$name.log")
}
registry open 'http: {addr: "127.0.0.1:0", secret: x}'
open=127.0.0.1:$port open_port=$port
registry closed "http: {addr: '127.0.0.1:0', secret: x, tls: {certificate: $reg/cert.pem, key: $reg/key.pem}}" \
	"auth: {htpasswd: {realm: test, path: $reg/htpasswd}}"
closed=localhost:$port
helper() { # NAME ARGS...: $port is where it listens
	local name=$1
	shift
	python3 "$here/../lib/registry.py" "$@" >"$reg/$name.log" 2>&1 &
	ends+=($!)
	wait_for 60 test -e "$reg/$name/port" || { cat "$reg/$name.log"; exit 1; }
	port=$(cat "$reg/$name/port")
}
helper proxy proxy "$reg/proxy" "$open_port"
proxy=127.0.0.1:$port
helper tokens tokens "$reg/tokens" https://tokens.invalid/give
tokens=127.0.0.1:$port

# ---- what is in them
img=$PWD/img
tree=
! gcc -static -O2 -o "$PWD/tree" "$here/guest/tree.c" 2>/dev/null || tree=$PWD/tree
python3 "$here/../lib/images.py" make "$img" ${tree:+"$tree"} || exit 1
push() { skopeo --insecure-policy copy -q --dest-tls-verify=false "$@" >"$reg/push.log" 2>&1 || { cat "$reg/push.log"; exit 1; }; }
push "docker-archive:$img/one.tar:tiny:1" "docker://$open/team/tiny:1"
push "docker-archive:$img/one.tar:tiny:1" "docker://$open/team/two-parts:1"
push --all "oci:$img/layout:layout:2" "docker://$open/team/multi:2"
push "oci:$img/layout:layout:2" "docker://$open/team/two:2"
python3 "$here/../lib/registry.py" push "$open_port" team/chart 1 application/vnd.cncf.helm.config.v1+json || exit 1
manifest_of() { skopeo inspect --raw --tls-verify=false "docker://$open/$1" | sha256sum | cut -d' ' -f1; }
layer_of() { skopeo inspect --raw --tls-verify=false "docker://$open/$1" | json "d[\"layers\"][$2][\"digest\"][7:]"; }
file_of() { echo "$reg/data/docker/registry/v2/blobs/sha256/${1:0:2}/$1/data"; }
tiny=$(manifest_of team/tiny:1)

pulls() { # NAME REF: it works
	ok "$1" bac template pull "$2"
}
refused() { # NAME REF WANT OPTIONS...: one line, which says this
	local name=$1 ref=$2 want=$3
	shift 3
	run bac template pull "$@" "$ref"
	[[ $rc == [12] ]] && [[ $err =~ $want ]] && [ "$(grep -c '^bac: ' <<<"$err")" -eq 1 ] && pass "$name" || fail "$name" "wanted: $want" "$(seen "$ref")"
}

# ---- names
refused "a name without a registry" tiny:1 "'tiny:1' does not say which registry: docker.io/tiny:1, perhaps"
refused "a name that is none" localhost:1/Tiny "is not the name of an image"
refused "a digest that is none" "$open/team/tiny@sha256:12" "behind '@' goes sha256: and 64"
refused "... or of another kind" "$open/team/tiny@md5:12" "behind '@' goes sha256: and 64"

# ---- who may
refused "RG-01: an authority that nobody knows" "$closed/team/tiny:1" "^bac: registry $closed: its certificate is not trusted .*tls.extraCa|bac: registry $closed: its certificate"
export BAC_TLS_EXTRA_CA=$reg/ca.pem
refused "RG-01: no password: what to do is said" "$closed/team/tiny:1" "registry $closed does not give 'team/tiny' to everybody, and there is no password for it: bac secret set --registry $closed"
export BAC_SECRETS_STORE=file
printf wrong | bac secret set --registry "$closed" --username alice --password-stdin >/dev/null
refused "RG-01: a wrong password: registry and user are named" "$closed/team/tiny:1" "registry $closed refuses user 'alice' \(wrong password\?\)"
printf %s "$password" | bac secret set --registry "$closed" --username alice --password-stdin >/dev/null
pulls "RG-01: by tag, with TLS of an authority of our own and a password" "$closed/team/tiny:1"
is "... nothing is left of the pull" "$(staged)" 0
run bac template ls -q
like "... the tag is its name with the registry" "$out" "$closed/team/tiny:1"
run bac template inspect --json "$closed/team/tiny:1"
is "... the manifest's digest is kept" "$(json 'd["manifest"]' <<<"$out")" "sha256:$tiny"
run bac template pull "$closed/team/tiny:1"
like "... again: nothing is fetched" "$out" "^Up to date: $closed/team/tiny:1"
run bac template pull -q "$closed/team/tiny@sha256:$tiny"
is "by digest: the same" "$out" "$(json 'd["digest"]' <<<"$("$BAC" template inspect --json "$closed/team/tiny:1")")"
unlike "-q shows no progress" "$err" asking
run bac template pull --json "$closed/team/tiny:1"
is "--json" "$(json '[d["fetched"], d["reference"]]' <<<"$out")" "[false, \"$closed/team/tiny:1\"]"
refused "missing tag" "$closed/team/tiny:9" "registry $closed \(user 'alice'\): 'team/tiny' has no tag '9'"
refused "missing repository" "$closed/team/none:1" "registry $closed has no repository 'team/none' \(user 'alice'\)"
refused "missing digest" "$closed/team/tiny@sha256:${tiny//0/1}" "registry $closed \(user 'alice'\): 'team/tiny' has no manifest 'sha256:"
printf x | bac secret set --registry "$tokens" --username bob --password-stdin >/dev/null
refused "RG-01: a password is not shown to another host" "$tokens/a:1" "wants user 'bob' to show the password to https://tokens.invalid/give; if that is right: .*--registry-auth-endpoint https://tokens.invalid/give"
printf x | bac secret set --registry "$tokens" --username bob --password-stdin --registry-auth-endpoint https://tokens.invalid/give >/dev/null
refused "... unless the user names it" "$tokens/a:1" "registry $tokens \(user 'bob'\): the host of its tokens \(https://tokens.invalid/give\): its name cannot be looked up"
fails "an endpoint has TLS" bac secret set --registry "$tokens" --username bob --password-stdin --registry-auth-endpoint http://x
refused "nobody there" 127.0.0.1:1/a:1 'registry 127.0.0.1:1: it cannot be reached'
refused "unknown host" registry.invalid/a:1 'registry registry.invalid: its name cannot be looked up'

# ---- without TLS
run bac template pull "$open/team/multi:2"
is "RG-01: a registry of this machine without TLS" "$rc" 0
like "... is said" "$err" "note: registry $open is used without TLS"
is "an image for several machines: ours" "$(json 'd["config"]["arch"]' <<<"$("$BAC" template inspect --json "$open/team/multi:2")")" amd64
is "... whose first layer is the one that is there" "$(layers)" 2
refused "... what is not there for a machine" "$open/team/multi:2" "'team/multi:2': it is not there for linux/s390x \(there is: linux/arm64, linux/amd64\)" --platform linux/s390x
refused "... nor of one for a single machine" "$open/team/tiny:1" "it is not there for linux/arm64 \(there is: linux/amd64\)" --platform linux/arm64
refused "an artifact is no image" "$open/team/chart:1" "'team/chart:1': it is not an image but an artifact \(application/vnd.cncf.helm.config.v1\+json\)"

# ---- damage
bac template prune -f >/dev/null
layer=$(layer_of team/two:2 1)
cp "$(file_of "$layer")" "$reg/keep"
printf XX | dd of="$(file_of "$layer")" bs=1 seek=30 conv=notrunc status=none
refused "digest mismatch of a layer" "$open/team/two:2" "registry $open: a layer is damaged: its content is not what its digest says"
is "... what came whole is kept" "$(staged)" 1
rm "$(file_of "$layer")"
refused "a layer that is not there" "$open/team/two:2" "registry $open: a layer of the image is not there"
cp "$reg/keep" "$(file_of "$layer")"
two=$(manifest_of team/two:2)
cp "$(file_of "$two")" "$reg/keep-manifest"
sed -i 's/^{/{ /' "$(file_of "$two")"
refused "digest mismatch of a manifest" "$open/team/two@sha256:$two" 'its manifest is damaged: wanted sha256:|has no manifest|manifest verification failed'
cp "$reg/keep-manifest" "$(file_of "$two")"
touch "$reg/proxy/cut"
bac template prune -f >/dev/null
is "prune removes what pulls have left" "$(staged)" 0
refused "a blob that ends early" "$proxy/team/two:2" "registry $proxy: a layer ended early; what came whole is kept, try again"
rm "$reg/proxy/cut"
bac template prune -f >/dev/null

# ---- interrupted and resumed
: >"$reg/proxy/log"
kill "${ends[2]}"
wait "${ends[2]}" 2>/dev/null
rm -f "$reg/proxy/port"
touch "$reg/proxy/stall"
python3 "$here/../lib/registry.py" proxy "$reg/proxy" "$open_port" >"$reg/proxy.log" 2>&1 &
ends[2]=$!
wait_for 60 test -e "$reg/proxy/port" || exit 1
proxy=127.0.0.1:$(cat "$reg/proxy/port")
printf %s "$password" | bac secret set --registry "$proxy" --username alice --password-stdin >/dev/null
"$BAC" template pull "$proxy/team/two:2" >pull.out 2>&1 &
child=$!
wait_for 120 test -e "$reg/proxy/stalled" || cat pull.out
whole() { find "$store/pulls" -path '*/blobs/sha256/*' -type f | grep -q .; }
wait_for 60 whole
strings=$(for p in $(pgrep -u "$(id -u)" -x skopeo); do tr '\0' '\n' <"/proc/$p/cmdline"; tr '\0' '\n' <"/proc/$p/environ"; done)
like "a pull under way" "$strings" "docker://$proxy/team/two@sha256:"
unlike "... shows no password in its arguments or environment" "$strings" "$password"
kill -INT "$child"
wait "$child"
is "SIGINT ends it" "$?" 130
like "... and says what is kept" "$(cat pull.out)" 'interrupted; what came whole is kept for the next pull'
is "... nothing of skopeo is left" "$(pgrep -u "$(id -u)" -x skopeo)" ""
is "... one layer of two is there" "$(find "$store/pulls" -path '*/blobs/sha256/*' -type f | wc -l)" 1
is "... and no template" "$("$BAC" template ls -q | grep -c two)" 0
rm "$reg/proxy/stall"
: >"$reg/proxy/log"
pulls "it is resumed" "$proxy/team/two:2"
is "... only the other layer was fetched" "$(wc -l <"$reg/proxy/log")" 1
is "... and nothing is left" "$(staged)" 0

# ---- create -t and --pull. Machines may not start here: what matters is which template was chosen
export BAC_VM_REQUIREKVM=true BAC_VM_ACCEL=tcg
chosen() { run bac create "$@" --name chosen shell; }
bac template prune -f >/dev/null
chosen -t "$open/team/tiny:1" --pull never
like "--pull never: what is not here is not fetched" "$err" "there is no template '$open/team/tiny:1' here, and --pull is never"
chosen -t "$open/team/tiny:1"
like "--pull missing, the default: it is fetched" "$err" "asking $open"
run bac template ls -q
like "... and stays" "$out" "$open/team/tiny:1"
chosen -t "$open/team/tiny:1" --pull missing
unlike "... once" "$err" asking
chosen -t "$open/team/tiny:1" --pull always
like "--pull always: it is asked for" "$err" "asking $open"
chosen -t "$open/team/tiny@sha256:$tiny"
unlike "a digest that is here is not asked for" "$err" asking
chosen -t tiny:7
like "a name without registry that is not here" "$err" "there is no template 'tiny:7'.*docker.io/tiny:7"
chosen -t tiny:7 --pull always
like "... is no name to pull by" "$err" "--pull always: 'tiny:7' does not name a registry"
chosen --pull sometimes
like "--pull takes three words" "$err" "'sometimes' is not always, missing or never"
bac template load -q --tag "$open/team/only-here:1" "$img/user.tar" >/dev/null
chosen -t "$open/team/only-here:1"
unlike "RG-01: an image that is only in the local store" "$err" 'asking|no template'
bac template load -q --tag "$open/team/two:2" "$img/user.tar" >/dev/null
chosen -t "$open/team/two:2"
unlike "RG-01: same tag local and remote: local first" "$err" 'asking'
chosen -t 127.0.0.1:1/team/gone:1 --pull always
like "a pull that fails, and nothing here" "$err" "registry 127.0.0.1:1: it cannot be reached"
bac template load -q --tag 127.0.0.1:1/team/kept:1 "$img/user.tar" >/dev/null
chosen -t 127.0.0.1:1/team/kept:1 --pull always
like "... with a template here: it is used, and said" "$err" 'warning: registry 127.0.0.1:1: it cannot be reached; the template that is here is used'
unset BAC_VM_REQUIREKVM BAC_VM_ACCEL
bac rm --all --force >/dev/null 2>&1

# ---- a full disk
if [ "$(id -u)" -eq 0 ] && mkdir -p "$E2E_DIR/full" && mount -t tmpfs -o size=300k none "$E2E_DIR/full" 2>/dev/null; then
	XDG_CACHE_HOME=$E2E_DIR/full refused "a full disk" "$open/team/two:2" "too little space in .*: [0-9.]+ KiB free, .* to fetch|the disk is full"
	umount "$E2E_DIR/full"
else
	skip "a full disk" "for root only: it needs a small file system"
fi

# ---- save and load
if [ -z "$tree" ]; then
	skip "save and load" "no static program can be built here: sudo apt install gcc libc6-dev"
	exit 0
fi
bac template load -q "$img/one.tar" >/dev/null
run bac create -t tiny:1 --network none --name one --memory 256m --cpus 1 -q shell .
is "a sandbox with a workspace" "$rc" 0
bac exec -u root -i one sh -s <<-'GUEST'
	mkdir -p /opt/made/d/e && cd /opt/made
	echo new >plain && ln plain hard && ln -s plain link && chmod 6755 plain
	dd if=/dev/zero of=sparse bs=1 count=3 seek=5000000 2>/dev/null
	printf x | dd of=sparse bs=1 seek=1000000 conv=notrunc 2>/dev/null
	mkdir -m 1777 sticky && chmod 700 d/e
	n=$(head -c 200 /dev/zero | tr '\0' n); echo long >"$n"; ln -s "$n" longlink
	echo odd >"$(printf 'new\nline')"; echo odd >"$(printf 'bad\377byte')"
	chown 300000:70000 d
	rm /probe/plain && echo changed >/probe/block && rm -r /probe/hidden && echo in >/var/lib/docker/not && echo tmp >/tmp/kept
GUEST
echo host >host-file
listing() { "$BAC" exec -u root "$1" sh -c 'for d in /bin /home /lib /opt /probe /root /sbin /tmp /usr; do echo "== $d"; tree $d; done'; }
listing one >before.txt
"$BAC" exec one sh -c 'echo $$ >/tmp/pid; i=0; while :; do i=$((i + 1)); echo $i >/tmp/count; sleep 0.05; done' &
child=$!
wait_for 60 "$BAC" exec one test -s /tmp/count
run bac template save one mine/saved:1
is "a sandbox that runs is not saved without a word" "$rc" 1
like "... from whoever is there to ask" "$err" "pausing its programs while it is saved needs an answer, and there is no terminal; use --force"
run bac template save -f one mine/saved:1 -o saved.tar
is "save" "$rc" 0
like "... says what it made" "$out" "^Saved 'one' as mine/saved:1 \([0-9a-f]{12}, .*\), and in saved.tar"
like "... and warns" "$err" 'keys and passwords that were written to its files are in it too'
is "... the file is for its owner only" "$(stat -c %a saved.tar)" 600
count=$("$BAC" exec one cat /tmp/count)
later() { # it may be empty while it is written
	local now
	now=$("$BAC" exec one cat /tmp/count)
	[ "${now:-0}" -gt "${count:-0}" ]
}
wait_for 60 later && pass "its programs go on" || fail "its programs go on"
kill "$child"
wait "$child" 2>/dev/null
is "nothing of the host's is in it" "$(tar xOf saved.tar "blobs/sha256/$(tar xOf saved.tar manifest.json | json 'd[0]["Layers"][0][13:]')" | tar tf - 2>/dev/null | grep -cE "host-file|$(basename "$PWD")/.|docker/not|^(proc|sys|dev|run)/.")" 0
run bac template inspect --json mine/saved:1
saved=$(json 'd["digest"]' <<<"$out")
is "ENV, CMD, WORKDIR and labels are the template's" "$(json '[d["config"]["env"][1], d["config"]["cmd"][0], d["config"]["workdir"], d["config"]["labels"]]' <<<"$out")" \
	'["GREETING=hello there", "sh", "/srv/app", ["a=b"]]'
run bac create -t mine/saved:1 --pull never --network none --name again --memory 256m --cpus 1 -q shell
is "a sandbox of what was saved" "$rc" 0
listing again >after.txt
is "identical: modes, owners, times, links, attributes, content" "$(diff <(grep -av '^/\(pid\|count\) ' before.txt | sed '/^== \/tmp/,/^== /{/^\/ /d}') <(grep -av '^/\(pid\|count\) ' after.txt | sed '/^== \/tmp/,/^== /{/^\/ /d}') | head -c 1500)" ""
[ "$(wc -l <after.txt)" -gt 700 ] && pass "... and that was much" || fail "... and that was much" "$(wc -l <after.txt)"
run skopeo inspect "docker-archive:saved.tar:mine/saved:1"
is "the file is a docker archive" "$rc" 0
run skopeo inspect oci-archive:saved.tar
is "... and an OCI archive" "$rc" 0
bac rm -f again >/dev/null 2>&1
bac template rm -f mine/saved:1 >/dev/null
run bac template load -q saved.tar
is "load of the file: the same template" "$out" "$saved"
run bac template ls -q
like "... with its tag" "$out" 'mine/saved:1'
ok "a sandbox that is stopped" bac stop one
run bac template save -q one mine/saved:2
is "... is saved too" "$rc" 0
is "... and stopped again" "$(json '[b["status"] for b in d["sandboxes"]]' <<<"$("$BAC" ls --json)")" '["stopped"]'
fails "a tag that is none" bac template save one Mine/saved
fails "a file that cannot be" bac template save -f one mine/saved:3 -o none/x.tar
is "... nothing is left of it" "$(find . -name '*.bac-*' | wc -l)" 0
