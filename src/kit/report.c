#include "kit/report.h"

#include <stdarg.h>
#include <stdio.h>

/* "FILE:3:5: FIELD: text"; without a file "line 3:5: ...". err_set() makes it fit for a terminal. */
static void compose(struct err *e, const char *file, unsigned line, unsigned column,
		    const char *path, const char *fmt, va_list ap) _printf_(6, 0);

static void compose(struct err *e, const char *file, unsigned line, unsigned column,
		    const char *path, const char *fmt, va_list ap)
{
	char text[ERR_MSG_MAX], where[32] = "";

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	if (line && file)
		(void)snprintf(where, sizeof(where), "%u:%u: ", line, column);
	else if (line)
		(void)snprintf(where, sizeof(where), "line %u:%u: ", line, column);
	(void)err_set(e, -EINVAL, "%s%s%s%s%s%s", file ? file : "", file ? line ? ":" : ": " : "",
		      where, path ? path : "", path ? ": " : "", text);
}

static void add(struct kit_report *r, unsigned line, unsigned column, const struct err *e)
{
	struct kit_fault *v;

	if (r->n == KIT_FAULTS_MAX)
		return;
	v = reallocarray(r->v, r->n + 1, sizeof(*v));
	if (!v) {
		r->failed = true;
		return;
	}
	r->v = v;
	v[r->n] = (struct kit_fault) { .line = line, .column = column };
	(void)snprintf(v[r->n++].text, sizeof(v->text), "%.*s", (int)sizeof(v->text) - 1, e->msg);
}

/* Where somebody looks for it: at a text itself, at the key of a list or map. */
static void place(const struct yaml *at, unsigned *line, unsigned *column)
{
	bool itself = at && at->kind == YAML_TEXT && !yaml_is_null(at);

	*line = !at ? 0 : itself ? at->at_line : at->line;
	*column = !at ? 0 : itself ? at->at_column : at->column;
}

void report_fault(struct kit_report *r, const char *file, const struct yaml *at, const char *fmt,
		  ...)
{
	unsigned line, column;
	struct err e;
	va_list ap;

	place(at, &line, &column);
	va_start(ap, fmt);
	compose(&e, file, line, column, at ? at->path : NULL, fmt, ap);
	va_end(ap);
	add(r, line, column, &e);
}

void report_fault_at(struct kit_report *r, const char *file, unsigned line, unsigned column,
		     const char *fmt, ...)
{
	struct err e;
	va_list ap;

	va_start(ap, fmt);
	compose(&e, file, line, column, NULL, fmt, ap);
	va_end(ap);
	add(r, line, column, &e);
}

void report_warn(struct kit_report *r, const char *file, const struct yaml *at, const char *fmt,
		 ...)
{
	unsigned line, column;
	struct err e;
	va_list ap;
	size_t i;
	char **v;

	place(at, &line, &column);
	va_start(ap, fmt);
	compose(&e, file, line, column, at ? at->path : NULL, fmt, ap);
	va_end(ap);
	for (i = 0; i < r->n_warnings; i++)
		if (streq(r->warnings[i], e.msg))
			return;
	if (r->n_warnings == KIT_WARNINGS_MAX)
		return;
	v = reallocarray(r->warnings, r->n_warnings + 1, sizeof(*v));
	if (!v)
		return;
	r->warnings = v;
	v[r->n_warnings] = strdup(e.msg);
	r->n_warnings += v[r->n_warnings] ? 1 : 0;
}

/* By line and column; those of the same place stay in order. */
static void sort(struct kit_report *r)
{
	size_t i, k;

	for (i = 1; i < r->n; i++) {
		struct kit_fault f = r->v[i];

		for (k = i; k > 0 && (r->v[k - 1].line > f.line || (r->v[k - 1].line == f.line &&
								    r->v[k - 1].column > f.column));
		     k--)
			r->v[k] = r->v[k - 1];
		r->v[k] = f;
	}
}

int report_result(struct kit_report *r, struct err *e)
{
	if (r->failed)
		return err_set(e, -ENOMEM, "out of memory");
	sort(r);
	return r->n ? err_set(e, -EINVAL, "%s", r->v[0].text) : 0;
}

void report_done(struct kit_report *r)
{
	while (r->n_warnings)
		free(r->warnings[--r->n_warnings]);
	free(r->warnings);
	free(r->v);
	*r = (struct kit_report) { 0 };
}
