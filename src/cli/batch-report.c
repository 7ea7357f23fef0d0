#include <fcntl.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/batch.h"
#include "cli/ctx.h"
#include "io/fd.h"

json_t *batch_result(const char *out, uint32_t number)
{
	char dir[BATCH_PATH_MAX], path[BATCH_PATH_MAX + 16];
	json_t *j;

	batch_run_dir(out, number, dir);
	(void)snprintf(path, sizeof(path), "%s/result.json", dir);
	j = json_load_file(path, 0, NULL);
	if (json_is_object(j))
		return j;
	json_decref(j);
	return NULL;
}

static json_int_t number(const json_t *j, const char *key, const char *sub)
{
	return json_integer_value(json_object_get(json_object_get(j, key), sub));
}

static void row(const json_t *j)
{
	const json_t *exit = json_object_get(j, "exit"), *tokens = json_object_get(j, "tokens");
	const double s = json_number_value(json_object_get(json_object_get(j, "seconds"), "total"));
	const char *status = json_string_value(json_object_get(j, "status"));
	const char *error = json_string_value(json_object_get(j, "error"));
	char code[24] = "-", in[24] = "-", out[24] = "-", changes[64] = "-", time[32];

	if (json_is_integer(exit))
		(void)snprintf(code, sizeof(code), "%lld", (long long)json_integer_value(exit));
	if (json_is_object(tokens)) {
		(void)snprintf(in, sizeof(in), "%lld", (long long)number(j, "tokens", "input"));
		(void)snprintf(out, sizeof(out), "%lld", (long long)number(j, "tokens", "output"));
	}
	if (json_is_object(json_object_get(j, "changes")))
		(void)snprintf(changes, sizeof(changes), "%lld (+%lld -%lld)",
			       (long long)number(j, "changes", "files"),
			       (long long)number(j, "changes", "added"),
			       (long long)number(j, "changes", "removed"));
	(void)snprintf(time, sizeof(time), "%.1f s", s);
	(void)printf("%03lld   %-8s   %-4s   %9s   %-16s   %7lld   %7lld   %9s   %9s%s%.80s\n",
		     (long long)json_integer_value(json_object_get(j, "run")),
		     status ? status : "?", code, time, changes,
		     (long long)number(j, "network", "allowed"),
		     (long long)number(j, "network", "denied"), in, out, error ? "   " : "",
		     error ? error : "");
}

static size_t count_ok(const json_t *runs)
{
	size_t i, ok = 0;
	json_t *j;

	json_array_foreach(runs, i, j)
	{
		const char *status = json_string_value(json_object_get(j, "status"));

		ok += status && streq(status, "ok");
	}
	return ok;
}

static void table(const json_t *runs, size_t n)
{
	(void)printf("RUN   STATUS     EXIT   %9s   %-16s   ALLOWED    DENIED   TOKENS IN   OUT\n",
		     "TIME", "FILES CHANGED");
	for (size_t i = 0; i < json_array_size(runs); i++)
		row(json_array_get(runs, i));
	(void)printf("%zu of %zu ok", count_ok(runs), n);
	if (json_array_size(runs) < n)
		(void)printf(", %zu not run yet", n - json_array_size(runs));
	(void)printf("\n");
}

int batch_report(const char *out, bool json, size_t *ret_failed, struct err *e)
{
	char path[BATCH_PATH_MAX + 16];
	json_t *runs = json_array(), *spec, *all;
	_free_ char *text = NULL;
	json_int_t n;
	int r = -ENOMEM;

	(void)snprintf(path, sizeof(path), "%s/batch.json", out);
	spec = json_load_file(path, 0, NULL);
	n = json_integer_value(json_object_get(spec, "n"));
	if (!spec || n < 1 || n > BATCH_RUNS_MAX) {
		json_decref(spec);
		json_decref(runs);
		return err_set(e, -ENOENT, "%s is not the folder of a batch: it has no batch.json",
			       out);
	}
	for (uint32_t i = 1; i <= n; i++) {
		json_t *j = batch_result(out, i);

		if (j)
			(void)json_array_append_new(runs, j);
	}
	if (!json)
		table(runs, (size_t)n);
	all = json_pack("{s:o, s:o}", "batch", spec, "runs", runs);
	text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
	(void)snprintf(path, sizeof(path), "%s/report.json", out);
	if (text)
		r = fd_replace_file(AT_FDCWD, path, 0600, text, strlen(text));
	if (r < 0) {
		json_decref(all);
		return err_errno(e, r, "cannot write %s", path);
	}
	*ret_failed = json_array_size(runs) - count_ok(runs);
	if (json)
		return print_json(all, e);
	json_decref(all);
	return flush_out(e);
}
