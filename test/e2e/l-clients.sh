#!/bin/bash
# Programs that people use, without a proxy variable, against real servers of the protocols that are not the web's: what k-network shows by
# probes holds for them. The servers run in a network namespace of this scenario (test/lib/in-world), where names lead to them by net.connectTo. What the guest lacks comes from the
# host, with the libraries it is linked to and their loader; what the host lacks is skipped by name.
# timeout: 1200
#
# case    row
# NP-05   'denied: ...'
# NP-20   '... over ssh', 'python requests ...', 'Go ...', 'cargo ...', 'redis-cli ...', 'psql ...'; curl, git over https, npm, pip: k-network
here=${0%/*}
[ -n "${WORLD+set}" ] || exec "$here/../lib/in-world" "$0"
. "$here/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -w /dev/net/tun ] && [ -r /dev/net/tun ] || skip_all "/dev/net/tun may not be opened: sudo chmod 0666 /dev/net/tun"

# ---- the world
world=$PWD/world
mkdir -p "$world/www" host/lib host/bin host/py
servers=()
stop_all() {
	local status=$?
	trap - EXIT
	[ ${#servers[@]} -eq 0 ] || kill -INT "${servers[@]}" 2>/dev/null
	(exit "$status")
	e2e_end
}
trap stop_all EXIT
# background FILE COMMAND...: a server; what it says goes to FILE. INT ends each of them, which a shell keeps from what it starts so.
background() {
	local file=$1
	shift
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@" >"$file" 2>&1 </dev/null &
	servers+=($!)
}
background world.log python3 "$here/../lib/servers.py" "$world"
wait_for 30 test -e "$world/ports" || { cat world.log; exit 1; }
http='' https='' forbidden=''
. "$world/ports"
to=
connect() { to+=${to:+,}$1=127.0.0.1:$2; }
connect allowed.test:80 "$http"
connect allowed.test:443 "$https"
connect crates.test:80 "$http"
for port in 22 80 443 5432 6379; do connect denied.test:$port "$forbidden"; done
rules=allowed.test:80,443,crates.test:80,git.test:22,redis.test:6379,db.test:5432
came() { cat "$world/seen" 2>/dev/null; }
# ports that are free now
read -r ssh_port redis_port db_port < <(python3 -c 'import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(x.getsockname()[1] for x in s))')
connect git.test:22 "$ssh_port"
connect redis.test:6379 "$redis_port"
connect db.test:5432 "$db_port"
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }
declare -A without
# program NAME PACKAGE PATH...: the first that is there, else why not
program() {
	local name=$1 package=$2 path
	shift 2
	for path; do
		path=$(type -P "$path") && { printf -v "$name" %s "$path"; return; }
	done
	printf -v "$name" %s ''
	without[$name]="this host lacks it: package $package"
}
# from_host PROGRAM: into host/, to be run there by its own loader
from_host() {
	cp -L "$1" "host/bin/${1##*/}"
	ldd "$1" | grep -o '/[^ ]*' | sort -u | xargs -r cp -Lt host/lib
}
shopt -s nullglob
program sshd openssh-server /usr/sbin/sshd sshd
program redis_server redis-server redis-server
program redis_cli redis-tools redis-cli
program postgres postgresql /usr/lib/postgresql/*/bin/postgres postgres
program psql postgresql-client /usr/lib/postgresql/*/bin/psql psql
program go golang-go go
program cargo cargo "$(rustup which cargo 2>/dev/null)" cargo
shopt -u nullglob
loader=
for path in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ ! -e $path ] || loader=${path##*/}; done

# ---- git over ssh
user=$(id -un)
mkdir keys
if [ -n "$sshd" ]; then
	ssh-keygen -q -t ed25519 -N '' -f keys/host
	ssh-keygen -q -t ed25519 -N '' -f keys/client
	printf 'git.test %s\n' "$(cut -d' ' -f1,2 keys/host.pub)" >keys/known_hosts
	printf '%s\n' "ListenAddress 127.0.0.1" "Port $ssh_port" "HostKey $PWD/keys/host" "AuthorizedKeysFile $PWD/keys/client.pub" \
		'PidFile none' 'StrictModes no' 'UsePAM no' 'PasswordAuthentication no' 'PermitRootLogin prohibit-password' >sshd_config
	git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/main
	git init -q -b main work && (cd work && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first && git push -q ../r.git main)
	as=() # root's wants a folder that a service makes: it gets one of its own
	# shellcheck disable=SC2016  # for that shell
	[ "$(id -u)" -ne 0 ] || as=(unshare -m bash -c 'mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd && exec "$@"' -)
	background sshd.log "${as[@]}" "$sshd" -D -e -f "$PWD/sshd_config"
	wait_for 30 listens "$ssh_port" || fail 'sshd' "$(cat sshd.log)"
fi

# ---- redis and PostgreSQL
if [ -n "$redis_server" ]; then
	mkdir redis
	background redis.log "$redis_server" --bind 127.0.0.1 --port "$redis_port" --dir "$PWD/redis" --save '' --appendonly no
	wait_for 30 listens "$redis_port" || fail 'redis-server' "$(cat redis.log)"
fi
if [ -n "$postgres" ]; then
	as=() # it will not run as root
	mkdir -m 700 db
	echo hidden >db.word
	if [ "$(id -u)" -eq 0 ]; then
		who=postgres
		id postgres >/dev/null 2>&1 || who=nobody
		as=(setpriv "--reuid=$who" "--regid=$(id -g $who)" --clear-groups)
		chmod 711 "$E2E_DIR" "$PWD"
		chown "$who" db
	fi
	if run timeout 120 "${as[@]}" "${postgres%/*}/initdb" -D "$PWD/db" -U admin -A scram-sha-256 --pwfile="$PWD/db.word" -N --no-locale -E UTF8; then
		background db.log "${as[@]}" "$postgres" -D "$PWD/db" -h 127.0.0.1 -p "$db_port" -k '' -F -c dynamic_shared_memory_type=mmap
		wait_for 60 listens "$db_port" || fail 'postgres' "$(cat db.log)"
	else
		fail 'initdb' "$out" "$err"
	fi
fi

# ---- clients from the host
[ -z "$redis_cli" ] || from_host "$redis_cli"
[ -z "$psql" ] || from_host "$psql"
[ -z "$cargo" ] || from_host "$cargo"
if [ -n "$cargo" ]; then
	python3 - "$world/www" <<-'PYTHON'
		import hashlib, io, json, os, sys, tarfile
		www = sys.argv[1]
		out = io.BytesIO()
		with tarfile.open(fileobj=out, mode="w:gz") as t:
		    for name, text in (("Cargo.toml", '[package]\nname = "tiny"\nversion = "1.0.0"\n'), ("src/lib.rs", "pub const WORD: &str = \"tiny\";\n")):
		        info = tarfile.TarInfo("tiny-1.0.0/" + name)
		        info.size = len(text)
		        t.addfile(info, io.BytesIO(text.encode()))
		os.makedirs(f"{www}/index/ti/ny")
		open(f"{www}/tiny-1.0.0.crate", "wb").write(out.getvalue())
		json.dump({"dl": "http://crates.test/{crate}-{version}.crate"}, open(f"{www}/index/config.json", "w"))
		json.dump({"name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
		    "cksum": hashlib.sha256(out.getvalue()).hexdigest()}, open(f"{www}/index/ti/ny/tiny", "w"))
	PYTHON
	mkdir -p host/crate/src host/crate/.cargo
	: >host/crate/src/lib.rs
	printf '[package]\nname = "user"\nversion = "0.1.0"\n[dependencies]\ntiny = { version = "1", registry = "here" }\n' >host/crate/Cargo.toml
	printf '[registries.here]\nindex = "sparse+http://crates.test/index/"\n' >host/crate/.cargo/config.toml
fi
if [ -n "$go" ]; then
	cat >fetch.go <<-'GO'
		package main

		import (
			"fmt"
			"io"
			"net/http"
			"os"
		)

		func main() {
			answer, err := http.Get(os.Args[1])
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			body, _ := io.ReadAll(answer.Body)
			fmt.Println(answer.StatusCode, string(body))
		}
	GO
	deadline=300
	run env HOME="$PWD" GOPATH="$PWD/go" GOCACHE="$PWD/gocache" GO111MODULE=off GOTOOLCHAIN=local "$go" build -o host/bin/fetch fetch.go ||
		fail 'go build' "$(seen 'go build')"
	deadline=180
fi
requests=$(python3 - <<-'PYTHON'
	import importlib.util, os
	for name in ("requests", "urllib3", "idna", "certifi", "chardet", "charset_normalizer", "six"):
	    spec = importlib.util.find_spec(name)
	    if spec and spec.origin:
	        print(os.path.dirname(spec.origin) if spec.submodule_search_locations else spec.origin)
PYTHON
)
if grep -q '/requests$' <<<"$requests"; then
	xargs cp -rt host/py <<<"$requests"
else
	requests=
	without[requests]='this host lacks it: package python3-requests'
fi
cp "$world/cert.pem" host/cert.pem
cp -r keys host/keys

# ---- the sandbox
export BAC_NET_CONNECT_TO=$to
ok 'create with rules' bac create --name x -m 1g --allow-network "$rules" shell
ok 'what the guest lacks is copied' bac cp host x:/home/agent/
# lacks NAME WHAT: the row is skipped, for the host has not all of WHAT
lacks() {
	local need
	for need in $2; do
		[ -z "${without[$need]-}" ] || { skip "$1" "${without[$need]}"; return 0; }
	done
	return 1
}
# client NAME WHAT REGEX COMMAND
client() {
	lacks "$1" "$2" && return
	run bac exec x bash -c "lib=\$HOME/host/lib; h() { local p=\$HOME/host/bin/\$1; shift; \$lib/$loader --library-path \$lib \$p \"\$@\"; }
		export PYTHONPATH=\$HOME/host/py PGPASSWORD=hidden PGCONNECT_TIMEOUT=30 SSL_CERT_FILE=\$HOME/host/cert.pem
		export GIT_SSH_COMMAND=\"ssh -i \$HOME/host/keys/client -o UserKnownHostsFile=\$HOME/host/keys/known_hosts -o BatchMode=yes -o ConnectTimeout=30\"
		chmod 600 \$HOME/host/keys/client 2>/dev/null; cd /tmp && $4"
	like "$1" "$out$err" "$3"
}
deadline=120
client 'no variable names a proxy' '' '^0' 'env | grep -ic _proxy='
client 'git clone over ssh' sshd 'first' "git clone -q ssh://$user@git.test$PWD/r.git r && git -C r log --oneline"
client 'git push over ssh' sshd 'main -> main' 'cd r && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m second && git push origin main'
lacks 'which arrives' sshd || is 'which arrives' "$(git -C r.git log -1 --format=%s)" second
get='python3 -c "import requests, sys; r = requests.get(sys.argv[1], verify=sys.argv[2], timeout=60); print(r.status_code, r.text)"'
client 'python requests' requests '200 hello from http' "$get http://allowed.test/head \$SSL_CERT_FILE"
client 'python requests, TLS' requests '200 hello from https' "$get https://allowed.test/head \$SSL_CERT_FILE"
client 'Go net/http' go '200 hello from http' 'GODEBUG=netdns=go $HOME/host/bin/fetch http://allowed.test/head'
client 'Go net/http, TLS, the resolver of the C library' go '200 hello from https' 'GODEBUG=netdns=cgo $HOME/host/bin/fetch https://allowed.test/head'
# before 1.68 such a registry has to be asked for
client 'cargo fetches a crate from a sparse registry' cargo 'tiny v1.0.0.*WORD' \
	'cp -r ~/host/crate . && cd crate && RUSTC_BOOTSTRAP=1 h cargo -Z sparse-registry vendor 2>&1 && cat vendor/tiny/src/lib.rs'
client 'redis-cli writes' 'redis_server redis_cli' '^OK' 'h redis-cli -h redis.test set word tiny'
client 'redis-cli reads 2 MB' 'redis_server redis_cli' '^2000000' \
	'head -c 2000000 /dev/zero | tr "\0" x | h redis-cli -h redis.test -x set big >/dev/null; h redis-cli -h redis.test --raw get big | tr -d "\n" | wc -c'
client 'psql asks' 'postgres psql' '^42' 'h psql -h db.test -U admin -d postgres -Atc "select 6 * 7"'
client 'psql reads 100000 rows' 'postgres psql' '^100000' 'h psql -h db.test -U admin -d postgres -Atc "select generate_series(1, 100000)" | wc -l'

# ---- the same clients, and a name that is denied
client 'denied: git over ssh' sshd '([Cc]onnection (closed|reset|refused)|banner)' "git clone -q ssh://$user@denied.test$PWD/r.git no"
client 'denied: python requests' requests '^403 .*refused by network policy' "$get http://denied.test/ \$SSL_CERT_FILE"
client 'denied: python requests, TLS' requests '(ACCESS_DENIED|access denied)' "$get https://denied.test/ \$SSL_CERT_FILE"
client 'denied: Go' go '^403 .*refused by network policy' '$HOME/host/bin/fetch http://denied.test/'
client 'denied: Go, TLS' go 'access denied' '$HOME/host/bin/fetch https://denied.test/'
client 'denied: redis-cli' redis_cli '(reset|refused|closed)' 'h redis-cli -h denied.test get word'
client 'denied: psql' psql '(reset|refused|closed)' 'h psql -h denied.test -U admin -d postgres -Atc "select 1"'
deadline=180

# ---- what is known of them
chain=$(cat "$XDG_STATE_HOME"/bac/audit/*/0*.jsonl)
# logged DECISION HOST:PORT WHAT
logged() {
	lacks "on the log: $1 $2" "$3" || like "on the log: $1 $2" "$chain" "\"decision\":\"$1\",\"host\":\"${2%:*}\",\"port\":${2#*:},"
}
logged allow git.test:22 sshd
logged allow redis.test:6379 'redis_server redis_cli'
logged allow db.test:5432 'postgres psql'
logged deny denied.test:22 sshd
logged deny denied.test:6379 redis_cli
logged deny denied.test:5432 psql
unlike 'nobody came where nobody may' "$(came)" forbidden
ok 'the chain of the log holds' bac audit verify x
ok 'remove' bac rm --force x
