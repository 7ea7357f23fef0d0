/* Addresses that are not for everybody: IANA's special-purpose registries (RFC 6890 and what was
 * added since), and the addresses where clouds answer for their machines.
 *
 * The narrowest entry that contains an address gives its class. In IPv6 everything outside of
 * 2000::/3 is special, known by name or not: only what is known to be public is public. */
#include "policy/host.h"

#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static const struct range4 {
	uint32_t base;
	uint8_t bits;
	const char *name;
} ranges4[] = {
	/* narrow before wide: the first one that contains the address counts */
	{ V4(0, 0, 0, 0), 32, "loopback" },
	{ V4(100, 100, 100, 200), 32, "metadata" }, /* Alibaba */
	{ V4(168, 63, 129, 16), 32, "metadata" },   /* Azure */
	{ V4(169, 254, 169, 0), 24, "metadata" }, /* EC2, GCE, Azure and their time and name servers */
	{ V4(169, 254, 170, 0), 24, "metadata" }, /* ECS tasks, EKS pods */
	{ V4(169, 254, 0, 23), 32, "metadata" },  /* Tencent */
	{ V4(192, 0, 0, 192), 32, "metadata" },   /* Oracle */
	{ V4(192, 0, 0, 0), 24, "reserved" },
	{ V4(192, 0, 2, 0), 24, "reserved" },
	{ V4(192, 88, 99, 0), 24, "reserved" },
	{ V4(198, 51, 100, 0), 24, "reserved" },
	{ V4(203, 0, 113, 0), 24, "reserved" },
	{ V4(169, 254, 0, 0), 16, "link-local" },
	{ V4(192, 168, 0, 0), 16, "private" },
	{ V4(198, 18, 0, 0), 15, "benchmark" },
	{ V4(172, 16, 0, 0), 12, "private" },
	{ V4(100, 64, 0, 0), 10, "carrier-grade NAT" },
	{ V4(0, 0, 0, 0), 8, "reserved" },
	{ V4(10, 0, 0, 0), 8, "private" },
	{ V4(127, 0, 0, 0), 8, "loopback" },
	{ V4(224, 0, 0, 0), 4, "multicast" },
	{ V4(240, 0, 0, 0), 4, "reserved" },
};

static const struct range6 {
	uint8_t base[16];
	uint8_t bits;
	const char *name; /* NULL: public */
} ranges6[] = {
	{ { 0 }, 127, "loopback" },                                      /* :: and ::1 */
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128, "metadata" }, /* EC2 */
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0, 0x23 }, 128, "metadata" },    /* EKS pods */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128, "metadata" }, /* GCE */
	{ { 0, 0x64, 0xff, 0x9b }, 96, NULL },                           /* NAT64, RFC 6052 */
	{ { 0x01 }, 64, "reserved" },                                    /* discard, RFC 6666 */
	{ { 0, 0x64, 0xff, 0x9b, 0, 0x01 }, 48, "private" }, /* NAT64 of a site, RFC 8215 */
	{ { 0x20, 0x01, 0, 0x02 }, 48, "benchmark" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "reserved" }, /* documentation */
	{ { 0x20, 0x01, 0, 0x10 }, 28, "reserved" },    /* ORCHID, also its second version */
	{ { 0x20, 0x01, 0, 0x20 }, 28, "reserved" },
	{ { 0x3f, 0xff }, 20, "reserved" }, /* documentation, RFC 9637 */
	{ { 0xfe, 0x80 }, 10, "link-local" },
	{ { 0xfe, 0xc0 }, 10, "private" }, /* site-local, which was given up */
	{ { 0xff }, 8, "multicast" },
	{ { 0xfc }, 7, "private" },
	{ { 0x20 }, 3, NULL },
	{ { 0 }, 0, "reserved" }, /* the rest */
};

/* What is special only as part of the rest is not named by less. */
enum { REST_BITS = 7 };

static uint32_t v4_at(const uint8_t *p)
{
	return V4(p[0], p[1], p[2], p[3]);
}

static const char *class4(const uint8_t *addr, unsigned *ret_bits)
{
	uint32_t a = v4_at(addr);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ranges4); i++) {
		if ((a ^ ranges4[i].base) >> (32 - ranges4[i].bits))
			continue;
		*ret_bits = ranges4[i].bits;
		return ranges4[i].name;
	}
	*ret_bits = 0;
	return NULL;
}

static bool contains6(const struct range6 *r, const uint8_t *addr)
{
	size_t whole = r->bits / 8, rest = r->bits % 8;

	return !memcmp(r->base, addr, whole) &&
	       (!rest || !((r->base[whole] ^ addr[whole]) >> (8 - rest)));
}

static bool is_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

size_t host_addr_inner(const uint8_t addr[16], uint8_t ret[HOST_INNER_MAX][4])
{
	static const uint8_t nat64[] = { 0, 0x64, 0xff, 0x9b };
	size_t n = 0, i;

	/* compatible, mapped, translated (RFC 2765), NAT64 */
	if (is_zero(addr, 8) || !memcmp(addr, nat64, sizeof(nat64)))
		memcpy(ret[n++], addr + 12, 4);
	else if (addr[0] == 0x20 && addr[1] == 0x02) /* 6to4 */
		memcpy(ret[n++], addr + 2, 4);
	if (addr[0] == 0x20 && addr[1] == 0x01 && is_zero(addr + 2, 2)) { /* Teredo */
		memcpy(ret[n++], addr + 4, 4);
		for (i = 0; i < 4; i++)
			ret[n][i] = addr[12 + i] ^ 0xff;
		n++;
	} else if (!(addr[8] & ~2) && !addr[9] && addr[10] == 0x5e && addr[11] == 0xfe) {
		memcpy(ret[n++], addr + 12, 4); /* ISATAP */
	}
	return n;
}

static bool is_mapped(const uint8_t *addr)
{
	return is_zero(addr, 10) && addr[10] == 0xff && addr[11] == 0xff;
}

static const char *class6(const uint8_t *addr, unsigned *ret_bits)
{
	uint8_t inner[HOST_INNER_MAX][4];
	const char *name, *worst;
	unsigned bits;
	size_t i, n;

	if (is_mapped(addr))
		return class4(addr + 12, ret_bits);
	for (i = 0; !contains6(&ranges6[i], addr); i++)
		;
	worst = ranges6[i].name;
	*ret_bits = !worst ? 0 : MAX(ranges6[i].bits, REST_BITS);
	n = host_addr_inner(addr, inner);
	for (i = 0; i < n; i++) {
		name = class4(inner[i], &bits);
		if (!name)
			continue;
		/* such an address is named only by itself */
		worst = worst && !streq(worst, "reserved") ? worst : name;
		*ret_bits = 128;
	}
	return worst;
}

const char *host_addr_range(const uint8_t *addr, size_t n, unsigned *ret_bits)
{
	return n == 4 ? class4(addr, ret_bits) : class6(addr, ret_bits);
}

const char *host_addr_class(const uint8_t *addr, size_t n)
{
	unsigned bits;

	return host_addr_range(addr, n, &bits);
}
