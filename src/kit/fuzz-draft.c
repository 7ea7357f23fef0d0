/* Any bytes as each of the files that a draft is made of: the draft is a kit. */
#include <stdio.h>

#include "base/check.h"
#include "kit/draft.h"
#include "kit/kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(KIT_ARGS_FILE_MAX * 4);
	struct kit_report rep = { 0 };
	struct draft d = { 0 };
	struct kit k = { 0 };
	struct err e = { 0 };
	size_t names = 0;

	while (draft_names[names])
		names++;
	if (n) {
		const char *name = *p % (names + 1) == names ? ".github/workflows/ci.yml"
							     : draft_names[*p % (names + 1)];

		draft_add(&d, name, (const char *)p + 1, n - 1);
	}
	check(draft_write(&d, "it", &out) == 0);
	if (kit_parse("spec.yaml", buf_str(&out), out.n, NULL, &k, &rep, &e) < 0) {
		(void)fprintf(stderr, "%s\n%s\n", e.msg, buf_str(&out));
		check(!"the draft is a kit");
	}
	kit_done(&k);
	report_done(&rep);
	draft_done(&d);
	buf_done(&out);
	return 0;
}
