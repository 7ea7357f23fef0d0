#!/bin/bash
# Commands that need no running sandbox, and what is said when something is mistyped.
# timeout: 300
. "${0%/*}/lib.sh"

like 'version' "$(bac version)" '^bac version: v[0-9.]+$'
like 'version --json' "$(bac version --json | json 'd["version"]')" '^[0-9.]+$'
ok 'help' bac --help
like 'names the commands' "$out" 'exec .*run a command in a sandbox'
for c in run create exec ls inspect stop rm prune cp logs settings diagnose reset completion version template kernel policy secret; do
	run bac "$c" --help
	[ "$rc" -eq 0 ] && grep -q '^Usage: bac '"$c" <<<"$out" || fail "bac $c --help" "$(seen "$c")"
done
pass 'each command has its help'
status 'an unknown command' 2 bac exce
is 'suggests the nearest' "$err" "bac: unknown command 'exce' (did you mean 'exec'?)"
status 'an unknown option' 2 bac ls --jsn
is 'too' "$err" "bac: unknown option '--jsn' (did you mean '--json'?)"
status 'what is not built yet' 1 bac skills ls
like 'is refused by name' "$err" "'skills' is not built yet"
status 'an option likewise' 2 bac create --clone shell
like 'by name' "$err" "'--clone' is not built yet"
status 'an agent that there is not' 1 bac create nobody
like 'is named' "$err" "'nobody'"
like 'ls of nothing' "$(bac ls)" '^No sandboxes found'
is 'ls --json of nothing' "$(bac ls --json | json 'd')" '{"sandboxes": []}'
is 'prune of nothing' "$(bac prune --force)" 'Nothing to remove.'
status 'rm without a name' 2 bac rm
fails 'rm of what is not there' bac rm -f nobody
like 'names it' "$err" "sandbox 'nobody' not found"

ok 'settings ls' bac settings ls
like 'lists them' "$out" 'vm.requireKvm'
is 'a default' "$(bac settings get vm.requireKvm)" false
ok 'set' bac settings set vm.requireKvm true
is 'is kept' "$(bac settings get vm.requireKvm)" true
is 'the environment is stronger' "$(BAC_VM_REQUIRE_KVM=false bac settings get vm.requireKvm)" false
is 'and named as the source' "$(BAC_VM_REQUIRE_KVM=false bac settings get --json vm.requireKvm | json 'd["source"]')" env
fails 'a bad value' bac settings set vm.requireKvm maybe
like 'says what fits' "$err" 'true or false'
fails 'a bad key' bac settings set vm.requireKwm true
like 'suggests' "$err" "did you mean 'vm.requireKvm'"
ok 'unset' bac settings unset vm.requireKvm
is 'is the default again' "$(bac settings get vm.requireKvm)" false

ok 'completion for bash' bash -c 'source <("$BAC" completion bash)'
ok 'for zsh' bac completion zsh
ok 'for fish' bac completion fish
fails 'for no other' bac completion tcsh
ok 'the manual page' bac manual
like 'is roff' "$out" '[.]TH'
run bac diagnose
like 'diagnose names the parts' "$out" 'bac-supervisor'
ok 'as JSON' bash -c '"$BAC" diagnose --json | python3 -m json.tool >/dev/null || true'
status 'no HOME' 2 env -u HOME "$BAC" ls
like 'says so' "$err" 'HOME is not set'
if [ "$(id -u)" -eq 0 ]; then
	mkdir -p theirs/bac
	chown 12345 theirs/bac
	XDG_STATE_HOME=$PWD/theirs status 'a state directory of somebody else' 1 bac ls
	like 'is refused' "$err" 'belongs to another user'
	rm -rf theirs
else
	skip 'a state directory of somebody else' 'needs root to make one'
fi
ok 'reset --force' bash -c 'XDG_CACHE_HOME=$E2E_DIR/c2 XDG_STATE_HOME=$E2E_DIR/s2 "$BAC" reset --force'
