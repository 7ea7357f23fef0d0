#!/bin/bash
# Secrets: storing, listing and removing them, who may read the file, what is refused; declarations and approvals. What becomes of them in
# requests is another scenario's. Parts of section 9 of the cases:
#
# CR-04   'CR-04: ...'
# CR-05   'CR-05: ...'
# timeout: 900
. "${0%/*}/lib.sh"
unset DBUS_SESSION_BUS_ADDRESS
term=${0%/*}/../lib/term.py
store=$XDG_CONFIG_HOME/bac/secrets.json
value=sk-ant-api03-Q9x7-not-a-real-key-4f2c

put() { # VALUE ARGUMENT...
	local v=$1
	shift
	printf '%s\n' "$v" | bac secret set "$@"
}
custom() { # VALUE ARGUMENT...
	local v=$1
	shift
	printf '%s\n' "$v" | bac secret set-custom "$@"
}
lines() { printf '%s' "$1" | grep -c ''; }

# --- storing
ok 'set from stdin' put "$value" anthropic
is 'says where' "$out" "Stored anthropic in $store"
like 'a notice that it is a file' "$err" 'no Secret Service answers here: secrets are kept in '
like 'which hosts the network rules do not let through' "$err" 'note: the network rules .* api.anthropic.com,.*; allow it with: bac policy allow network api.anthropic.com'
ok 'a second one' put "github-$value" github
unlike 'the notice comes once' "$err" 'Secret Service'
is 'the file is 0600' "$(stat -c %a "$store")" 600
is 'in a folder that is 0700' "$(stat -c %a "$XDG_CONFIG_HOME/bac")" 700
ok 'set again replaces' put "$value-two" anthropic
like 'and says so' "$out" '^Replaced anthropic'
status 'nothing on stdin' 2 put '' groq
is 'is an error in one line' "$(lines "$err")" 1
status 'no service named, and no terminal' 1 put x
like 'has the list' "$err" 'anthropic, copilot, .*, xai$'
status 'a name that is nearly one' 2 put x antropic
like 'asks whether it was meant' "$err" "did you mean 'anthropic'"
ok 'one that only a kit can know' put acme-value acme
like 'is said to be that' "$err" "'acme' is no service that bac knows"
status 'too large' 2 put "$(head -c 20000 /dev/zero | tr '\0' x)" groq
status 'two sources' 2 bac secret set groq --ref env:X --command 'echo x'
like 'exclude each other' "$err" '--command and --ref exclude each other'
status 'a reference that is none' 2 bac secret set groq --ref vault:x
status '--refresh alone' 2 bac secret set groq --refresh 5m
ok '--command' bac secret set groq --command 'echo key-of-groq' --refresh on-demand
ok '--ref' bac secret set xai --ref "file:$E2E_DIR/no-such-file"

# --- on a terminal
run python3 "$term" 'expect:not shown' 'send:typed-value-123\r' end -- "$BAC" secret set mistral
is 'a hidden prompt' "$rc" 0
unlike 'shows nothing' "$out$err" 'typed-value'
like 'and the terminal is as it was' "$err" 'termios same'
run python3 "$term" 'expect:not shown' 'send:half\x03' end -- "$BAC" secret set nebius
is 'Ctrl-C stores nothing' "$rc" 1
unlike 'indeed' "$(bac secret ls -q)" nebius

# --- values are nowhere
ok 'ls' bac secret ls
like 'masks' "$out" '\(global\) +service +anthropic +sk-a\.\.\..{1,4}'
unlike 'no value is in it' "$out" 'not-a-real-key'
like 'a command is shown' "$out" 'groq +\(command: echo key-of-groq\)'
run bac secret ls --json
unlike 'nor in JSON' "$out" 'not-a-real-key|sk-a'
is 'JSON has the rest' "$(json '[s["source"] for s in d["secrets"] if s["name"] in ("anthropic", "groq", "xai")]' <<<"$out")" '["value", "command", "ref"]'
is 'ls --service -q' "$(bac secret ls --service groq -q)" groq
if grep -qF -e "$value" -e typed-value "$store" || grep -rqF -e "$value" "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR"; then
	fail 'no file shows a value as it is'
else
	pass 'no file shows a value as it is'
fi

# a command that waits for the store's lock: what does the machine show of it?
exec 9>"$XDG_CONFIG_HOME/bac/secrets.lock"
flock 9
at_lock() { # PID: it is the command, has taken what argv had, and goes on to wait
	grep -aq bac-commands "/proc/$1/comm" && ! grep -aqF -f value.in "/proc/$1/cmdline"
}
waits() { # NAME COMMAND...: while it waits, neither argv nor environ of any process holds the value
	local name=$1 found
	shift
	"$@" >waits.out 2>&1 9>&- &
	local pid=$!
	wait_for 20 at_lock "$pid" || fail "$name: it took the value"
	found=$(cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -acF -f value.in)
	flock -u 9
	wait "$pid"
	is "$name" "$found" 0
	flock 9
}
printf 'waits-for-me-123\n' >value.in
waits 'a value on stdin is in no argv or environ' sh -c "exec '$BAC' secret set openrouter <value.in"
printf '#!/bin/sh\nexec "%s" secret set --force -t "$(cat value.in)" openrouter\n' "$BAC" >with-token
chmod +x with-token
waits 'nor is one of --token, once it was read' ./with-token
flock -u 9
exec 9>&-
like '--token warns' "$(cat waits.out)" 'warning: a value on the command line is seen'
rm -f value.in
status '--token does not replace without --force' 1 bac secret set -t x openrouter

# --- removing
ok 'rm' bac secret rm mistral
status 'rm of what is not there' 1 bac secret rm mistral
is 'is an error in one line' "$(lines "$err")" 1
status 'rm without a name' 1 bac secret rm
like 'has the list' "$err" 'name one of .*service/anthropic'

# --- many at once
for i in $(seq 20); do printf 'v%s\n' "$i" | "$BAC" secret set "kit-$i" --force >/dev/null 2>"many.$i" & done
wait
is '20 at once: none is lost' "$(bac secret ls -q | grep -c '^kit-')" 20

# --- import
export MISTRAL_API_KEY=from-the-environment OPENAI_API_KEY=proxy-managed GH_TOKEN=other
ok 'import --dry-run' bac secret import --dry-run
like 'says what it would do' "$out" 'Would import mistral from MISTRAL_API_KEY'
like 'and what is there' "$out" 'Skipped github'
unlike 'a sentinel is no key' "$out" openai
unlike 'nothing was stored' "$(bac secret ls -q)" mistral
status 'import without a terminal needs --all' 1 bac secret import
ok 'import --all' bac secret import --all
is 'stores it' "$(bac secret ls --service mistral -q)" mistral
unset MISTRAL_API_KEY OPENAI_API_KEY GH_TOKEN

# --- logins
printf '{"access_token": "at-123456789", "refresh_token": "rt-123456789"}\n' >tokens
ok 'set --oauth from stdin' sh -c "'$BAC' secret set --oauth openai <tokens"
is 'has two tokens' "$(bac secret ls --service openai -q | tr '\n' ' ')" 'openai.access openai.refresh '
like 'one that does not say whose it is has a warning' "$err" 'warning: there is no id_token'
# {"email":"a@b.example","https://api.openai.com/auth":{"chatgpt_account_id":"account-1"}}, signed
claims=eyJlbWFpbCI6ImFAYi5leGFtcGxlIiwiaHR0cHM6Ly9hcGkub3BlbmFpLmNvbS9hdXRoIjp7ImNoYXRncHRfYWNjb3VudF9pZCI6ImFjY291bnQtMSJ9fQ
printf '{"OPENAI_API_KEY": null, "tokens": {"access_token": "at-x", "refresh_token": "rt-x", "id_token": "eyJhbGciOiJSUzI1NiJ9.%s.the-signature"}}' "$claims" >auth.json
ok 'set --oauth of the file that Codex has' sh -c "'$BAC' secret set --force --oauth openai <auth.json"
is 'without a warning' "$(grep -c warning <<<"$err")" 0
like 'what stands for its id_token is kept' "$(bac secret ls --json)" "[.]${claims}[.]not-signed-proxy-managed"
is 'and the token is not' "$(grep -r the-signature "$XDG_CONFIG_HOME" "$XDG_STATE_HOME")" ''
ok 'rm takes both' bac secret rm openai
is 'indeed' "$(bac secret ls --service openai -q)" ''
mkdir -p "$HOME/.claude"
if [ ! -e "$HOME/.claude/.credentials.json" ]; then
	printf '{"claudeAiOauth": {"accessToken": "sk-ant-oat01-x", "refreshToken": "sk-ant-ort01-x"}}\n' >"$HOME/.claude/.credentials.json"
	ok 'set --oauth from the client on this machine' sh -c "'$BAC' secret set --oauth anthropic </dev/null"
	rm -rf "$HOME/.claude"
	ok 'and out again' bac secret rm anthropic
	ok 'with the key, which comes back' put "$value" anthropic
fi
status '--oauth where no login is known' 2 bac secret set --oauth groq </dev/null

# --- custom secrets
ok 'set-custom' custom v1 --host api.test --env A_TOKEN
status 'CR-05: the same variable twice' 1 custom v2 --host b.test --env A_TOKEN
like 'CR-05: says so' "$err" 'A_TOKEN is the variable of a custom secret already'
ok 'a placeholder of one'"'"'s own' custom v2 --host b.test --env B_TOKEN --placeholder fixed-placeholder-1
status 'CR-05: the same placeholder twice' 1 custom v3 --host c.test --env C_TOKEN --placeholder fixed-placeholder-1
like 'CR-05: names the other, and how to remove it' "$err" 'placeholder of the custom secret B_TOKEN.*bac secret rm --custom B_TOKEN'
status 'CR-05: one that lies within another' 1 custom v3 --host c.test --env C_TOKEN --placeholder fixed-placeholder-12
status 'CR-05: the variable of a service' 1 custom v3 --host c.test --env OPENAI_API_KEY
like 'CR-05: names the service' "$err" "service 'openai'"
ok 'CR-05: one host, two secrets' custom v3 --host api.test --env C_TOKEN --in headers,body
for bad in '--host api.test --env 1X' '--host api.test' '--env D_TOKEN' '--host a..b --env D_TOKEN' '--host ** --env D_TOKEN' \
	'--host a.test --env D_TOKEN --in cookies' '--host a.test --env D_TOKEN --placeholder short' \
	'--host a.test --env D_TOKEN --placeholder my-proxy-managed-x' '--host a.test --env PATH'; do
	# shellcheck disable=SC2086  # words
	status "set-custom refuses $bad" 2 custom x $bad
	is "set-custom refuses $bad: in one line" "$(lines "$err")" 1
done
ok 'rm --custom' bac secret rm --custom C_TOKEN

# --- registries
status '--registry needs a user' 2 put x --registry r.test --password-stdin
ok '--registry' put regpass --registry r.test:5000 --username me --password-stdin --all-sandboxes
like 'is listed' "$(bac secret ls)" 'registry +r\.test:5000'
ok 'rm --registry' bac secret rm --registry r.test:5000

# --- check
status 'check: nothing is allowed' 1 bac secret check anthropic
like 'check: what is missing' "$out" '^api.anthropic.com: not authenticated: no network rule allows it; run: bac policy allow network api.anthropic.com'
is 'check: a line for each host' "$(lines "$out")" 4
is 'check: the first is what the key is for, others are only shown' "$(grep -c '^[a-z.-]*: not opened (api.anthropic.com does not need it); to open it: bac policy allow network [a-z.-]*$' <<<"$out")" 3
ok 'allow that' bac policy allow network api.anthropic.com:443
ok 'check: others are closed' bac secret check anthropic
like 'check: and shown' "$out" 'claude\.ai: not opened \(api\.anthropic\.com does not need it\)'
ok 'allow them' bac policy allow network api.anthropic.com:443 console.anthropic.com claude.ai '**.anthropic.com'
ok 'check' bac secret check anthropic
like 'check: says how' "$out" 'api.anthropic.com: authenticated, by x-api-key'
status 'check: no secret' 1 bac secret check cursor
like 'check: says what to run' "$out" 'not authenticated: no secret is stored; run: bac secret set cursor'
bac policy allow network api.x.ai >/dev/null
status 'check: a value that cannot be had' 1 bac secret check xai
like 'check: says why' "$out" 'api.x.ai: not authenticated: its value cannot be had: cannot open .*no-such-file'
status 'check: unknown' 1 bac secret check moon
ok 'services' bac secret services
like 'services: github' "$out" 'github +GH_TOKEN, GITHUB_TOKEN'
is 'services --json' "$(bac secret services --json | json 'len(d["services"]) >= 13')" true

# --- the file is looked at before it is believed
cp "$store" kept
refused() { # NAME PART
	status "$1: set" 1 put x groq
	like "$1: says why" "$err" "$2"
	is "$1: in one line" "$(lines "$err")" 1
	fails "$1: ls" bac secret ls
}
chmod 0644 "$store"
refused 'a file that others may read' 'can be opened by others \(mode 644\)'
chmod 0600 "$store"
chmod 0755 "${store%/*}"
refused 'a folder that others may read' 'can be opened by others \(mode 755\)'
chmod 0700 "${store%/*}"
mv "$store" "$store.real"
ln -s secrets.json.real "$store"
refused 'a link' 'is a link'
rm "$store"
mv "$store.real" "$store"
head -c 100 kept >"$store"
status 'a damaged file: set' 2 put x groq
like 'a damaged file: says what to do' "$err" 'is damaged \(line .*, and was left as it is; mend it, or move it away \(mv '
is 'a damaged file: in one line' "$(lines "$err")" 1
status 'a damaged file: rm' 2 bac secret rm anthropic
is 'a damaged file is as it was' "$(cmp "$store" <(head -c 100 kept) && echo same)" same
cp kept "$store"
ok 'put back, it is fine' bac secret ls

# --- declarations and approvals
cat >acme.yaml <<-'YAML'
	credentials:
	  - service: acme
	    apiKey:
	      name: ACME_KEY
	      inject:
	        - {domain: api.acme.test, header: X-Acme-Key}
	        - {domain: '*.acme.test:8443', scheme: bearer}
YAML
bad() { # NAME PART: the file on stdin
	cat >bad.yaml
	status "$1" 2 bac create --name bad --credentials bad.yaml shell
	like "$1: with its line" "$err" "$2"
}
bad 'an unknown key' "bad.yaml: line 2:5: credentials.0.: found no 'apiKey'" <<<$'credentials:\n  - service: x\n    apikey: {}'
bad 'an alias' 'bad.yaml: line 1: anchors, aliases' <<<$'credentials: &a []\nx: *a'
bad 'a header that frames' "bad.yaml: line 5:[0-9]+: .*header 'host' is not" <<<$'credentials:\n  - service: x\n    apiKey:\n      inject:\n        - {domain: a.test, header: Host}'
bad 'no YAML' 'bad.yaml: line ' <<<'credentials: ['
status 'a sandbox is not made of them' 1 bac inspect bad
status '--approve of what nobody declares' 2 bac create --name bad --credentials acme.yaml --approve acme=b.test shell
printf 'bindings: [\n' >"$XDG_CONFIG_HOME/bac/credentials.yaml"
status 'damaged approvals' 2 bac create --name bad --credentials acme.yaml --approve acme=api.acme.test shell
like 'damaged approvals: with line' "$err" 'credentials.yaml: line '
rm "$XDG_CONFIG_HOME/bac/credentials.yaml"

# --- with a machine
run bac create --name m --credentials acme.yaml shell
if [ "$rc" -ne 0 ]; then
	fail 'create' "$(seen create)"
	exit
fi
pass 'create with a declaration'
like 'a line for each use that is not approved' "$err" "file:acme.yaml may not use the secret 'acme' at api.acme.test: nobody has approved it"
like 'both' "$err" 'at \*\.acme\.test:8443'
inside() { bac exec m env | grep -E 'KEY|TOKEN' | sort; }
inside >inside.before
like 'a service that has a key: its variable' "$(cat inside.before)" 'ANTHROPIC_API_KEY=proxy-managed'
like 'one that is not approved: too, so that the refusal is met' "$(cat inside.before)" 'ACME_KEY=proxy-managed'
like 'a custom secret: its placeholder' "$(cat inside.before)" 'A_TOKEN=bac-cs-[a-z2-7]{20}'
unlike 'CR-04: a service without a key has no variable' "$(cat inside.before)" 'OPENAI|NEBIUS|CURSOR'
ok 'a key for a sandbox that runs' put nebius-key-0123456789 nebius
like 'is there at once' "$(inside)" 'NEBIUS_API_KEY=proxy-managed'
ok 'and taken away' bac secret rm nebius
is 'it is as before' "$(inside)" "$(cat inside.before)"
status 'but is missed by what began with it' 1 bac secret check --sandbox m nebius
like 'with what to run' "$out" 'api.studio.nebius.com: not authenticated: no secret is stored; run: bac secret set nebius'
ok 'stop' bac stop m
dir=$(echo "$XDG_STATE_HOME"/bac/sandboxes/*/)
status 'check: not approved' 1 bac secret check --sandbox m acme
like 'check: says what to run' "$out" 'api.acme.test: not authenticated: file:acme.yaml is not approved here; run: bac run --name m --approve acme=api.acme.test'
ok 'run --approve' bac run -d --name m --approve acme=api.acme.test
unlike 'no line about that one any more' "$err" 'at api\.acme\.test'
like 'but about the other' "$err" 'at \*\.acme\.test:8443'
like 'it is written down' "$(cat "$XDG_CONFIG_HOME/bac/credentials.yaml")" 'acme:.*apiKey:.*domains:.*- "api.acme.test"'
ok 'stop again' bac stop m
bac policy allow network --sandbox m api.acme.test:443 >/dev/null
run python3 "$term" 'expect:Allow it' 'send:n\r' end -- "$BAC" run -d --name m
is 'a terminal is asked' "$rc" 0
unlike 'no is no' "$(cat "$XDG_CONFIG_HOME/bac/credentials.yaml")" 8443
ok 'the second stop' bac stop m
run python3 "$term" 'expect:Allow it' 'send:\r' end -- "$BAC" run -d --name m
unlike 'and so is nothing' "$(cat "$XDG_CONFIG_HOME/bac/credentials.yaml")" 8443
ok 'the third' bac stop m
run bac secret check --sandbox m acme
like 'check: approved' "$out" 'api.acme.test: authenticated, by x-acme-key'
is 'check: the other is not' "$rc" 1

# a placeholder of its own, kept where only the user can read
is 'placeholders are 0600' "$(stat -c %a "$dir/placeholders.json")" 600
like 'and random' "$(cat "$dir/placeholders.json")" '"value": "bac-cs-[a-z2-7]{20}"'
like 'what it started with has no value in it' "$(cat "$dir/credentials.given")" 'bac-credentials 1'
unlike 'indeed' "$(cat "$dir/credentials.given")" 'acme-value|not-a-real-key'

# scopes
ok 'a secret of the sandbox' put own-value-0123456789abcdef --sandbox m anthropic
like 'is listed with its name' "$(bac secret ls --sandbox m)" '^SCOPE.*m +service +anthropic +own\.\.\.def'
is 'the other stays' "$(bac secret ls --global --service anthropic -q)" anthropic
rm -f "$dir/secrets" # as if its secrets could not be removed
id=$(basename "$dir")
ok 'rm of the sandbox' bac rm -f m
like 'what it left is listed' "$(bac secret ls)" "$id \(gone\) +service +anthropic"
ok 'and can be removed' bac secret rm --all --force --sandbox "$id"
status 'once' 1 bac secret ls --sandbox "$id"
bac create --name m --network none shell >/dev/null 2>&1
put own-value-0123456789abcdef --sandbox m anthropic >/dev/null
ok 'rm of another' bac rm -f m
is 'its secrets went with it' "$(bac secret ls --json | json '[s for s in d["secrets"] if s["scope"] != "global"]')" '[]'
is 'the other is still there' "$(bac secret ls --global --service anthropic -q)" anthropic
ok 'rm --all' bac secret rm --all --force
is 'nothing is left' "$(bac secret ls -q)" ''

# --- reset, of an empty state
elsewhere() { XDG_CACHE_HOME=$E2E_DIR/c2 XDG_STATE_HOME=$E2E_DIR/s2 "$BAC" "$@"; }
put "$value" groq >/dev/null 2>&1
ok 'reset --preserve-secrets' elsewhere reset --force --preserve-secrets
is 'keeps them' "$(bac secret ls -q)" groq
ok 'reset' elsewhere reset --force
is 'removes them' "$(bac secret ls -q)" ''
is 'and the approvals' "$(ls "$XDG_CONFIG_HOME/bac")" ''
