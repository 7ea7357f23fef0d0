#!/bin/bash
# Twenty sandboxes, made by twenty processes at once. Cases CC-02, CL-02.
# timeout: 1500
# alone: twenty machines, and it waits until the user has no supervisor
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
n=20
before=$(snapshot)
for i in $(seq $n); do
	"$BAC" create --name "m$i" --cpus 1 -m 256m shell >"create.$i" 2>&1 &
	pids[i]=$!
done
made=0
for i in $(seq $n); do
	if wait "${pids[i]}"; then made=$((made + 1)); else note "m$i: $(cat "create.$i")"; fi
done
is 'twenty are made' $made $n
is 'ls is complete' "$(bac ls -q | sort)" "$(seq -f 'm%g' $n | sort)"
like 'and all run' "$(bac ls --json | json 'sorted({b["status"] for b in d["sandboxes"]})')" '^\["running"\]$'
for i in $(seq $n); do
	"$BAC" exec "m$i" hostname >"host.$i" 2>&1 &
done
wait
is 'all answer' "$(cat host.* | sort)" "$(seq -f 'm%g' $n | sort)"
for i in 1 2 3 4; do "$BAC" create --name same --cpus 1 -m 256m shell >"same.$i" 2>&1 & done
wait
is 'the same name four times at once: one' "$(bac ls -q | grep -c '^same$')" 1
is 'and three refusals' "$(cat same.* | grep -c 'there already')" 3
bac stop same
for i in 1 2 3 4 5; do "$BAC" exec same echo ok >"same.$i" 2>&1 & done
wait
is 'five start the same stopped one at once' "$(cat same.? | grep -c '^ok$')" 5
for name in $(bac ls -q); do "$BAC" rm --force "$name" >/dev/null 2>rm.err & done
wait
is 'all go' "$(bac ls -q)" ''
wait_for 30 bash -c '[ -z "$(pgrep -u "$(id -u)" -x bac-supervisor)" ]'
is 'and nothing is left' "$(snapshot)" "$before"
