# What test/docs/PAGE.sh may use to make what a page of docs/ supposes; test/lib/walk.py reads this into the shell that types. $lib is this directory, $world
# one for files; what is started in the background is ended with the page.
#
#   answer PATTERN KEYS                     a command that matches (as in case) runs on a terminal, and KEYS (\r, \x03, ...) is typed when it asks
#   answer PATTERN REGEX KEYS [REGEX KEYS]  ... when it has printed REGEX
#   after PATTERN COMMAND                   done once when a command that matches was typed
#   skip_page WHY                           nothing of the page can be typed here
#   deadline SECONDS                        of each command, from now on (120)
#   wait_for SECONDS COMMAND...             until it succeeds
#   registry                                Debian's docker-registry; $registry is its port
#   image NAME:TAG                          a small image (busybox) in it, as NAME:TAG
#   public [NAME=PORT...]                   public names lead to ports of this machine, with TLS, and npm's to stand-ins for the agents' programs (public.py)
# shellcheck shell=bash
# shellcheck disable=SC2154  # lib and world are the walker's

answer() { printf '%s\0' "$#" "$@" >>"$world/answers"; }
after() { printf '%s\0' "$#" "$@" >>"$world/after"; }
skip_page() { printf '%s' "$1" >"$world/skip"; }
deadline() { printf '%s' "$1" >"$world/deadline"; }

wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

registry() {
	local program
	for program in docker-registry skopeo; do
		[ -n "$(type -P $program)" ] || { skip_page "$program is not installed: sudo apt install $program"; return 0; }
	done
	[ -x /bin/busybox ] || { skip_page "no /bin/busybox: sudo apt install busybox-static"; return 0; }
	printf '%s\n' 'version: 0.1' 'log: {level: info}' "storage: {filesystem: {rootdirectory: $world/registry}, cache: {}}" \
		'http: {addr: "127.0.0.1:0", secret: x, relativeurls: true}' >"$world/registry.yml"
	docker-registry serve "$world/registry.yml" >"$world/registry.log" 2>&1 &
	wait_for 60 grep -q 'listening on' "$world/registry.log" || return 1
	registry=$(sed -n 's/.*listening on 127.0.0.1:\([0-9]*\).*/\1/p' "$world/registry.log")
	python3 "$lib/images.py" make "$world/images"
}

image() {
	[ ! -e "$world/skip" ] || return 0
	skopeo --insecure-policy copy -q --dest-tls-verify=false "docker-archive:$world/images/one.tar:tiny:1" "docker://127.0.0.1:$registry/$1"
}

public() {
	local kit packages=()
	for kit in claude codex copilot gemini opencode pi; do
		packages+=("$(bac kit inspect $kit 2>/dev/null | sed -n "/command: .*npm install/{s/.*'\(@\?[^@']*\)@[^0-9]*\([0-9.]*\).*/\1@\2=$kit/p;q}")")
	done
	python3 "$lib/public.py" "$world/public" registry.npmjs.'org'=npm "$@" "${packages[@]}" >"$world/public.log" 2>&1 &
	wait_for 60 test -e "$world/public/env" || { cat "$world/public.log"; return 1; }
	. "$world/public/env"
	# a rule about a method has the connection opened, so that npm inside sees an authority that it knows
	local rule='bac policy deny network --method DELETE registry.npmjs.''org:443'
	$rule >/dev/null 2>&1 || after 'bac policy init*' "$rule"
	deadline 300 # npm of an emulated machine takes its time
}
