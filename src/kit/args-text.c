#include "kit/args-text.h"

#include <stdio.h>

#include "base/text.h"

#define MARK     ARGS_TEXT_MARK
#define MARK_END "\xef\xb7\x91" /* U+FDD1 */

enum { REFS_MAX = 1000, DIGITS = 3, MARK_N = 3, WORD_MIN = 2 * MARK_N + DIGITS };

static size_t skip(const char *text, size_t n, size_t at)
{
	while (at < n && (text[at] == ' ' || text[at] == '\t'))
		at++;
	return at;
}

static bool has(const char *text, size_t n, size_t at, const char *word)
{
	size_t len = strlen(word);

	return n - at >= len && !memcmp(text + at, word, len);
}

/* At "${{": is it a reference, or one that was meant to be? */
static bool is_ref(const char *text, size_t n, size_t at, struct args_ref *ret)
{
	size_t p = skip(text, n, at + 3), name, end;

	if (!has(text, n, p, "kit."))
		return false;
	*ret = (struct args_ref) { .at = at, .n = p + 4 - at };
	while (at + ret->n < n && ret->n < 120 && text[at + ret->n] != '\n' &&
	       !has(text, n, at + ret->n, "}}"))
		ret->n++;
	if (has(text, n, at + ret->n, "}}"))
		ret->n += 2;
	name = p + 9;
	if (!has(text, n, p, "kit.args."))
		return true;
	for (end = name; end < n && kit_args_is_name(text + name, end + 1 - name); end++)
		;
	if (end == name || !has(text, n, skip(text, n, end), "}}"))
		return true;
	ret->n = skip(text, n, end) + 2 - at;
	ret->name = text + name;
	ret->name_n = end - name;
	return true;
}

bool args_text_next(const char *text, size_t n, size_t from, struct args_ref *ret)
{
	size_t at = from;

	while (at < n) {
		const char *p = memchr(text + at, '$', n - at);

		if (!p)
			return false;
		at = (size_t)(p - text);
		if (has(text, n, at, "${{") && is_ref(text, n, at, ret))
			return true;
		at++;
	}
	return false;
}

void args_text_place(const char *text, size_t at, unsigned *ret_line, unsigned *ret_column)
{
	unsigned line = 1, column = 1;
	size_t i;

	for (i = 0; i < at; i++) {
		if (text[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

void args_text_done(struct args_text *a)
{
	free(a->masked);
	free(a->v);
	*a = (struct args_text) { 0 };
}

static int add_ref(struct args_text *a, const struct args_ref *ref)
{
	struct args_ref *v = reallocarray(a->v, a->n_v + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	a->v = v;
	v[a->n_v++] = *ref;
	return 0;
}

static void fault(const struct args_text *a, const char *file, struct kit_report *rep,
		  const struct args_ref *ref, const char *expected)
{
	unsigned line, column;

	args_text_place(a->text, ref->at, &line, &column);
	report_fault_at(rep, file, line, column, "found '%.*s', expected %s", (int)MIN(ref->n, 80U),
			a->text + ref->at, expected);
}

static int mask_one(struct args_text *a, const struct args_ref *ref)
{
	char digits[DIGITS + 2];
	char *p = a->masked + ref->at;

	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a word inside of a text */
	memset(p, '0', ref->n);
	memcpy(p, MARK, MARK_N);
	(void)snprintf(digits, sizeof(digits), "%0*zu", DIGITS, a->n_v % REFS_MAX);
	memcpy(p + MARK_N, digits, DIGITS);
	memcpy(p + ref->n - MARK_N, MARK_END, MARK_N);
	return add_ref(a, ref);
}

int args_text_mask(struct args_text *a, const char *file, const char *text, size_t n,
		   struct kit_report *rep)
{
	struct args_ref ref;
	size_t at = 0, before = rep->n;
	int r = 0;

	*a = (struct args_text) { .text = text, .n = n };
	while (r == 0 && args_text_next(text, n, at, &ref)) {
		at = ref.at + ref.n;
		if (!a->masked) {
			a->masked = text_dup(text, n);
			r = a->masked ? 0 : -ENOMEM;
		}
		if (r == 0 && a->n_v == REFS_MAX)
			fault(a, file, rep, &ref, "fewer than 1000 of these");
		else if (r == 0 && !ref.name)
			fault(a, file, rep, &ref, "'${{ kit.args.NAME }}'");
		else if (r == 0)
			r = mask_one(a, &ref);
		if (rep->n - before > 8 || a->n_v == REFS_MAX)
			break;
	}
	if (r == 0 && a->masked &&
	    (memmem(text, n, MARK, MARK_N) || memmem(text, n, MARK_END, MARK_N)))
		report_fault_at(rep, file, 0, 0, "found U+FDD0 or U+FDD1, which are no characters");
	return r < 0 ? r : rep->n > before || rep->failed ? -EINVAL : 0;
}

/* ---- back ---- */
struct filler {
	const struct args_text *a;
	struct take *t;
	const struct kit_args *args;
};

/* The reference that a mark stands for; NULL: none. */
static const struct args_ref *ref_at(const struct filler *f, const char *mark)
{
	size_t number = 0, i;

	for (i = 0; i < DIGITS && mark[MARK_N + i] >= '0' && mark[MARK_N + i] <= '9'; i++)
		number = number * 10 + (size_t)(mark[MARK_N + i] - '0');
	return i == DIGITS && number < f->a->n_v ? &f->a->v[number] : NULL;
}

static void wrong_ref(const struct filler *f, const struct args_ref *ref, const char *expected)
{
	if (ref)
		fault(f->a, f->t->file, f->t->rep, ref, expected);
}

static const char *value_of(const struct filler *f, const struct args_ref *ref)
{
	size_t i;

	for (i = 0; i < f->args->n; i++)
		if (strlen(f->args->v[i].name) == ref->name_n &&
		    !memcmp(f->args->v[i].name, ref->name, ref->name_n))
			return f->args->v[i].value;
	wrong_ref(f, ref, "an argument that 'args' declares");
	return "";
}

/* The text with values in the place of marks. */
static int replace(const struct filler *f, const char *text, struct buf *out)
{
	const char *p = text, *mark, *end;
	int r = 0;

	while (r == 0 && (mark = strstr(p, MARK)) != NULL) {
		const struct args_ref *ref = ref_at(f, mark);
		const char *value = ref ? value_of(f, ref) : "";

		end = strstr(mark, MARK_END);
		r = buf_add(out, p, (size_t)(mark - p));
		if (r == 0)
			r = buf_add(out, value, strlen(value));
		if (!end)
			return r;
		p = end + MARK_N;
	}
	return r == 0 ? buf_add(out, p, strlen(p)) : r;
}

static int fill_text(const struct filler *f, struct yaml *y)
{
	struct buf out = BUF_INIT(YAML_MAX);
	int r = replace(f, y->text, &out);
	char *new = r == 0 && buf_str(&out) ? strdup(buf_str(&out)) : NULL;

	buf_done(&out);
	if (r == -ENOBUFS) {
		TAKE_FAULT(f->t, y, "found too much, with what arguments stand for");
		return 0;
	}
	if (!new)
		return -ENOMEM;
	free(y->text);
	y->text = new;
	y->plain = false;
	return 0;
}

/* values: may they have references? */
/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
static int fill(const struct filler *f, struct yaml *y, bool values)
{
	const char *mark = y->key ? strstr(y->key, MARK) : NULL;
	size_t i;
	int r = 0;

	if (mark)
		wrong_ref(f, ref_at(f, mark), "it in a value, not in a name");
	mark = y->kind == YAML_TEXT ? strstr(y->text, MARK) : NULL;
	if (mark && !values)
		wrong_ref(f, ref_at(f, mark), "no other argument in 'args'");
	else if (mark)
		r = fill_text(f, y);
	for (i = 0; i < y->n && r == 0; i++)
		r = fill(f, &y->v[i], values);
	return r;
}

int args_text_fill(const struct args_text *a, struct take *t, struct yaml *tree,
		   const struct kit_args *args)
{
	struct filler f = { .a = a, .t = t, .args = args };
	size_t before = t->rep->n, i;
	int r = 0;

	for (i = 0; i < tree->n && r == 0 && a->n_v; i++)
		r = fill(&f, &tree->v[i], !streq(tree->v[i].key, "args"));
	return r < 0 ? r : t->rep->n > before ? -EINVAL : 0;
}
