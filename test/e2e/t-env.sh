#!/bin/bash
# Environments of sbxenv.yaml: the plan, the approval, host commands, and one in a real sandbox.
# timeout: 600
# alone: it looks at the user's files, links and control groups before and after
. "${0%/*}/lib.sh"

secret_store=$XDG_CONFIG_HOME
bac settings set secrets.store file >/dev/null
mkdir -p p/web p/shared
cat >p/sbxenv.yaml <<'END'
schemaVersion: "1"
name: web-app
agent: shell
args:
  who: {default: world, enum: [world, you]}
workspace: ./web
additionalWorkspaces:
  - {path: ./shared, readOnly: true}
env:
  GREETING: hello ${{ env.args.who }}
  RAW: '$HOME $${{ x }}'
secrets:
  github: {command: "echo from-host; touch secret-ran", snapshot: true}
bindings:
  github: {apiKey: {domains: [api.github.com]}}
lifecycle:
  initialize:
    - {name: Prepare, command: 'echo "$SBX_LIFECYCLE_PHASE $SBX_SANDBOX_NAME $SBX_AGENT $SBX_ENV_DIR $SBX_WORKSPACE $SBX_ENV_FILE ${GREETING-none}" >>log', timeout: 1m}
  postCreate: [{command: 'echo "$SBX_LIFECYCLE_PHASE" >>../log', workdir: web}]
  preRemove: [{command: 'echo "$SBX_LIFECYCLE_PHASE" >>log; false'}]
END
here=$PWD/p
cd p || exit 1

# ANSWER COMMAND...: on a terminal of its own
on_tty() {
	local answer=$1
	shift
	# slowly enough that the question is there: script(1) reads ahead
	run script -qec "$BAC $*" /dev/null <<<"$answer"
}

ok 'plan' bac env plan
like 'shows host commands' "$out" 'HOST COMMAND echo "\$SBX_LIFECYCLE_PHASE'
like 'when and where they run' "$out" "before each create and run, in $here"
like 'folders' "$out" "folder +$here/shared \(read-only\)"
like 'variables with references replaced' "$out" 'GREETING=hello world'
like 'and others as they are' "$out" 'RAW=\$HOME \$\{\{ x \}\}'
like 'secrets by their source' "$out" 'secret +github from the host command: echo from-host'
like 'bindings' "$out" 'github \(key\) may be used at api.github.com'
like 'an argument' "$(bac env plan --env-arg who=you)" 'GREETING=hello you'
status 'one that does not fit' 2 bac env plan --env-arg who=me
like 'names the values' "$err" "found the value 'me', expected one of: world, you"
status 'one that is not declared' 2 bac env plan --env-arg x=y
like 'says so' "$err" "no argument 'x' is declared"
printf 'who=you\n' >args
like 'a file of arguments' "$(bac env plan --env-args-file args)" 'GREETING=hello you'
printf 'env: {GREETING: over}\nkits: [./k]\n' >local.yaml
ok 'two files' bac env plan sbxenv.yaml local.yaml
like 'the later wins' "$out" 'GREETING=over'
like 'its kits are from its folder' "$out" "kit +$here/k"
printf 'schemaVersion: "1"\nagent: claude\nenv: {MINE: yes}\nworkspace: ${{ env.projectDir }}\n' >"$E2E_DIR/d/.sbxenv.yaml"
like 'the user'"'"'s defaults are beneath' "$(HOME=$E2E_DIR/d bac env plan)" 'agent shell.*MINE=yes.*GREETING'
unlike 'but for a named file' "$(HOME=$E2E_DIR/d bac env plan sbxenv.yaml)" 'MINE'
mkdir other
cd other || exit 1
like 'alone they make an environment of the folder' "$(HOME=$E2E_DIR/d bac env plan)" "claude-other.*workspace +$here/other"
cd .. || exit 1
fails 'a folder without one' bac env plan web
like 'is told' "$err" "there is no sbxenv.yaml in 'web'"
printf 'schemaVersion: "1"\nagent: shell\nmcp: {servers: [{name: x, url: y}]}\nsandboxOptions: {gpu: true, cpus: x}\n' >bad.yaml
status 'what is wrong' 2 bac env plan bad.yaml
like 'is told, all of it' "$err" "bad.yaml:4:.*'gpu' is not built yet.*cpus: found 'x'"
like 'with what is not built' "$err" "'mcp' is not built yet in this bac"

fails 'create without a terminal' bac env create
like 'wants approval' "$err" 'needs your approval, and there is no terminal; use --auto-approve'
is 'and nothing was run' "$(ls log secret-ran web/log 2>/dev/null)" ''
on_tty n env create
like 'on a terminal it asks' "$out" 'Apply this\?'
is 'and does nothing on no' "$(ls log secret-ran 2>/dev/null)$(bac ls -q)" ''
fails 'exec of what is not there' bac env exec -- true
like 'says how to have it' "$err" 'create it with bac env create'

run bac template ls --json
if [ "$rc" -ne 0 ] || [ "$(json 'len(d["templates"])' <<<"$out")" = 0 ]; then
	skip 'an environment in a sandbox' 'no template in the cache'
	exit 0
fi
ok 'create --auto-approve' bac env create --auto-approve
is 'host commands ran, in order, with their variables' "$(cat log)" \
	"initialize web-app shell $here $here/web $here/sbxenv.yaml none"$'\n''postCreate'
like 'the secret is the sandbox'"'"'s' "$(bac secret ls --sandbox web-app)" 'github'
ok 'its command ran on the host' test -e secret-ran
like 'the binding is kept' "$(cat "$secret_store/bac/credentials.yaml")" 'api.github.com'
is 'exec has the variables' "$(bac env exec -- sh -c 'echo "$GREETING|$RAW"')" 'hello world|$HOME ${{ x }}'
is 'the workspace is where commands start' "$(bac env exec -- pwd)" "$here/web"
is 'a folder is read-only' "$(bac env exec -- sh -c "touch $here/shared/x 2>/dev/null || echo no")" no
is 'the file itself can be read' "$(bac env exec -- head -1 "$here/sbxenv.yaml")" 'schemaVersion: "1"'
is 'and not be changed' "$(bac env exec -- sh -c "echo >>$here/sbxenv.yaml; mv $here/sbxenv.yaml $here/y; echo over" 2>/dev/null)" over
like 'indeed' "$(cat sbxenv.yaml)" '^schemaVersion: "1"'
status 'the status of a command' 7 bac env exec sbxenv.yaml -- sh -c 'exit 7'
fails 'create again' bac env create --auto-approve
like 'says that it is there' "$err" "sandbox 'web-app' is there already"
ok 'run -d goes back to it' bac env run --auto-approve -d
is 'initialize ran again, postCreate did not' "$(grep -c initialize log) $(grep -c postCreate log)" '2 1'
fails 'rm without a terminal' bac env rm
ok 'rm --force --prune-bindings' bac env rm --force --prune-bindings
like 'a preRemove that fails is a warning' "$err" 'warning: host command .* ended with status 1'
is 'the sandbox is gone' "$(bac ls -q)" ''
unlike 'its secret too' "$(bac secret ls)" 'github'
unlike 'and the binding' "$(cat "$secret_store/bac/credentials.yaml")" 'api.github.com'

# approvals that are remembered
printf 'schemaVersion: "1"\nagent: shell\nname: plain\nenv: {A: b}\n' >plain.yaml
on_tty y env create plain.yaml
like 'a plain one is approved on the terminal' "$out" "Created environment 'plain'"
ok 'and then goes without' bac env run -d plain.yaml
unlike 'silently' "$err" 'Apply environment'
sed -i 's/A: b/A: c/' plain.yaml
fails 'until it says something else' bac env run -d plain.yaml
ok 'rm' bac env rm --force plain.yaml
