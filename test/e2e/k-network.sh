#!/bin/bash
# The only wire out, tried from inside by root. All of it happens in a network namespace of this scenario (test/lib/in-world), so that the
# listeners where nobody may come have the addresses themselves: 1.1.1.1:443 and so on. Names lead to servers on its loopback (net.connectTo,
# as curl's --connect-to), those that no rule allows to "forbidden".
# timeout: 1500
# alone: it holds to a few seconds what has to be quick
#
# case    row, or why there is none
# NP-01   'a name that is allowed opens no other address', 'SNI ...', 'Host ...'
# NP-02   'NP-02: ...'; that nothing leaves for a denied name: 'no question ...' (as root)
# NP-04   'NP-04: ...'
# NP-05   'NP-05: ...'
# NP-07   'NP-07: ...'
# NP-08   no row: kits are not built yet
# NP-10   j-policy
# NP-11   'NP-11: ...'
# NP-13   unit tests: the same function decides for check and proxy
# NP-14   'NP-14: ...': an address here is the name's, whatever the name resolves to
# NP-16   'NP-16: ...'
# NP-17   'NP-17: ...'; a name that resolves there: the proxy's own tests
# NP-19   'NP-19: ...'; version 6 and UDP: 'IPv6 ...', 'QUIC ...'
# NP-20   'NP-20: ...' by curl, git, npm, pip
# DN-01   'DN-01: ...'
# DN-02   'DN-02: ...'
# DN-04   'DN-04: ...'
# DN-05   'DN-05: ...'
here=${0%/*}
[ -n "${WORLD+set}" ] || exec "$here/../lib/in-world" "$0"
. "$here/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
[ -w /dev/net/tun ] && [ -r /dev/net/tun ] || skip_all "/dev/net/tun may not be opened: sudo chmod 0666 /dev/net/tun"

# ---- the world
world=$PWD/world
mkdir -p "$world/www"
cp "$here/guest/net.py" .
python3 "$here/../lib/servers.py" "$world" >world.log 2>&1 &
server=$!
stop_all() {
	kill "$server" 2>/dev/null
	[ -z "${mounted-}" ] || umount -l "$mounted"
	e2e_end
}
trap stop_all EXIT
wait_for 20 test -e "$world/ports" || { cat world.log; exit 1; }
http='' https='' banner='' forbidden=''
. "$world/ports"
to=
connect() { to+=${to:+,}$1=127.0.0.1:$2; }
for name in allowed.test git.test pypi.test npm.test deb.test; do
	connect $name:80 "$http"
	connect $name:443 "$https"
done
connect banner.test:25 "$banner"
for place in denied.test:80 denied.test:443 allowed.test:8080; do
	connect $place "$forbidden"
done
if [ -z "$WORLD" ]; then # no namespace to be had: the addresses lead to the same listener
	for place in 1.1.1.1:80 1.1.1.1:443 9.9.9.9:443 8.8.8.8:853 8.8.8.8:53 169.254.169.254:80; do connect $place "$forbidden"; done
	skip 'a network namespace of the test' 'this user may not make one'
fi
export BAC_NET_CONNECT_TO=$to FORBIDDEN=$forbidden HTTP=$http
came() { cat "$world/seen" 2>/dev/null; }
for place in ${WORLD:+1.1.1.1/443 8.8.8.8/53 8.8.8.8/853 9.9.9.9/443 169.254.169.254/80}; do
	: >"$world/seen"
	ok "a listener at $place, which would see who comes" bash -c ": <>/dev/tcp/$place"
	wait_for 5 grep -q forbidden "$world/seen" || fail 'and says so' "$(came)"
done
: >"$world/seen"
rules=allowed.test:80,443,banner.test:25,git.test:443,pypi.test:80,npm.test:80,deb.test:80,localhost:$http

ok 'create with rules' bac create --name x -m 1g --allow-network "$rules" shell
rootx() { command "$BAC" exec -u root -e FORBIDDEN -e HTTP x "$@"; }

# ---- what a guest's root tries (test/e2e/guest/net.py)
declare -A said
probe() {
	local line
	timeout -k 5 600 "$BAC" exec -u root -e "FORBIDDEN=$FORBIDDEN" -e "HTTP=$HTTP" x python3 -c "$(cat net.py)" "$@" >probes 2>&1
	while IFS= read -r line; do
		[[ $line == *": "* ]] && said[${line%%: *}]=${line#*: }
	done <probes
}
probe
note "$(cat probes)"
tells() { like "$1" "${said[$2]-nothing was said}" "$3"; }

tells 'plain HTTP to a name that is allowed' allowed_http '^HTTP/1.1 200'
tells 'and TLS' allowed_https '^HTTP/1.1 200'
tells 'and a protocol in which the server speaks first, half-closed at its end' server_first '^220 banner.test speaks first.echo word$'
tells 'NP-05: plain HTTP that is denied: 403' denied_http '^HTTP/1.1 403 '
tells 'NP-20: says that it was policy, and what a human may type' denied_http 'refused by network policy: denied.test:80.*bac policy allow network --sandbox x denied.test:80.*Do not try another route'
tells 'NP-11: TLS that is denied: an alert' denied_https 'ALERT_ACCESS_DENIED'
tells 'another port of a name' denied_port '^(ECONNRESET|ECONNREFUSED)$'
tells 'NP-11: an address' literal 'ALERT_ACCESS_DENIED|ECONNRESET'
tells 'an address, by HTTP' literal_http '^HTTP/1.1 403'
tells 'a name that is allowed opens no other address' resolve_trick 'ALERT_ACCESS_DENIED|ECONNRESET'
tells 'SNI of another name' sni_mismatch 'ALERT_ACCESS_DENIED'
tells 'Host of another name' host_mismatch '^HTTP/1.1 421'
tells 'absolute form of another name' absolute_mismatch '^HTTP/1.1 4(00|03|21)'
tells 'NP-05: HTTP/1.0 without Host' no_host '^HTTP/1.[01] 403'
tells 'NP-05: two Host headers' two_hosts '^HTTP/1.1 400'
tells 'smuggling: two lengths' smuggled_lengths '^HTTP/1.1 400'
tells 'smuggling: length and chunks' smuggled_both '^HTTP/1.1 400'
tells 'smuggling: a folded header' folded '^HTTP/1.1 400'
tells 'a second request for another name on one connection' second_request '^HTTP/1.1 200.*HTTP/1.1 421'
tells 'a redirect to a name that is denied' redirect '^403 http://denied.test/'
tells 'a decimal address' decimal_literal '^403'
tells 'a hexadecimal address, at the forward proxy' hex_literal '^HTTP/1.1 403'
tells 'NP-02: CONNECT by name at the forward proxy' connect_denied '^HTTP/1.1 403'
tells 'CONNECT that is allowed' connect_allowed '^HTTP/1.1 200.*220 banner.test'
tells 'CONNECT, and another SNI in it' connect_trick 'ALERT_ACCESS_DENIED'
tells 'absolute form at the forward proxy' forward_denied '^HTTP/1.1 403'
tells 'no other port of the gateway' gateway_other_port '^ECONN'
tells 'QUIC is refused at once' udp_443 '^ECONNREFUSED at once'
tells 'ICMP gets no answer' icmp '^timeout$'
tells 'IPv6 is refused at once' ipv6 '(ENETUNREACH|EADDRNOTAVAIL) at once'
tells 'DN-05: curl -6 fails at once' ipv6_curl '^[0-9]+ at once|at once$'
tells 'NP-02: a denied name gets an address at which it is told why' dns_denied '^198\.19\.'
tells 'NP-02: asked of a resolver elsewhere' dns_elsewhere '^198\.19\.'
tells 'NP-02: and by TCP' dns_elsewhere_tcp '^198\.19\.'
tells 'DN-04: TCP to our own resolver' dns_own_tcp '^198\.18\.'
tells 'DN-05: no version 6 for a name' dns_aaaa '^rcode 0, 0 answers'
tells 'HTTPS records are empty' dns_https '^rcode 0, 0 answers'
tells 'NP-02: TXT is refused' dns_txt '^rcode 5'
tells 'MX is refused' dns_mx '^rcode 5'
tells 'a NUL in a name' dns_nul '^rcode 3'
tells 'NP-02: DNS over TLS' dns_over_tls 'ALERT_ACCESS_DENIED|ECONNRESET'
tells 'NP-02: DNS over HTTPS' dns_over_https 'ALERT_ACCESS_DENIED|ECONNRESET'
tells 'NP-19: the host, where a rule allows the port' host_alias_allowed '^HTTP/1.1 200'
tells 'NP-19: and where none does' host_alias_denied '^HTTP/1.1 403'
tells 'NP-17: an address of metadata' metadata '^HTTP/1.1 403'
tells 'a relay inside changes nothing' relay '^HTTP/1.1 403'
tells 'addresses of somebody else' spoofed_source '^sent$'
tells 'NP-04: own filters and routes flushed, own addresses' flushed 'denied.test HTTP/1.1 403.*1.1.1.1 HTTP/1.1 403.*allowed.test HTTP/1.1 200'
unlike 'nobody came where nobody may' "$(came)" forbidden

# ---- and it is on the log
run bac inspect --json x
id=$(json 'd["id"]' <<<"$out")
chain() { cat "$XDG_STATE_HOME/bac/audit/$id"/0*.jsonl; }
# what each probe must have left there (test/lib/receipts.py)
late() { chain | grep -q forged; }
wait_for 5 late
while read -r verdict what; do
	if [ "$verdict" = ok ]; then pass "on the log: $what"; else fail "on the log: $what" "$(chain | tail -n 40)"; fi
done < <(python3 "$here/../lib/receipts.py" "$XDG_STATE_HOME/bac/audit/$id"/0*.jsonl <<TABLE
allowed_http kind=http decision=allow host=allowed.test port=80 path=/head
allowed_https decision=allow host=allowed.test port=443
server_first kind=tcp decision=allow host=banner.test port=25
denied_http kind=http decision=deny host=denied.test port=80 reason=default-deny
denied_https kind=tls decision=deny host=denied.test port=443 reason=default-deny
denied_port kind=tcp decision=deny host=allowed.test port=8080 reason=default-deny
literal kind=tls decision=deny host=1.1.1.1 port=443 reason=default-deny
literal_http kind=http decision=deny host=1.1.1.1 port=80 reason=default-deny
resolve_trick kind=tls decision=deny host=9.9.9.9 port=443 reason=default-deny
sni_mismatch kind=tls decision=deny host=allowed.test port=443 reason=sni-mismatch
host_mismatch kind=http decision=deny host=allowed.test port=80 reason=host-mismatch
absolute_mismatch kind=http decision=deny host=allowed.test port=80 reason=host-mismatch
no_host kind=http decision=deny host=denied.test port=80 reason=default-deny
two_hosts kind=http decision=deny host=allowed.test port=80 reason=malformed-http
smuggled_lengths kind=http decision=deny host=allowed.test port=80 reason=malformed-http
smuggled_both kind=http decision=deny host=allowed.test port=80 reason=malformed-http
folded kind=http decision=deny host=allowed.test port=80 reason=malformed-http
second_request kind=http decision=allow host=allowed.test port=80 path=/head
second_request kind=http decision=deny host=allowed.test port=80 reason=host-mismatch
redirect kind=http decision=allow host=allowed.test path=/redirect
redirect kind=http decision=deny host=denied.test port=80 reason=default-deny
decimal_literal kind=http decision=deny host=1.1.1.1 port=80 reason=default-deny
hex_literal kind=http via=forward decision=deny host=1.1.1.1 port=80 reason=default-deny
connect_denied kind=http via=forward-bypass decision=deny host=denied.test port=443 method=CONNECT
connect_allowed kind=http via=forward-bypass decision=allow host=banner.test port=25 method=CONNECT
connect_trick kind=http via=forward-bypass decision=allow host=allowed.test port=443 method=CONNECT
connect_trick kind=tls via=forward-bypass decision=deny host=allowed.test port=443 reason=sni-mismatch
forward_denied kind=http via=forward decision=deny host=denied.test port=80 reason=default-deny
gateway_other_port kind=tcp decision=deny host=198.18.0.1 port=8000 reason=no-service
udp_443 kind=udp decision=deny host=1.1.1.1 port=443 reason=protocol-blocked
icmp kind=icmp decision=deny host=1.1.1.1 reason=protocol-blocked
ipv6 -
ipv6_curl -
dns_denied kind=dns decision=deny host=secret.t.denied.test reason=default-deny
dns_elsewhere kind=dns decision=deny host=secret2.t.denied.test reason=default-deny
dns_elsewhere_tcp kind=dns decision=deny host=secret3.t.denied.test reason=default-deny
dns_own_tcp kind=dns decision=allow host=git.test
dns_aaaa kind=dns decision=allow host=pypi.test
dns_https kind=dns decision=allow host=npm.test
dns_txt kind=dns decision=deny host=secret.denied.test reason=type-refused
dns_mx kind=dns decision=deny host=allowed.test reason=type-refused
dns_nul kind=dns decision=deny reason=not-a-name
dns_over_tls kind=tls decision=deny host=8.8.8.8 port=853 reason=default-deny
dns_over_https kind=tls decision=deny host=1.1.1.1 port=443 reason=default-deny
host_alias_denied kind=http decision=deny host=localhost port=$forbidden reason=private-address
host_alias_allowed kind=http decision=allow host=localhost port=$http
metadata kind=http decision=deny host=169.254.169.254 port=80 reason=private-address
relay kind=http decision=deny host=denied.test port=80 reason=default-deny
spoofed_source kind=udp decision=deny host=8.8.8.8 port=53 'note=forged source'
flushed kind=http decision=deny host=denied.test port=80 reason=default-deny
flushed kind=http decision=deny host=1.1.1.1 port=80 reason=default-deny
flushed kind=http decision=allow host=allowed.test port=80 path=/head
TABLE
)
ok 'the chain holds' bac audit verify x

# ---- DNS
run rootx bash -c 'for n in allowed banner git pypi npm; do getent ahostsv4 $n.test | head -n 1; done'
is 'DN-02: names that are allowed resolve' "$(wc -l <<<"$out")" 5
begin=$SECONDS
run rootx bash -c 'for i in $(seq 20); do getent hosts n$i.denied.test; done | sort -u | wc -l'
is 'twenty names' "$out" 20
[ $((SECONDS - begin)) -lt 20 ] && pass 'DN-01: none of them waits' || fail 'DN-01: none of them waits' "$((SECONDS - begin)) s"

# ---- NP-07: every spelling of the host's loopback, in check and in truth
for spelling in host.docker.internal localhost 127.0.0.1 '[::1]' 0.0.0.0 127.1 2130706433 0x7f000001; do
	run bac policy check network --sandbox x "$spelling:$http"
	like "NP-07: check: $spelling" "$out$err" '[Aa]llow'
	run bac policy check network --sandbox x "$spelling:$forbidden"
	like "NP-07: check: $spelling, another port" "$out$err" '[Dd]en'
done
ok 'NP-07: one deny' bac policy deny network --sandbox x "127.0.0.1:$http"
probe host_alias_allowed
tells 'NP-07: covers them all' host_alias_allowed '^HTTP/1.1 403'
run bac policy check network --sandbox x "localhost:$http"
like 'NP-07: and check says so' "$out$err" '[Dd]en'

# ---- changes hold at once
command "$BAC" exec x curl -sSN -m 100 http://allowed.test/hold >held 2>held.err &
holder=$!
wait_for 30 test -s held
ok 'NP-16: deny what is open' bac policy deny network --sandbox x allowed.test
if wait_for 3 bash -c "! kill -0 $holder"; then pass 'NP-16: it is closed within seconds'; else fail 'NP-16: it is closed within seconds'; fi
wait "$holder" 2>/dev/null
probe allowed_http
tells 'NP-16: and stays closed' allowed_http '^HTTP/1.1 403'
run bac policy ls --json x
rule=$(json '[r["id"] for r in d["rules"] if r["decision"] == "deny" and r["resource"] == "allowed.test"][0]' <<<"$out")
ok 'take the deny away' bac policy rm network --sandbox x --id "$rule"
probe allowed_http
tells 'it is open again' allowed_http '^HTTP/1.1 200'

# ---- NP-14
run rootx bash -c 'for i in $(seq 30); do curl -sS -o /dev/null -w "%{http_code}\n" http://allowed.test/head; done | sort | uniq -c'
like 'NP-14: thirty in a row' "$out" '^ *30 200$'

# ---- fail closed
state() { json 'd["directory"]' <<<"$(command "$BAC" inspect --json x)"; }
supervisor() { json 'd["pid"]' <"$(state)/run.json"; }
minder() { pgrep -P "$(supervisor)" -x bac-minder; }
proxy() { pgrep -P "$(minder)" -x bac-proxy; }
kill -9 "$(proxy)"
probe allowed_http
tells 'the proxy is killed: traffic goes on when there is another' allowed_http '^HTTP/1.1 200'
like 'and it was said' "$(command "$BAC" logs x)" 'the network proxy was killed by signal 9'
run bac ls
like 'and is, by ls' "$err" "'x': the network proxy was killed by signal 9 .Killed. and was started again"
old=$(proxy)
kill -STOP "$old"
: >"$world/seen"
fails 'the proxy is stopped: nothing moves meanwhile' timeout 2 "$BAC" exec x curl -sS -m 1 http://allowed.test/head
unlike 'nothing' "$(came)" .
probe allowed_http
tells 'it is replaced' allowed_http '^HTTP/1.1 200'
is 'the stopped one is gone' "$(kill -0 "$old" 2>&1 | grep -c 'No such')" 1
kill -9 "$(pgrep -P "$(minder)" -x bac-audit)"
probe allowed_http
tells 'the writer of the log is killed: likewise' allowed_http '^HTTP/1.1 200'
ok 'and its chain holds' bac audit verify x
unlike 'nobody came where nobody may, meanwhile' "$(came)" forbidden

if [ "$(id -u)" -eq 0 ]; then
	# traced, it is neither dead nor stopped: it does not answer
	python3 - "$(proxy)" >held 2>&1 <<-'PYTHON' &
		import ctypes, os, sys
		pid = int(sys.argv[1])
		print(ctypes.CDLL(None).ptrace(16, pid, None, None), flush=True)
		os.waitpid(pid, 0)
		os.waitpid(pid, 0)
	PYTHON
	wait_for 5 grep -q 0 held
	if wait_for 40 command "$BAC" exec x curl -sS -m 20 http://allowed.test/head; then pass 'the proxy hangs: it is replaced'; else fail 'the proxy hangs: it is replaced'; fi
	like 'and it was said' "$(command "$BAC" logs x)" 'the network proxy did not answer'
else
	skip 'the proxy hangs' 'tracing it needs root'
fi

# ---- what the workspace refuses is on the same log
mkdir -p share/.git/hooks
ok 'mount a folder' bac mount x "$PWD/share"
fails 'a protected path' rootx touch "$PWD/share/.git/hooks/pre-commit"
file_refused() { chain | grep -q '"kind":"file".*pre-commit'; }
if wait_for 5 file_refused; then pass 'its refusal is on the log'; else fail 'its refusal is on the log' "$(chain | tail -n 5)"; fi

# ---- exec needs no network
ok 'eth0 down' rootx ip link set eth0 down
is 'exec works without it' "$(command "$BAC" exec x echo yes)" yes
ok 'eth0 up' rootx bash -c 'ip link set eth0 up; ip route add default via 198.18.0.1'
probe allowed_http
tells 'it works again' allowed_http '^HTTP/1.1 200'

# ---- real clients, without a proxy variable
www=$world/www
mkdir -p "$www/simple/tiny" "$www/tiny"
python3 - "$www" <<-'PYTHON'
	import base64, hashlib, io, json, sys, tarfile, zipfile
	www = sys.argv[1]
	wheel = f"{www}/simple/tiny/tiny-1.0-py3-none-any.whl"
	with zipfile.ZipFile(wheel, "w") as z:
	    z.writestr("tiny.py", "word = 'tiny'\n")
	    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
	    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	    z.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
	open(f"{www}/simple/tiny/index.html", "w").write("<a href=tiny-1.0-py3-none-any.whl>tiny-1.0-py3-none-any.whl</a>")
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w:gz") as t:
	    for name, text in (("package/package.json", '{"name":"small","version":"1.0.0","main":"i.js"}'), ("package/i.js", "module.exports='small'")):
	        info = tarfile.TarInfo(name)
	        info.size = len(text)
	        t.addfile(info, io.BytesIO(text.encode()))
	open(f"{www}/small-1.0.0.tgz", "wb").write(out.getvalue())
	sum512 = base64.b64encode(hashlib.sha512(out.getvalue()).digest()).decode()
	json.dump({"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "small", "version": "1.0.0", "dist":
	    {"tarball": "http://npm.test/small-1.0.0.tgz", "integrity": "sha512-" + sum512}}}}, open(f"{www}/small", "w"))
	open(f"{www}/Packages", "w").write("")
PYTHON
git init -q --bare "$www/r.git" && git -C "$www/r.git" symbolic-ref HEAD refs/heads/main
git init -q -b main work && (cd work && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first && git push -q "$www/r.git" main)
git -C "$www/r.git" update-server-info
client() { # NAME REGEX COMMAND
	run rootx bash -c "cd /tmp && $3"
	like "client: $1" "$out$err" "$2"
}
deadline=120
client curl 'hello from https' 'curl -skS https://allowed.test/head'
client wget 'hello from http' 'wget -qO- http://allowed.test/head'
client 'git over https' 'first' 'rm -rf r; git -c http.sslVerify=false clone -q https://git.test/r.git && git -C r log --oneline'
client pip 'tiny' 'python3 -m venv v >/dev/null && v/bin/pip install -q --disable-pip-version-check --trusted-host pypi.test --index-url http://pypi.test/simple tiny && v/bin/python -c "import tiny; print(tiny.word)"'
client npm 'small' 'mkdir -p n && cd n && npm install --silent --no-audit --no-fund --registry http://npm.test/ small >/dev/null && node -p "require(\"small\")"'
client 'node fetch' 'hello from http' 'node -e "fetch(\"http://allowed.test/head\").then(r => r.text()).then(console.log)"'
client 'python urllib' 'hello from http' 'python3 -c "import urllib.request as u; print(u.urlopen(\"http://allowed.test/head\").read())"'
client apt 'Get:|Hit:|Ign:' 'echo "deb [trusted=yes] http://deb.test/ ./" >one.list; apt-get update -o Dir::Etc::sourcelist=/tmp/one.list -o Dir::Etc::sourceparts=- -o Acquire::Languages=none'
client 'openssl s_client' 'CN *= *allowed.test' 'echo | openssl s_client -connect allowed.test:443 -servername allowed.test 2>&1'
client socat '220 banner.test' 'echo | socat -t 5 - TCP:banner.test:25'
client 'a body of 20 MB' '^20000000$' 'head -c 20000000 /dev/zero | curl -sS -m 100 --data-binary @- -H "Expect:" http://allowed.test/post | grep -o "[0-9]*"'
client 'NP-20: what git says' 'unable to access|403|refused|alert' 'git clone http://denied.test/r.git denied'
client 'NP-20: what npm says' 'refused by network policy|E403|403' 'npm view --registry http://denied.test/ small'
client 'NP-20: what pip says' '403' 'v/bin/pip install --disable-pip-version-check --retries 0 --trusted-host denied.test http://denied.test/tiny-1.0-py3-none-any.whl'
deadline=180
unlike 'none of them came where nobody may' "$(came)" forbidden

# ---- the disk of the log is full (a small file system in its place needs root)
if [ "$(id -u)" -eq 0 ]; then
	ok 'stop' bac stop x
	mounted=$XDG_STATE_HOME/bac/audit/$id
	mount -t tmpfs -o size=64k,mode=700 tmpfs "$mounted"
	ok 'start with a small disk for the log' bac exec x true
	head -c 65536 /dev/zero >"$mounted/filler" 2>/dev/null
	: >"$world/seen"
	rootx bash -c 'for i in $(seq 40); do curl -sS -m 2 -o /dev/null http://allowed.test/head?$i || break; done' >/dev/null 2>&1
	: >"$world/seen"
	fails 'the log cannot be written: no traffic' rootx curl -sS -m 3 http://allowed.test/head
	unlike 'none at all' "$(came)" .
	like 'it was said' "$(command "$BAC" logs x)" 'log cannot be written'
	rm "$mounted/filler"
	if wait_for 20 command "$BAC" exec x curl -sS -m 3 http://allowed.test/head; then pass 'room again: traffic again'; else fail 'room again: traffic again'; fi
	ok 'stop' bac stop x
	umount -l "$mounted"
	mounted=
else
	skip 'the disk of the log is full' 'mounting a small one needs root'
fi

# ---- a resolver of the host that is watched (another /etc/resolv.conf needs root)
if [ "$(id -u)" -eq 0 ]; then
	mkdir -p names
	WORLD='' python3 "$here/../lib/servers.py" "$PWD/names" 127.0.0.77 >names.log 2>&1 &
	second=$!
	wait_for 20 test -e names/ports
	echo 'nameserver 127.0.0.76' >resolv.conf
	ok 'a sandbox with another resolver' unshare -m bash -c 'mount --bind resolv.conf /etc/resolv.conf && exec "$@"' - \
		"$BAC" create --name d -m 512m --allow-network reach.test,**.wide.test shell
	run bac exec d curl -sS -m 20 http://reach.test/
	like 'a resolver that does not answer: said as such' "$out$err" '(resolve|look|name|DNS)'
	echo 'nameserver 127.0.0.77' >resolv.conf
	asked() { run bac exec d curl -sS -m 20 http://reach.test/; grep -q 'dns reach.test' names/seen; }
	if wait_for 20 asked; then pass 'the host changes its resolver: the proxy follows'; else fail 'the host changes its resolver: the proxy follows'; fi
	run bac exec -u root d bash -c 'curl -sS -m 20 http://secret.t.denied.test/; curl -skS -m 20 https://secret.t.denied.test/
		getent hosts secret2.denied.test; curl -sS -m 20 -p -x http://198.18.0.1:3128 http://secret3.denied.test/
		curl -sS -m 20 http://reach.test/; curl -sS -m 20 http://data.wide.test/'
	note "$out" "$err"
	unlike 'no question leaves for a name that is denied' "$(cat names/seen)" denied
	like 'one does for a name that is allowed' "$(cat names/seen)" 'dns reach.test'
	like 'NP-17: and where it leads to the host itself, it is refused' "$out" '(refused|private|loopback)[^$]*reach.test'
	kill "$second"
	ok 'remove it' bac rm --force d
else
	skip 'no question leaves for a name that is denied' 'another /etc/resolv.conf needs root'
fi

# ---- no network at all
ok 'create without a network' bac create --name none -m 512m --network none shell
run bac exec none bash -c 'ls /sys/class/net; curl -sS -m 5 http://1.1.1.1/ 2>&1; echo $?'
unlike 'it has no device' "$out" eth0
like 'and a client fails at once' "$out" '7$'
unlike 'nothing of the network runs for it' "$(processes)" 'bac-proxy.*bac-proxy'
ok 'remove' bac rm --force none x
