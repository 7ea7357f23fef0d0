/* Texts on a wire: length, bytes, and a NUL, so that the receiver need not copy them. */
#include "base/rdwr.h"

const char *rd_str(struct rd *r, size_t max)
{
	uint32_t len = rd_be32(r);
	const uint8_t *p;

	if (len > max || len == UINT32_MAX) {
		r->bad = true;
		return "";
	}
	p = rd_take(r, (size_t)len + 1);
	if (!p || p[len] != '\0' || memchr(p, '\0', len)) {
		r->bad = true;
		return "";
	}
	return (const char *)p;
}

void wr_str(struct wr *w, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	if (len >= UINT32_MAX) {
		w->bad = true;
		return;
	}
	wr_be32(w, (uint32_t)len);
	wr_bytes(w, s ? s : "", len + 1);
}

void wr_text(struct wr *w, const char *s, size_t max)
{
	if (s && strlen(s) > max)
		w->bad = true;
	else
		wr_str(w, s);
}

void wr_cut(struct wr *w, const char *s, size_t max)
{
	size_t len = s ? strlen(s) : 0;

	if (len > max)
		for (len = max; len && len + 3 > max && ((unsigned char)s[len] & 0xc0) == 0x80;
		     len--)
			;
	wr_be32(w, (uint32_t)len);
	wr_bytes(w, s, len);
	wr_u8(w, 0);
}
