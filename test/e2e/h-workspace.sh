#!/bin/bash
# Workspaces: the user's folders inside, at their own paths. Sections 1 to 4, 12 and 15 of the cases.
# timeout: 2400
#
# case    row, or why there is none
# FS-01   'FS-01: ...': 300 files and 8 rounds here; the long loop is the benchmark's
# FS-02   'FS-02: ...' with a file held open; days and suspends are not for a test
# FS-04   'FS-04: ...', before and after a stop
# FS-05   'FS-05: ...' on the file system at hand; others by test/run with TMPDIR there
# FS-07   'FS-07: ...'
# FS-08   'FS-08: ...'
# FS-10   'FS-10: ...' ends in time; how fast it is: test/bench
# FS-11   no row: test/bench publishes the ratios
# FS-13   'FS-13: ...'
# FS-14   'FS-14: ...' with a limit of 400 descriptors and 3,000 files
# FS-16   'FS-16: ...' under the same limit
# FS-17   'FS-17: ...'
# FS-19   'FS-19: ...' with a file below /usr/share; one below /etc is a named refusal
# FS-20   'FS-20: ...'
# LK-01   'LK-01: ...', guest and host, two guests, flock and fcntl
# LK-02   'LK-02: ...': WAL within one sandbox; across sandboxes and host with a rollback journal, since WAL's
#         shared memory cannot span kernels
# PM-01   'PM-01: ...'
# PM-02   s-agents.sh: 'PM-02: ...'
# PM-04   by running all this as user and as root; other ids need their own machine
# PM-05   'PM-05: ...'
# PM-07   'PM-07: ...': one sandbox under umask 077, one under 000
# PM-08   'PM-08: ...'
# SY-01   'SY-01: ...'
# SY-02   'SY-02: ...'
# SY-04   'SY-04: ...', and the target is protected
# SY-05   'SY-05: ...'; a link that is swapped between check and use cannot be timed from outside
# RO-01   'RO-01: ...', with the folder replaced on the host and put back
# RO-02   'RO-02: ...'
# RO-04   'RO-04: ...'
# UN-01   'UN-01: ...'
# UN-02   'UN-02: ...'
# UN-04   folders with dots: 'UN-01: ...'; names of sandboxes: g-commands
# WT-01   'WT-01: ...'
# WT-02   no row: a folder has one path only
# WT-04   'WT-04: ...'
# GT-08   'GT-08: ...', as far as the workspace's rules go
. "${0%/*}/lib.sh"

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"

# A Python inside that answers one line of code with one line: a value, or the name of an errno.
# shellcheck disable=SC2016  # code for elsewhere
library='
import sys, os, errno, stat, subprocess, fcntl, mmap, time, ctypes, struct, threading, select, socket
def sh(command, status=False):
    p = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", stdin=subprocess.DEVNULL)
    return ("%d " % p.returncode if status else "") + p.stdout.strip()
def cat(path): return open(path, errors="replace").read().strip()
def put(path, text, mode="w"):
    with open(path, mode) as f: f.write(text)
    return "ok"
def mode(path): return "%o" % stat.S_IMODE(os.lstat(path).st_mode)
def tries(calls):
    said = []
    for c in calls:
        try: c(); said.append("done")
        except OSError as e: said.append(errno.errorcode[e.errno])
    return " ".join(said)
def until(test, seconds=5):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end: return "no"
        time.sleep(0.02)
    return "yes"
def locked(fd, how):
    try: how(fd); return "got"
    except OSError as e: return "busy" if e.errno in (errno.EAGAIN, errno.EACCES) else errno.errorcode[e.errno]
def churn(workers, rounds):
    bad = []
    def work(n):
        for i in range(rounds):
            a, b = "many/%d.%d" % (n, i), "many/%d" % n
            said = tries([lambda: put(a, "x"), lambda: os.stat(a), lambda: os.rename(a, b), lambda: os.unlink(b)])
            if said != "done done done done": bad.append(said)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
    for t in threads: t.start()
    for t in threads: t.join()
    return bad
libc = ctypes.CDLL(None, use_errno=True)
scope = globals()
top = os.getcwd()
for line in sys.stdin:
    try:
        try: v = eval(line, scope)
        except SyntaxError: exec(line, scope); v = "ok"
    except OSError as e: v = errno.errorcode.get(e.errno, str(e))
    except Exception as e: v = type(e).__name__ + ": " + str(e)
    os.chdir(top)
    print(str(v).replace("\n", "|")[:600], flush=True)
'
declare -A to from
trap '' PIPE # a sandbox that is gone fails rows, not this script
# peer SANDBOX: start it; tell SANDBOX CODE: ask it, the answer is in $out
peer() {
	local in out
	rm -f "$E2E_DIR/$1.in" "$E2E_DIR/$1.out"
	mkfifo "$E2E_DIR/$1.in" "$E2E_DIR/$1.out"
	"$BAC" exec -i "$1" python3 -u -c "$library" <"$E2E_DIR/$1.in" >"$E2E_DIR/$1.out" 2>"$E2E_DIR/$1.err" &
	exec {in}>"$E2E_DIR/$1.in" {out}<"$E2E_DIR/$1.out"
	to[$1]=$in from[$1]=$out
}
hang_up() {
	local fd=${to[$1]} back=${from[$1]}
	exec {fd}>&- {back}<&-
}
tell() {
	printf '%s\n' "$2" >&"${to[$1]}" || out='(gone)'
	IFS= read -r -t 120 out <&"${from[$1]}" || out="(no answer) $(tail -3 "$E2E_DIR/$1.err")"
}
# sees NAME SANDBOX CODE WANT; matches NAME SANDBOX CODE REGEX
sees() {
	tell "$2" "$3"
	is "$1" "$out" "$4"
}
matches() {
	tell "$2" "$3"
	like "$1" "$out" "$4"
}
refused='^(EACCES|EPERM|EROFS)( (EACCES|EPERM|EROFS))*$'
servers() { # process ids of the workspace servers
	python3 - "$E2E_RUN" <<-'PYTHON'
		import os, sys
		parent, name = {}, {}
		for pid in filter(str.isdigit, os.listdir("/proc")):
		    try:
		        text = open(f"/proc/{pid}/stat", errors="replace").read()
		    except OSError:
		        continue
		    parent[int(pid)] = int(text.rpartition(")")[2].split()[1])
		    name[int(pid)] = text.partition("(")[2].rpartition(")")[0]
		for pid in sorted(parent):
		    p = pid
		    while p in parent and p != int(sys.argv[1]):
		        p = parent[p]
		    if p == int(sys.argv[1]) and name[pid].startswith("bac-workspace"):
		        print(pid)
	PYTHON
}

# ---- what is refused, before there is a machine
home=$(getent passwd "$(id -u)" | cut -d: -f6)
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
mkfifo pipe
mkdir refuse
ln -s "$home" refuse/home
denied() { # NAME PATH REGEX
	run bac create --name no shell "$2"
	if [ "$rc" -ne 0 ]; then like "refused: $1" "$err" "$3"; else fail "refused: $1" "$(seen "$2")"; fi
}
denied '/' / 'whole machine'
denied 'the home directory' "$home" 'home'
denied 'SY-05: also by a link' refuse/home 'home'
denied 'what the home directory lies in' "$(dirname "$home")" .
denied "bac's state" "$XDG_STATE_HOME/bac" 'own'
denied 'also what it lies in' "$E2E_DIR" 'own'
denied 'a folder of one sandbox' "$XDG_STATE_HOME/bac/sandboxes" 'own'
denied 'its sockets' "$XDG_RUNTIME_DIR/bac" .
denied 'a socket' sock 'socket'
denied 'a pipe' pipe .
denied 'a device' /dev/null .
denied '/proc' /proc .
denied 'FS-19: a file of the system' /etc/ssl/openssl.cnf:ro .
denied 'what is not there' nosuch 'nosuch'
denied 'an empty name' '' .
fails 'refused: a pattern that is none' bac create --name no --hide 'a//b' shell refuse
like 'with the column' "$err" 'column 3'
fails 'refused: --read-only for nothing' bac create --name no --read-only shell
is 'nothing of these is left' "$(bac ls --json | json 'len(d["sandboxes"])')" 0

# ---- the folders
W=$PWD/w
mkdir -p w/ro w/secret w/keep w/many more "odd/数据 é'\"a,b=c%d.e" odd/-dash
ln -s w L
echo hello >w/hello
echo '#!/bin/sh
echo tool' >w/tool.sh
chmod 755 w/tool.sh
echo hidden >w/secret/f
echo keep >w/keep/f
echo TOKEN >w/.env
echo EXAMPLE >w/.env.example
echo PEM >w/host.pem
echo read >w/ro/f
echo HOSTONLY >outside
echo single >single
ln -s / w/root
ln -s ../../ w/up
ln -s "$E2E_DIR/s" w/state
ln -s "$home" w/home
git init -q -b main w/repo
git -C w/repo config user.email t@t
git -C w/repo config user.name t
mkdir w/repo/src
for i in $(seq 300); do echo "$i" >"w/repo/src/$i"; done
git -C w/repo add -A && git -C w/repo commit -qm first
git init -q -b main w/linked
rm -rf w/linked/.git/hooks
mkdir w/linked/hooks
ln -s ../hooks w/linked/.git/hooks
licence=/usr/share/common-licenses/GPL-3
[ -f $licence ] && [ ! -L $licence ] || licence=

umask_was=$(umask)
umask 077
# shellcheck disable=SC2086  # none if there is no such file
ok 'SY-01: create on a link, with a read-only part, a file and rules' bac create --name x -m 768m \
	--hide secret --protect 'keep/**' shell ./L w/ro:ro ./single ${licence:+$licence:ro}
umask 000
# in the folder itself: no path means this one
start_y() { (cd w && ulimit -n 400 && "$BAC" run -d --name y -m 512m shell); }
ok 'FS-14: run in a folder, with few descriptors' start_y
umask "$umask_was"
is 'run without a path takes the current folder' "$(bac inspect --json y | json 'd["mounts"][0]["path"]')" "$W"
peer x
peer y

# ---- where it is, and whose
sees 'the default directory is the workspace' x 'os.getcwd()' "$W"
sees 'under its own path' x "cat('$W/hello')" hello
sees 'SY-01: and under the name that was said' x "cat('$PWD/L/hello')" hello
sees 'a single file' x "cat('$PWD/single')" single
sees 'can be written' x "put('$PWD/single', 'new')" ok
is 'on the host' "$(cat single)" new
if [ -n "$licence" ]; then
	owner=$(stat -c %u "$licence") # an ordinary user's server sees one id, its own
	if [ "$owner" = "$(id -u)" ]; then owner=1000; elif [ "$(id -u)" -ne 0 ]; then owner=65534; fi
	sees 'FS-19: a file that is not mine can be read' x "os.stat('$licence').st_uid, len(open('$licence', 'rb').read())" "($owner, $(wc -c <$licence))"
	matches 'FS-19: and not written' x "tries([lambda: put('$licence', 'x'), lambda: os.chmod('$licence', 0o777)])" "$refused"
else
	skip 'FS-19: a file that is not mine' 'this host has no /usr/share/common-licenses/GPL-3'
fi
sees 'nothing else of the host is there' x "os.path.exists('$PWD/outside') or os.path.exists('$E2E_DIR/s')" False
sees 'files are the agent'"'"'s' x 'os.stat("hello").st_uid, os.stat("hello").st_gid' '(1000, 1000)'
matches 'FS-20: df has numbers' x '(lambda v: v.f_blocks > 0 and v.f_bavail > 0 and v.f_files >= 0 and v.f_namemax)(os.statvfs("."))' '^255$'

# ---- permissions
sees 'PM-01: sed -i keeps the mode' x 'sh("sed -i s/tool/tooled/ tool.sh && ./tool.sh", True)' '0 tooled'
is 'PM-01: on the host' "$(stat -c %a w/tool.sh)" 755
sees 'PM-01: chmod' x 'os.chmod("tool.sh", 0o600), mode("tool.sh")' "(None, '600')"
is 'PM-01: reaches the host' "$(stat -c %a w/tool.sh)" 600
tell x 'os.chmod("tool.sh", 0o4755)'
unlike 'PM-01: setuid is never stored' "$(stat -c %a w/tool.sh)" '^[4-7]...$'
sees 'PM-05: a user whom the host does not know' x "sh('chmod 755 tool.sh; sudo useradd -u 4242 u; sudo -u u $W/tool.sh', True)" '0 tooled'
sees 'PM-07: files made inside have the mode that was asked for' x 'sh("umask 022; rm -f m; touch m; mkdir -p md; stat -c %a m md")' '644|755'
is 'PM-07: on the host too' "$(stat -c %a w/m w/md | tr '\n' ' ')" '644 755 '
own="$XDG_STATE_HOME/bac $XDG_RUNTIME_DIR/bac"
# shellcheck disable=SC2086  # two words
is 'PM-07: what bac keeps is mine alone' "$(find $own -maxdepth 0 -perm /077; find $own \( -type s -perm /077 -o ! -type l -perm /022 \) | head -5)" ''
matches 'PM-08: chown is honest' x 'sh("touch o; sudo chown 1000:1000 o && stat -c %u o; sudo chown 1001 o || echo no; stat -c %u o")' '^1000\|.*no\|1000$'
sees 'user xattrs' x 'os.setxattr("o", "user.a", b"b"), os.getxattr("o", "user.a"), os.listxattr("o")' "(None, b'b', ['user.a'])"
matches 'others are refused' x 'sh("sudo python3 -c \"import os; os.setxattr(\\\"o\\\", \\\"trusted.a\\\", b\\\"b\\\")\"")' 'Errno 95|not supported|Operation not'
matches 'devices are refused' x 'sh("sudo mknod dev c 1 3; test -e dev", True)' '^1 '

# ---- what POSIX promises
sees 'FS-17: hard links' x 'sh("echo a>f; ln f g; rm f; echo b>>g; cat g; truncate -s 0 g; stat -c %s g", True)' '0 a|b|0'
sees 'unlinked while open' x '(lambda f: (f.write("abc"), f.flush(), os.unlink("uo"), f.seek(0), f.read(), os.fstat(f.fileno()).st_nlink))(open("uo", "w+"))' "(3, None, None, 0, 'abc', 0)"
sees 'rename replaces and keeps the open file' x '(put("r1", "1"), put("r2", "2"), (lambda f: (os.rename("r1", "r2"), f.read(), cat("r2")))(open("r2")))[2]' "(None, '2', '1')"
sees 'a file without a name gets one' x '(lambda fd: (os.write(fd, b"t"), libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"tmpf", 0x400), cat("tmpf")))(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644))[1:]' "(0, 't')"
sees 'holes' x '(lambda fd: (os.ftruncate(fd, 1 << 20), os.pwrite(fd, b"x", 1 << 19), os.lseek(fd, 0, os.SEEK_DATA) <= 1 << 19, os.lseek(fd, 0, os.SEEK_END)))(os.open("hole", os.O_CREAT | os.O_RDWR))[2:]' '(True, 1048576)'
sees 'posix_fallocate' x '(lambda fd: (os.posix_fallocate(fd, 0, 65536), os.fstat(fd).st_size))(os.open("fall", os.O_CREAT | os.O_RDWR))[1]' 65536
sees 'copy_file_range' x '(lambda a, b: (os.copy_file_range(a, b, 6), cat("cfr")))(os.open("hello", os.O_RDONLY), os.open("cfr", os.O_CREAT | os.O_RDWR))' "(6, 'hello')"
sees 'shared mappings reach the file' x '(lambda fd: (os.ftruncate(fd, 4096), (lambda m: (m.__setitem__(slice(0, 3), b"map"), m.flush()))(mmap.mmap(fd, 4096)), os.fsync(fd), os.pread(fd, 3, 0)))(os.open("mm", os.O_CREAT | os.O_RDWR))[3]' "b'map'"
is 'on the host' "$(head -c 3 w/mm)" map
sees 'times to the nanosecond' x 'os.utime("hello", ns=(1, 981173106123456789)), os.stat("hello").st_mtime_ns' '(None, 981173106123456789)'
is 'on the host' "$(stat -c %.9Y w/hello)" 981173106.123456789
sees 'a pipe and a socket inside' x 'sh("mkfifo pp; (echo thru >pp &); cat pp"), (lambda a, b: (a.bind("us"), a.listen(1), b.connect("us"), os.path.exists("us")))(socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX))[3]' "('thru', True)"
sees 'names of 255 bytes, of any bytes' x 'put("n" * 255, "x"), put(b"\xff\xfe\n\x01", "x"), tries([lambda: put("n" * 256, "x")])' "('ok', 'ok', 'ENAMETOOLONG')"
sees 'UN-01: composed and decomposed names are two' x 'put("\u00e9", "c"), put("e\u0301", "d"), cat("\u00e9")' "('ok', 'ok', 'c')"
is 'on the host' "$(cat w/$'e\xcc\x81')" d
sees 'paths beyond 4,096 bytes' x '[(os.mkdir("d" * 200), os.chdir("d" * 200)) for i in range(25)] and (put("deep", "x"), cat("deep"), len(os.getcwd()) > 4096)' "('ok', 'x', True)"
sees 'and their end' x 'sh("rm -rf d*d; ls -d d*d", True)[0]' 2
sees 'FS-05: many at once, no stale handle' x 'churn(16, 40)' '[]'
append_host() { for i in $(seq 200); do echo "host $i 0123456789" >>w/app; done; }
append_host &
tell x 'sh("for n in 1 2; do (for i in $(seq 200); do echo guest$n $i 0123456789 >>app; done) & done; wait")'
wait $!
is 'O_APPEND by several writers' "$(grep -Ec '^(host|guest[12]) [0-9]+ 0123456789$' w/app) $(wc -l <w/app)" '600 600'

# ---- read-only
matches 'RO-01: inside of a writable folder' x 'tries([lambda: put("ro/p", "x"), lambda: put("ro/f", "x"), lambda: os.unlink("ro/f"), lambda: os.rename("ro/f", "g2"), lambda: os.chmod("ro/f", 0o777), lambda: os.link("hello", "ro/l")])' '^(EROFS|EACCES|EPERM|EXDEV)( (EROFS|EACCES|EPERM|EXDEV))*$'
sees 'and readable' x 'cat("ro/f")' read
matches 'RO-02: root does not help' x "sh('sudo mount -o remount,rw,bind $W/ro; sudo touch $W/ro/p || echo no; sudo nsenter -t 1 -m touch $W/ro/p || echo no; sudo umount -l $W/ro; sudo touch $W/ro/p || echo no')" 'no\|.*no\|.*no$'
matches 'RO-02: nor the device once more' x "sh('sudo mkdir -p /mnt/again; sudo mount -t virtiofs bac /mnt/again || echo no; for d in /mnt/again/*; do grep -qs read \$d/f && { sudo touch \$d/p || echo no; }; done; for d in /mnt/again/*; do [ -e \$d/hello ] && { sudo touch \$d/ro/p || echo no; }; done; sudo umount /mnt/again 2>/dev/null')" 'no$'
is 'nothing came of it' "$(ls w/ro)" f
mv w/ro w/ro.was
mkdir w/ro
echo new >w/ro/f
tell x 'tries([lambda: put("ro/p", "x"), lambda: put("ro/f", "x")])'
is 'RO-01: the host replaced the folder' "$(cat w/ro/f; ls w/ro)" $'new\nf'
rm -r w/ro
mv w/ro.was w/ro
tell x 'tries([lambda: put("ro/p", "x"), lambda: os.unlink("ro/f")])'
is 'RO-01: and put it back' "$(ls w/ro)" f

# ---- rules
matches 'hide: cannot be opened' x 'tries([lambda: cat(".env"), lambda: put(".env", "x"), lambda: cat("host.pem"), lambda: cat("secret/f")])' "$refused"
matches 'hide: nor removed, moved, linked, changed' x 'tries([lambda: os.unlink(".env"), lambda: os.rename(".env", "e"), lambda: os.rename("hello", ".env"), lambda: os.link(".env", "e"), lambda: os.chmod(".env", 0o777), lambda: os.truncate(".env", 0)])' "$refused"
matches 'hide: root does not help, nor a link' x 'sh("ln -s .env sl; cat sl || echo no; sudo cat .env || echo no; sudo cat /proc/self/cwd/.env || echo no; mkdir -p b; sudo mount --bind . b; sudo cat b/.env || echo no; sudo umount b")' 'no\|.*no\|.*no\|.*no$'
sees 'hide: its name may be listed' x '".env" in os.listdir(".")' True
sees 'exceptions are free' x 'cat(".env.example"), put(".env.example", "x")' "('EXAMPLE', 'ok')"
matches 'RO-04: a hidden folder takes nothing' x 'sh("echo 1 > secret/g", True)' '^[1-9]'
is 'RO-04: nothing is there' "$(ls w/secret)" f
matches 'protect: cannot be changed or made' x 'tries([lambda: put("keep/f", "x"), lambda: put("keep/new", "x"), lambda: os.unlink("keep/f"), lambda: os.mkdir("keep/d"), lambda: os.rename("hello", "keep/f"), lambda: os.link("hello", "keep/h"), lambda: os.symlink("x", "keep/s")])' "$refused"
matches 'protect: not by moving its folder' x 'tries([lambda: os.rename("keep", "kept")])' '^(EACCES|EPERM|EXDEV)$'
matches 'protect: what does not exist yet' x '(os.mkdir("v") , put("v/tasks.json", "{}"), tries([lambda: os.rename("v", ".vscode")]), sh("mkdir -p .vscode && cp v/tasks.json .vscode/", True)[0])[2:]' "^\\('(EACCES|EPERM|EXDEV)', '1'\\)$"
sees 'protect: can be read' x 'cat("keep/f")' keep
is 'the host'"'"'s files are as they were' "$(cat w/.env w/host.pem w/secret/f w/keep/f | tr '\n' ' ')$(find w/keep w/.vscode -type f)" 'TOKEN PEM hidden keep w/keep/f'
like 'the log names path and rule' "$(bac logs x)" '\.env'
bac logs x | grep -q 'keep/' && pass 'likewise' || fail 'likewise' "$(bac logs x | tail -5)"
matches 'GT-08: keys that run commands are refused' x 'sh("cd repo; for k in core.fsmonitor core.hooksPath core.sshCommand core.pager diff.external filter.x.clean include.path alias.x; do git config $k ./evil && echo DONE $k; done; git config --get-regexp evil; echo end")' 'end$'
unlike 'GT-08: each of them' "$out" 'DONE'
sees 'GT-08: other keys pass' x 'sh("cd repo; git config user.name guest && git config user.name")' guest
matches 'GT-08: hooks are refused' x 'tries([lambda: put("repo/.git/hooks/post-checkout", "x"), lambda: os.rename("hello", "repo/.git/hooks/pre-commit"), lambda: os.symlink("../../evil", "repo/.git/hooks/pre-push")])' "$refused"
matches 'GT-08: and a .git that leads elsewhere' x 'sh("cp -r repo/.git evil; mkdir g; echo gitdir: ../evil >g/.git", True)' '^[1-9]'
tell y 'held = os.open("later", os.O_RDWR | os.O_CREAT)'
matches 'GT-08: what another sandbox has open for writing does not become it' x 'tries([lambda: os.rename("later", "repo/.git/config")])' EXDEV
sees 'GT-08: so what that one writes is no configuration' y 'os.write(held, b"[alias]\n\ta = !evil\n")' 19
tell y 'os.close(held)'
sees 'GT-08: and closed it is judged' x 'until(lambda: tries([lambda: os.rename("later", "repo/.git/config")]) in ("EACCES", "EPERM")) + tries([lambda: os.unlink("later")])' yesdone
is 'GT-08: the host sees none of it' "$(git -C w/repo config --get-regexp 'evil|fsmonitor|hookspath'; find w/repo/.git/hooks -type f ! -name '*.sample'; cat w/g/.git 2>/dev/null)" ''
sees 'ordinary git works' x 'sh("rm -rf evil g; git init -q fresh && cd fresh && git config user.email a@b && git config user.name a && git commit -q --allow-empty -m m && cd .. && git clone -q fresh clone && git -C clone log --oneline | wc -l", True)' '0 1'
sees 'SY-04: hooks that are a link: git works' x 'sh("cd linked && git status --porcelain -uno", True)' '0 '
matches 'SY-04: and the target is protected' x 'tries([lambda: put("linked/hooks/pre-commit", "x"), lambda: os.rename("hello", "linked/hooks/pre-commit"), lambda: os.rename("linked/hooks", "linked/h2"), lambda: os.symlink("../x", "linked/hooks/pre-push")])' "^((EACCES|EPERM|EXDEV) ?){4}$"
is 'SY-04: the host sees none of it' "$(find w/linked/hooks -type f ! -name '*.sample' -newer w/hello)" ''

# ---- links stay inside
mark=mark.${E2E_DIR##*/}
sees 'SY-02: a link to / is the sandbox'"'"'s own' x "sh('echo in > root/tmp/$mark; cat /tmp/$mark')" in
is 'SY-02: the host has no such file' "$(ls "/tmp/$mark" 2>/dev/null)" ''
matches 'SY-02: nor what lies above or elsewhere' x 'tries([lambda: cat("up/work/outside"), lambda: cat("up/outside"), lambda: os.listdir("state"), lambda: cat("home/.bashrc.host")])' '^(ENOENT|EACCES)( (ENOENT|EACCES))*$'
sees 'SY-02: .. ends at the root' x "os.path.exists('$W/../outside'), sh('cd $W/../../../../../..; pwd')" "(False, '/')"
run bac cp "x:$W/root/etc/hostname" got
is 'SY-05: cp follows links in the sandbox' "$(cat got 2>/dev/null)" "$(bac exec x cat /etc/hostname)"

# ---- what the host does is seen
echo more >>w/hello
sees 'FS-04: the host'"'"'s edit' x 'cat("hello")' 'hello|more'
tell x 'h = open("t", "w+"); h.write("held"); h.flush()'
fresh() { # NAME WANT: within the second
	sees "FS-02: $1" x "until(lambda: cat('t') == '$2', 2), h.fileno() > 0" "('yes', True)"
}
echo one >w/t
fresh 'changed in place' one
echo two >w/t2 && mv w/t2 w/t
fresh 'replaced by a rename' two
: >w/t && echo six >>w/t
fresh 'emptied and written' six
sees 'FS-07: a script' x 'sh("cat script 2>/dev/null; printf \"#!/bin/sh\necho aaa\n\" >script; chmod +x script; ./script")' aaa
sed 's/aaa/bbb/' w/script >s2 && cat s2 >w/script
sees 'FS-07: of the same size, new content' x 'sh("./script")' bbb
touch -r w/script stamp && sed 's/bbb/ccc/' w/script >s2 && cat s2 >w/script && touch -r stamp w/script
sees 'FS-07: and the same time' x 'until(lambda: sh("./script") == "ccc", 2)' yes
: >w/repo/.git/index.lock
matches 'FS-08: a lock of the host'"'"'s' x 'sh("cd repo; echo 1 >new; git add new", True)' '^128 '
rm w/repo/.git/index.lock
sees 'FS-08: is gone at once' x 'sh("cd repo; git add new && git commit -qm new", True)' '0 '
sees 'removed and made again, from inside' x 'os.unlink("t"), put("t", "again"), cat("t")' "(None, 'ok', 'again')"
rm w/t && mkdir w/t
sees 'and from outside, as a folder' x 'until(lambda: os.path.isdir("t"), 2)' yes

# ---- git on both sides
git_host() { while [ ! -e "$E2E_DIR/stop" ]; do git -C w/repo status --porcelain >/dev/null 2>>status.err || echo "status $?" >>status.bad; done; }
git_host &
host=$!
# both take the index's lock: who finds it taken tries again
tell x "$(python3 -c 'import sys; print("commits =", repr(sys.argv[1]))' '
	cd repo || exit 1
	locked() {
		for n in $(seq 300); do
			said=$(git "$@" 2>&1) && return
			[[ $said == *"index.lock"*"File exists"* ]] || break
		done
		echo "$said"
		exit 1
	}
	for i in 1 2 3 4 5 6 7 8; do
		echo "$i" >"src/$i"
		locked add -A
		locked commit -qm n --allow-empty
	done')"
sees 'FS-01: commits inside while the host asks for the status' x 'sh(commits, True)' '0 '
: >"$E2E_DIR/stop"
wait $host
is 'FS-01: the host never failed' "$(cat status.bad 2>/dev/null)" ''
ok 'FS-01: fsck outside' git -C w/repo fsck --full --strict
sees 'FS-01: fsck inside' x 'sh("cd repo; git fsck --full --strict 2>&1 | grep -v dangling; git status --porcelain", False)' ''
hashes='cd repo && find . -type f ! -name index -print0 | sort -z | xargs -0 sha256sum | sha256sum'
tell x "sh(\"$hashes\")"
is 'FS-01: equal on both sides' "$out" "$(cd w && bash -c "$hashes")"

# ---- locks
tell x 'fx = os.open("lock", os.O_CREAT | os.O_RDWR); fcntl.flock(fx, fcntl.LOCK_EX)'
status 'LK-01: flock: guest against host' 1 flock -n w/lock true
sees 'LK-01: guest against guest' y 'fy = os.open("lock", os.O_RDWR); scope.__setitem__("fy", fy)' ok
sees 'LK-01: who fails' y 'locked(fy, lambda f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB))' busy
tell x 'fcntl.flock(fx, fcntl.LOCK_UN)'
sees 'LK-01: and gets it afterwards' y 'locked(fy, lambda f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB))' got
tell y 'fcntl.flock(fy, fcntl.LOCK_UN)'
sees 'LK-01: fcntl: a range' x 'locked(fx, lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0))' got
sees 'LK-01: the same range' y 'locked(fy, lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 8))' busy
sees 'LK-01: another range' y 'locked(fy, lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 20))' got
host_lock='import fcntl, os, sys
f = os.open("w/lock", os.O_RDWR)
for at in 0, 20, 40:
    try:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, at)
        print("got", end=" ")
    except OSError:
        print("busy", end=" ")'
is 'LK-01: the host likewise' "$(python3 -c "$host_lock")" 'busy busy got '
tell x 'os.close(fx)'
sees 'LK-01: a close lets go' y 'locked(fy, lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 8))' got
flock w/lock2 -c 'echo held >w/held; while [ ! -e let-go ]; do sleep 0.05; done' &
wait_for 10 test -e w/held
sees 'LK-01: a wait inside for the host' x 'w = subprocess.Popen(["flock", "lock2", "true"]); time.sleep(0.5); scope.__setitem__("alone", w.poll())' ok
: >let-go
sees 'LK-01: ends when the host lets go' x 'alone, until(lambda: w.poll() == 0, 10)' "(None, 'yes')"
writer='import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=60)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("CREATE TABLE IF NOT EXISTS t (who, n)")
for n in range(int(sys.argv[4])):
    with db:
        db.execute("INSERT INTO t VALUES (?, ?)", (sys.argv[3], n))'
printf '%s\n' "$writer" >w/writer.py
sees 'LK-02: four WAL writers in one sandbox' x 'sh("python3 writer.py wal.db WAL 0 0; for w in 1 2 3 4; do python3 writer.py wal.db WAL $w 50 & done; wait; python3 -c \"import sqlite3; d = sqlite3.connect(\\\"wal.db\\\"); print(d.execute(\\\"PRAGMA integrity_check\\\").fetchone()[0], d.execute(\\\"SELECT count(*) FROM t\\\").fetchone()[0])\"")' 'ok 200'
python3 -c "$writer" w/del.db DELETE host 40 &
host=$!
tell x 'p = subprocess.Popen(["python3", "writer.py", "del.db", "DELETE", "x", "40"])'
sees 'LK-02: two sandboxes and the host, with a journal' y 'sh("python3 writer.py del.db DELETE y 40", True)' '0 '
sees 'LK-02: all of them' x 'p.wait()' 0
wait $host
is 'LK-02: nothing lost' "$(python3 -c 'import sqlite3; d = sqlite3.connect("w/del.db")
print(*d.execute("PRAGMA integrity_check").fetchone(), *d.execute("SELECT count(*) FROM t").fetchone())' 2>&1)" 'ok 120'

# ---- many files, few descriptors
mkdir w/lots
python3 -c 'for i in range(3000): open(f"w/lots/{i:05}", "w").write("x")'
sees 'FS-14: 3,000 files are read' y 'sh("find lots -type f -print0 | xargs -0 cat | wc -c", True)' '0 3000'
sees 'FS-14: and 1,000 made' y 'len([put("lots/n%d" % i, "y") for i in range(1000)])' 1000
is 'FS-14: on the host' "$(find w/lots -type f | wc -l)" 4000
sees 'FS-16: a list is whole' y 'len(os.listdir("lots")), len(set(os.listdir("lots")))' '(4000, 4000)'
for pid in $(servers); do
	n=$(find "/proc/$pid/fd" 2>/dev/null | wc -l)
	limit=$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")
	[ "$n" -le "$limit" ] && pass "FS-14: $n descriptors of $limit" || fail 'FS-14: descriptors' "$n of $limit"
done
rss() { for pid in $(servers); do awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; done | awk '{ n += $1 } END { print n + 0 }'; }
tell y '[sh("ls -lR lots >/dev/null") for i in range(3)] and 0'
before=$(rss)
tell y '[sh("ls -lR lots >/dev/null") for i in range(25)] and 0'
after=$(rss)
[ $((after - before)) -lt 2048 ] && pass "FS-13: memory stays flat ($before KiB, $after KiB)" || fail 'FS-13: memory' "$before KiB, then $after KiB"
find w/lots -name '0*' -exec touch {} +
sees 'FS-10: removal of many files' x 'sh("rm -rf lots; ls lots", True)[0]' 2
is 'FS-10: on the host' "$(ls -d w/lots 2>/dev/null)" ''

# ---- watches
watch='class Watch:
    def __init__(self, path):
        os.listdir(path) # as all watchers do; what was never listed is not told
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        libc.inotify_add_watch(self.fd, path.encode(), 0x2 | 0x8 | 0xc0 | 0x100 | 0x200 | 0x4)
        self.seen = []
    def poll(self):
        while select.select([self.fd], [], [], 0)[0]:
            b = os.read(self.fd, 65536)
            while b:
                _, mask, _, n = struct.unpack("iIII", b[:16])
                self.seen.append((mask, b[16:16 + n].rstrip(b"\0").decode()))
                b = b[16 + n:]
        return self.seen
    def has(self, name, mask):
        return any(n == name and m & mask for m, n in self.poll())'
mkdir w/watched
tell x "exec($(python3 -c 'import sys; print(repr(sys.argv[1]))' "$watch"), scope); a = Watch('watched')"
echo 1 >w/watched/f
sees 'WT-01: a file is made' x 'until(lambda: a.has("f", 0x100 | 0x2 | 0x8), 30)' yes
sees 'WT-04: and has its content' x 'cat("watched/f")' 1
tell x 'a.seen.clear()'
echo 22 >>w/watched/f
sees 'WT-01: changed' x 'until(lambda: a.has("f", 0x2 | 0x8 | 0x4), 30)' yes
sees 'WT-04: and has its content' x 'cat("watched/f")' '1|22'
tell x 'a.seen.clear()'
echo 333 >w/watched/.f.swp && mv w/watched/.f.swp w/watched/f
sees 'WT-01: replaced' x 'until(lambda: a.has("f", 0x80 | 0x100 | 0x2 | 0x8 | 0x4), 30)' yes
sees 'WT-04: and has its content' x 'cat("watched/f")' 333
tell x 'a.seen.clear()'
rm w/watched/f
sees 'WT-01: removed' x 'until(lambda: a.has("f", 0x200 | 0x40), 30)' yes
for i in $(seq 500); do : >"w/watched/$i"; done
sees 'WT-01: 500 at once, or an overflow that says so' x 'until(lambda: len({n for m, n in a.poll() if n.isdigit()}) == 500 or any(m & 0x4000 for m, n in a.poll()), 30)' yes

# ---- folders that come and go
ok 'mount: another folder' bac mount x more
echo x >more/f
sees 'is there at once' x "cat('$PWD/more/f'), put('$PWD/more/g', 'in')" "('x', 'ok')"
is 'and on the host' "$(cat more/g)" in
fails 'twice is refused' bac mount x more
ok 'umount' bac umount x more
sees 'is gone' x "os.path.exists('$PWD/more/f')" False
is 'the host keeps it' "$(cat more/*)" $'x\nin'
mkdir -p shut/in
echo deep >shut/in/f
ok 'a folder of that name in the sandbox lets nobody pass' bac exec -u root x mkdir -m 700 "$PWD/shut"
ok 'mount: below it' bac mount x shut/in
is 'the agent gets there all the same' "$(bac exec -w "$PWD/shut/in" x cat f)" deep
ok 'and it goes' bac umount x shut/in
ok 'mount: read-only' bac mount x more:ro
matches 'cannot be changed' x "tries([lambda: put('$PWD/more/f', 'y'), lambda: put('$PWD/more/h', 'y')])" "$refused"
sees 'can be read' x "cat('$PWD/more/f')" x
fails 'mount refuses the home directory too' bac mount x "$home"
fails 'umount: what is not there' bac umount x odd
for dir in odd/*; do
	name=$(printf %q "${dir#odd/}")
	ok "UN-01: folder $name" bac mount x "./$dir"
	if printf '%s' "print(1)" >"./$dir/f.py" && [ "$(bac exec -w "$PWD/$dir" x sh -c 'touch made && cat f.py')" = 'print(1)' ] &&
		[ -e "./$dir/made" ]; then
		pass "UN-02: is writable: $name"
	else
		fail "UN-02: is writable: $name" "$(bac exec x ls -la "$PWD/odd" 2>&1)"
	fi
done
mkdir odd/$'new\nline'
run bac mount x odd/$'new\nline'
[ "$rc" -eq 0 ] || like 'UN-01: a line break works or is a named refusal' "$err" '^bac: [^'$'\n'']*$'

# ---- after a stop
hang_up x
echo again >>w/hello
ok 'stop' bac stop x
is 'FS-04: after stop and start' "$(bac exec x cat hello)" $'hello\nmore\nagain'
is 'and all folders are back' "$(bac exec x cat "$PWD/more/f" "$PWD/single")" $'x\nnew'
fails 'read-only as before' bac exec x touch "$PWD/more/h"
fails 'rules as before' bac exec x cat .env

# ---- a server that dies
hang_up y
bac stop y
servers | xargs kill -KILL
died() { run bac exec x ls -A; [ "$rc" -ne 0 ] || [[ $out == *hello* ]]; }
died && pass 'a server is killed: an error or the files, never an empty folder' || fail 'a server is killed' "$(seen ls)"
back() { [[ $(bac exec x cat hello 2>/dev/null) == hello* ]]; }
wait_for 120 back && pass 'and it works again' || fail 'and it works again' "$(bac exec x ls 2>&1; bac logs x | tail -5)"

# ---- --read-only
mv outside w/outside
ok 'create --read-only' bac create --name z -m 512m --read-only shell w
fails 'nothing can be made' bac exec z sudo touch "$W/z"
is 'but read' "$(bac exec z cat outside)" HOSTONLY
ok 'rm leaves the folders' bac rm --force z
is 'as they are' "$(cat w/outside)" HOSTONLY
