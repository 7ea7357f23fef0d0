# What a page of docs/agents supposes:  . "$lib/page-agent.sh" NAME  in test/docs/NAME.sh
#
# The providers' names lead to the model of the tests, which wants the key that is typed; ~/src/web is a repository whose test fails. The agent itself comes from
# the registry that npm on this host knows, by the way that npm.sh explains. Nothing is made unless AGENTS names the agent.
# shellcheck shell=bash
# shellcheck disable=SC2154  # lib, world: the walker's
[[ " ${AGENTS-} " = *" $1 "* ]] || return 0
key='key-of-the-reader-0123456789'
names=api.openai.com,api.anthropic.com,generativelanguage.googleapis.com,api.github.com,api.individual.githubcopilot.com
printf %s "$key" >"$world/key"
"$lib/model" "$world/model" --script "$lib/model-scripts/edit.json" --key "$world/key" --names "$names" >"$world/model.log" 2>&1 &
wait_for 60 test -e "$world/model/ports" || { cat "$world/model.log"; return 1; }
. "$world/model/ports"
. "$lib/npm.sh"
registry=$(npm_way) || { skip_page "$registry"; return 0; }
BAC_NET_CONNECT_TO=$registry
for host in ${names//,/ }; do BAC_NET_CONNECT_TO+=,$host:443=127.0.0.1:$tls; done
cat "$world/model/ca.pem" /etc/ssl/certs/ca-certificates.crt >"$world/authorities"
export BAC_NET_CONNECT_TO BAC_TLS_EXTRA_CA=$world/authorities BAC_SECRETS_STORE=file
bac policy init deny-all
bac policy deny network --method DELETE "${registry%%=*}" || return
printf 'def add(a, b):\n    return a - b\n' >add.py
printf 'import unittest\nfrom add import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n' >test_add.py
git add -A && git commit -q -m 'a test that fails' || return
deadline 3600
answer 'bac secret set *' "$key\r"
