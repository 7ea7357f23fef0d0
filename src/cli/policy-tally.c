/* Decisions counted by where they led: sandbox, destination, way, rule and reason. A hash table of rows, which are sorted when
 * they are printed. The texts are hostile: they are escaped when they are taken up, so that what is stored is fit for
 * a terminal. */
#include <stdio.h>
#include <time.h>

#include "cli/policy-log.h"

enum { BUCKETS = 1 << 14, CELL = 120, WHEN = 40, POINTER = sizeof(struct row *) };

enum { C_SANDBOX, C_TYPE, C_HOST, C_VIA, C_RULE, C_REASON, KEYS };

struct row {
	struct row *next;
	char *cell[KEYS]; /* in the one block behind */
	uint64_t count;
	char last[AUDIT_TIME + 1];
	bool allowed, shadowed;
	size_t host_len; /* without the port */
};

struct tally {
	struct row *bucket[BUCKETS];
	struct row **v; /* for sorting */
	size_t n;
	uint64_t left_out; /* decisions about destinations that found no room */
};

int tally_new(struct tally **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

struct tally *tally_free(struct tally *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (t->bucket[i]) {
			struct row *r = t->bucket[i];

			t->bucket[i] = r->next;
			free(r);
		}
	}
	free(t->v);
	free(t);
	return NULL;
}

/* "a.example:443", "[2001:db8::1]:443", "/some/path"; *ret_len is without the port. That of a question says nothing. */
static void destination(char dst[static CELL], const struct audit_record *r, size_t *ret_len)
{
	const bool file = streq(r->kind, "file"), v6 = !file && strchr(r->host, ':');
	const char *name = file ? r->path : r->host[0] ? r->host : r->address;
	char port[24] = "", host[CELL - 12];

	(void)audit_escape(host, sizeof(host), name);
	if (r->port && !streq(r->via, "dns"))
		(void)snprintf(port, sizeof(port), ":%u", (unsigned)(r->port & 0xffff));
	(void)snprintf(dst, CELL, v6 ? "[%s]%s" : "%s%s", host[0] ? host : "-", port);
	*ret_len = strlen(dst) - strlen(port);
}

/* A rule by the digits that 'bac policy inspect' wants. */
static void rule_cell(char dst[static CELL], const char *rule)
{
	(void)audit_escape(dst, CELL, rule[0] ? rule : "-");
	if (strlen(dst) == 36 && dst[8] == '-' && dst[13] == '-' && dst[18] == '-')
		dst[8] = '\0';
}

static void cells_of(char cell[KEYS][CELL], const struct audit_record *r, size_t *ret_len)
{
	(void)audit_escape(cell[C_SANDBOX], CELL, r->sandbox);
	(void)snprintf(cell[C_TYPE], CELL, "%s", streq(r->kind, "file") ? "filesystem" : "network");
	destination(cell[C_HOST], r, ret_len);
	(void)audit_escape(cell[C_VIA], CELL, r->via[0] ? r->via : "-");
	rule_cell(cell[C_RULE], r->rule);
	(void)audit_escape(cell[C_REASON], CELL, r->reason[0] ? r->reason : "-");
}

static uint32_t hash_of(char cell[KEYS][CELL], bool allowed)
{
	uint32_t h = 2166136261U + allowed;

	for (int k = 0; k < KEYS; k++)
		for (const char *c = cell[k];; c++) {
			h = (h ^ (uint8_t)*c) * 16777619U;
			if (!*c)
				break;
		}
	return (h ^ h >> 15) % BUCKETS;
}

static bool row_is(const struct row *x, char cell[KEYS][CELL], bool allowed)
{
	bool same = x->allowed == allowed;

	for (int k = 0; same && k < KEYS; k++)
		same = streq(x->cell[k], cell[k]);
	return same;
}

static struct row *row_new(char cell[KEYS][CELL])
{
	size_t n = 0;
	struct row *x;
	char *at;

	for (int k = 0; k < KEYS; k++)
		n += strlen(cell[k]) + 1;
	x = calloc(1, sizeof(*x) + n);
	if (!x)
		return NULL;
	at = (char *)(x + 1);
	for (int k = 0; k < KEYS; k++) {
		n = strlen(cell[k]) + 1;
		memcpy(at, cell[k], n);
		x->cell[k] = at;
		at += n;
	}
	return x;
}

int tally_add(struct tally *t, const struct audit_record *r)
{
	const bool allowed = streq(r->decision, "allow");
	char cell[KEYS][CELL];
	size_t host_len;
	struct row **at, *x;

	cells_of(cell, r, &host_len);
	at = &t->bucket[hash_of(cell, allowed)];
	for (x = *at; x && !row_is(x, cell, allowed); x = x->next)
		;
	if (!x && t->n == TALLY_MAX) {
		t->left_out++;
		return 0;
	}
	if (!x) {
		x = row_new(cell);
		if (!x)
			return -ENOMEM;
		x->allowed = allowed;
		x->host_len = host_len;
		x->next = *at;
		*at = x;
		t->n++;
	}
	x->count += r->count ? r->count : 1;
	if (strlen(r->time) == AUDIT_TIME && strcmp(r->time, x->last) > 0)
		memcpy(x->last, r->time, sizeof(x->last));
	return 0;
}

/* ---- printing ---- */

static int by_host(const void *a, const void *b)
{
	const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
	int d = (x->allowed > y->allowed) - (x->allowed < y->allowed);

	if (!d)
		d = strcmp(x->cell[C_SANDBOX], y->cell[C_SANDBOX]);
	if (!d)
		d = strncmp(x->cell[C_HOST], y->cell[C_HOST], MIN(x->host_len, y->host_len));
	return d ? d : (x->host_len > y->host_len) - (x->host_len < y->host_len);
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
	int d = strcmp(y->last, x->last);

	return d ? d : by_host(a, b);
}

/* A question about a name is not worth a row where a connection to it has one. */
static void shadow(struct tally *t)
{
	for (size_t from = 0, to; from < t->n; from = to) {
		bool other = false;

		for (to = from; to < t->n && by_host(&t->v[from], &t->v[to]) == 0; to++)
			other |= !streq(t->v[to]->cell[C_VIA], "dns");
		for (size_t i = from; i < to; i++)
			t->v[i]->shadowed = other && streq(t->v[i]->cell[C_VIA], "dns");
	}
}

static bool sorted(struct tally *t)
{
	size_t n = 0;

	free(t->v);
	t->v = calloc(t->n + 1, POINTER);
	if (!t->v)
		return false;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct row *x = t->bucket[i]; x; x = x->next)
			t->v[n++] = x;
	qsort(t->v, t->n, POINTER, by_host);
	shadow(t);
	qsort(t->v, t->n, POINTER, by_time);
	return true;
}

/* "15:04:05 2-Jan" by the host's clock; the log's own text if it is no time. */
static const char *when(char dst[static WHEN], const char *utc_time)
{
	struct tm tm = { 0 };
	time_t at;

	if (!strptime(utc_time, "%Y-%m-%dT%H:%M:%S", &tm))
		return audit_escape(dst, WHEN, utc_time[0] ? utc_time : "-");
	at = timegm(&tm);
	if (!localtime_r(&at, &tm) || !strftime(dst, WHEN, "%H:%M:%S %-d-%b", &tm))
		return "-";
	return dst;
}

static size_t shown(const struct tally *t, bool allowed, uint32_t limit, int width[KEYS])
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct row *x = t->v[i];

		if (x->allowed != allowed || x->shadowed)
			continue;
		if (!limit || n < limit)
			for (int k = 0; k < KEYS; k++)
				width[k] = MAX(width[k], (int)strlen(x->cell[k]));
		n++;
	}
	return n;
}

static void table(const struct tally *t, bool allowed, uint32_t limit)
{
	static const char *const head[KEYS] = {
		"SANDBOX", "TYPE", "HOST", "PROXY", "RULE", "REASON"
	};
	int width[KEYS];
	size_t n, done = 0;
	char at[WHEN];

	for (int k = 0; k < KEYS; k++)
		width[k] = (int)strlen(head[k]);
	n = shown(t, allowed, limit, width);
	(void)printf("%s requests:\n", allowed ? "Allowed" : "Blocked");
	if (!n) {
		(void)printf("  none\n");
		return;
	}
	for (int k = 0; k < KEYS; k++)
		(void)printf("%-*s  ", width[k], head[k]);
	(void)printf("%-15s  COUNT\n", "LAST SEEN");
	for (size_t i = 0; i < t->n && (!limit || done < limit); i++) {
		const struct row *x = t->v[i];

		if (x->allowed != allowed || x->shadowed)
			continue;
		for (int k = 0; k < KEYS; k++)
			(void)printf("%-*s  ", width[k], x->cell[k]);
		(void)printf("%-15s  %llu\n", when(at, x->last), (unsigned long long)x->count);
		done++;
	}
	if (done < n)
		(void)printf("and %zu more\n", n - done);
}

void tally_print(struct tally *t, uint32_t limit)
{
	if (!sorted(t))
		return;
	table(t, false, limit);
	(void)printf("\n");
	table(t, true, limit);
	if (t->left_out)
		(void)printf("\n%llu decisions more, about further destinations\n",
			     (unsigned long long)t->left_out);
}

void tally_names(struct tally *t, uint32_t limit)
{
	if (!sorted(t))
		return;
	for (int allowed = 0; allowed < 2; allowed++)
		for (size_t i = 0, n = 0; i < t->n && (!limit || n < limit); i++)
			if (t->v[i]->allowed == allowed && !t->v[i]->shadowed) {
				(void)printf("%s\n", t->v[i]->cell[C_HOST]);
				n++;
			}
}

void tally_line(const struct audit_record *r)
{
	char cell[KEYS][CELL], at[WHEN];
	size_t len;

	cells_of(cell, r, &len);
	(void)printf("%s  %s  %s  %s  %s  %s  %s\n", when(at, r->time),
		     streq(r->decision, "allow") ? "allowed" : "blocked", cell[C_SANDBOX],
		     cell[C_HOST], cell[C_VIA], cell[C_RULE], cell[C_REASON]);
}
