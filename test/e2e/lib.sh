# What every scenario begins with:  . "${0%/*}/lib.sh"
#
# A scenario prints one row for each thing it shows (TAP). Nothing here sleeps for a time and hopes:
# wait_for asks again until it is so or a deadline has passed. test/run gives each scenario
# directories of its own (E2E_DIR and the XDG variables below it; only the cache with the
# templates is shared), starts it in an empty folder, and looks afterwards for what it left behind.
#
#   ok NAME COMMAND...          the command succeeds
#   fails NAME COMMAND...       it ends with a status other than 0
#   status NAME WANT COMMAND... it ends with exactly this status
#   is NAME GOT WANT            two texts are equal
#   like NAME GOT REGEX         a text matches an extended regular expression
#   unlike NAME GOT REGEX       ... or does not
#   pass NAME, fail NAME        as the scenario has found itself
#   run COMMAND...              leaves $out, $err and $rc (one NUL-free text each, newline at the end cut)
#   wait_for SECONDS COMMAND... until the command succeeds; its status
#   json EXPRESSION <TEXT       a Python expression over the document d, printed
#   skip NAME WHY               this row cannot be shown here
#   skip_all WHY                nothing of this scenario can
#   no_policy=1                 before lib.sh is read: the network policy is not chosen yet (else it is deny-all)
#   own_cache                   from here on the cache is this scenario's: the default template and Debian's kernels of the shared one, $shared, by links
#   ends+=(PID)                 a process in the background that is ended with the scenario
#   snapshot                    what there is now: files, processes, mounts, links, cgroups
#   note TEXT                   for who reads the log
#
# Rows go on after a failure. Every command of `run` and its kin has $deadline seconds.
# shellcheck shell=bash
# shellcheck disable=SC2034  # out, err, rc and shared are for the scenarios
set -u
: "${BAC:?run me through test/run}" "${E2E_DIR:?run me through test/run}"
rows=0
deadline=180
out='' err='' rc=0
ends=()

bac() {
	command "$BAC" "$@"
}

[ -n "${no_policy-}" ] || bac policy init deny-all >/dev/null || exit 1

note() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

pass() {
	rows=$((rows + 1))
	printf 'ok %d - %s\n' "$rows" "$1"
}

# fail NAME [MORE...]: what else there is to know goes below the row
fail() {
	rows=$((rows + 1))
	printf 'not ok %d - %s\n' "$rows" "$1"
	shift
	[ $# -eq 0 ] || note "$@"
}

skip() {
	rows=$((rows + 1))
	printf 'ok %d - %s # SKIP %s\n' "$rows" "$1" "$2"
}

skip_all() {
	printf '1..0 # SKIP %s\n' "$*"
	exit 77
}

# bash functions and programs alike, with a deadline. A function runs in a subshell.
run() {
	if [ "$(type -t "$1")" = function ] && [ "$1" != bac ]; then
		"$@" >"$E2E_DIR/out" 2>"$E2E_DIR/err"
	else
		[ "$1" != bac ] || set -- "$BAC" "${@:2}"
		timeout -k 5 "$deadline" "$@" >"$E2E_DIR/out" 2>"$E2E_DIR/err"
	fi
	rc=$?
	out=$(tr -d '\0' <"$E2E_DIR/out")
	err=$(tr -d '\0' <"$E2E_DIR/err")
	return "$rc"
}

# what `run` has seen, for the log
seen() {
	printf 'typed: %s\nstatus: %s\n' "$1" "$rc"
	[ -z "$out" ] || printf 'stdout: %s\n' "$(head -c 2000 <<<"$out")"
	[ -z "$err" ] || printf 'stderr: %s\n' "$(head -c 2000 <<<"$err")"
}

ok() {
	local name=$1
	shift
	if run "$@"; then pass "$name"; else fail "$name" "$(seen "$*")"; fi
}

fails() {
	local name=$1
	shift
	if run "$@"; then fail "$name" "$(seen "$*")"; else pass "$name"; fi
}

status() {
	local name=$1 want=$2
	shift 2
	run "$@"
	if [ "$rc" -eq "$want" ]; then pass "$name"; else fail "$name" "wanted: $want" "$(seen "$*")"; fi
}

is() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:    $2"$'\n'"wanted: $3"; fi
}

like() {
	if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "got:    $2"$'\n'"wanted: $3"; fi
}

unlike() {
	if [[ $2 =~ $3 ]]; then fail "$1" "got:      $2"$'\n'"unwanted: $3"; else pass "$1"; fi
}

wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

json() {
	python3 -c 'import json, sys
d = json.load(sys.stdin)
v = eval(sys.argv[1])
print(v if isinstance(v, str) else json.dumps(v))' "$1"
}

# Not below a folder that a sandbox is given.
own_cache() {
	local store=$E2E_DIR/k/bac digest part
	shared=$XDG_CACHE_HOME/bac
	digest=$(command "$BAC" template ls --json | json '[t["digest"] for t in d["templates"] if t["tag"] == "default"][0]')
	mkdir -p "$store/templates" "$store/kernels"
	for part in "templates/$digest" $(cd "$shared" && grep -l '"debian"' kernels/*/kernel.json | xargs -n1 dirname); do
		cp -al "$shared/$part" "$store/${part%/*}/" 2>/dev/null || cp -a "$shared/$part" "$store/${part%/*}/"
	done
	export XDG_CACHE_HOME=$E2E_DIR/k
}

# Descendants of test/run, which adopts whatever loses its parent: the supervisors and all theirs.
# This shell and what it is just running are left out.
processes() {
	python3 - "$E2E_RUN" "$$" <<-'PYTHON'
		import os, sys
		parent, name = {}, {}
		for pid in filter(str.isdigit, os.listdir("/proc")):
		    try:
		        stat = open(f"/proc/{pid}/stat", errors="replace").read()
		    except OSError:
		        continue
		    rest = stat.rpartition(")")[2].split()
		    if rest[0] != "Z":
		        parent[int(pid)] = int(rest[1])
		        name[int(pid)] = stat.partition("(")[2].rpartition(")")[0]
		def above(pid):
		    while pid in parent:
		        yield pid
		        pid = parent[pid]
		runner, shell = map(int, sys.argv[1:])
		for pid in sorted(parent):
		    line = list(above(pid))
		    if runner in line and shell not in line and pid != runner:
		        print(name[pid])
	PYTHON
}

# Equal before and after a sandbox's life: paths, not sizes. What a settings file or an empty
# directory of bac's own says is no trace of a sandbox; nor is its log, which is kept.
snapshot() {
	(cd "$E2E_DIR" && find r s c d -mindepth 2 ! -type d ! -name '*.db*' ! -name '*lock*' ! -name policy.json ! -path 's/bac/audit/*' | sort)
	processes | sed 's/^/process /'
	sed -n 's/^\S* \S* \S* \S* \(\S*\) .*/mount \1/p' /proc/self/mountinfo | sort
	find /sys/class/net -mindepth 1 -printf 'link %f\n' | sort
	find /sys/fs/cgroup -type d -name '*bac*' -printf 'cgroup %p\n' 2>/dev/null | sort
	find /dev/shm /tmp -maxdepth 1 -user "$(id -u)" -name 'bac*' -printf 'file %p\n' | sort
}

# The way out, whatever happened: no sandbox stays, and the runner gets its plan.
# Of this process alone: a child that a signal meets before it is another program has our traps.
e2e_pid=$BASHPID
e2e_end() {
	local status=$?
	trap - EXIT
	[ "$BASHPID" = "$e2e_pid" ] || exit "$status"
	if [ ${#ends[@]} -ne 0 ]; then
		kill "${ends[@]}" 2>/dev/null
		wait "${ends[@]}" 2>/dev/null
	fi
	if [ "$status" -ne 77 ]; then
		timeout -k 5 120 "$BAC" rm --all --force >"$E2E_DIR/out" 2>&1 ||
			note "rm --all --force: $(cat "$E2E_DIR/out")"
		printf '1..%d\n' "$rows"
	fi
	exit "$status"
}
trap e2e_end EXIT
trap 'exit 143' TERM INT HUP
