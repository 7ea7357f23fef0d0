# shellcheck shell=bash
bac policy init balanced
public || return
mkdir team-tools
printf '%s\n' 'schemaVersion: "2"' 'kind: mixin' 'name: team-tools' 'environment: {variables: {EDITOR: vi}}' >team-tools/spec.yaml
answer 'bac run claude *leaves*' 'claude> ' '\x1c'
answer 'bac run claude *comes back*' '.' 'exit\r'
answer 'bac run shell *' '[$#] $' 'exit\r'
