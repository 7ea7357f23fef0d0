# shellcheck shell=bash
# shellcheck disable=SC2154  # world: the walker's
bac policy init balanced
export BAC_SECRETS_STORE=file
bac create --name web shell . || return
# a client of GitHub that is logged in
mkdir -p "$world/bin"
printf '#!/bin/sh\necho gho_of_the_test_0123456789\n' >"$world/bin/gh"
chmod +x "$world/bin/gh"
PATH=$world/bin:$PATH
answer 'bac secret set *' 'key-of-the-test-0123456789\r'
answer 'bac secret set-custom *' 'key-of-the-shop-0123456789\r'
answer 'bac create --credentials * asked *' '\? ' '\r' '\? ' '\r' '\? ' '\r'
answer 'bac run *' '\? ' '\r' '[$#] $' 'exit\r'
