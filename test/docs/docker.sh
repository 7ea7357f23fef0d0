# shellcheck shell=bash
# shellcheck disable=SC2154  # registry: page.sh's
bac policy init balanced
registry && image library/alpine:latest || return
public registry-1.docker.io="$registry" || return
# a rule about a method has the connection opened, so that the engine sees an authority that it knows
bac policy deny network --method DELETE registry-1.docker.io:443
bac create --name web shell .
deadline 300
