#include "kit/login-file.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"

static const char home[] = "/home/agent/";

/* ---- where ---- */
static bool is_part(const char *s, size_t n)
{
	return n && !(s[0] == '.' && (n == 1 || (n == 2 && s[1] == '.')));
}

int login_file_path(const char *text, const char **ret, struct err *e)
{
	const char *rel = starts_with(text, "~/")   ? text + 2
			  : starts_with(text, home) ? text + strlen(home)
						    : NULL;
	const char *p;
	size_t n;

	if (!rel)
		return err_set(e, -EINVAL, "path: a file below ~/ or %s", home);
	if (strlen(rel) > LOGIN_PATH_MAX)
		return err_set(e, -EINVAL, "path: %d bytes at most", LOGIN_PATH_MAX);
	for (p = rel; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return err_set(e, -EINVAL, "path: it has a control byte");
	for (p = rel;; p += n + 1) {
		n = strcspn(p, "/");
		if (!is_part(p, n))
			return err_set(e, -EINVAL,
				       "path: no '.', no '..' and nothing empty is in it");
		if (!p[n])
			break;
	}
	*ret = rel;
	return 0;
}

/* ---- placeholders ---- */
enum {
	P_ACCESS,
	P_REFRESH,
	P_EXPIRES,
	P_SCOPES,
	P_SCOPES_JSON,
	P_ID_TOKEN,
	P_ACCOUNT,
	P_LAST_REFRESH,
	P_N
};

static const char *const names[P_N] = { "AccessToken", "RefreshToken", "ExpiresAt", "Scopes",
					"ScopesJSON",  "IdToken",      "AccountID", "LastRefresh" };

static int by_name(const char *name, size_t n)
{
	int i;

	for (i = 0; i < P_N; i++)
		if (strlen(names[i]) == n && !memcmp(names[i], name, n))
			break;
	return i;
}

bool login_file_knows(const char *name, size_t n)
{
	return by_name(name, n) != P_N;
}

/* Of "{{.NAME}}" at s: which, or P_N; its length. */
static int placeholder(const char *s, size_t *ret_n)
{
	const char *p = s + 2, *name;
	size_t n;

	p += strspn(p, " ");
	p += *p == '.';
	name = p;
	n = strcspn(p, " {}");
	p += n;
	p += strspn(p, " ");
	*ret_n = strncmp(p, "}}", 2) == 0 ? (size_t)(p + 2 - s) : 0;
	return *ret_n ? by_name(name, n) : P_N;
}

static json_t *scopes_list(const char *s)
{
	json_t *list = json_array();
	size_t n;

	for (s += strspn(s, " ,"); *s; s += n, s += strspn(s, " ,")) {
		n = strcspn(s, " ,");
		if (json_array_append_new(list, json_stringn(s, n)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int put_scopes(struct buf *out, const char *scopes, bool as_json)
{
	json_t *list = scopes_list(scopes), *one;
	_free_ char *text = list && as_json ? json_dumps(list, JSON_COMPACT) : NULL;
	int r = !list || (as_json && !text) ? -ENOMEM : 0;
	size_t i;

	if (r == 0 && text)
		r = buf_add(out, text, strlen(text));
	json_array_foreach(list, i, one)
	{
		if (r == 0 && !as_json)
			r = buf_printf(out, "%s%s", i ? " " : "", json_string_value(one));
	}
	json_decref(list);
	return r;
}

static int put_time(struct buf *out, time_t t)
{
	char text[40];
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return -ENODATA;
	return buf_add(out, text, strlen(text));
}

static int put_value(struct buf *out, const struct login_values *v, int which)
{
	const char *const texts[P_N] = { [P_ACCESS] = v->access,
					 [P_REFRESH] = v->refresh,
					 [P_ID_TOKEN] = v->id_token,
					 [P_ACCOUNT] = v->account };

	if (which == P_EXPIRES)
		return buf_printf(out, "%lld", (long long)v->expires_ms);
	if (which == P_SCOPES || which == P_SCOPES_JSON)
		return put_scopes(out, v->scopes, which == P_SCOPES_JSON);
	if (which == P_LAST_REFRESH)
		return put_time(out, v->stored);
	return texts[which] ? buf_add(out, texts[which], strlen(texts[which])) : -ENODATA;
}

static int no_room(int r, struct err *e)
{
	if (r == -ENODATA)
		return err_set(e, r,
			       "the login that is stored does not say of which account it is (an "
			       "id_token): store it again");
	return r == -ENOMEM ? err_set(e, r, "out of memory")
			    : err_set(e, -E2BIG, "the file of a login has %d bytes at most",
				      LOGIN_FILE_MAX);
}

static int fill(struct buf *out, const char *text, const struct login_values *v, struct err *e)
{
	const char *at;
	size_t n;
	int which, r = 0;

	while (r == 0 && (at = strstr(text, "{{"))) {
		which = placeholder(at, &n);
		if (which == P_N)
			return err_set(e, -EINVAL,
				       "'%.24s' is no placeholder: {{.AccessToken}}, "
				       "{{.RefreshToken}}, {{.ExpiresAt}}, {{.Scopes}}, "
				       "{{.ScopesJSON}}, {{.IdToken}}, {{.AccountID}}, "
				       "{{.LastRefresh}}",
				       at);
		r = buf_add(out, text, (size_t)(at - text));
		if (r == 0)
			r = put_value(out, v, which);
		text = at + n;
	}
	if (r == 0)
		r = buf_add(out, text, strlen(text));
	return r < 0 ? no_room(r, e) : 0;
}

/* ---- a structure ---- */
/* What it is if it is no text: NULL. */
static json_t *plain(const char *s)
{
	const char *digits = s + (*s == '-');
	size_t n = strspn(digits, "0123456789");

	if (streq(s, "true") || streq(s, "false"))
		return json_boolean(*s == 't');
	if (streq(s, "null"))
		return json_null();
	if (!n || n > 15 || digits[n] || (*digits == '0' && n > 1))
		return NULL;
	return json_integer(strtoll(s, NULL, 10));
}

static json_t *value(const char *text, const struct login_values *v, struct err *e)
{
	struct buf out = BUF_INIT(LOGIN_FILE_MAX);
	json_t *j = plain(text);
	size_t n = 0;
	int which = starts_with(text, "{{") ? placeholder(text, &n) : P_N;

	if (j)
		return j;
	if (which != P_N && !text[n] && which == P_EXPIRES)
		return json_integer(v->expires_ms);
	if (which != P_N && !text[n] && (which == P_SCOPES || which == P_SCOPES_JSON)) {
		j = scopes_list(v->scopes);
		if (!j)
			(void)err_set(e, -ENOMEM, "out of memory");
		return j;
	}
	if (fill(&out, text, v, e) == 0) {
		j = json_stringn(out.n ? (const char *)buf_data(&out) : "", out.n);
		if (!j)
			(void)err_set(e, -EINVAL, "a text that is not UTF-8");
	}
	buf_done(&out);
	return j;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
static json_t *node(const struct yaml *y, const struct login_values *v, struct err *e)
{
	json_t *j, *part;
	size_t i;
	int r = 0;

	if (y->kind != YAML_MAP && y->kind != YAML_LIST)
		return value(y->text ? y->text : "", v, e);
	j = y->kind == YAML_MAP ? json_object() : json_array();
	for (i = 0; i < y->n && r == 0; i++) {
		part = node(&y->v[i], v, e);
		if (!part) {
			json_decref(j);
			return NULL;
		}
		r = y->kind == YAML_MAP ? json_object_set_new(j, y->v[i].key, part)
					: json_array_append_new(j, part);
	}
	if (j && r == 0)
		return j;
	(void)err_set(e, -EINVAL, "a key that is not UTF-8");
	json_decref(j);
	return NULL;
}

static int put_structure(struct buf *out, const struct yaml *y, const struct login_values *v,
			 struct err *e)
{
	struct err why = { 0 };
	json_t *j = node(y, v, &why);
	_free_ char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
	int r;

	json_decref(j);
	if (!j)
		return err_set(e, why.code, "%s", why.msg);
	r = text ? buf_printf(out, "%s\n", text) : -ENOMEM;
	return r < 0 ? no_room(r, e) : 0;
}

int login_file_make(const struct login_file *f, const struct login_values *v, struct buf *out,
		    struct err *e)
{
	return f->template ? fill(out, f->template, v, e) : put_structure(out, f->structure, v, e);
}
