#!/bin/bash
# bac cp, both ways. Cases CP-01 to CP-05.
# timeout: 900
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
ok 'create' bac create --name x -m 1g shell
x() { command "$BAC" exec x "$@"; }
sum() { sha256sum | cut -c1-16; }

head -c 300000 /dev/urandom >data.bin
echo one >one
ok 'a file to a new name' bac cp data.bin x:/home/agent/new.bin
is 'arrives whole' "$(x cat /home/agent/new.bin | sum)" "$(sum <data.bin)"
is 'and is the agent'"'"'s' "$(x stat -c %U:%G /home/agent/new.bin)" agent:agent
ok 'into a directory' bac cp one x:/home/agent
is 'under its name' "$(x cat /home/agent/one)" one
ok 'into a missing directory with a slash' bac cp one x:/home/agent/a/b/c/
is 'which is made' "$(x cat /home/agent/a/b/c/one)" one
is 'for the agent' "$(x stat -c %U /home/agent/a/b)" agent
ok 'to a missing parent' bac cp one x:/home/agent/p/q/r
is 'likewise' "$(x cat /home/agent/p/q/r)" one
ok 'over a file' bac cp data.bin x:/home/agent/one
is 'replaces it' "$(x cat /home/agent/one | sum)" "$(sum <data.bin)"
: >empty
ok 'an empty file' bac cp empty x:/home/agent/
is 'stays empty' "$(x stat -c %s /home/agent/empty)" 0
truncate -s 5G sparse
printf x | dd of=sparse bs=1 seek=4G conv=notrunc status=none
ok 'a sparse file of 5 GiB' bac cp sparse x:/home/agent/
is 'has its size' "$(x stat -c %s /home/agent/sparse)" 5368709120
[ "$(x stat -c %b /home/agent/sparse)" -lt 2048 ] && pass 'and stays sparse' || fail 'and stays sparse' "$(x stat /home/agent/sparse)"
mkdir -p tree/sub/.git tree/empty
echo a >tree/a
echo ignored >tree/sub/ignored
echo '*' >tree/sub/.gitignore
echo head >tree/sub/.git/HEAD
ln -s a tree/link
ln -s /nowhere tree/dangling
ln tree/a tree/hard
chmod 750 tree/sub
chmod 4711 tree/a
touch -d '2001-02-03T04:05:06.123456789Z' tree/sub/ignored tree/sub
ok 'a directory' bac cp tree x:/home/agent/
ok 'the same as a new name' bac cp tree x:/home/agent/tree2
list='cd "$1" && find . -printf "%P %y %m %l %T@\n" | grep -v "^ " | sort'
# setuid does not travel
is 'equal: names, kinds, modes, times' "$(x sh -c "$list" - /home/agent/tree)" "$(sh -c "$list" - tree | sed 's/ 4711 / 711 /')"
is 'CP-02: .git and ignored files too' "$(x cat /home/agent/tree/sub/.git/HEAD /home/agent/tree/sub/ignored)" $'head\nignored'
is 'hard links stay one file' "$(x stat -c %h /home/agent/tree/hard)" 2
ok 'SRC/. is the content' bac cp tree/. x:/home/agent/into
is 'so' "$(x ls -A /home/agent/into | tr '\n' ' ')" 'a dangling empty hard link sub '
fails 'a directory onto a file' bac cp tree x:/home/agent/one
like 'is refused in one line' "$err" '^bac: [^'$'\n'']*$'
is 'and the file is whole' "$(x cat /home/agent/one | sum)" "$(sum <data.bin)"
ok 'a link' bac cp tree/link x:/home/agent/l1
is 'is copied as a link' "$(x readlink /home/agent/l1)" a
ok '-L' bac cp -L tree/link x:/home/agent/l2
is 'copies what it points to' "$(x cat /home/agent/l2)" a
ok 'for root' bac cp -u root one x:/root/one
is 'belongs to root' "$(x sudo stat -c %U /root/one)" root

ok 'out: a file' bac cp x:/home/agent/new.bin back.bin
is 'CP-05: equal' "$(sum <back.bin)" "$(sum <data.bin)"
is 'and mine' "$(stat -c %u back.bin)" "$(id -u)"
ok 'out: a directory' bac cp x:/home/agent/tree back
is 'equal' "$(sh -c "$list" - back)" "$(sh -c "$list" - tree | sed 's/ 4711 / 711 /')"
ok 'out: sparse' bac cp x:/home/agent/sparse back.sparse
[ "$(stat -c %b back.sparse)" -lt 2048 ] && pass 'stays sparse' || fail 'stays sparse'
fails 'out: what is not there' bac cp x:/no/such .
like 'is named' "$err" '/no/such'
is 'and nothing is made' "$(ls such 2>/dev/null)" ''
fails 'in: what is not there' bac cp nosuch x:/home/agent/
like 'is named too' "$err" 'nosuch'
fails 'a relative path there' bac cp one x:relative
fails 'two local paths' bac cp one two
fails 'two sandboxes' bac cp x:/a x:/b
fails 'a sandbox that is not there' bac cp one nobody:/tmp/
fails 'into a read-only place' bac cp one x:/proc/one

ok 'tar in' bash -c 'tar c tree | "$BAC" cp - x:/home/agent/fromtar'
is 'unpacks' "$(x cat /home/agent/fromtar/tree/a)" a
ok 'tar out' bash -c '"$BAC" cp x:/home/agent/tree - | tar t | sort | head -3 >names'
like 'has the tree' "$(cat names)" 'tree'

# CP-04: killed half way, the old content stays
x sh -c 'echo old >/home/agent/target'
mkfifo slow
"$BAC" cp - x:/home/agent/ <slow &
pid=$!
exec 8>slow
truncate -s 300M target
tar c target | head -c 100M >&8
wait_for 60 bash -c '[ "$("$BAC" inspect --json x | python3 -c "import json,sys; print(json.load(sys.stdin)[\"sessions\"])")" = 1 ]'
kill -KILL $pid
exec 8>&-
wait $pid 2>/dev/null
is 'a copy that is killed leaves the old file' "$(x cat /home/agent/target)" old
wait_for 30 x sh -c '! ls -A /home/agent | grep -q bac-cp' && pass 'and nothing beside it' || fail 'and nothing beside it' "$(x ls -A /home/agent)"
ok 'full disk: prepare' x sudo sh -c 'mkdir -p /small && mount -t tmpfs -o size=1m none /small && chmod 777 /small && echo old >/small/data.bin'
head -c 3000000 /dev/urandom >big.bin
fails 'full disk: an error' bac cp big.bin x:/small/data.bin
like 'says so' "$err" '[Nn]o space'
is 'and the old file stays' "$(x cat /small/data.bin)" old
bac stop x
ok 'a stopped sandbox is started' bac cp one x:/home/agent/after
is 'and has it' "$(x cat /home/agent/after)" one
for name in '数据' 'a b' "it's" 'q"q' 'c,d' 'e=f' '%s' -dash $'new\nline' "$(printf 'é%.0s' $(seq 127))"; do
	echo "$name" >"./$name"
	if run bac cp "./$name" x:/home/agent/names/ && [ "$(x cat "/home/agent/names/$name")" = "$name" ]; then
		pass "name $(printf %q "${name:0:20}")"
	else
		fail "name $(printf %q "${name:0:20}")" "$(seen cp)"
	fi
done
