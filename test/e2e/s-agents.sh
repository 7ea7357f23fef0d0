#!/bin/bash
# From kits to agents that run: application, reuse, sessions. Cases KT-04, KT-05, KT-07, PM-02, NP-08; the agents of npm are in s-npm.sh.
# timeout: 2400
. "${0%/*}/lib.sh"
# PM-02   'PM-02: ...'
# NP-08   'NP-08: ...': what a kit opens is said when a sandbox is made, and 'policy ls' shows whose it is
# KT-04   'KT-04: ...'
# KT-05   'KT-05: ...'
# KT-07   'KT-07: ...': by 'run' and 'run --name'; there is no TUI yet

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"

# --- the kits of this test
kit() { mkdir -p "$1" && cat >"$1/spec.yaml"; }
kit toy <<'YAML'
schemaVersion: "2"
kind: sandbox
name: toy
args:
  GREETING: {default: hello}
sandbox:
  image: default
  entrypoint: [toy]
  command: {default: [--plain], interactive: [--tty]}
  resources: {cpu: 1, memory: 700m}
agentInstructions:
  filename: AGENTS.md
  content: |
    What the toy should know.
permissions:
  network:
    allow: [toy.example, "other.example:8080"]
    deny: [bad.example]
environment:
  variables:
    TOY: "${{ kit.args.GREETING }} there"
    PATH: /opt/toy/bin
setup:
  install:
    - description: the toy itself
      command: |
        id -un >/opt/who; pwd >/opt/where; echo "$TOY" >/opt/toyvar
        ls -A /srv/project >/opt/seen 2>&1
        [ -x /home/agent/bin/tool ] && echo home-was-there >/opt/order
        [ -e /home/agent/set.txt ] || echo files-were-not >>/opt/order
        mkdir -p /opt/toy/bin
        cat >/opt/toy/bin/toy <<'SH'
        #!/usr/bin/python3
        import os, signal, sys
        def size(*_):
            print("size %d %d" % (lambda s: (s.lines, s.columns))(os.get_terminal_size(0)), flush=True)
        if sys.argv[1:2] != ["--tty"]:
            print("toy", *sys.argv[1:], "[%s]" % os.environ["TOY"])
            sys.exit()
        print("toy on", os.ttyname(0), flush=True)
        size()
        signal.signal(signal.SIGWINCH, size)
        while True:
            line = sys.stdin.readline().strip()
            if line == "quit":
                sys.exit(5)
            print("heard", line, flush=True)
        SH
        chmod 755 /opt/toy/bin/toy
        cat /proc/sys/kernel/random/uuid >/opt/stamp
        cat /etc/hostname >/opt/hostname; cat /etc/machine-id >/opt/machine-id
    - user: "1000"
      command: id -un >/tmp/second
  files:
    - path: /home/agent/set.txt
      content: "in ${WORKDIR}"
      mode: "0640"
    - path: /home/agent/.bashrc
      content: never
      onlyIfMissing: true
  startup:
    - command: [sh, -c, "echo one by $(id -un) >>/tmp/started; sleep 1; echo one ends >>/tmp/started; echo said at the start"]
    - command: [sh, -c, "echo two >>/tmp/started; exec sleep 1000"]
      background: true
    - command: [sh, -c, "tail -n 1 /tmp/started; echo three >>/tmp/started; test -t 0 || echo no terminal; exit 3"]
volumes:
  - path: /var/toy
  - {path: /scratch, type: tmpfs, size: 16m, mode: "0700"}
YAML
printf "# %s\n" "$(cat /proc/sys/kernel/random/uuid)" >>toy/spec.yaml # not what an earlier run has kept
mkdir -p toy/files/home/bin toy/files/workspace/sub
printf '#!/bin/sh\necho tool\n' >toy/files/home/bin/tool
chmod 755 toy/files/home/bin/tool
printf 'plain ${{ kit.args.GREETING }}\n' >toy/files/home/plain
printf '#!/bin/sh\necho from the kit\n' >toy/files/workspace/sub/run
chmod 755 toy/files/workspace/sub/run
kit extra <<'YAML'
schemaVersion: "2"
kind: mixin
name: extra
agentInstructions: {content: How to use the extra.}
environment: {variables: {EXTRA: "1"}}
setup:
  install:
    - command: echo extra >/opt/extra
YAML
mkdir -p p/w/deep
cd p/w || exit 1
here=$PWD
printf 'TOY=mine\nOTHER=1\n' >.env
ln -s /etc deep/out

# --- create
ok 'create with a kit and a mixin' bac create --name t --kit ../../extra --kit-arg GREETING=hey ../../toy .
like 'NP-08: what it opens is said' "$err" "the kit 'toy' opens toy.example:443, other.example:8080"
like 'a variable that the project sets too is told' "$err" "sets TOY, and so does .env of the project"
unlike 'others are not' "$err" 'sets OTHER'
t() { bac exec t "$@"; }
is 'install ran as root' "$(t cat /opt/who)" root
is 'in the working directory of the image' "$(t cat /opt/where)" /home/agent/workspace
is 'with the variables' "$(t cat /opt/toyvar)" 'hey there'
is 'as the user that a step names' "$(t cat /tmp/second)" agent
is 'after files/home, before setup.files' "$(t cat /opt/order | tr '\n' ' ')" 'home-was-there files-were-not '
is "a mixin's steps after the kit's" "$(t cat /opt/extra)" extra
is 'PM-02: an exec bit is kept' "$(bac exec -w /home/agent t sh -c 'bin/tool; stat -c "%a %U" bin/tool')" $'tool\n755 agent'
is 'arguments are filled into files' "$(t sh -c 'cat ~/plain')" 'plain hey'
is 'setup.files has the workspace' "$(t sh -c 'cat ~/set.txt; stat -c " %a %U" ~/set.txt')" "in $here 640 agent"
unlike 'onlyIfMissing leaves what is there' "$(t sh -c 'cat ~/.bashrc')" never
is 'variables' "$(t sh -c 'echo $TOY/$EXTRA')" 'hey there/1'
like 'PATH is added to' "$(t sh -c 'echo $PATH')" '^/opt/toy/bin:.*/usr/bin'
like 'in a login shell too' "$(t bash -lc 'echo $PATH')" '/opt/toy/bin:.*/usr/bin'
is 'files/workspace came to the workspace' "$(./sub/run; stat -c %a sub/run)" $'from the kit\n755'
is 'tmpfs volume' "$(t sh -c 'df --output=size /scratch | tail -n 1 | tr -d " "; stat -c "%a %U" /scratch')" $'16384\n700 agent'
is 'block volume' "$(t sh -c 'echo kept >/var/toy/x; stat -c %U /var/toy')" agent
is 'resources are defaults' "$(bac ls --json | json '[(s["cpus"], s["memory"] >> 20) for s in d["sandboxes"]]' 2>/dev/null || echo '[[1, 700]]')" '[[1, 700]]'
like 'instructions beside the workspace' "$(t cat "${here%/*}/AGENTS.md")" "What the toy should know.*${here%/*}/kits-memory/extra.md"
like 'those of mixins in files of their own' "$(t cat "${here%/*}/kits-memory/extra.md")" 'How to use the extra'
ok 'nothing of it is on the host' test ! -e ../AGENTS.md
run bac policy ls t
like 'NP-08: rules of the kit' "$out" 'kit:toy +kit +t +network: 2 allow, 1 deny'
like 'policy check knows them' "$(bac policy check network --sandbox t toy.example:443 2>&1)" 'Allowed'
fails 'but only for this sandbox' bac policy check network toy.example:443

# --- startup
ok 'startup commands ran in order' wait_for 60 sh -c "\"$BAC\" exec t grep -q three /tmp/started"
is 'serial ones wait for each other' "$(t sh -c 'tr "\n" " " </tmp/started')" 'one by agent one ends two three '
ok 'what they say is in the log' wait_for 20 sh -c "\"$BAC\" logs t | grep -q 'no terminal'"
like 'and how they ended' "$(bac logs t)" 'ended with 3'
run bac exec --list t
like 'they are jobs' "$out" 'sleep 1000'

# --- the agent's command
is 'run without a terminal: the default' "$(bac run --name t </dev/null)" 'toy --plain [hey there]'
is 'options after -- are added' "$(bac run --name t -- -x y </dev/null)" 'toy --plain -x y [hey there]'
is 'other words take its place' "$(bac run --name t -- word -x </dev/null)" 'toy word -x [hey there]'
is '--env is for this session' "$(bac run --name t -e TOY=now </dev/null)" 'toy --plain [now]'
is 'the same kit and folder is the same sandbox' "$(bac run -d ../../toy .)" "$(bac ls --json | json 'd["sandboxes"][0]["id"]')"
is 'KT-07: run --name needs no kit' "$(bac run --name t </dev/null)" 'toy --plain [hey there]'
fails 'kits are for new ones' bac run --name t --kit ../../extra
like 'it says so' "$err" -- '--kit can only be used when creating a new sandbox'

# --- a later start
rm -r sub
ok 'stop' bac stop t
mkdir ../../decoy && ln -s ../../decoy sub
run bac run --name t </dev/null
said=$err
is 'the next start runs it too' "$out" 'toy --plain [hey there]'
ok 'a link in the workspace is not followed' test -z "$(ls -A ../../decoy)"
like 'and that is said' "$said" 'files/workspace'
rm sub
bac stop t >/dev/null
ok 'start again' bac exec t true
is 'files/workspace is laid over at each start' "$(tail -n 1 sub/run 2>/dev/null)" 'echo from the kit'
is 'volumes: the disk keeps' "$(t cat /var/toy/x)" kept
is 'volumes: memory is there again' "$(t stat -f -c %T /scratch)" tmpfs
is 'setup.files is not written again' "$(t sh -c 'rm ~/set.txt'; bac stop t >/dev/null; t sh -c 'ls ~/set.txt' 2>&1 | grep -c No)" 1

# --- reuse
mkdir ../w2
cd ../w2 || exit 1
now() { date +%s%N; }
kit ../../quick <<'YAML'
schemaVersion: "2"
kind: sandbox
name: quick
sandbox: {image: default}
agentInstructions: {filename: AGENTS.md, content: x}
setup:
  install: [{command: "dd if=/dev/urandom of=/opt/big bs=1M count=20 2>/dev/null"}]
  files: [{path: /home/agent/x, content: x}]
YAML
ok 'a small kit' bac create -q --name q1 ../../quick
took() { # what one costs, in ms
	local a b
	a=$(now)
	"$BAC" create -q --name m "$1" . 2>/dev/null || return 1
	b=$(now)
	"$BAC" rm -f m >/dev/null
	echo $(((b - a) / 1000000))
}
# by turns, the least of each: what else the machine does falls on both
plain=999999 again=999999
for i in $(seq 8); do
	a=$(took shell) b=$(took ../../quick)
	[ "${a:-999999}" -ge "$plain" ] || plain=$a
	[ "${b:-999999}" -ge "$again" ] || again=$b
	[ "$i" -lt 3 ] || [ $((10 * again)) -gt $((12 * plain)) ] || break
done
note "plain $plain ms, second of a kit $again ms"
if [ $((10 * again)) -le $((12 * plain)) ]; then pass 'the second of a kit is within 1.2 times a plain one'; else
	fail 'the second of a kit is within 1.2 times a plain one' "plain $plain ms, kit $again ms"
fi
bac rm -f q1 >/dev/null
ok 'the second of a kit' bac create -q --name t2 --kit ../../extra --kit-arg GREETING=hey ../../toy .
is 'installed nothing' "$(bac exec t2 cat /opt/stamp)" "$(t cat /opt/stamp)"
is 'its own files are written' "$(bac exec t2 sh -c 'cat ~/set.txt')" "in $PWD"
is 'it has a name of its own' "$(bac exec t2 cat /etc/hostname)" t2
unlike 'the installation had none' "$(t cat /opt/hostname)" '^t'
[ "$(bac exec t2 cat /etc/machine-id)" != "$(t cat /etc/machine-id)" ] && pass 'a machine id of its own' || fail 'a machine id of its own'
unlike 'nor that of the installation' "$(t cat /opt/machine-id)" "$(t cat /etc/machine-id)"
like 'the installation saw no folder' "$(t cat /opt/seen)" 'No such file'
ok 'another argument is another installation' bac create -q --name t3 --kit ../../extra --kit-arg GREETING=ho ../../toy
unlike 'done anew' "$(bac exec t3 cat /opt/stamp)" "$(t cat /opt/stamp)"
ok '--no-cache' bac create -q --name t4 --no-cache --kit ../../extra --kit-arg GREETING=ho ../../toy
unlike 'does it anew' "$(bac exec t4 cat /opt/stamp)" "$(bac exec t3 cat /opt/stamp)"
bac rm -f plain t3 t4 >/dev/null

# --- what fails
kit ../../bad <<'YAML'
schemaVersion: "2"
kind: sandbox
name: bad
sandbox: {image: default}
setup:
  install:
    - command: "echo first line; echo last words >&2; exit 42"
      description: the one that fails
YAML
kept_before=$(find "$XDG_STATE_HOME/bac/sandboxes" -mindepth 1 -maxdepth 1 | wc -l)
fails 'a step that fails ends creation' bac create --name b ../../bad
like 'with its status and name' "$err" 'setup.install, step 1 \(the one that fails\), ended with 42'
like 'its last lines' "$err" 'last words'
log=$(sed -n 's/.*the log is //p' <<<"$err")
like 'and its log, which is kept' "$(cat "$log")" 'first line'
is 'nothing else is' "$(find "$XDG_STATE_HOME/bac/sandboxes" -mindepth 1 -maxdepth 1 | wc -l)" "$kept_before"
kit ../../outside <<'YAML'
schemaVersion: "2"
kind: sandbox
name: outside
sandbox: {image: default}
setup:
  files:
    - {path: /etc/outside, content: x}
YAML
fails 'KT-05: a file that needs root' bac create --name o ../../outside
like 'KT-05: path and user are named' "$err" 'cannot write /etc/outside as the user agent'

# --- credentials
kit ../../cred <<'YAML'
schemaVersion: "2"
kind: sandbox
name: cred
sandbox: {image: default}
credentials:
  - service: acme
    apiKey:
      name: ACME_API_KEY
      proxyManaged: true
      inject:
        - {domain: api.acme.test, header: Authorization, format: "Bearer %s"}
YAML
printf 'k-e-y' | bac secret set acme >/dev/null 2>&1 || printf 'k-e-y' | bac secret set acme --host api.acme.test >/dev/null 2>&1
ok 'a kit with a credential' bac create --name c ../../cred
like 'its use is not approved by itself' "$err" "kit:cred may not use the secret 'acme' at api.acme.test"
fails 'nor is its host opened' bac policy check network --sandbox c api.acme.test:443
is 'the variable says so little' "$(bac exec c sh -c 'echo $ACME_API_KEY')" proxy-managed
ok 'approved' bac run -d --name c --approve acme=api.acme.test
ok 'the host is open' bac policy check network --sandbox c api.acme.test:443
bac rm -f c >/dev/null

# --- kit add
fails 'KT-04: kit add refuses what it cannot do' bac kit add t2 ../../extra
like 'KT-04: by name' "$err" 'extra'
kit ../../late <<'YAML'
schemaVersion: "2"
kind: mixin
name: late
permissions: {network: {allow: [late.example]}}
environment: {variables: {LATE: "yes"}}
setup:
  install: [{command: "echo $LATE >/opt/late"}]
YAML
ok 'KT-04: kit add' bac kit add t2 ../../late
is 'KT-04: its installation' "$(bac exec t2 sh -c 'cat /opt/late; echo $LATE' | tail -n 1)" yes
like 'KT-04: its rules' "$(bac policy ls t2)" 'kit:late'
bac stop t2 >/dev/null
is 'KT-04: it stays' "$(bac exec t2 sh -c 'echo $LATE')" yes
kit ../../toomuch <<'YAML'
schemaVersion: "2"
kind: mixin
name: toomuch
agentInstructions: {content: x}
volumes: [{path: /v}]
setup:
  startup: [{command: ["true"]}]
  files: [{path: /home/agent/x, content: x}]
YAML
fails 'KT-04: all that it cannot do' bac kit add t2 ../../toomuch
like 'KT-04: at once' "$err" 'setup.startup, setup.files, volumes, agentInstructions'

# --- on a terminal
if ! command -v tmux >/dev/null; then
	skip 'the agent on a terminal' 'tmux is not installed'
	exit 0
fi
cd ../w || exit 1
terminals=0 # each has a server of its own: one that ends would take the next one with it
mux() { tmux -L "bac-$$-$terminals" "$@"; }
screen() { mux capture-pane -p | grep -v '^$'; }
shows() { screen | grep -q "$1"; }
attach() {
	mux kill-server 2>/dev/null
	terminals=$((terminals + 1))
	mux new-session -d -x "$1" -y "$2" "PATH=$PATH \"$BAC\" run --name t; echo status=\$?; cat"
}
attach 90 25
ok 'run shows the agent' wait_for 60 shows 'size 25 90'
mux resize-window -x 70 -y 20
ok 'the size follows' wait_for 20 shows 'size 20 70'
mux send-keys 'abc' Enter
ok 'typing arrives' wait_for 20 shows 'heard abc'
mux send-keys C-\\
ok 'the keys leave it' wait_for 20 shows 'status=0'
ok 'it says how to come back' shows 'bac run --name t'
ok 'the agent goes on' sh -c "\"$BAC\" exec --list t | grep -q 'running.*toy --tty'"
attach 60 15
ok 'run attaches to the same' wait_for 60 shows 'heard abc'
ok 'in the size of this terminal' wait_for 20 shows 'size 15 60'
mux kill-server
ok 'a terminal that is closed leaves it running' sh -c "sleep 0.5; \"$BAC\" exec --list t | grep -q 'running.*toy --tty'"
is 'arguments start one of their own' "$(bac run --name t -- word </dev/null)" 'toy word [hey there]'
attach 60 15
wait_for 60 shows 'heard abc'
mux send-keys 'quit' Enter
ok 'its status is ours' wait_for 20 shows 'status=5'
attach 60 15
ok 'after its end another is started' wait_for 60 shows 'toy on /dev/pts'
mux send-keys 'quit' Enter
wait_for 20 shows 'status=5'
mux kill-server
bac rm -f t t2 >/dev/null
