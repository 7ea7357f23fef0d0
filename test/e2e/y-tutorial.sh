#!/bin/bash
# The tutorial, as it is written: its commands, typed with the name that it uses (a link `sbx` to bac), from an image that 'docker save' wrote to its four checks. Its kit
# is test/kits/pi; the agent is a stand-in of a shell and curl that is set up as Pi is (guest/pi), and the model is ours behind the public name of the tutorial's
# provider (net.connectTo, tls.extraCa). The real Pi: v-main.sh. Then the tutorial's trap: a kit that needs a secret, started by a script.
#
# What bac says of itself it says as bac, whatever it was called: that name is always there, the link only where nobody else has it.
# timeout: 900
no_policy=1
. "${0%/*}/lib.sh"
here=${0%/*}
term=$here/../lib/term.py
run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -w /dev/net/tun ] && [ -r /dev/net/tun ] || skip_all "/dev/net/tun may not be opened: sudo chmod 0666 /dev/net/tun"
[ -x /bin/busybox ] || skip_all "no /bin/busybox: sudo apt install busybox-static"
curl=$(type -P curl) || skip_all 'no curl on this host: sudo apt install curl'

own_cache # a tag is loaded

# ---- the provider
python3 -c 'import secrets; print("key-" + secrets.token_urlsafe(33), end="")' >key
"$here/../lib/model" "$PWD/world" --script "$here/../lib/model-scripts/tutorial.json" --key "$PWD/key" --names llm.ilaas.fr >model.log 2>&1 &
ends=($!)
wait_for 60 test -e world/ports || { cat model.log; exit 1; }
tls=
. world/ports
cat world/ca.pem /etc/ssl/certs/ca-certificates.crt >authorities 2>/dev/null || cp world/ca.pem authorities
export BAC_NET_CONNECT_TO=llm.ilaas.fr:443=127.0.0.1:$tls BAC_TLS_EXTRA_CA=$PWD/authorities BAC_SECRETS_STORE=file
# shown: how many of the model's answers there were to the right key, and how many requests had another
shown() {
	python3 - "$key" <<-'PYTHON'
		import json, sys
		key = open(sys.argv[1]).read()
		came = [r for r in map(json.loads, open(sys.argv[1][:-3] + "world/seen")) if r["api"]]
		print(sum(r["key"] == key and r["status"] == 200 and "turn" in r for r in came), sum(r["key"] != key for r in came))
	PYTHON
}
key=$PWD/key
approvals=$XDG_CONFIG_HOME/bac/credentials.yaml

# ---- what the tutorial's reader has
is 'installation puts a link beside bac' "$(readlink "${BAC%/*}/sbx")" bac
mkdir bin && ln -s "$BAC" bin/sbx
PATH=$PWD/bin:$PATH
python3 "$here/../lib/images.py" save pi-sandbox.tar pi-sandbox:0.87.1 "/usr/local/bin/pi=$here/guest/pi" "$curl" "$(type -P printenv)" || exit 1
mkdir demo
cd demo || exit 1
printf 'def add(a, b):\n    return a - b\n' >add.py
printf 'import unittest\nfrom add import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n' >test_add.py
git init -q -b main && git add -A && git -c user.name=t -c user.email=t@t.example commit -q -m first
cp -r "$here/../kits/pi" pi-sandbox
mv ../pi-sandbox.tar .
typed() { # KEYS... -- COMMAND...: on a terminal
	run python3 "$term" "$@"
	out=${out//$'\r'/}
}
one_line() { is "$1: in one line" "$(grep -c '' <<<"$err")$(grep -vc '^bac: ' <<<"$err")" 10; }
boxes() { sbx ls -q; find "$XDG_STATE_HOME/bac/sandboxes" -mindepth 1 -maxdepth 1; }

# ---- 1: the image and the kit
ok 'sbx template load' sbx template load pi-sandbox.tar
like 'says what was loaded' "$out" '^Loaded pi-sandbox:0\.87\.1 \([0-9a-f]{12}, [^)]*\)$'
is 'sbx template ls has it' "$(sbx template ls -q | grep pi)" 'pi-sandbox:0.87.1'
ok 'sbx kit validate' sbx kit validate ./pi-sandbox
is 'and nothing is said about it' "$out$err" ''

# ---- 2: the trap: started by a script, with nothing prepared
fails 'without a policy nothing starts' sbx run ./pi-sandbox
is 'and it says how to choose one' "$err" \
	'bac: the network policy has not been chosen; run: bac policy init balanced (or allow-all, deny-all)'
ok 'sbx policy init deny-all' sbx policy init deny-all
is 'says what it is' "$out" 'The network policy is deny-all. See it with: bac policy ls'

needs="kit:pi requires the secret 'ilaas'"
none="$needs, and there is none (bac secret set ilaas)"
open="$needs at llm.ilaas.fr, and nobody has approved that (add --approve ilaas=llm.ilaas.fr)"
fails 'a script: neither secret nor approval' sbx run ./pi-sandbox
is 'it says both, and what to type' "$err" "bac: $none; $open"
typed expect:none end -- sbx run ./pi-sandbox
like 'on a terminal: without a secret no question is asked' "$out" "^bac: $needs, and there is none \(bac secret set ilaas\)$"
is 'nothing is left' "$(boxes)" ''

# ---- 3: the secret
typed 'expect:ilaas .not shown.: $' "send:$(cat ../key)\r" end -- sbx secret set ilaas
is 'sbx secret set ilaas, on a terminal' "$rc" 0
unlike 'what is typed is not shown' "$out" "$(cat ../key)"
like 'it says where it is' "$out" 'Stored ilaas in '
ok 'sbx secret set ilaas, from stdin' sh -c 'sbx secret set ilaas <../key'
like 'it says that there was one' "$out" '^Replaced ilaas in '
ok 'sbx secret ls' sbx secret ls
like 'it is there, and not to be read' "$out" $'^SCOPE +TYPE +NAME +SECRET\n\(global\) +service +ilaas +key-\.\.\.[^ ]{4}$'
fails 'a script: not approved' sbx run ./pi-sandbox
is 'it says that' "$err" "bac: $open"
one_line 'not approved'
fails 'creation alone: not approved' sbx create ./pi-sandbox
is 'the same' "$err" "bac: $open"
typed 'expect:Allow it' 'send:n\r' end -- sbx run ./pi-sandbox
like 'a terminal is asked, and no is no' "$rc" '^[1-9]'
like 'with the same line' "$out" "bac: $needs at llm\.ilaas\.fr, and nobody has approved that"
is 'nothing is left of all these' "$(boxes)" ''
is 'and nothing is approved' "$(cat "$approvals" 2>/dev/null)" ''

# ---- 4: the file that was written beforehand
mkdir -p "${approvals%/*}"
printf 'bindings:\n  ilaas:\n    apiKey:\n      domain: ["llm.ilaas.fr"]\n' >"$approvals"
fails 'a damaged one' sbx run ./pi-sandbox
like 'is refused by its line' "$err" "^bac: $approvals: line 4: unknown key 'domain'"
one_line 'a damaged one'
is 'nothing is left of that' "$(boxes)" ''
printf 'bindings:\n  ilaas:\n    apiKey:\n      domains: ["llm.ilaas.fr"]\n' >"$approvals"
began=$SECONDS
ok 'a script: approved beforehand' sbx run --name scripted ./pi-sandbox -- -p 'fix the failing test'
note "in $((SECONDS - began)) s"
like 'the agent says that it is done' "$out" 'add\(\) adds now\.$'
unlike 'nothing is asked' "$err" 'Allow'
is 'the model was shown the key, and no other' "$(shown)" '3 0'
is 'the edit is here' "$(git diff --numstat)" $'1\t1\tadd.py'
ok 'it goes' sbx rm --force scripted
git checkout -q add.py
rm "$approvals"

# ---- 5: as the tutorial has it
typed "expect:kit:pi wants requests to llm.ilaas.fr to carry your secret 'ilaas'. Allow it" 'send:y\r' 'expect:task> ' 'send:fix the failing test\r' \
	'expect:adds now' 'expect:task> ' 'send:\x1c' end -- sbx run ./pi-sandbox
is 'sbx run ./pi-sandbox: asks, works, is left' "$rc" 0
like 'says how to come back' "$out" "bac: left the agent of 'pi-demo' running; come back with: bac run --name pi-demo"
ok 'what was approved is written down' grep -qF '"llm.ilaas.fr"' "$approvals"
typed 'expect:task> ' 'send:\x1c' end -- sbx run ./pi-sandbox
is 'the same command comes back to it, and asks nothing' "$rc" 0
unlike 'indeed' "$out" 'Allow'
is 'it has one sandbox' "$(sbx ls -q)" pi-demo

# the four checks
is '1: the variable inside is the sentinel' "$(sbx exec pi-demo printenv ILAAS_API_KEY)" proxy-managed
run sbx exec pi-demo sh -c 'cat /proc/*/environ ~/.pi/agent/*; set'
is '1: the key is nowhere inside' "$(grep -acF "$(cat ../key)" <<<"$out")" 0
is '1: and the model was shown it, and no other' "$(shown)" '6 0'
run sbx exec pi-demo curl -sS -m 30 https://example.com/
like '2: an unlisted domain fails' "$rc" '^[1-9]'
run sbx exec pi-demo curl -sS -m 30 http://example.com/
like '2: and says why' "$out" '^bac: refused by network policy: example\.com:80'
like '2: and what a human can do' "$out" 'A human can allow it on the host with:  bac policy allow network --sandbox pi-demo example\.com:80'
is "3: the edit is in the host's working tree" "$(git diff --numstat)" $'1\t1\tadd.py'
ok '3: where the test passes' python3 -B -m unittest
ok '4: sbx policy log' sbx policy log
like '4: it has what was refused' "$out" 'Blocked requests:.*pi-demo .*example\.com.*Allowed requests:.*pi-demo .*llm\.ilaas\.fr'
denied() { sbx policy log --json "$1" | python3 -c '
import json, sys
for r in map(json.loads, sys.stdin):
    if r.get("decision") == "deny":
        print(r["kind"], r.get("host") or r.get("path") or "-", r.get("reason") or "-")' | sort -u; }
is '4: and nothing that the list did not choose' "$(denied pi-demo | grep -v ' example.com default-deny$')" ''

# ---- 6: what was approved is taken back, and the secret with it: the refusal at use says what the one at the start says
approve='bac run --name pi-demo --approve ilaas=llm.ilaas.fr'
wants="kit:pi wants the credential 'ilaas' on requests to llm.ilaas.fr, and nobody has approved that. Approve it on the host with: $approve"
inside() { sbx exec pi-demo curl -sS -m 30 -H 'Authorization: Bearer proxy-managed' https://llm.ilaas.fr/v1/models; }
like 'a request is answered' "$(inside)" '"data"'
rm "$approvals"
status 'secret check' 1 sbx secret check ilaas --sandbox pi-demo
is 'says what is missing' "$out" "llm.ilaas.fr: not authenticated: kit:pi is not approved here; run: $approve"
run inside
is 'at use: the same' "$(grep -oF "$wants" <<<"$out")" "$wants"
fails 'a script that starts the agent' sbx run --name pi-demo -- -p 'fix the failing test'
is 'is told at once' "$err" "bac: $open"
one_line 'and'
typed 'expect:Allow it' 'send:y\r' 'expect:task> ' 'send:\x1c' end -- sbx run --name pi-demo
is 'a terminal is asked' "$rc" 0
like 'and yes holds at once, while it runs' "$(inside)" '"data"'
ok 'sbx secret rm' sbx secret rm --force ilaas
run inside
like 'at use: there is none' "$out" "The credential 'ilaas' belongs on this request, and the host's store has no value for it. Set it on the host with: bac secret set ilaas"
fails 'a script that starts the agent' sbx run --name pi-demo -- -p 'fix the failing test'
is 'is told the same at once' "$err" "bac: $none"
one_line 'and'
typed 'expect:task> ' 'send:\x1c' end -- sbx run --name pi-demo
is 'a terminal comes back to the agent that runs' "$rc" 0
ok 'stored again' sh -c 'sbx secret set ilaas <../key'
like 'it holds at once' "$(inside)" '"data"'
ok 'it goes' sbx rm --force pi-demo

# ---- 7: a kit that can do without
rm "$approvals"
cp -r pi-sandbox optional
sed -i 's/required: true/required: false/' optional/spec.yaml
ok 'not required: it is made' sbx create --name can ./optional
approve=${approve/pi-demo/can}
like 'and a line says what is missing' "$err" "bac: kit:pi may not use the secret 'ilaas' at llm.ilaas.fr: nobody has approved it \($approve\)"
fails 'the agent fails' sbx run --name can -- -p 'fix the failing test'
like 'since the host is opened by its approval alone' "$out" 'access denied'
like 'which the log says' "$(denied can)" 'tls llm.ilaas.fr credential-unapproved'
status 'and secret check, with what to type' 1 sbx secret check ilaas --sandbox can
is 'it does' "$out" "llm.ilaas.fr: not authenticated: kit:pi is not approved here; run: $approve"
ok 'typed as it is said' sbx run --name can --approve ilaas=llm.ilaas.fr -- -p 'fix the failing test'
like 'it works' "$out" 'add\(\) adds now'
