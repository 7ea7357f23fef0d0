#!/bin/bash
# What root in the guest can do to the host's files through a shared folder: nothing outside of it. A watcher on the
# host says what happens there.
# timeout: 900
. "${0%/*}/lib.sh"
here=${0%/*}
seconds=${RACE_SECONDS:-60}

run bac template ls --json
[ "$rc" -eq 0 ] && [ "$(json 'len(d["templates"])' <<<"$out")" != 0 ] ||
	skip_all "no template in the cache: run 'bac template build'"
mkdir -p share/ro outside/in
for f in outside/f outside/in/f outside/secret; do
	echo OUTSIDE >"$f"
done
echo kept >share/ro/kept
cp "$here/guest/race.c" "$here/guest/garbage.py" share/
ok 'create' bac create --name x -m 1g shell "$PWD/share" "$PWD/share/ro:ro"
inside=$PWD/share
root() { command "$BAC" exec -u root x "$@"; }
python3 "$here/../lib/watch.py" "$PWD/outside" "$PWD/outside/in" >watched &
watcher=$!
trap 'kill "$watcher" 2>/dev/null; e2e_end' EXIT
wait_for 10 grep -q ready watched

ok 'the racing program builds' root gcc -O2 -pthread -o /root/race "$inside/race.c"
# the host swaps as well, in the same folder
python3 - "$inside" "$PWD/outside" "$((seconds + 5))" >host 2>&1 <<-'PYTHON' &
	import ctypes, os, sys, time
	libc = ctypes.CDLL(None)
	os.chdir(sys.argv[1])
	end, n = time.monotonic() + float(sys.argv[3]), 0
	if not os.path.lexists("hostlink"):
	    os.symlink(sys.argv[2], "hostlink")
	while time.monotonic() < end:
	    n += libc.renameat2(-100, b"d", -100, b"hostlink", 2) == 0
	    time.sleep(0.0005)
	print(n)
PYTHON
swapper=$!
deadline=$((seconds + 120))
ok "races for $seconds s" root /root/race "$inside" "$PWD/outside" "$seconds"
note "$out"
like 'really swapped' "$out" 'swaps [1-9][0-9]'
like 'really opened' "$out" 'opens [1-9]'
unlike 'nothing of what lies outside was read' "$out" LEAK
kill "$swapper" 2>/dev/null
wait "$swapper"
deadline=180

links='
cd "$1" && ln -s "$2" abs && ln -s ../outside rel && ln -s /proc/self/root/"$2" magic
for l in abs rel magic abs/in; do cat "$l/secret" 2>/dev/null; done
cat "$1/../outside/secret" "$1/ro/../../outside/secret" "/run/bac/shares/0/../outside/secret" "/run/bac/shares/../../../$2/secret" 2>/dev/null
python3 - "$1" "$2" <<PYTHON
import os, sys
at = os.open(sys.argv[1], os.O_RDONLY)
for name in ("..", "../outside", "../outside/secret", "ro/../../outside/secret", "/proc/self/fd/%d/../outside/secret" % at):
    try:
        fd = os.open(name, os.O_RDONLY, dir_fd=at)
        names = os.listdir(fd) if os.path.isdir("/proc/self/fd/%d" % fd) else [os.read(fd, 99)]
        print("secret" in names, b"OUTSIDE" in b"".join(n for n in names if isinstance(n, bytes)))
    except OSError:
        pass
PYTHON
true'
run root bash -c "$links" - "$inside" "$PWD/outside"
unlike 'links, "..", magic links: nothing is read' "$out" 'OUTSIDE|True'
again='
mkdir -p /mnt/again && mount -t virtiofs bac /mnt/again || exit 3
ls /mnt/again | sort | tr "\n" " "
cat /mnt/again/../outside/secret /mnt/again/0/../../outside/secret 2>/dev/null
echo x >/mnt/again/1/new; echo x >/mnt/again/1/kept; mkdir /mnt/again/sub; echo x >/mnt/again/7
mount -o remount,bind,rw "$1/ro"; echo x >"$1/ro/kept"; mount --bind /mnt/again/0/ro /mnt && echo x >/mnt/kept
umount /mnt; umount -R /mnt/again; echo end'
run root bash -c "$again" - "$inside"
like 'the tag opened twice' "$out" '0 1 .*end'
is 'the read-only folder stays as it is' "$(cat share/ro/kept; ls share/ro)" $'kept\nkept'
run root bash -c 'mknod "$1/disk" b 254 0; mknod "$1/mem" c 1 1; mknod "$1/fifo" p; ls "$1"; chmod 4755 "$1/race.c"; chown 0:0 "$1/race.c"' - "$inside"
unlike 'no device nodes' "$(find share -type b -o -type c)" .
unlike 'no setuid bit' "$(find share -perm /6000 -type f)" .
is 'no other owner' "$(find share ! -user "$(id -un)" | head)" ''

# raw virtqueues need the device in root's hands: on the bus of q35 it is
BAC_VM_MACHINE=q35 run bac create --name z -m 512m shell "$PWD/share"
rootz() { command "$BAC" exec -u root z "$@"; }
seed=$RANDOM
run rootz python3 "$inside/garbage.py" 199 "$seed"
like 'garbage in queues that are set up well' "$out$err" 'done 199'
note "seed $seed: $out $err"
like 'is seen for what it is' "$(command "$BAC" logs z)" 'queue [01] of the guest is not served any more'
ok 'its sandbox can be stopped' bac stop z
BAC_VM_MACHINE=q35 run bac exec z true
# and queues that are not: whatever becomes of it, the sandbox answers or says why it stopped
run rootz python3 "$inside/garbage.py" 2000 "$seed"
note "$out $err"
deadline=60
BAC_VM_MACHINE=q35 run bac exec z true
if [ "$rc" -eq 0 ]; then pass 'queues set up with garbage'; else like 'queues set up with garbage' "$err" '^bac: '; fi
is 'the host saw nothing outside the share touched' "$(grep -v ready watched)" ''
is 'and what lies there is as it was' "$(cat outside/f outside/in/f outside/secret | sort -u; find outside | sort | tr "\n" " ")" $'OUTSIDE\noutside outside/f outside/in outside/in/f outside/secret '
ok 'and another sandbox works in the same folder' bac create --name y -m 512m shell "$PWD/share"
is 'as ever' "$(command "$BAC" exec y cat "$inside/ro/kept")" kept
