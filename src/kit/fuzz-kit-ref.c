/* Any text as a kit's reference: what is taken is taken again in its canonical form, and nothing in it is an option or leads up. */
#include "base/check.h"
#include "base/text.h"
#include "kit/kit-ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *text = memchr(p, '\0', n) ? NULL : text_dup(p, n);
	struct kit_ref k, again;
	struct err e;

	if (text && kit_ref_parse(text, &k, &e) == 0) {
		check(k.text && k.where);
		check(kit_ref_parse(k.text, &again, &e) == 0);
		check(streq(again.text, k.text) && streq(again.where, k.where));
		check(streq(again.rev, k.rev) && streq(again.dir, k.dir));
		check(!k.rev || k.rev[0] != '-');
		check(!k.dir || kit_path_plain(k.dir));
		check(k.kind != KIT_REF_GIT || !strstr(k.where, "://-"));
		check(k.local || k.kind == KIT_REF_NAME || kit_ref_allowed(&k, "*"));
		kit_ref_done(&again);
		kit_ref_done(&k);
	}
	free(text);
	return 0;
}
