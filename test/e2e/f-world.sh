#!/bin/bash
# Clock, disk, logs, idling, limits. Cases CK-01, CK-02, DK-01 to DK-08, EX-05.
# timeout: 1200
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
state=$XDG_STATE_HOME/bac
qemu() { command "$BAC" inspect --json "$1" | python3 -c 'import json,sys; print(json.load(sys.stdin)["qemu_pid"])'; }
off() { # how far the guest's clock is from ours, in seconds
	local there
	there=$(command "$BAC" exec x date +%s.%N) || return 1
	python3 -c 'import sys, time; print(f"{abs(time.time() - float(sys.argv[1])):.2f}")' "$there"
}
close() { python3 -c 'import sys; sys.exit(float(sys.argv[1]) > 1.5)' "$(off)"; }
export -f off close

ok 'create' bac create --name x -m 1g shell
# emulated by a QEMU before 8.1: one thread runs all processors
one_thread='d["emulated"]'
qemu-system-x86_64 --version | grep -Eq 'version ([0-7]\.|8\.0)' || one_thread=False
run bac inspect --json x
is 'processors: all, or one where one thread emulates them' "$(json 'd["cpus"]' <<<"$out")" "$(json "1 if $one_thread else min(len(__import__('os').sched_getaffinity(0)), 64)" <<<"$out")"
is 'as many are inside' "$(bac exec x nproc)" "$(json 'd["cpus"]' <<<"$out")"
id=$(bac inspect --json x | json 'd["id"]')
disk=$state/sandboxes/$id/disk.img
used() { echo $(($(stat -c %b "$disk") / 2048)); } # MiB

# clock
ok 'the clock is the host'"'"'s' close
q=$(qemu x)
kill -STOP "$q"
python3 -c 'import time; time.sleep(15)' # the sleep of the machine is what is tried
kill -CONT "$q"
wait_for 10 close && pass 'CK-01: and again after 15 s asleep' || fail 'CK-01: and again after 15 s asleep' "off by $(off)"
bac exec x sudo date -s '-1 day' >/dev/null
wait_for 10 close && pass 'and after root set it back a day' || fail 'and after root set it back a day' "off by $(off)"
bac exec x sudo date -s '+3 hours' >/dev/null
wait_for 10 close && pass 'or forward' || fail 'or forward'
bac stop x
ok 'CK-02: after a stop and start' close

# disk
is 'DK-01: 20 GiB, and 10 for the Docker Engine' "$(stat -c %s "$disk")" $(((20 + 10) << 30))
[ "$(used)" -lt 200 ] && pass 'DK-02: of which little is used' || fail 'DK-02: of which little is used' "$(used) MiB"
like 'the guest sees it' "$(bac exec x df -BG --output=size / | tail -1)" '^ *(19|20)G'
bac exec x sh -c 'head -c 400M /dev/urandom >big; sync'
full=$(used)
[ "$full" -gt 390 ] && pass '400 MiB written' || fail '400 MiB written' "$full MiB"
bac exec x sh -c 'rm big; sync; sudo fstrim / 2>/dev/null; true'
back() { [ "$(used)" -lt $((full - 300)) ]; }
wait_for 60 back && pass 'space freed inside comes back' || fail 'space freed inside comes back' "$full MiB then $(used) MiB"
like 'DK-07: inodes are many' "$(bac exec x df --output=itotal / | tail -1)" '[0-9]{6,}'

# logs
like 'logs show the kernel' "$(bac logs x)" 'kernel: .*Linux version'
like 'and the supervisor' "$(bac logs x)" 'bac: the guest is ready'
"$BAC" logs -f x >follow.out &
pid=$!
bac exec x sudo sh -c 'echo marker-in-kmsg >/dev/kmsg'
wait_for 30 grep -q marker-in-kmsg follow.out && pass 'logs -f follows' || fail 'logs -f follows'
kill $pid
wait $pid 2>/dev/null
bac exec x sudo bash -c 'printf -v pad %0200d 0; for ((i = 0; i < 30000; i++)); do echo "flood $i $pad"; done >/dev/kmsg'
size=$(($(stat -c %s "$state/sandboxes/$id/log.0") + $(stat -c %s "$state/sandboxes/$id/log.1")))
[ $size -le 2200000 ] && pass 'DK-08: a flood is bounded' || fail 'DK-08: a flood is bounded' "$size"
is 'and the sandbox goes on' "$(bac exec x echo hi)" hi

# idling
bac stop x
ok 'short idle time' env BAC_SANDBOX_IDLE_TIMEOUT=2s "$BAC" exec x true
stopped() { [ "$(command "$BAC" ls --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["sandboxes"][0]["status"])')" = stopped ]; }
wait_for 30 stopped && pass 'an idle sandbox stops' || fail 'an idle sandbox stops'
like 'and says why' "$(bac inspect x)" 'without use'
BAC_SANDBOX_IDLE_TIMEOUT=2s bac exec -d x sleep 8 >/dev/null 2>&1
python3 -c 'import time; time.sleep(5)' # longer than the idle time: what is tried is that nothing happens
stopped && fail 'one with a detached command does not' || pass 'one with a detached command does not'
wait_for 40 stopped && pass 'until that ends' || fail 'until that ends'

# status and names
status 'EX-05: the status of run' 7 bac run --name x -- sh -c 'exit 7'
status 'and 0' 0 bac run --name x -- true
like 'run comes back to the same' "$(bac run --name x -- hostname)" '^x$'
fails 'limits only for new ones' bac run --name x --cpus 1 -- true
fails 'and when to pull' bac run --name x --pull never -- true
like 'in words of sbx' "$err" 'can only be used when creating a new sandbox'
for name in -a '' ".." a/b "$(printf 'a%.0s' $(seq 64))" default a_b 'a b' 数据 'a.'; do
	run bac create "--name=$name" shell
	[ "$rc" -ne 0 ] && grep -q "name" <<<"$err" || fail "UN-04: the name '$name' is refused" "$(seen create)"
done
pass 'UN-04: ten bad names are refused'
ok 'a name with a dot' bac create --name a.b -m 256m --cpus 1 shell
is 'is the host name' "$(bac exec a.b hostname)" a.b
ok 'and works everywhere' bash -c '"$BAC" stop a.b && "$BAC" inspect a.b && "$BAC" logs a.b && "$BAC" rm -f a.b' >/dev/null
mkdir -p 'odd, name=数据 %s'
cd 'odd, name=数据 %s' || exit
ok 'UN-01: a folder with an odd name' bac run -d shell
cd ..
ok 'is a sandbox with a plain one' bash -c '"$BAC" ls -q | grep -q "^shell-odd-name"'
like '--cpus and --memory' "$(bac create --name small --cpus 1 -m 300m shell && bac exec small sh -c 'nproc; free -m | sed -n 2p')" $'1\n.*2[5-9][0-9]'
is 'an explicit --cpus is kept' "$(bac create -q --name two --cpus 2 -m 256m shell && bac exec two nproc)" 2
status 'DK-04: /dev/shm is bounded' 1 bac exec small sh -c 'dd if=/dev/zero of=/dev/shm/f bs=1M count=100000 2>/dev/null'
