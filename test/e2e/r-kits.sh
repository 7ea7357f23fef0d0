#!/bin/bash
# What a kit says: it is checked, shown as it is meant, and refused with all that is wrong. No machine is started.
# timeout: 300
. "${0%/*}/lib.sh"

pi=${0%/*}/../kits/pi

# kit NAME: spec.yaml from stdin, as the folder ./NAME
kit() {
	mkdir -p "$1"
	cat >"$1/spec.yaml"
}

# ---- the kit of the tutorial ----
cp -r "$pi" pi
ok 'the kit of a tutorial is one' bac kit validate ./pi
is 'and nothing is said about it' "$out$err" ''
ok 'inspect shows it' bac kit inspect ./pi
like 'in its normal form' "$out" '    - pi'
like 'a host without a port is for HTTPS' "$out" '"github.com:443"'
like 'its files are told' "$out" '# files/home/.pi/agent/settings.json '
like 'and what is opened by a credential alone' "$out" \
	"# note: llm.ilaas.fr is not on the allow list: approving the credential 'ilaas' for it opens it, for HTTPS alone"
mkdir again
grep -v '^#' <<<"$out" >again/spec.yaml
ok 'the normal form is a kit' bac kit validate ./again
bac kit inspect ./again | grep -v '^#' >again.yaml
ok 'the same one' cmp again.yaml again/spec.yaml
ok 'inspect --json' bac kit inspect --json ./pi
is 'has it too' "$(json 'd["name"], d["sandbox"]["entrypoint"], len(d["files"]), len(d["notes"]), d["warnings"]' <<<"$out")" \
	'["pi", ["pi", "-a"], 2, 1, []]'

# ---- all faults in one run ----
kit bad <<'END'
schemaVersion: "2"
kind: sandbox
name: Bad
sandbox: {image: a, entrypoint: claude}
ports: [{container: 70000}]
enviroment: {}
network: {allow: [a.example]}
END
status 'a kit that is none' 1 bac kit validate ./bad
is 'all of its faults' "$(sed 's/^bac: .*\/bad\/spec.yaml://' <<<"$err")" \
	"3:7: name: found 'Bad', expected 1 to 64 of a-z, 0-9 and '-', without '-' at an end
4:33: sandbox.entrypoint: found 'claude', expected a list
5:21: ports[0].container: found '70000', expected a port from 1 to 65535
6:1: enviroment: found an unknown field, expected 'environment'
7:1: network: found a field of another schema, expected 'permissions.network'"
status 'with --json' 1 bac kit validate --json ./bad
is 'with their places' "$(json 'd["valid"], [(x["line"], x["column"]) for x in d["errors"]]' <<<"$out")" \
	'[false, [[3, 7], [4, 33], [5, 21], [6, 1], [7, 1]]]'
status 'inspect says the same' 1 bac kit inspect ./bad
like 'of all of them' "$err" 'expected .permissions.network.'
is 'and prints nothing' "$out" ''

# ---- schema 1 ----
kit old <<'END'
schemaVersion: "1"
kind: agent
name: old
agent: {image: a}
network: {allowedDomains: [a.example]}
END
ok 'schema 1' bac kit validate ./old
is 'each old field is told once' "$(grep -c 'warning: .*an old field, read as' <<<"$err")" 3
ok 'schema 1, inspected' bac kit inspect ./old
like 'is schema 2' "$out" 'schemaVersion: "2"'
like 'with its warnings' "$out" "# warning: .*5:11: network.allowedDomains: an old field, read as 'permissions.network.allow'"

# ---- arguments ----
kit args <<'END'
schemaVersion: "2"
kind: mixin
name: args
args:
  version: {required: true, pattern: '[0-9.]+'}
  level: {default: low, enum: [low, high]}
environment: {variables: {V: "${{ kit.args.version }}", L: "${{ kit.args.level }}"}}
END
status 'an argument that must be given' 1 bac kit validate ./args
like 'says how' "$err" 'args.version: found no value, expected --kit-arg version=VALUE'
ok 'is given' bac kit validate ./args --kit-arg version=1.2
ok 'for this kit' bac kit inspect ./args --kit-arg args.version=1.2 --kit-arg level=high
like 'and replaced' "$out" '    L: high'
printf '# of a file\nversion=1\nlevel=high\n' >values
ok 'from a file' bac kit inspect ./args --kit-args-file values --kit-arg version=2
like 'which the command line overrides' "$out" '    V: "2"'
status 'a value that does not fit' 1 bac kit validate ./args --kit-arg version=x
like 'says which would' "$err" "found the value 'x', expected what the pattern '\[0-9.\]\+' matches"
fails 'an argument that no kit has' bac kit validate ./args --kit-arg version=1 --kit-arg other=1
like 'is named' "$err" "no kit has an argument 'other'"
fails 'what is no argument' bac kit validate ./args --kit-arg version
like 'says how it is written' "$err" 'is not NAME=VALUE'

# ---- what cannot be read ----
fails 'a folder without spec.yaml' bac kit validate ./again/nothing
mkdir empty
fails 'an empty folder' bac kit validate ./empty
status 'with --json it is JSON too' 1 bac kit validate --json ./empty
is 'and says so' "$(json 'd["valid"], len(d["errors"])' <<<"$out")" '[false, 1]'
kit big </dev/null
head -c 10485760 /dev/zero | tr '\0' a >big/spec.yaml
fails 'ten megabytes' bac kit validate ./big
kit shape <<'END'
schemaVersion: "2"
kind: mixin
name: shape
environment: [A=b]
setup: {install: [make]}
END
status 'a list where a map is due' 1 bac kit validate ./shape
like 'says where, and what would be right' "$err" '4:1: environment: found a list, expected a map'
like 'for each of them' "$err" "5:19: setup.install\[0\]: found 'make', expected a map"

# ---- a file that belongs to somebody else ----
kit etc <<'END'
schemaVersion: "2"
kind: mixin
name: etc
setup: {files: [{path: /etc/x, content: a}]}
END
ok 'a file outside of the home directory' bac kit validate ./etc
like 'is told, with path and user' "$err" "warning: .*'/etc/x' is outside of /home/agent: .* root writes it, not the user agent \(1000\)"
