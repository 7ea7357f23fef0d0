#!/bin/bash
# The life of a sandbox, as a first user lives it: create, enter, stop, enter again, remove.
# timeout: 600
# alone: it looks at the user's files, links and control groups before and after
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"

ok 'a list of nothing is no error' bac ls
is 'and -q prints nothing' "$(bac ls -q)" ''
status 'a sandbox that is not there' 125 bac exec a true
like 'is named in one line' "$err" "^[^"$'\n'"]*sandbox 'a' not found[^"$'\n'"]*$"
before=$(snapshot)

ok 'create' bac create --name a shell
is 'ls -q names it' "$(bac ls -q)" a
ok 'exec uname -r' bac exec a uname -r
like 'prints the kernel of the guest' "$out" '^[0-9]+\.[0-9]+\.[0-9]+'
is 'and nothing else on stderr that is not the emulation warning' \
	"$(grep -v -i emulat <<<"$err")" ''
is 'the host name is the sandbox'"'"'s' "$(bac exec a hostname)" a
is 'the user is agent' "$(bac exec a id -un)" agent
is 'with number 1000' "$(bac exec a id -u)" 1000
is 'who may become root without a password' "$(bac exec a sudo -n id -u)" 0
like 'ls says running' "$(bac ls)" 'a +shell +running'
like 'ls --json as well' "$(bac ls --json | json 'd["sandboxes"][0]["status"]')" '^running$'

ok 'a file is written' bac exec a sh -c 'echo kept >/home/agent/kept; sudo sh -c "echo also >/etc/kept"'
boot=$(bac exec a cat /proc/sys/kernel/random/boot_id)
ok 'stop' bac stop a
is 'no process is left of a stopped sandbox' "$(processes)" ''
like 'ls says stopped' "$(bac ls --json | json 'd["sandboxes"][0]["status"]')" '^stopped$'
ok 'stop again is no error' bac stop a

ok 'exec starts it again' bac exec a cat /proc/uptime
like 'the guest is young' "${out%%.*}" '^[0-9]{1,2}$'
unlike 'it is another boot' "$(bac exec a cat /proc/sys/kernel/random/boot_id)" "^$boot$"
is 'the file in the home directory is there' "$(bac exec a cat /home/agent/kept)" kept
is 'and the one in the system' "$(bac exec a cat /etc/kept)" also

ok 'rm of a running sandbox that nobody uses' bac rm --force a
is 'it is gone' "$(bac ls -q)" ''
fails 'for good' bac exec a true
is 'nothing is left of it' "$(snapshot)" "$before"

ok 'its name is free again' bac create --name a shell
is 'and the new one is empty' "$(bac exec a sh -c 'cat /home/agent/kept 2>/dev/null')" ''
