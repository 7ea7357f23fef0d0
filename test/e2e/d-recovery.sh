#!/bin/bash
# What is killed, cut or full leaves something that the next command repairs or names. Cases CS-01, CS-04,
# CL-01, CL-02, CC-01.
# timeout: 1500
# alone: it waits until the user has no supervisor
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
state=$XDG_STATE_HOME/bac
one_line() { [[ $err =~ ^bac:\ [^$'\n']+$ ]] && [ "$(wc -l <<<"$err")" -eq 1 ]; }
supervisor() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["pid"])' "$state/sandboxes/$(id_of "$1")/run.json"; }
id_of() { command "$BAC" inspect --json "$1" | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])'; }
qemu() { command "$BAC" inspect --json "$1" | python3 -c 'import json,sys; print(json.load(sys.stdin)["qemu_pid"])'; }
gone() { [ ! -e "/proc/$1" ] || grep -q "^State:.Z" "/proc/$1/status"; } # a zombie is for its new parent to bury
state_of() { command "$BAC" ls --json | python3 -c 'import json,sys; print({b["name"]: b["status"] for b in json.load(sys.stdin)["sandboxes"]}.get(sys.argv[1], "none"))' "$1"; }
export -f state_of

before=$(snapshot)
ok 'create' bac create --name a -m 512m shell
ok 'a file, synced' bac exec a sh -c 'echo kept >kept; sync'

# the supervisor
pid=$(supervisor a) q=$(qemu a)
kill -KILL "$pid"
wait_for 20 gone "$q" && pass 'QEMU dies with its supervisor' || fail 'QEMU dies with its supervisor'
is 'ls says stopped' "$(state_of a)" stopped
run bac exec a cat kept
is 'the next command starts it, files intact' "$out" kept
like 'and says what happened' "$err" "sandbox 'a' was cut off"
run bac exec a true
is 'once' "$(grep -c 'cut off' <<<"$err")" 0

# QEMU
kill -KILL "$(qemu a)"
wait_for 20 bash -c '[ "$(state_of a)" = stopped ]' && pass 'QEMU killed: stopped' || fail 'QEMU killed: stopped'
like 'with the reason' "$(bac inspect a)" 'killed by signal 9'
is 'and starts again' "$(bac exec a cat kept)" kept

# QEMU killed under a running command
"$BAC" exec a sleep 600 2>exec.err &
pid=$!
wait_for 60 bash -c '"$BAC" exec a pgrep -x sleep'
kill -KILL "$(qemu a)"
wait $pid
is 'a running command ends with 125' "$?" 125
like 'and one line' "$(cat exec.err)" 'signal 9'

# the workspace server: a sandbox with a folder that cannot answer is stopped, never left
mkdir -p shared
echo host >shared/f
ok 'a sandbox with a folder' bac create --name w -m 512m shell "$PWD/shared"
server() { pgrep -P "$(supervisor "$1")" -f '^/bac-workspace'; }
"$BAC" exec w sh -c 'while cat f >/dev/null; do :; done' 2>/dev/null &
busy=$!
kill -KILL "$(server w)"
wait_for 60 bash -c '[ "$(state_of w)" = stopped ]' && pass 'the workspace server killed: stopped' || fail 'the workspace server killed: stopped' "$(state_of w)"
like 'with the reason' "$(bac inspect w)" 'workspace server was killed by signal 9'
wait $busy
is 'and starts again, the folder with it' "$(bac exec w cat f)" host
rm -r shared
ok 'stop' bac stop w
fails 'its folder gone: not started' bac exec w true
like 'which is named, with what to do' "$err" "its folder .*/shared is gone; put it back, or take it out with 'bac umount w"
ok 'taken out' bac umount w "$PWD/shared"
ok 'it starts' bac exec w true
ok 'rm' bac rm --force w

# frozen: QEMU stopped
ok 'up again' bac exec a true
ok 'another' bac create --name b -m 512m shell
q=$(qemu a)
kill -STOP "$q"
start=$SECONDS
is 'CC-01: ls marks a frozen one' "$(state_of a)" unresponsive
[ $((SECONDS - start)) -le 4 ] && pass 'in time' || fail 'in time' "$((SECONDS - start)) s"
is 'and the other is not held up' "$(bac exec b echo hi)" hi
kill -CONT "$q"
wait_for 20 bash -c '[ "$(state_of a)" = running ]' && pass 'it comes back' || fail 'it comes back'
kill -STOP "$(supervisor a)"
start=$SECONDS
is 'a frozen supervisor too' "$(state_of a)" unresponsive
[ $((SECONDS - start)) -le 4 ] && pass 'in time' || fail 'in time' "$((SECONDS - start)) s"
is 'the other still answers' "$(bac exec b echo hi)" hi
ok 'rm --force of a frozen one' bac rm --force a
is 'it is gone' "$(state_of a)" none

# the command itself, at random points of a creation
for ms in 5 20 60 150 400 900 1600; do
	"$BAC" create --name c -m 512m shell >/dev/null 2>&1 &
	pid=$!
	python3 -c "import time; time.sleep($ms / 1000)"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if [ "$(state_of c)" != none ]; then
		run bac exec c true || break
		run bac rm --force c || break
	fi
	run bac create --name c -m 512m shell && run bac rm --force c || break
done
is 'create killed at 7 points: the name is free or the sandbox whole' "$rc" 0
"$BAC" create --name c -m 512m shell >/dev/null 2>&1 &
pid=$!
kill -INT $pid
wait $pid
ok 'CL-01: Ctrl-C in create, then create' bash -c '"$BAC" ls >/dev/null; [ "$(state_of c)" = none ] || "$BAC" rm -f c; "$BAC" create --name c -m 512m shell'
ok 'and rm' bac rm --force c

# a boot that takes too long
run env BAC_VM_BOOT_TIMEOUT=200ms "$BAC" create --name slow -m 512m shell
like 'a boot past its deadline is an error' "$err" "cannot start 'slow': the guest did not come up"
is 'and leaves nothing' "$(state_of slow)" none
ok 'the name is free' bac create --name slow -m 512m shell
ok 'and goes' bac rm -f slow

# the database
bac stop b
ok 'vm.bootTimeout is set' bac settings set vm.bootTimeout 77s
for cut in 0 1 100 4095 4096 5000 8192 12000; do
	cp "$state/bac.db" whole.db
	rm -f "$state/bac.db-wal" "$state/bac.db-shm"
	truncate -s $cut "$state/bac.db"
	run bac ls -q
	if [ "$out" != b ] || ! grep -q 'bac: ' <<<"$err"; then
		fail "database cut at $cut" "$(seen ls)"
		break
	fi
done
is 'a database cut at 8 places: nothing lost, and said' "$out" b
is 'settings too' "$(bac settings get vm.bootTimeout)" 77s
head -c 20000 /dev/urandom >"$state/bac.db"
rm -f "$state/bac.db-wal" "$state/bac.db-shm"
run bac ls -q
is 'random bytes: nothing lost' "$out" b
like 'and said' "$err" 'damaged'
ok 'it still starts' bac exec b true
like 'a second of the same name is refused' "$(bac create --name b -m 512m shell 2>&1)" "there already"

# disk full on the state directory
if [ "$(id -u)" -eq 0 ]; then
	full=$E2E_DIR/full
	mkdir -p "$full"
	mount -t tmpfs -o size=2m none "$full"
	# with so many KiB of room it fails at one step or another, until it has enough
	faults=
	for room in 0 8 40 80 120 160 240 400 1000; do
		head -c 3M /dev/zero >"$full/fill" 2>/dev/null
		truncate -s -${room}K "$full/fill"
		XDG_STATE_HOME=$full run bac create --name f -m 512m --network none shell && break
		grep -q space <<<"$err" && [ "$(wc -l <<<"$err")" -eq 1 ] || faults+="$room KiB: $err"$'\n'
		rm -f "$full/fill"
		left=$(XDG_STATE_HOME=$full bac ls -q 2>&1)
		[ -z "$left" ] || faults+="$room KiB: listed: $left"$'\n'
	done
	note "a sandbox was made with $room KiB free"
	[ "$room" -gt 0 ] && pass 'disk full: no sandbox is made' || fail 'disk full: no sandbox is made' "$(seen create)"
	is 'disk full: one line, and nothing half made is listed' "$faults" ''
	head -c 3M /dev/zero >"$full/fill" 2>/dev/null
	XDG_STATE_HOME=$full run bac settings set vm.bootTimeout 50s
	[ "$rc" -ne 0 ] && like 'disk full in a setting: one line' "$err" 'space' || fail 'disk full in a setting' "$(seen settings)"
	rm -f "$full/fill"
	XDG_STATE_HOME=$full ok 'space again: it works' bac ls
	XDG_STATE_HOME=$full run bac rm -f f
	XDG_STATE_HOME=$full is 'and nothing is left' "$(XDG_STATE_HOME=$full bac ls -q)" ''
	umount "$full"
else
	skip 'disk full on the state directory' 'needs root to mount a small file system'
fi

# power loss: the files of a sandbox cut
bac stop b
dir=$state/sandboxes/$(id_of b)
for f in run.json sandbox.json log.0; do
	truncate -s 7 "$dir/$f"
done
ok 'run.json, sandbox.json and the log cut: starts' bac exec b true
bac stop b
mv "$dir/disk.img" disk.img
fails 'a disk that is gone' bac exec b true
like 'is named' "$err" 'disk.img'
mv disk.img "$dir/disk.img"
ok 'and back' bac exec b true
rm -rf "$dir" # under a running one
like 'a directory that is gone is shown' "$(state_of b)" lost
ok 'rm takes it away, and the machine with it' bac rm --force b
ok 'another' bac create --name b -m 512m shell
bac stop b
rm -rf "$state/sandboxes/$(id_of b)"
fails 'a directory that is gone is named' bac exec b true
like 'with what to do' "$err" 'bac rm b'
ok 'rm takes it away' bac rm --force b

# a name that was used a moment ago is found without the database, and never wrongly
ok 'a sandbox' bac create --name n -m 512m shell
ok 'its file' bac exec n sh -c 'echo first >which'
first=$(id_of n)
is 'found by the memory of names' "$(readlink "$state/names/n")" "$first"
truncate -s 100 "$state/bac.db"
rm -f "$state/bac.db-wal" "$state/bac.db-shm"
is 'exec in a running one, its database cut' "$(bac exec n cat which)" first
like 'the next command says so' "$(bac ls -q 2>&1)" 'damaged'
[ ! -e "$state/names/n" ] && pass 'a repair forgets the names' || fail 'a repair forgets the names'
is 'and exec asks the database' "$(bac exec n cat which)" first
ok 'stopped' bac stop n
is 'started by the next' "$(bac exec n cat which)" first
ok 'removed' bac rm -f n
fails 'gone at once' bac exec n true
ok 'another of the name' bac create --name n -m 512m shell
fails 'is another' bac exec n cat which
ok 'and used' bac exec n sh -c 'echo second >which'
(
	export XDG_STATE_HOME=$E2E_DIR/other
	mkdir -p "$XDG_STATE_HOME"
	bac exec n true 2>other.err
)
is 'another state directory does not know it' "$?" 125
ln -sfn "$first" "$state/names/n"
is 'a link that leads nowhere harms nothing' "$(bac exec n cat which)" second
ok 'removed' bac rm -f n

for _ in $(seq 5); do
	run bac create --name again -m 512m shell && run bac rm -f again || break
done
is 'CS-04: five times in a row' "$rc" 0
wait_for 20 bash -c '[ -z "$(pgrep -u "$(id -u)" -x bac-supervisor)" ]'
is 'CL-02: nothing is left' "$(snapshot | grep -v -e damaged -e settings.json)" "$before"
