#!/bin/bash
# Every command in docs/ and in the README, typed as it stands there: test/lib/walk.py says how, test/docs/PAGE.sh makes what a page supposes.
# PAGES="network kits": these only. AGENTS="pi": also what has real agents installed from npm. A row names page and line.
# timeout: 7200
no_policy=1
. "${0%/*}/lib.sh"
here=${0%/*}
top=$here/../..

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -w /dev/net/tun ] && [ -r /dev/net/tun ] || skip_all "/dev/net/tun may not be opened: sudo chmod 0666 /dev/net/tun"

shopt -s nullglob
pages=("$top"/README.md "$top"/docs/*.md "$top"/docs/agents/*.md)
[ ${#pages[@]} -gt 2 ] && pass 'README.md and docs/ are beside test/' || fail 'README.md and docs/ are beside test/'
python3 "$here/../lib/walk.py" --count "$E2E_DIR/rows" "${pages[@]}" || fail 'the walk comes to its end'
rows=$((rows + $(cat "$E2E_DIR/rows" 2>/dev/null || echo 0)))
