#!/bin/sh
# Makes a sandbox's root out of a bare Debian: run by mmdebstrap when the packages are installed, as
# root of the namespace it works in, with the new root in $1. Everything that lasts is decided here
# and in the files beside it; README.md says what and why.
set -eu
root=$1
here=${0%/*}
node=22
npm=10

say() { echo "bac: $*" >&2; }
within() { chroot "$root" env -u TMPDIR NODE_DISABLE_COMPILE_CACHE=1 PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/root LC_ALL=C "$@"; }

# The user, and what it may do.
say "making the user agent"
within useradd --create-home --uid 1000 --user-group --shell /bin/bash \
	--groups sudo,staff,adm,users,docker --comment "" agent
install -m 0440 "$here/sudoers" "$root/etc/sudoers.d/agent"
within install -d -o agent -g agent /home/agent/workspace
# As Debian does it for /usr/local, with the agent as owner: "npm install -g" needs no sudo.
touch "$root/etc/staff-group-for-usr-local"
mkdir -p "$root/usr/local/lib/node_modules" "$root/usr/local/share/man"
within chown -R agent:staff /usr/local
within find /usr/local -type d -exec chmod 2775 {} +

# Every bash reads /etc/sandbox-persistent.sh.
install -m 0644 "$here/persistent" "$root/etc/sandbox-persistent.sh"
within chown agent:agent /etc/sandbox-persistent.sh
cat "$here/bashrc" >>"$root/etc/bash.bashrc"

# The build did not wait for the disk; a sandbox that may be cut off does.
sed -i '/force-unsafe-io/d' "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"

# Small things.
ln -s ../../bin/fdfind "$root/usr/local/bin/fd"
echo 'LANG=C.UTF-8' >"$root/etc/default/locale"
: >"$root/etc/fstab"
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"

# Kernel and modules, as files and not as a package: nothing in a sandbox should ever make an
# initramfs, and "apt upgrade" must not replace modules under a kernel that comes from outside.
kernel() {
	meta=linux-image-cloud-$(within dpkg --print-architecture)
	deb=$(within apt-cache depends --important "$meta" |
		sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
	[ -n "$deb" ] || { say "$meta is not in this suite"; exit 1; }
	say "downloading $deb"
	mkdir "$root/var/tmp/kernel"
	chmod 0777 "$root/var/tmp/kernel"
	within sh -ec 'cd /var/tmp/kernel; apt-get -qq download "$1"; dpkg-deb -x ./*.deb .' sh "$deb"
	release=${deb#linux-image-}
	mods=$root/var/tmp/kernel/usr/lib/modules
	[ -d "$mods" ] || mods=$root/var/tmp/kernel/lib/modules
	rm -f "$mods/$release/build" "$mods/$release/source"
	mkdir -p "$root/usr/lib/modules" "$root/boot"
	mv "$mods/$release" "$root/usr/lib/modules/"
	mv "$root/var/tmp/kernel/boot/vmlinuz-$release" "$root/boot/vmlinuz"
	echo "$release" >"$root/boot/release"
	rm -rf "$root/var/tmp/kernel"
	within depmod "$release"
}

# The npm registry: what the host's npm is set to, else the default that Debian's npm carries.
registry() {
	if [ -n "${BAC_NPM_REGISTRY-}" ]; then
		echo "$BAC_NPM_REGISTRY"
		return
	fi
	within sh -ec 'cd /var/tmp/node; apt-get -qq download npm; dpkg-deb --fsys-tarfile npm_*.deb |
		tar -xO --wildcards "*/npm/lib/utils/config/definitions.js"' |
		sed -n "/^define('registry'/,/^})/s/^ *default: '\(http[^']*\)'.*/\1/p"
}

get() { within curl --proto =http,https -fsSL --retry 3 --cacert /var/tmp/node/ca.crt "$@"; }

# Newest version of package $1 with major number $2: downloaded, checked against the registry's
# SHA-512, unpacked as /var/tmp/node/$3.
from_npm() {
	get -H 'Accept: application/vnd.npm.install-v1+json' -o /var/tmp/node/meta.json "$url/$1"
	within jq -r --arg m "$2" '[.versions[] | select(.version | test("^" + $m + "\\.[0-9.]+$"))]
		| max_by(.version | split(".") | map(tonumber)) | .version, .dist.tarball, .dist.integrity' \
		/var/tmp/node/meta.json >"$root/var/tmp/node/pick"
	{ read -r version; read -r tarball; read -r integrity; } <"$root/var/tmp/node/pick"
	case $integrity in sha512-*) ;; *) say "$1 $2 is not in the npm registry"; exit 1 ;; esac
	say "downloading $1 $version"
	get -o /var/tmp/node/pkg.tgz "$tarball"
	sum=$(within openssl dgst -sha512 -binary /var/tmp/node/pkg.tgz | base64 -w 0)
	[ "sha512-$sum" = "$integrity" ] || { say "$1 $version: the download is damaged"; exit 1; }
	within sh -ec 'mkdir -p "$1"; tar -xzf /var/tmp/node/pkg.tgz -C "$1" --strip-components=1 \
		--no-same-owner' sh "$3"
}

nodejs() {
	case $(within dpkg --print-architecture) in
	amd64) cpu=x64 ;;
	*) cpu=$(within dpkg --print-architecture) ;;
	esac
	mkdir "$root/var/tmp/node"
	chmod 0777 "$root/var/tmp/node"
	# What the host trusts, so that its own proxy or registry works here too.
	ca=/etc/ssl/certs/ca-certificates.crt
	[ -r "$ca" ] || ca=$root$ca
	cp "$ca" "$root/var/tmp/node/ca.crt"
	url=$(registry)
	url=${url%/}
	[ -n "$url" ] || { say "no npm registry is known; set npm_config_registry"; exit 1; }
	from_npm "node-linux-$cpu" "$node" /var/tmp/node/node
	# A real file: npm takes the folder above the program's own for its prefix.
	within install -s -o agent -g staff -m 0755 /var/tmp/node/node/bin/node /usr/local/bin/node
	from_npm npm "$npm" /usr/local/lib/node_modules/npm
	within chown -R agent:staff /usr/local/lib/node_modules
	for i in npm npx; do
		ln -s "../lib/node_modules/npm/bin/$i-cli.js" "$root/usr/local/bin/$i"
	done
	rm -rf "$root/var/tmp/node"
	printf 'fund=false\naudit=false\nupdate-notifier=false\n' >"$root/usr/local/etc/npmrc"
	within node --version >/dev/null
	within npm --version >/dev/null
}

kernel
nodejs

# What mmdebstrap copied from this host, and what boot makes anew.
rm -f "$root/etc/resolv.conf" "$root/etc/hostname" "$root/etc/machine-id"
: >"$root/etc/resolv.conf"
echo sandbox >"$root/etc/hostname"
: >"$root/etc/machine-id"
rm -rf "$root/root/.npm" "$root/var/cache/ldconfig" "$root"/var/log/*.log "$root"/var/log/apt/*

# The date of the package lists: no file of the image will be younger, so that two builds from the same
# lists differ in little.
date=$(sed -n 's/^Date: //p' "$root"/var/lib/apt/lists/*_dists_"$BAC_SUITE"_*Release | head -n 1)
date -u -d "$date" +%s >"$root/boot/date"
