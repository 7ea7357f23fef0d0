#!/bin/bash
# Network rules: choosing a preset, changing rules, asking what would be decided; and, with a machine, that what holds is what
# was said. Parts of section 6 of the cases:
#
# NP-07   'NP-07: ...': each spelling of this machine, asked and tried, with each spelling denied
# NP-08   'NP-08: ...': nothing but the user's own rules opens anything; kits are not built yet
# NP-10   'NP-10: ...'
# NP-13   'NP-13: ...'; the whole table is src/policy/test-net.c, of the library that all ask
# timeout: 600
no_policy=1
unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY http_proxy
. "${0%/*}/lib.sh"

verdict() { # TARGET [OPTION...]: the first word of the answer, and the reason
	bac policy check network --json "$@" | json '"%s %s" % (d["decision"], d["reason"])'
}
rule_of() {
	bac policy check network --json "$@" | json 'd.get("rule", {}).get("resource", "none")'
}

status 'create without a policy' 1 bac create shell
is 'says what to run' "$err" 'bac: the network policy has not been chosen; run: bac policy init balanced (or allow-all, deny-all)'
status 'allow likewise' 1 bac policy allow network a.example
like 'says so too' "$err" 'bac policy init balanced'
status 'check likewise' 1 bac policy check network a.example
like 'ls tells it' "$(bac policy ls)" 'none was chosen'
status 'a preset that is not there' 2 bac policy init open
ok 'init deny-all' bac policy init deny-all
status 'a second time' 1 bac policy init balanced
like 'tells how to begin anew' "$err" 'deny-all.*bac policy reset'
is 'nothing is allowed' "$(verdict a.example)" 'deny default-deny'
status 'a denied target has status 1' 1 bac policy check network a.example

is 'UDP is refused' "$(verdict --protocol udp a.example)" 'deny protocol-blocked'

# precedence: a deny that meets an allow is taken, and wins
ok 'allow a name' bac policy allow network a.example
is 'it is allowed' "$(verdict a.example)" 'allow domain-allowed'
ok 'deny the same name' bac policy deny network a.example
is 'NP-10: deny wins' "$(verdict a.example)" 'deny domain-blocked'
ok 'deny names like it' bac policy deny network '*.example'
ok 'allow one of them' bac policy allow network b.example
like 'and is told that it stays denied' "$err" "stays denied by the rule '\\*.example'"
is 'NP-10: deny wins over what is narrower' "$(verdict b.example)" 'deny domain-blocked'
is 'and is named' "$(rule_of b.example)" '*.example'
ok 'rm the deny' bac policy rm network --resource '*.example'
is 'the allow holds again' "$(verdict b.example)" 'allow domain-allowed'
ok 'the same rule twice' bac policy allow network b.example
like 'is one' "$err" 'there already'
is 'in the list too' "$(bac policy ls --json | json 'len([r for r in d["rules"] if r["resource"] == "b.example"])')" 1
status 'rm what is not there' 1 bac policy rm network --resource c.example
like 'names it' "$err" "no rule for 'c.example'"

# grammar: what is refused says where and what to write
refused() { # NAME MESSAGE RESOURCE
	status "$1" 2 bac policy allow network "$3"
	like "$1: says why" "$err" "$2"
}
refused 'an empty label' 'column 3: an empty label' 'a..b'
refused 'a URL' 'no scheme; write a.example:443' 'https://a.example:443/x'
refused 'a path' 'use --path' 'a.example/x'
refused 'a port that is none' 'column 3: a port is' 'a:99999'
refused 'bits behind the prefix' 'write 10.0.0.0/8' '10.0.0.1/8'
refused 'stars for an address' 'CIDR' '10.0.*'
refused 'many labels in the middle' "stands only in front" 'a.**.b'
status 'a path without a method' 2 bac policy allow network --path /x a.example
status 'a method for an address' 2 bac policy allow network --method GET 192.0.2.1
status 'UDP' 1 bac policy allow network --protocol udp a.example
like 'is refused by name' "$err" 'UDP is not built'

# one answer for a wildcard, whoever is asked
cells() { # PATTERN: which of the names it allows
	bac policy allow network "$1" >/dev/null
	for name in e.com a.e.com a.b.e.com ae.com E.COM a.e.com. xn--bcher-kva.e.com a.e.com:8443 a.e.com.evil.net; do
		[[ $(verdict "$name") == allow* ]] && printf '%s ' "$name"
	done
	bac policy rm network --resource "$1" >/dev/null
}
is 'NP-13: *.e.com' "$(cells '*.e.com')" 'a.e.com a.e.com. xn--bcher-kva.e.com a.e.com:8443 '
is 'NP-13: **.e.com' "$(cells '**.e.com')" 'a.e.com a.b.e.com a.e.com. xn--bcher-kva.e.com a.e.com:8443 '
is 'NP-13: e.com' "$(cells e.com)" 'e.com E.COM '
is 'NP-13: *com' "$(cells '*com')" ''
is 'NP-13: a.*.com' "$(cells 'a.*.com')" 'a.e.com a.e.com. a.e.com:8443 '

# this machine has one name, however it is spelled
ok 'allow a port of this machine' bac policy allow network localhost:18095
spellings='localhost 127.0.0.1 [::1] 0.0.0.0 127.1 2130706433 0x7f000001 host.docker.internal 198.18.0.5 [::ffff:127.0.0.1]'
wrong=''
for spelling in $spellings; do
	[[ $(verdict "$spelling:18095") == allow* ]] || wrong+="allow $spelling "
	[[ $(verdict "$spelling:18096") == deny* ]] || wrong+="other port $spelling "
done
is 'NP-07: every spelling is allowed there and nowhere else' "$wrong" ''
for denied in localhost 127.0.0.1 '[::1]' 0.0.0.0 127.1 2130706433 host.docker.internal; do
	bac policy deny network "$denied" >/dev/null
	for spelling in $spellings; do
		[[ $(verdict "$spelling:18095") == deny* ]] || wrong+="deny $denied: $spelling "
	done
	bac policy rm network --resource "$denied" >/dev/null
done
is 'NP-07: a deny of one is a deny of all' "$wrong" ''

# a name that leads to an address that may not be dialled
here=$(getent hosts | awk '{ for (i = 2; i <= NF; i++) if ($i !~ /localhost$/ && $i ~ /^[a-z0-9.-]+$/) { print $i; exit } }')
if [ -n "$here" ]; then
	ok 'allow a name that leads here' bac policy allow network "$here"
	is 'its address is refused' "$(verdict "$here")" 'deny private-address'
	like 'and shown' "$(bac policy check network "$here")" 'Address: [0-9a-f.:]+ deny [(]private-address: '
	ok 'a name that is sent elsewhere' bac settings set net.connectTo "$here:443=127.0.0.1:9443"
	is 'is allowed' "$(verdict "$here")" 'allow domain-allowed'
	ok 'and no more' bac settings unset net.connectTo
else
	skip 'a name that leads to this machine' '/etc/hosts has none but localhost'
fi
fails 'a detour that is none' bac settings set net.connectTo 'a.example=b'
for address in 169.254.169.254 '[fd00:ec2::254]' 100.100.100.200 10.0.0.1 '[64:ff9b::a9fe:a9fe]'; do
	is "allow-all and $address" "$(bac policy allow network '**' >/dev/null 2>&1; verdict "$address")" 'deny private-address'
done
ok 'a rule that names it' bac policy allow network 169.254.169.254:80
is 'opens it' "$(verdict 169.254.169.254:80)" 'allow address-allowed'
ok 'rm several' bac policy rm network --resource '**,169.254.169.254:80'

# methods and paths
ok 'allow a method and path' bac policy allow network --method get --path '/v1/**' api.example
is 'a connection depends' "$(bac policy check network --json api.example:80 | json 'd["decision"]')" needs-http
is 'this is allowed' "$(verdict http://api.example/v1/x --method GET)" 'allow method-allowed'
is 'this is not' "$(verdict http://api.example/v2 --method GET)" 'deny method-blocked'
is 'nor this' "$(verdict http://api.example/v1/../v2 --method GET)" 'deny not-a-path'
is 'within TLS it is the same' "$(verdict https://api.example/v1/x --method GET)" 'allow method-allowed'
is 'and this is not' "$(verdict https://api.example/v2 --method GET)" 'deny method-blocked'
ok 'rm it' bac policy rm network --resource api.example --method GET --path '/v1/**'

# lists
like 'ls' "$(bac policy ls)" 'network: [0-9]+ allow'
like 'ls --wide' "$(bac policy ls --wide --decision allow)" 'localhost:18095'
unlike 'only denies' "$(bac policy ls --wide --decision deny)" 'localhost:18095'
id=$(bac policy ls --json | json '[r["id"] for r in d["rules"] if r["resource"] == "b.example"][0]')
like 'inspect' "$(bac policy inspect "$id")" "bac policy rm network --id $id"
like 'by the beginning of its id' "$(bac policy inspect "${id:0:13}")" "$id"
ok 'rm by id' bac policy rm network --id "$id"
status 'again' 1 bac policy rm network --id "$id"

# it survives the loss of the database
before=$(bac policy ls --json)
rm -f "$XDG_STATE_HOME"/bac/bac.db*
is 'rebuilt from the copy' "$(bac policy ls --json 2>/dev/null)" "$before"

# twenty commands at once
for i in $(seq 20); do
	bac policy allow network "p$i.example" >/dev/null &
done
wait
is 'twenty at once are all kept' "$(bac policy ls --json | json 'len([r for r in d["rules"] if r["resource"].startswith("p")])')" 20
is 'in the copy too' "$(json 'len([r for r in d["rules"] if r["resource"].startswith("p")])' <"$XDG_STATE_HOME/bac/policy.json")" 20

status 'reset asks' 1 bac policy reset
ok 'reset --force' bac policy reset --force
like 'nothing is chosen' "$(bac policy ls)" 'none was chosen'
ok 'init balanced' bac policy init balanced
is 'knows model services' "$(verdict https://api.anthropic.com/)" 'allow domain-allowed'
is 'by their port' "$(verdict http://api.anthropic.com/)" 'deny default-deny'
is 'and nothing else' "$(verdict a.example)" 'deny default-deny'
bac policy reset --force
if run env -u DISPLAY python3 "${0%/*}/../lib/term.py" 'expect:2 balanced' 'send:1\r' end -- "$BAC" create --name asked shell; then
	pass 'a terminal is asked, and the sandbox made'
else
	# without a template the answer is taken all the same
	like 'a terminal is asked' "$out$err" 'template'
fi
like 'and the answer holds' "$(bac policy ls)" 'Preset: allow-all'
bac rm --force asked >/dev/null 2>&1
bac policy reset --force
ok 'init allow-all' bac policy init allow-all
is 'knows everything' "$(verdict a.example:22)" 'allow domain-allowed'
is 'but this machine' "$(verdict localhost:22)" 'deny private-address'
status 'a sandbox with a rule that is none' 2 bac create --allow-network 'a..b' shell
like 'is refused' "$err" "^bac: --allow-network: resource 'a..b': column 3"
status 'rules without a network' 2 bac create --network none --deny-network a.example shell
status 'a network that is none' 2 bac create --network host shell
like 'nothing is left of these' "$(bac ls)" '^No sandboxes found'
ok 'each command has its help' bash -c 'for c in init "allow network" "deny network" "rm network" ls inspect "check network" reset; do
	"$BAC" policy $c --help >/dev/null || exit 1; done'
status 'a word that is none' 2 bac policy alow network x
like 'suggests the nearest' "$err" "did you mean 'allow'"

# ---- with a machine ----
run bac template ls --json
if [ "$rc" -ne 0 ] || [ "$(json 'len(d["templates"])' <<<"$out")" = 0 ]; then
	skip 'a machine' "no template in the cache: run 'bac template build'"
	exit 0
fi
bac policy reset --force
bac policy init deny-all >/dev/null
python3 -u -m http.server -b 127.0.0.1 0 >"$E2E_DIR/server" 2>&1 &
server=$!
wait_for 20 grep -q 'port [0-9]' "$E2E_DIR/server"
port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$E2E_DIR/server" | head -n 1)
fetch() { # URL [OPTION...]: the status, 000 where there is none
	bac exec box curl -sS -m 10 -o /dev/null -w '%{http_code}' "$@" 2>/dev/null
}
ok 'a sandbox with rules of its own' bac create --name box -m 512m --allow-network "localhost:$port" \
	--deny-network never.example shell
is 'they are its' "$(bac policy ls box --json --created-via provisioned | json 'len(d["rules"])')" 2
is 'it reaches what they allow' "$(fetch "http://host.docker.internal:$port/")" 200
is 'NP-08: and nothing else' "$(fetch http://a.example/)" 403
like 'which says whose decision it is' "$(bac exec box curl -sS -m 10 http://a.example/)" \
	'refused by network policy.*bac policy allow network --sandbox box a.example:80'
wrong=''
for denied in host.docker.internal localhost 127.0.0.1 '[::1]' 0.0.0.0 127.1 2130706433; do
	bac policy deny network "$denied" >/dev/null 2>&1
	[ "$(fetch "http://host.docker.internal:$port/")" = 403 ] || wrong+="$denied "
	bac policy rm network --resource "$denied" >/dev/null
done
is 'NP-07: a deny of any spelling is kept' "$wrong" ''
is 'and holds no longer than it is there' "$(fetch "http://host.docker.internal:$port/")" 200
wrong=''
for spelling in 127.0.0.1 127.1 0.0.0.0 '[::1]'; do # inside, this is the machine itself
	[ "$(fetch "http://$spelling:$port/")" = 000 ] || wrong+="$spelling "
done
is 'NP-07: inside, loopback is its own' "$wrong" ''
ok 'a rule about requests takes its place' bac policy allow network --sandbox box --method GET --path '/x/**' "localhost:$port"
bac policy rm network --sandbox box --resource "localhost:$port" >/dev/null
is 'this passes (and is not there)' "$(fetch "http://host.docker.internal:$port/x/y")" 404
is 'this does not' "$(fetch "http://host.docker.internal:$port/y")" 403
is 'nor this' "$(fetch --path-as-is "http://host.docker.internal:$port/x/../y")" 403

# a connection that is open when it is forbidden
bac policy allow network --sandbox box "localhost:$port" >/dev/null
bac policy rm network --sandbox box --resource "localhost:$port" --method GET --path '/x/**' >/dev/null
bac exec box bash -c "exec 3<>/dev/tcp/198.18.0.5/$port; printf 'GET / HTTP/1.1\r\nHost: host.docker.internal:$port\r\n' >&3
	echo open; cat <&3; echo closed" >"$E2E_DIR/held" 2>&1 &
held=$!
ok 'a connection is open' wait_for 20 grep -q open "$E2E_DIR/held"
bac policy deny network "localhost:$port" >/dev/null
ok 'NP-16: a deny closes it' wait_for 5 grep -q closed "$E2E_DIR/held"
wait "$held" 2>/dev/null
bac policy rm network --resource "localhost:$port" >/dev/null

# what was refused, as rules
fetch https://b.example/ >/dev/null
fetch http://10.1.2.3:5432/ >/dev/null
suggested() {
	bac policy suggest box --json | json '" ".join(sorted(s["resource"] for s in d["suggestions"]))'
}
is 'suggest names what was refused' "$(suggested)" '10.1.2.3:5432 a.example:80 b.example:443'
ok 'suggest --apply' bac policy suggest box --apply
is 'leaves what must be named' "$(suggested)" '10.1.2.3:5432'
is 'and the rest is allowed' "$(verdict a.example:80 --sandbox box) $(verdict b.example --sandbox box)" \
	'allow domain-allowed allow domain-allowed'
ok 'reset' bac policy reset --force
is 'shuts it at once' "$(fetch "http://host.docker.internal:$port/")" 403
ok 'rm' bac rm --force box
ok 'init' bac policy init deny-all
is 'its rules went with it' "$(bac policy ls --json | json 'len(d["rules"])')" 0
ok 'a sandbox without a network' bac create --name none -m 512m --network none shell
is 'inspect tells' "$(bac inspect --json none | json 'd["network"]')" none
unlike 'has no device' "$(bac exec none ls /sys/class/net)" '(^|[[:space:]])e'
ok 'a rule for it' bac policy allow network --sandbox none a.example
like 'is told to be idle' "$err" 'made with --network none'
ok 'is kept so by a restart' bac stop none
unlike 'no device' "$(bac exec none ls /sys/class/net)" '(^|[[:space:]])e'
kill "$server"
wait "$server" 2>/dev/null || :
