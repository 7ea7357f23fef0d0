# shellcheck shell=bash
# shellcheck disable=SC2154  # world, lib: the walker's; registry: page.sh's
kit() { # DIRECTORY
	mkdir -p "$1"
	printf '%s\n' 'schemaVersion: "2"' 'kind: mixin' 'name: tools' 'environment: {variables: {EDITOR: vi}}' >"$1/spec.yaml"
}
kit ~/src/kits/tools
git init -q -b main ~/src/kits
git -C ~/src/kits add -A && git -C ~/src/kits commit -q -m first || return
registry || return
[ ! -e "$world/skip" ] || return 0
kit "$world/tools"
python3 "$lib/artifact.py" "http://127.0.0.1:$registry" team/tools 1 "$world/tools" || return
public ghcr.io="$registry" || return
printf '{"name": "web", "scripts": {"start": "node ."}}\n' >package.json
