#!/bin/bash
# A Docker Engine of its own in a machine: from the first use of its socket to what its containers may reach. Nothing is pulled: images are made FROM
# scratch, of the host's static busybox and of curl out of the template.
# timeout: 1800
#
# case    row
# DI-01   'run ...', 'compose ...', 'run -p ...', 'a daemon that cannot start ...'; legacy iptables: 'the kernel has both packet filters'
# DI-02   'info: ...', 'a bridge ...', 'memory ...', 'build ...', 'run -p ...'
here=${0%/*}
[ -n "${WORLD+set}" ] || exec "$here/../lib/in-world" "$0"
. "$here/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -w /dev/net/tun ] && [ -r /dev/net/tun ] || skip_all "/dev/net/tun may not be opened: sudo chmod 0666 /dev/net/tun"
busybox=
for path in /bin/busybox /usr/bin/busybox; do
	[ ! -x $path ] || ldd $path >/dev/null 2>&1 || busybox=$path
done
[ -n "$busybox" ] || skip_all "this host lacks a static busybox: package busybox-static"
deadline=600

# ---- the world
world=$PWD/world
mkdir -p "$world" w
python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' python3 "$here/../lib/apis.py" "$world" >world.log 2>&1 </dev/null &
server=$!
stop_all() {
	local status=$?
	trap - EXIT
	kill -INT "$server" 2>/dev/null
	(exit "$status")
	e2e_end
}
trap stop_all EXIT
wait_for 60 test -e "$world/ports" || { cat world.log; exit 1; }
h1='' plain='' own=''
. "$world/ports"
export BAC_NET_CONNECT_TO=api.test:443=127.0.0.1:$h1,other.test:80=127.0.0.1:$plain,own.test:443=127.0.0.1:$own
export BAC_TLS_EXTRA_CA=$world/ca.pem BAC_SECRETS_STORE=file

# ---- what is built: w/base (FROM scratch), w/child (what a Dockerfile does in steps)
mkdir -p w/base/root/bin w/child
cp "$busybox" w/base/root/bin/busybox
echo HIDDEN=1 >w/base/.env # which the workspace does not let anybody read; a build that does not copy it does not mind
cat >w/base/prepare <<'END'
set -e
cd "${0%/*}/root"
cp /usr/bin/curl bin/
ldd bin/curl | grep -o '/[^ ]*' | sort -u | while read -r lib; do
	mkdir -p ".${lib%/*}"
	cp -L "$lib" ".$lib"
done
mkdir -p etc tmp
END
cat >w/base/Dockerfile <<'END'
FROM scratch
COPY root/ /
RUN ["/bin/busybox", "--install", "-s", "/bin"]
CMD ["sh"]
END
cat >w/child/Dockerfile <<'END'
FROM base
RUN echo "http $(curl -sS http://other.test/echo)"
RUN echo "https $(curl -sS https://api.test/echo)"
RUN echo "method $(curl -sS -o /dev/null -w '%{http_code}' -d x https://api.test/echo)"
RUN echo "refused $(curl -sS http://denied.test/)"
RUN ! curl -sS https://denied.test/
# an image's own bundle stays its own, and may be replaced as update-ca-certificates does it
COPY authority /etc/ssl/certs/ca-certificates.crt
RUN echo "bundle $(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt) of $(grep -c BEGIN $SSL_CERT_FILE)" && \
	cp /etc/ssl/certs/ca-certificates.crt /tmp/new && mv -f /tmp/new /etc/ssl/certs/ca-certificates.crt
ENV FROM_IMAGE=1 PIP_CERT=/own
END
# not *.pem, which a workspace hides
cp "$world/own.pem" w/child/authority
mkdir w/two
cat >w/two/compose.yaml <<'END'
services:
  web:
    image: base
    command: ["httpd", "-f", "-p", "80", "-h", "/www"]
    volumes: [ "./www:/www:ro" ]
  client:
    image: base
    depends_on: [ web ]
    command: ["sh", "-c", "until wget -qO- http://web/word; do sleep 1; done"]
END
mkdir w/two/www
echo 'by name' >w/two/www/word

ok 'create' bac create --name x -m 1536m --allow-network other.test:80 shell "$PWD/w"
ok 'a rule with a method, so that there is an authority' bac policy allow network --sandbox x --method GET api.test:443
ok 'stop, since it is for the next start' bac stop x
x() { command "$BAC" exec x "$@"; }
rootx() { command "$BAC" exec -u root x "$@"; }
inside() { x bash -c "cd '$PWD/w' && $1"; }

# ---- the first use
run x stat -c '%U:%G %a %F' /run/docker.sock
is 'a socket from the start' "$out" 'root:docker 660 socket'
is 'and /var/run is the same' "$(x stat -Lc %F /var/run/docker.sock)" socket
fails 'nothing behind it' x pgrep dockerd
ok 'docker version, by the agent without sudo' x docker version
like 'an engine answers' "$out" 'Server:'
like 'it is there now' "$(x pgrep -c dockerd)" '^1$'
run x docker info --format '{{.Driver}} {{.CgroupVersion}} {{.CgroupDriver}} {{index .DriverStatus 0}} {{.Containers}} {{.Images}}'
is 'info: overlay2 on ext4, cgroup v2, nothing of anybody else' "$out" 'overlay2 2 cgroupfs [Backing Filesystem extfs] 0 0'
is 'a bridge' "$(x docker network ls --format '{{.Driver}}' | sort | xargs)" 'bridge host null'
like 'its data is on a file system of its own' "$(x findmnt -nro FSTYPE,SIZE /var/lib/docker 2>&1 || x df -h /var/lib/docker)" 'ext4 9\.[0-9]+G|9\.[0-9]+G'
ok 'the kernel has both packet filters' rootx sh -c 'iptables-nft -t nat -S DOCKER && iptables-legacy -t nat -S'
like 'its log' "$(x tail -n 1 /var/log/docker.log)" .

# ---- build
ok 'what the image is made of' inside 'sh base/prepare'
ok 'build of a scratch image' inside 'docker build --progress plain -t base base'
ok 'build, steps' inside 'docker build --progress plain -t child child'
said=$err$out
like 'build: http that is allowed' "$said" 'http \{"server": "plain", "method": "GET"'
like 'build: https that is opened, trusted' "$said" 'https \{"server": "h1", "method": "GET"'
like 'build: a method that is not' "$said" 'method 403'
like 'build: a name that is denied says so' "$said" 'refused bac: refused by network policy: denied.test:80'
like 'build: the image has one authority more than its own, beside it' "$said" 'bundle 1 of 2'
ok 'build without BuildKit' inside 'DOCKER_BUILDKIT=0 docker build --no-cache -t classic child'
like 'build without BuildKit: https' "$out" 'https \{"server": "h1"'
# shellcheck disable=SC2016  # for that shell
run inside 'docker create --name out child >/dev/null && docker export out | tar -t | grep -c bac; docker rm out >/dev/null; docker inspect -f "{{.Config.Env}}" child'
is 'nothing of it is in what was built' "$out" $'0\n[PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin FROM_IMAGE=1 PIP_CERT=/own]'

# ---- run
status 'run: its exit status' 7 x docker run --rm base sh -c 'exit 7'
run x docker run --rm -e A=1 -e SSL_CERT_FILE=/mine child sh -c 'echo $A $FROM_IMAGE $SSL_CERT_FILE $PIP_CERT $CURL_CA_BUNDLE'
is 'run: the environment is the image'\''s and the user'\''s first' "$out" '1 1 /mine /own /dev/bac-trust/ca.crt'
run x docker run --rm base curl -sS https://api.test/echo
like 'run: https that is opened, trusted' "$out" '"h1"'
run x docker run --rm base curl -sS https://denied.test/
is 'run: what is denied' "$rc" 35
run x docker run --rm --memory 64m base sh -c 'cat /sys/fs/cgroup/memory.max; tail /dev/zero'
is 'memory: the limit is in force' "$out $rc" '67108864 137'
ok 'the engine is well' x docker ps
ok 'run -d -p' x docker run -d --name web -p 8080:80 -v "$PWD/w/two/www:/www:ro" base httpd -f -p 80 -h /www
ok 'run -p: reached by the agent' wait_for 60 x curl -fsS http://127.0.0.1:8080/word
run x docker exec web sh -c 'curl -sS https://api.test/echo'
like 'exec in it: https that is opened, trusted' "$out" '"h1"'
ok 'rm' x docker rm -f web
fails 'and nobody listens any more' x curl -fsS http://127.0.0.1:8080/word
ok 'a bind mount of the workspace' inside 'docker run --rm -v "$PWD:/w" base sh -c "cat /w/two/www/word && echo written >/w/by-container"'
is 'read there' "$out" 'by name'
is 'written here' "$(cat w/by-container)" written
is 'and it is mine' "$(stat -c %u w/by-container)" "$(id -u)"
ok 'compose up' inside 'cd two && docker compose up --no-color --abort-on-container-exit --exit-code-from client'
like 'compose: by name' "$out" 'by name'
ok 'compose down' inside 'cd two && docker compose down'

# ---- its life
ok 'killed' rootx pkill -KILL -x dockerd
ok 'it is started again by who asks' x docker images
ok 'a container that wants to be asked' inside 'docker run -d --name last -v "$PWD:/w" base sh -c "trap \"echo ended >/w/ended; exit\" TERM; echo up >/w/up; while :; do sleep 1; done"'
ok 'which runs' wait_for 60 test -e w/up
ok 'with the other packet filter from now on' rootx update-alternatives --set iptables /usr/sbin/iptables-legacy
ok 'stop' bac stop x
is 'containers end in order' "$(cat w/ended 2>&1)" ended
ok 'start: the images are there' x docker image inspect base child classic
run x docker run --rm --read-only base curl -sS http://other.test/echo
like 'DI-01: iptables-legacy, and a read-only root' "$out" '"plain"'
like 'and the container' "$(x docker ps -a --format '{{.Names}} {{.Status}}')" '^last Exited \(0\)'

ok 'settings that it does not know' rootx sh -c 'echo "{\"nonsense\": 1}" >/etc/docker/daemon.json; pkill -x dockerd'
ok 'it went' wait_for 60 rootx sh -c '! pgrep -x dockerd'
run x docker ps
is 'a daemon that cannot start is an error' "$rc" 1
like 'which says what and why' "$out$err" 'dockerd cannot be started: .*nonsense'
ok 'the sandbox lives' x true
ok 'put right' rootx rm /etc/docker/daemon.json
ok 'and it starts again' wait_for 120 x docker ps
rootx rm -f /usr/bin/dockerd /usr/sbin/dockerd
ok 'without it' bac stop x
fails 'there is no socket' x test -e /run/docker.sock
ok 'rm x' bac rm --force x

# ---- the room
ok 'a small one' env BAC_SANDBOX_DISK_DOCKER_VOLUME=512m "$BAC" create --name y -m 1g shell "$PWD/w"
y() { command "$BAC" exec y "$@"; }
ok 'an image' y bash -c "cd '$PWD/w' && docker build -q -t base base"
run y docker run --rm base dd if=/dev/zero of=/fill bs=1M count=700
is 'more than its room is refused' "$rc" 1
like 'by the file system' "$err" 'No space left on device'
like 'which is as large as was said' "$(y df -m --output=size /var/lib/docker)" '[^0-9]4[5-9][0-9]$'
ok 'the rest of the sandbox has room' y sh -c 'df -m --output=avail / | awk "END { exit !(\$1 > 10000) }"'
ok 'and the engine goes on' y docker run --rm base true
fails 'less than that' env BAC_SANDBOX_DISK_DOCKER_VOLUME=100m "$BAC" create --name z shell
like 'says how much' "$err" 'sandbox.disk.dockerVolume: at least 512m'
fails 'and leaves nothing' bac inspect z
