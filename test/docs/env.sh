# shellcheck shell=bash
bac policy init deny-all
mkdir -p ../team-tools
printf '%s\n' 'schemaVersion: "2"' 'kind: mixin' 'name: team-tools' 'environment: {variables: {EDITOR: vi}}' >../team-tools/spec.yaml
answer 'bac env create*' '\? ' 'y\r'
answer 'bac env run*' '[$#] $' 'exit\r'
answer 'bac env rm*' '\? ' 'y\r'
