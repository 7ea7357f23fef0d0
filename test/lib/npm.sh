# The npm registry of this host:  . npm.sh; npm_way
#
# Kits install their agents from the npm registry. Where the host's network has a gateway in between (an address that bac would refuse, a certificate that the
# guest does not know), the way is as the host's own: dialled where the host's resolver says (net.connectTo), and opened by the proxy, which knows the host's
# authorities (tls.extraCa); a rule about a method is what has it opened.
# shellcheck shell=bash

# npm_way: prints NAME:443=ADDRESS:443 of the registry that npm on this host knows; 1 and why on stdout if there is none, or it does not answer
npm_way() {
	local url name address
	url=$(HOME=$(getent passwd "$(id -u)" | cut -d: -f6) npm config get registry 2>/dev/null)
	name=$(sed -n 's#^https://\([^/:]*\).*#\1#p' <<<"$url")
	address=$(getent ahostsv4 "${name:-none.invalid}" | sed -n '1s/ .*//p')
	if [ -z "$name" ]; then
		echo 'npm of this host names no registry over https'
	elif [ -z "$address" ]; then
		echo "$name has no address here"
	elif ! curl -fsS -o /dev/null --max-time 20 "$url"; then
		echo "the registry $name does not answer, or its certificate is not trusted here"
	else
		echo "$name:443=$address:443"
		return 0
	fi
	return 1
}
