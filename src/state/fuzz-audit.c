/* Any bytes as a line of the log; and what was read can be written again and read as the same. */
#include "base/check.h"
#include "state/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct audit_record rec, again;
static char line[AUDIT_LINE_MAX];

static void write_again(void)
{
	const struct audit_stamp s = { rec.seq, 0, rec.sandbox, rec.prev };
	const struct audit_word w = { .event = rec.event[0] ? rec.event : "note",
				      .note = rec.note };
	char hash[AUDIT_HASH + 1];
	size_t n = audit_line(line, &s, NULL, &w, hash);

	if (!n)
		return;
	check(audit_line_holds(line, n - 1) && audit_record_parse(&again, line, n - 1) == 0);
	check(again.seq == rec.seq && streq(again.prev, rec.prev) && streq(again.hash, hash));
	check(streq(again.event, w.event) && strlen(again.note) >= strlen(rec.note));
	for (size_t i = 0; i < n - 1; i++)
		check(line[i] >= ' ' && line[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	(void)audit_line_holds((const char *)p, n);
	if (audit_record_parse(&rec, (const char *)p, n) < 0)
		return 0;
	check(rec.seq && strlen(rec.prev) == AUDIT_HASH && strlen(rec.hash) == AUDIT_HASH);
	check(strlen(rec.host) + strlen(rec.path) + strlen(rec.note) < n);
	write_again();
	return 0;
}
