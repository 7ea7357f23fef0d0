#!/bin/bash
# Where kits come from: folders, ZIPs, git repositories, registries; and what is refused of them.
# timeout: 400
. "${0%/*}/lib.sh"

here=${0%/*}/../lib
kits=$XDG_CACHE_HOME/bac/kits

# pulled NAME REF: a kit that is taken; its content's digest is left in $digest
pulled() {
	ok "$1" bac kit pull -f "$2"
	digest=$(sed -n 's/.*(content \([0-9a-f]*\)).*/\1/p' <<<"$err")
	pinned=$(sed -n 's/^bac: \(.*\) (content .*/\1/p' <<<"$err")
}

# refused NAME REF REGEX
refused() {
	fails "$1" bac kit pull -f "$2"
	like "$1: says why" "$err" "$3"
}

make_kit() {
	mkdir -p "$1/files/home/bin" "$1/files/workspace"
	printf 'schemaVersion: "2"\nkind: mixin\nname: k\n' >"$1/spec.yaml"
	printf '#!/bin/sh\n' >"$1/files/home/bin/run"
	chmod 755 "$1/files/home/bin/run"
	echo text >"$1/files/workspace/notes"
}

# ---- folders ----
make_kit k
ok 'pack: a folder as a ZIP' bac kit pack ./k
is 'it is named after the folder' "$out" k.zip
cp k.zip first.zip
fails 'pack does not overwrite' bac kit pack ./k
like 'and says how it would' "$err" 'is there already; use --force'
touch -d '2001-01-01' k/spec.yaml
ok 'pack again' bac kit pack -f ./k
ok 'makes the same bytes' cmp k.zip first.zip
ok 'pack -o' bac kit pack ./k -o other.zip
fails 'pack of a name' bac kit pack k
like 'wants a folder' "$err" 'is not a folder \(write ./DIR\)'
pulled 'a ZIP' k.zip
want=$digest
pulled 'a folder' ./k
is 'has the same content' "$digest" "$want"
like 'the executable bit is kept' "$(stat -c %A "$kits/$digest"*/files/home/bin/run)" '^-rwx'
mkdir k/files/etc
pulled 'files elsewhere' ./k
like 'are ignored with a warning' "$err" "'files/etc' is not used"
is 'and change nothing' "$digest" "$want"
rmdir k/files/etc
echo more >>"$kits/$digest"*/files/workspace/notes
pulled 'a copy that was changed' ./k
like 'is noticed' "$err" 'was changed; it is made anew'
is 'and made anew' "$digest $(cat "$kits/$digest"*/files/workspace/notes)" "$want text"
ln -s ../workspace/notes k/files/home/out
refused 'a link from one tree into the other' ./k "'files/home/out' is a link that leads out of the kit"
ln -sfn /etc/passwd k/files/home/out
refused 'a link to /etc' ./k 'leads out of the kit'
ln -sfn bin/../../../../x k/files/home/out
refused 'a link up' ./k 'leads out of the kit'
ln -sfn bin/run k/files/home/out
ln -s . k/files/home/here
refused 'links inside are fine, but for a ZIP' ./k 'is a link; a ZIP of a kit has none'
rm k/files/home/out k/files/home/here
mkfifo k/files/home/f
refused 'a FIFO' ./k 'neither a file, a folder nor a link'
rm k/files/home/f
ln -s /etc k/files/home/dir
refused 'a linked folder out' ./k 'leads out of the kit'
rm k/files/home/dir
mv k/files k/real && ln -s real k/files
refused 'files that is a link' ./k "'files' is not a folder of the kit"
rm k/files && mv k/real k/files
cp k/spec.yaml k/spec.yml
refused 'two specifications' ./k 'both spec.yaml and spec.yml'
rm k/spec.yml
truncate -s 65M k/files/home/large
refused 'too much' ./k 'larger than'
rm k/files/home/large
mkdir -p empty
refused 'a folder without a specification' ./empty 'has no spec.yaml'
refused 'a folder without ./' some/kit "a folder is written './some/kit'"
refused 'what is not there' ./nowhere 'No such file'
refused 'an agent that is not there' nobody "there is no built-in agent 'nobody'"

# ---- ZIPs ----
python3 "$here/zips.py" z
while read -r name why; do
	refused "ZIP: $name" "z/$name.zip" "$why"
done <<-'END'
	up leads out of it
	absolute an absolute path
	backslash a backslash
	link a symbolic link
	device neither a file nor a folder
	bomb more than 300 times
	nospec has no spec.yaml at its top
	many more than 4096 files
	twice comes twice
	cut is damaged
	front is damaged
	behind is damaged
	encrypted is encrypted
	zip64 ZIP64
	text is damaged
	file-and-folder .
END
pulled 'a ZIP with an executable' z/exec.zip
like 'keeps it executable' "$(stat -c %A "$kits/$digest"*/files/home/run)" '^-rwx'
is 'nothing was made outside' "$(ls /tmp/evil evil ../evil 2>/dev/null)" ''

# ---- the settings ----
ok 'local kits off' bac settings set kit.allowLocalKits false
refused 'then a folder' ./k 'kits of this machine are off'
refused 'then a ZIP' k.zip 'kits of this machine are off'
refused 'then a file URL' git+file:///nowhere/x 'kits of this machine are off'
ok 'and on' bac settings unset kit.allowLocalKits
refused 'git that is not allowed' 'git+https://localhost:1/k' 'resolve kits: kit "git\+https://localhost:1/k" cannot be installed — its source is not in your allowlist'
refused 'a registry that is not allowed' 'localhost:1/ns/kit:1' 'its source is not in your allowlist'

# ---- git ----
as_git() {
	env -i PATH="$PATH" HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 git -c user.name=t -c user.email=t@t.test -c init.defaultBranch=main "$@"
}
mkdir repos
as_git init -q repos/k.git
make_kit repos/k.git/kits/one
make_kit repos/k.git
echo top >repos/k.git/files/workspace/notes
as_git -C repos/k.git add -A
as_git -C repos/k.git commit -qm one
as_git -C repos/k.git tag v1
first=$(as_git -C repos/k.git rev-parse HEAD)
echo changed >repos/k.git/kits/one/files/workspace/notes
as_git -C repos/k.git commit -qam two
url=git+file://$PWD/repos/k.git

pulled 'git: the top of the default branch' "$url"
like 'is named by its commit' "$pinned" "#ref=[0-9a-f]{40}$"
pulled 'git: a tag and a folder' "$url#ref=v1&dir=kits/one"
is 'has the content of the folder' "$digest" "$want"
is 'and the commit of the tag' "$pinned" "$url#ref=$first&dir=kits/one"
pulled 'git: a branch' "$url#ref=main&dir=kits/one"
unlike 'has other content' "$digest" "$want"
pulled 'git: a commit' "$url#ref=$first&dir=kits/one"
is 'again the same' "$digest" "$want"
like 'git keeps the executable bit' "$(stat -c %A "$kits/$digest"*/files/home/bin/run)" '^-rwx'
mv repos away
pulled 'a commit that is known needs no repository' "$url#ref=$first&dir=kits/one"
refused 'a branch does' "$url#ref=main" 'cannot fetch it: git: '
mv away repos
refused 'a ref that is not there' "$url#ref=nope" "git: fatal: couldn.t find remote ref nope"
refused 'a commit that is not there' "$url#ref=0123456789012345678901234567890123456789" 'cannot fetch it|has no commit'
refused 'a folder that is not there' "$url#dir=nope" "the repository has no folder 'nope'"
refused 'an option for a ref' "$url#ref=--upload-pack=touch" 'is not a branch, tag or commit'
refused 'another transport' 'git+ext::touch x' 'neither an agent'
refused 'a folder above' "$url#dir=../x" 'is not a folder of the repository'

# what a hostile repository tries
mark=$PWD/mark
printf '* filter=bad diff=bad export-subst\nfiles/** export-ignore\n' >repos/k.git/.gitattributes
printf '[submodule "x"]\n\tpath = x\n\turl = ext::touch %s\n' "$mark" >repos/k.git/.gitmodules
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n' >repos/k.git/files/home/lfs
as_git -C repos/k.git add -A
as_git -C repos/k.git commit -qm bad
as_git -C repos/k.git checkout -q -b link
ln -s /etc/passwd repos/k.git/files/home/out
as_git -C repos/k.git add -A
as_git -C repos/k.git commit -qm link
as_git -C repos/k.git checkout -q main
printf '#!/bin/sh\ntouch %s\n' "$mark" >hook && chmod 755 hook
for h in post-checkout post-merge reference-transaction post-index-change pre-auto-gc; do cp hook "repos/k.git/.git/hooks/$h"; done
for name in filter.bad.smudge filter.bad.process core.fsmonitor core.sshCommand; do as_git -C repos/k.git config "$name" "touch $mark"; done
pulled 'git: a repository full of hooks, filters and submodules' "$url"
is 'runs nothing' "$(ls "$mark" 2>/dev/null)" ''
ok 'and gives the files as they are' test -e "$kits/$digest"*/files/home/lfs
refused 'git: a link out' "$url#ref=link" 'leads out of the kit'

if command -v openssl >/dev/null; then
	python3 "$here/git-https.py" https "$PWD/repos" &
	wait_for 20 test -s https/port
	secure=git+https://localhost:$(cat https/port)/k.git
	ok 'allow it' bac settings set kit.allowedSources "[\"docker.io/\", \"localhost:$(cat https/port)/k.git\"]"
	refused 'git over https with an unknown authority' "$secure" 'cannot fetch it: git: '
	export GIT_SSL_CAINFO=$PWD/https/ca.pem
	pulled 'git over https' "$secure#ref=v1&dir=kits/one"
	is 'is the same kit' "$digest" "$want"
	refused 'another repository of that host' "${secure%k.git}other" 'not in your allowlist'
	refused 'and one whose name begins so' "${secure}x" 'not in your allowlist'
	kill %1
	wait %1 2>/dev/null
else
	skip 'git over https' 'openssl is not installed'
fi

# an ssh that is only here: it shows what git would have run
mkdir -p bin
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$@" >>%s/ssh.log\nfor last; do :; done\nexec sh -c "$last"\n' "$PWD" >bin/ssh
chmod 755 bin/ssh
ok 'allow ssh' bac settings set kit.allowedSources git+ssh://git@host.test/
PATH=$PWD/bin:$PATH pulled 'git over ssh' "git+ssh://git@host.test$PWD/repos/k.git#ref=v1&dir=kits/one"
is 'is the same kit too' "$digest" "$want"
like 'asks nobody, forwards nothing' "$(cat ssh.log)" 'BatchMode=yes.*ForwardAgent=no.*git@host.test'
ok 'as before' bac settings unset kit.allowedSources

# ---- registries ----
if command -v docker-registry >/dev/null && command -v skopeo >/dev/null; then
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s/reg}}\nhttp: {addr: "127.0.0.1:%s"}\n' "$PWD" "$port" >reg.yml
	docker-registry serve reg.yml >reg.log 2>&1 &
	registry=$!
	wait_for 20 curl -fs "http://127.0.0.1:$port/v2/"
	for how in v2 v1 empty odd two link bomb many; do
		python3 "$here/artifact.py" "http://127.0.0.1:$port" ns/kit "$how" k "$how" >"$how.digest"
	done
	reg=127.0.0.1:$port
	refused 'a registry on this machine' "$reg/ns/kit:v2" 'not in your allowlist'
	ok 'allow it' bac settings set kit.allowedSources "$reg/ns"
	pulled 'an artifact of version 2' "$reg/ns/kit:v2"
	is 'is named by its digest' "$pinned" "oci://$reg/ns/kit@$(cat v2.digest)"
	ok 'its files are there' test -f "$kits/$digest"*/files/home/bin/run -a -f "$kits/$digest"*/files/workspace/notes
	pulled 'one of version 1' "oci://$reg/ns/kit:v1"
	ok 'likewise' test -f "$kits/$digest"*/files/workspace/notes
	pulled 'one without files' "$reg/ns/kit:empty"
	refused 'what is no kit' "$reg/ns/kit:odd" "it is 'application/vnd.example.other', not a kit"
	refused 'two layers' "$reg/ns/kit:two" 'a kit has one layer, and this has 2'
	refused 'a link out in a layer' "$reg/ns/kit:link" 'leads out of the kit'
	refused 'a layer that unpacks to too much' "$reg/ns/kit:bomb" 'more than 64 MiB'
	refused 'or to too many files' "$reg/ns/kit:many" 'more than 8192 files'
	refused 'a tag that is not there' "$reg/ns/kit:nope" 'cannot fetch it: skopeo: [^=]*manifest unknown'
	refused 'another namespace' "$reg/nsx/kit:v2" 'not in your allowlist'
	pulled 'by digest' "$reg/ns/kit@$(cat v2.digest)"
	kill "$registry"
	wait "$registry" 2>/dev/null
	pulled 'by a digest that is known it needs no registry' "$reg/ns/kit@$(cat v2.digest)"
	refused 'by tag it does' "$reg/ns/kit:v2" 'cannot fetch it'
else
	skip 'registries' 'docker-registry or skopeo is not installed'
fi
ok 'no staging is left' test -z "$(find "$kits" -maxdepth 1 -name '.new-*')"

for c in push sign verify provenance builder delete; do
	fails "kit $c" bac kit "$c" x
	like "kit $c is refused by name" "$err" "'kit $c' is not built yet"
done

# ---- a first draft ----
mkdir -p proj/.github/workflows
echo '{"scripts": {"dev": "vite --port 8123"}}' >proj/package.json
printf 'jobs:\n  t:\n    steps:\n      - run: sudo apt-get install -y jq\n      - run: touch %s/ran\n' "$PWD" >proj/.github/workflows/ci.yml
printf 'NODE_ENV=development\nAPI_TOKEN=x\n' >proj/.env.example
printf 'EXPOSE 80\n' >Dockerfile.out
ln -s ../Dockerfile.out proj/Dockerfile
mkfifo proj/Makefile
ok 'init' bac kit init proj
is 'says what it wrote' "$out" proj/spec.yaml
ok 'the draft is a kit' bac kit validate ./proj
like 'with the name of the folder, hosts, ports, packages, variables' "$(tr '\n' ' ' <proj/spec.yaml)" \
	'name: proj .*"[^"]*npmjs[^"]*".*container: 8123.*NODE_ENV: "development".*install.* jq'
like 'and the likely secrets as a comment' "$(cat proj/spec.yaml)" '# +name: API_TOKEN'
unlike 'nothing through a link' "$(cat proj/spec.yaml)" 'container: 80$|docker'
is 'nothing was run' "$(ls ran 2>/dev/null)" ''
fails 'init again' bac kit init proj
like 'does not overwrite' "$err" 'use --force'
ok 'but with --force' bac kit init --force --name other proj
like 'and a name' "$(cat proj/spec.yaml)" 'name: other'
status 'a name that is none' 2 bac kit init --force --name 'A b' proj
