#!/bin/bash
# bac exec, row by row: statuses, signals, streams, terminals, limits. Cases EX-01 to EX-14.
# timeout: 1200
. "${0%/*}/lib.sh"
term=${0%/*}/../lib/term.py

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
ok 'create' bac create --name x -m 1g shell
x() { command "$BAC" exec x "$@"; }
xi() { command "$BAC" exec -i x "$@"; }

# --- statuses: NAME|STATUS|COMMAND, words split at blanks
while IFS='|' read -r name want words; do
	read -ra argv <<<"$words"
	status "$name" "$want" bac exec x "${argv[@]}"
done <<'ROWS'
true is 0|0|true
false is 1|1|false
-- before the command is skipped|0|-- true
a second -- is an argument|0|-- test -- = --
not found is 127|127|nosuch
not found with a slash is 127|127|/no/such
a directory is 126|126|/etc
not executable is 126|126|/etc/passwd
a relative path|0|../../../bin/true
ROWS
status 'sh -c exit 7' 7 bac exec x sh -c 'exit 7'
status 'bash -c exit 255' 255 bac exec x bash -c 'exit 255'
status 'SIGTERM to itself is 143' 143 bac exec x sh -c 'kill -TERM $$'
status 'SIGKILL to itself is 137' 137 bac exec x sh -c 'kill -KILL $$'
status 'SIGSEGV to itself is 139' 139 bac exec x sh -c 'kill -SEGV $$'
status 'no command is a usage error' 125 bac exec x
status 'an unknown option is refused' 125 bac exec --nope x true
like 'and the nearest one named' "$(bac exec --interactiv x true 2>&1)" "did you mean '--interactive'"
status 'an unknown user is not started' 126 bac exec -u nobody-there x true
like 'with a word' "$err" 'nobody-there'
status 'a missing directory is not started' 126 bac exec -w /no/such x true
run bac exec x nosuch
like 'what was not found is named' "$err" "nosuch"
x sh -c 'printf "\177ELF\002\001\001\000\000\000\000\000" >/tmp/arch; chmod +x /tmp/arch'
status 'a program for another machine is 126' 126 bac exec x /tmp/arch

# --- who, where, with what
is 'argv as it is' "$(x printf '%s|' 'a b' '' '*' '$HOME' "it's" $'new\nline' '--' '-n')" $'a b||*|$HOME|it\'s|new\nline|--|-n|'
is 'user root' "$(bac exec -u root x id -un)" root
is 'user by number and group' "$(bac exec -u 1000:0 x sh -c 'id -u; id -g' | tr '\n' ' ')" '1000 0 '
is 'groups of the agent' "$(x id -nG | tr ' ' '\n' | grep -cx sudo)" 1
is 'workdir' "$(bac exec -w /usr/share x pwd)" /usr/share
is 'default workdir' "$(x pwd)" /home/agent/workspace
is 'HOME' "$(x sh -c 'echo $HOME')" /home/agent
is 'IS_SANDBOX' "$(x sh -c 'echo $IS_SANDBOX')" 1
is '-e with a value' "$(bac exec -e A=1 -e 'B=x y' x sh -c 'echo "$A/$B"')" '1/x y'
is '-e from the host' "$(FROM_HOST=yes bac exec -e FROM_HOST x sh -c 'echo $FROM_HOST')" yes
is '-e of what the host does not have' "$(bac exec -e NOT_THERE x sh -c 'echo ${NOT_THERE-unset}')" unset
printf '# a comment\nC=3\n\nD=four five\n' >vars
is '--env-file, and -e over it' "$(bac exec --env-file vars -e C=4 x sh -c 'echo "$C/$D"')" '4/four five'
x sh -c 'echo "export FROM_PERSISTENT=42" >>/etc/sandbox-persistent.sh'
is 'persistent.sh in a plain bash' "$(x bash -c 'echo $FROM_PERSISTENT')" 42
is 'persistent.sh in a login bash' "$(x bash -lc 'echo $FROM_PERSISTENT')" 42
is 'persistent.sh in an interactive bash' "$(x bash -ic 'echo $FROM_PERSISTENT' 2>/dev/null)" 42
is 'persistent.sh for root through sudo' "$(x sudo bash -c 'echo $FROM_PERSISTENT')" 42

# --- streams
run bac exec x sh -c 'echo out; echo err >&2'
is 'stdout alone' "$out" out
is 'stderr alone' "$err" err
is 'input' "$(printf 'a\nb' | xi cat)" $'a\nb'
is 'without -i the input is empty' "$(echo lost | x cat)" ''
is 'a loop over lines is not eaten' "$(printf '1\n2\n3\n' | while read -r n; do x echo "$n"; done | tr '\n' ' ')" '1 2 3 '
start=$SECONDS
is 'EX-01: an input that never ends' "$(timeout 60 "$BAC" exec -i x echo hi < <(exec sleep 1013))" hi
pkill -f 'sleep 1013'
[ $((SECONDS - start)) -lt 30 ] && pass 'and it returns at once' || fail 'and it returns at once'
is 'closed input' "$("$BAC" exec -i x echo hi <&-)" hi
is 'closed error' "$("$BAC" exec x echo hi 2>&-)" hi
status 'a reader that goes away ends the writer' 141 bash -c 'set -o pipefail; "$BAC" exec x yes | head -1 >/dev/null'
head -c 5000000 /dev/urandom >random
is 'EX-08: 5 MB of random bytes through and back' "$(xi cat <random | sha256sum)" "$(sha256sum <random)"
is 'NUL bytes' "$(printf 'a\0b\0' | xi cat | od -An -c | tr -d ' \n')" 'a\0b\0'
is 'stdin that nobody reads' "$(head -c 100M /dev/zero | xi true; echo $?)" 0
want=$(head -c 1G /dev/zero | sha256sum)
is '1 GiB out' "$(x head -c 1G /dev/zero | sha256sum)" "$want"
is '1 GiB in' "$(head -c 1G /dev/zero | xi sha256sum)" "$want"
is 'a character cut at 4096 and 65536' "$(x python3 -c 'print("a"*4095 + "é" + "b"*61437 + "ü")' | sha256sum)" \
	"$(python3 -c 'print("a"*4095 + "é" + "b"*61437 + "ü")' | sha256sum)"
is 'unicode argument' "$(x printf %s '数据 é 🎉')" '数据 é 🎉'
long=$(head -c 131071 /dev/zero | tr '\0' a)
is 'an argument of 128 KiB less one' "$(x sh -c 'printf %s "$1" | wc -c' - "$long")" 131071
is '3000 arguments' "$(x sh -c 'echo $#' - $(seq 3000))" 3000
status 'a background child holds nobody up' 0 timeout 60 "$BAC" exec x sh -c 'sleep 300 & echo done'
is 'and goes on' "$(x pgrep -cx sleep)" 1
x pkill -x sleep
mkfifo stalled
"$BAC" exec x sh -c 'head -c 5M /dev/zero; echo end >&2' >stalled 2>stall.err &
stalled=$!
exec 9<stalled
is 'EX-07: while one reader stalls, another goes on' "$(x echo hi)" hi
is 'with much output too' "$(x head -c 20M /dev/zero | wc -c)" 20971520
is 'the stalled one loses nothing' "$(wc -c <&9)" 5242880
exec 9<&-
wait "$stalled"
is 'nor its error output' "$(cat stall.err)" end
"$BAC" exec x sh -c 'echo first >&2; head -c 5M /dev/zero; sleep 1; echo second >&2' >stalled 2>stall2.err &
exec 9<stalled
wait_for 60 grep -q first stall2.err && pass 'stderr comes while stdout stalls' || fail 'stderr comes while stdout stalls'
exec 9<&-
wait

# --- signals and time
# the file goes first: its old "up" would be found, and the signal would meet a shell that is not bac yet
rm -f sig.out
"$BAC" exec x sh -c 'trap "echo got; exit 3" INT; echo up; while :; do sleep 0.1; done' >sig.out &
pid=$!
wait_for 60 grep -q up sig.out
kill -INT $pid
wait $pid
is 'SIGINT reaches the command' "$?/$(tail -1 sig.out)" 3/got
rm -f sig.out
"$BAC" exec x sh -c 'echo up; sleep 555 | sleep 555' >sig.out &
pid=$!
wait_for 60 grep -q up sig.out
kill -TERM $pid
wait $pid
is 'SIGTERM reaches the whole group' "$?" 143
wait_for 20 bash -c '! "$BAC" exec x pgrep -f "sleep 555"' && pass 'nothing of it is left' || fail 'nothing of it is left'
rm -f sig.out
"$BAC" exec x sh -c 'echo up; exec sleep 556' >sig.out &
pid=$!
wait_for 60 grep -q up sig.out
kill -KILL $pid
wait $pid 2>/dev/null
wait_for 20 bash -c '! "$BAC" exec x pgrep -f "sleep 556"' && pass 'kill -9 of bac ends the command' || fail 'kill -9 of bac ends the command'
status 'time-out is 124' 124 bac exec --timeout 1s x sleep 60
like 'and said' "$err" 'after 1 second'
status 'time-out of one that ignores SIGTERM' 124 bac exec --timeout 500ms x sh -c 'trap "" TERM; while :; do sleep 1; done'
status 'time-out with an open input' 124 bash -c '"$BAC" exec -i --timeout 1s x cat < <(exec sleep 1013)'
pkill -f 'sleep 1013'
status 'in time' 5 bac exec --timeout 60s x sh -c 'exit 5'

# --- terminals
run python3 "$term" --size 41x133 end -- "$BAC" exec -it x stty size
like 'EX-02: the first size' "$out" '41 133'
run python3 "$term" expect:ready resize:50x101 expect:50.101 end -- "$BAC" exec -it x bash -c \
	'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.1; done'
is 'a new size arrives' "$rc" 0
run python3 "$term" resize:10x20 resize:11x21 resize:12x22 resize:13x23 resize:14x24 resize:15x25 \
	expect:15.25 end -- "$BAC" exec -it x bash -c 'until [ "$(stty size)" = "15 25" ]; do sleep 0.1; done; stty size'
is 'and the last of many' "$rc" 0
run python3 "$term" 'expect:[$] ' 'send:exit 9\r' end -- "$BAC" exec -it x bash --norc
is 'EX-13: an interactive shell' "$rc" 9
unlike 'with job control' "$out" 'no job control'
like 'and modes restored' "$err" 'termios same'
# exec: a dash that is about to run a program waits in vfork(); Ctrl-Z then stops only the child, and
# Ctrl-C is forgotten. fg, since a bash that has not yet seen its stopped job die does not leave
run python3 "$term" 'expect:[$] ' 'send:sh -c "echo u""p; exec sleep 100"\r' expect:up 'send:\x1a' expect:Stopped 'send:kill -KILL %1; fg; exit 4\r' end -- \
	"$BAC" exec -it x bash --norc
is 'Ctrl-Z, jobs, kill' "$rc" 4
run python3 "$term" expect:up 'send:\x03' end -- "$BAC" exec -it x sh -c 'echo up; exec sleep 100'
is 'Ctrl-C is the command'"'"'s' "$rc" 130
run python3 "$term" expect:up kill end -- "$BAC" exec -it x sh -c 'echo up; sleep 100'
like 'EX-10: kill -9 of bac leaves the terminal as it was' "$err" 'termios same'
run python3 "$term" end -- "$BAC" exec -it x nosuch
is 'EX-11: a missing program on a terminal' "$rc" 127
run python3 "$term" end -- "$BAC" exec -t x sh -c 'test -t 0 && test -t 1 && test -t 2'
is '-t alone is a terminal' "$rc" 0
like '-t without a terminal is refused with -i' "$(bac exec -it x true 2>&1 </dev/null)" 'not a terminal'
run python3 "$term" 'expect:password' 'send:secret\r' 'expect:got secret' end -- "$BAC" exec -it x bash -c \
	'read -rsp password: p; echo; echo got $p'
is 'a password prompt' "$rc" 0
run python3 "$term" end -- "$BAC" exec -it x printf 'a\nb\n'
is 'a line ends as on any terminal' "$(tr '\r' R <<<"$out")" $'aR\nbR'

# --- many
for i in $(seq 200); do "$BAC" exec x sh -c "sleep 3; echo $i" & done >many.out 2>many.err
wait
is '200 at once' "$(sort -n many.out | uniq | wc -l)" 200
is 'without a word' "$(cat many.err)" ''

# --- detached
job=$(bac exec -d x sh -c 'for i in 1 2 3; do echo $i; sleep 0.5; done; echo err >&2; exit 6')
like '-d prints an id' "$job" '^j[0-9]+$'
like '--list shows it' "$(bac exec --list x)" "$job +running"
run bac exec --attach x "$job"
is '--attach shows all of it' "$out" $'1\n2\n3'
is 'its errors' "$err" err
is 'and its status' "$rc" 6
like '--list shows its end' "$(bac exec --list --json x | json '[j["exit_code"] for j in d["jobs"] if j["id"] == "'"$job"'"][0]')" '^6$'
job=$(bac exec -d x sh -c 'trap "" HUP; sleep 300')
ok '--kill' bac exec --kill x "$job"
wait_for 20 bash -c '"$BAC" exec --list x | grep -q "'"$job"' *exited (143)"' && pass 'ended by SIGTERM' || fail 'ended by SIGTERM'
status '--kill again says so' 125 bac exec --kill x "$job"
status '--attach of nothing' 125 bac exec --attach x j999
job=$(bac exec -d x sh -c 'yes | head -c 3000000; sleep 1; echo end')
run bac exec --attach x "$job"
is 'much output of a job: its end is there' "$(tail -1 <<<"$out")" end
