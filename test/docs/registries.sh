# shellcheck shell=bash
# shellcheck disable=SC2154  # registry: page.sh's
bac policy init balanced
export BAC_SECRETS_STORE=file
registry && image library/debian:13 && image team/agents:7 || return
public registry-1.docker.io="$registry" ghcr.io="$registry"
echo token-of-the-test-0123456789 >token
