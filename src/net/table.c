/* Every packet from the guest meets the first chain, before it is routed: it is handed to one of the proxy's
 * sockets (TPROXY: without any change to it, so that the socket knows where it was going to), or it goes no further. Routes
 * and rules that the guest makes for itself are its own matter: what leaves it comes out here.
 *
 * Fragments are dropped, since the ports of all but the first cannot be seen; nobody who is honest sends one over a
 * wire this short. Sources other than the guest's one address are dropped. UDP that is not DNS is
 * refused, so that a client of QUIC falls back at once. The rest is silence, and on the log (DROPS of wire/net.h).
 *
 * The other chains say the same again: nothing comes in that has not been handed to the proxy, nothing is
 * forwarded, nothing goes out but to the guest. */
#include "net/table.h"

#include <nftables/libnftables.h>
#include <stdio.h>

#include "wire/net.h"
#include "wire/proxy.h"

static const char rules[] =
	"table inet bac {\n"
	" chain from_guest {\n"
	"  type filter hook prerouting priority mangle; policy drop;\n"
	"  iifname != \"" NET_DEVICE "\" drop\n"
	"  meta nfproto != ipv4 drop\n"
	"  ip saddr != " NET_GUEST_TEXT " drop\n"
	"  ip frag-off & 0x3fff != 0 drop\n"
	"  meta l4proto { tcp, udp } th dport %d meta mark set %d tproxy ip to " NET_GATEWAY_TEXT
	":%d accept\n"
	"  meta l4proto tcp meta mark set %d tproxy ip to " NET_GATEWAY_TEXT ":%d accept\n"
	"  meta l4proto udp reject with icmp port-unreachable\n"
	" }\n"
	" chain to_proxy {\n"
	"  type filter hook input priority filter; policy drop;\n"
	"  iifname \"" NET_DEVICE "\" meta mark %d accept\n"
	" }\n"
	" chain onward {\n"
	"  type filter hook forward priority filter; policy drop;\n"
	" }\n"
	" chain to_guest {\n"
	"  type filter hook output priority filter; policy drop;\n"
	"  oifname \"" NET_DEVICE "\" ip daddr " NET_GUEST_TEXT " accept\n"
	" }\n"
	"}\n";

int table_load(struct err *e)
{
	char text[sizeof(rules) + 64];
	struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
	const char *said;
	int r = 0;

	if (!nft)
		return err_errno(e, -ENOMEM, "cannot make the sandbox's packet filter");
	(void)nft_ctx_buffer_error(nft);
	(void)nft_ctx_buffer_output(nft);
	(void)snprintf(text, sizeof(text), rules, TABLE_DNS_PORT, TABLE_MARK, TABLE_DNS_PORT,
		       TABLE_MARK, TABLE_TCP_PORT, TABLE_MARK);
	if (nft_run_cmd_from_buffer(nft, text) != 0) {
		said = nft_ctx_get_error_buffer(nft);
		r = err_set(e, -ENOTSUP,
			    "the kernel does not take the sandbox's packet filter (nf_tables with "
			    "TPROXY: sudo modprobe -a nf_tables nft_tproxy nft_reject_inet): %.*s",
			    said ? (int)strcspn(said, "\n") : 0, said ? said : "");
	}
	nft_ctx_free(nft);
	return r;
}
