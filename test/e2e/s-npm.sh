#!/bin/bash
# The agents that come from npm, installed in a machine by their own kits: each once, kept for the next run (cache/kits-installed). Long where machines are emulated:
# so only where AGENTS says which, as in AGENTS="pi gemini" test/run s-npm.
# timeout: 14400
. "${0%/*}/lib.sh"
deadline=5400
[ -n "${AGENTS-}" ] || skip_all 'minutes of npm for each agent: AGENTS="pi codex ..." says which'

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
command -v npm >/dev/null || skip_all 'npm is not installed here: nobody knows which registry to ask'
registry=$(npm config get registry)
host=${registry#*://}
host=${host%%/*}
name=${host%%:*}
case $registry in
https://*) port=443 ;;
*) port=80 ;;
esac
[ "$name" = "$host" ] || port=${host##*:}
curl -fsS -o /dev/null --max-time 20 "$registry" || skip_all "the registry $registry does not answer"

# What the host has for it: its registry, its addresses (which may be private), and whom it trusts.
mkdir -p registry/files/home
cp /etc/ssl/certs/ca-certificates.crt registry/files/home/.host-ca.crt
{
	printf 'schemaVersion: "2"\nkind: mixin\nname: registry\npermissions:\n  network:\n    allow:\n'
	printf '      - "%s:%s"\n' "$name" "$port"
	getent ahosts "$name" | awk '{ print $1 }' | sort -u | while read -r address; do
		case $address in
		*:*) printf '      - "[%s]:%s"\n' "$address" "$port" ;;
		*) printf '      - "%s:%s"\n' "$address" "$port" ;;
		esac
	done
	printf 'environment:\n  variables:\n    npm_config_registry: "%s"\n' "$registry"
	printf '    npm_config_cafile: /home/agent/.host-ca.crt\n    NODE_EXTRA_CA_CERTS: /home/agent/.host-ca.crt\n'
} >registry/spec.yaml

# AGENT|PROGRAM
while IFS='|' read -r agent program; do
	[[ " ${AGENTS-$agent} " = *" $agent "* ]] || continue
	began=$SECONDS
	ok "$agent is installed" bac create -q --name "a-$agent" -m 3g --kit ./registry "$agent"
	[ "$rc" -eq 0 ] || continue
	note "$agent: $((SECONDS - began)) s"
	run bac exec "a-$agent" -- "$program" --version
	like "$agent prints its version" "$out" '[0-9]+\.[0-9]+'
	note "$agent: $(head -n 1 <<<"$out")"
	bac rm -f "a-$agent" >/dev/null
done <<'ROWS'
pi|pi
gemini|gemini
copilot|copilot
claude|claude
opencode|opencode
codex|codex
ROWS

# --- Pi on a terminal
[[ " ${AGENTS-pi} " = *" pi "* ]] || exit 0
if ! command -v tmux >/dev/null; then
	skip 'Pi on a terminal' 'tmux is not installed'
	exit 0
fi
mkdir -p work
cd work || exit 1
terminals=0 # each has a server of its own: one that ends would take the next one with it
mux() { tmux -L "bac-$$-$terminals" "$@"; }
screen() { mux capture-pane -p; }
shows() { screen | grep -q "$1"; }
attach() {
	mux kill-server 2>/dev/null
	terminals=$((terminals + 1))
	mux new-session -d -x "$1" -y "$2" "\"$BAC\" run --name pi -m 3g --kit ../registry pi .; echo status=\$?; cat"
}
again() {
	mux kill-server 2>/dev/null
	terminals=$((terminals + 1))
	mux new-session -d -x "$1" -y "$2" "\"$BAC\" run --name pi; echo status=\$?; cat"
}
attach 100 30
ok 'run shows its screen' wait_for 900 shows 'pi v\|ctrl\|/model\|─────'
note "$(screen)"
wide=$(screen | grep -o '─*' | sort | tail -n 1)
mux resize-window -x 70 -y 25
narrower() { [ "$(screen | grep -o '─*' | sort | tail -n 1)" != "$wide" ]; }
ok 'it follows the size' wait_for 120 narrower
mux send-keys 'hello from here'
ok 'it takes what is typed' wait_for 120 shows 'hello from here'
mux send-keys C-\\
ok 'the keys leave it' wait_for 60 shows 'status=0'
again 90 28
ok 'run comes back to it' wait_for 120 shows 'hello from here'
note "$(screen)"
mux kill-server
bac rm -f pi >/dev/null
