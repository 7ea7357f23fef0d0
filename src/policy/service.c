#include "policy/service.h"

#include "services.h"

enum { WORDS = 7, SERVICES_MAX = 64 };

/* A line's words, in place; the last takes what is left. Too many or too few: false. */
static bool split(char *line, char *w[WORDS], size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		line += strspn(line, " ");
		if (!*line)
			return false;
		w[i] = line;
		line += i + 1 < n ? strcspn(line, " ") : strlen(line);
		if (*line)
			*line++ = '\0';
	}
	return true;
}

static struct cred_use *add(struct cred_use *v, size_t *n, uint8_t kind, const char *resource)
{
	if (*n == SERVICE_USES_MAX)
		return NULL;
	v[*n] = (struct cred_use) { .kind = kind, .resource = resource };
	return &v[(*n)++];
}

static bool on_env(struct service *s, char **w)
{
	if (s->n_envs == SERVICE_ENVS_MAX)
		return false;
	s->envs[s->n_envs++] = w[1];
	return true;
}

static bool on_oauth_env(struct service *s, char **w)
{
	s->oauth_env = w[1];
	return true;
}

static bool on_oauth_file(struct service *s, char **w)
{
	s->file = w[1];
	s->file_scopes = w[2];
	s->file_text = w[3];
	return true;
}

static bool on_header(struct service *s, char **w)
{
	struct cred_use *u = add(s->uses, &s->n_uses, CRED_HEADER, w[1]);

	if (!u)
		return false;
	u->header = w[2];
	u->format = w[3];
	return true;
}

static bool on_basic(struct service *s, char **w)
{
	struct cred_use *u = add(s->uses, &s->n_uses, CRED_BASIC, w[1]);

	if (!u)
		return false;
	u->username = w[2];
	return true;
}

static bool on_oauth(struct service *s, char **w)
{
	struct cred_use *u = add(s->oauth, &s->n_oauth, CRED_OAUTH, w[1]);

	if (!u)
		return false;
	u->placeholder = w[2];
	return true;
}

static bool on_token(struct service *s, char **w)
{
	struct cred_use *u = add(s->oauth, &s->n_oauth, CRED_TOKEN, w[1]);

	if (!u)
		return false;
	u->path = w[2];
	u->placeholder = w[3];
	u->placeholder2 = w[4];
	u->fields = w[5];
	return true;
}

static const struct {
	const char *word;
	size_t n;
	bool (*take)(struct service *s, char **w);
} lines[] = {
	{ "env", 2, on_env },
	{ "oauth-env", 2, on_oauth_env },
	{ "header", 4, on_header },
	{ "basic", 3, on_basic },
	{ "oauth", 3, on_oauth },
	{ "token", 6, on_token },
	{ "oauth-file", 4, on_oauth_file },
};

static int begin(struct services *ret, char *line, struct err *e)
{
	char *w[WORDS];

	if (!split(line, w, 2) || ret->n == SERVICES_MAX)
		return err_set(e, -EINVAL, "'service NAME'");
	ret->v[ret->n++].name = w[1];
	return 0;
}

static int take(struct services *ret, char *line, struct err *e)
{
	char *w[WORDS];
	size_t i;

	if (!*line || *line == '#')
		return 0;
	if (starts_with(line, "service "))
		return begin(ret, line, e);
	for (i = 0; i < ARRAY_SIZE(lines); i++)
		if (starts_with(line, lines[i].word) && line[strlen(lines[i].word)] == ' ')
			break;
	if (i == ARRAY_SIZE(lines) || !ret->n)
		return err_set(e, -EINVAL, "'%.40s' is not known here", line);
	if (!split(line, w, lines[i].n) || !lines[i].take(&ret->v[ret->n - 1], w))
		return err_set(e, -EINVAL, "'%s' takes %zu words", lines[i].word, lines[i].n - 1);
	return 0;
}

int services_parse(struct services *ret, const char *text, struct err *e)
{
	char *line, *next;
	size_t number;
	int r = 0;

	*ret = (struct services) { .text = strdup(text) };
	ret->v = calloc(SERVICES_MAX, sizeof(*ret->v));
	if (!ret->v || !ret->text)
		return err_errno(e, -ENOMEM, "cannot read the services");
	for (line = ret->text, number = 1; line && r == 0; line = next, number++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r = take(ret, line, e);
		if (r < 0)
			(void)err_ctx(e, "services: line %zu", number);
	}
	return r;
}

int services_load(struct services *ret, struct err *e)
{
	return services_parse(ret, services, e);
}

void services_done(struct services *s)
{
	free(s->v);
	free(s->text);
	*s = (struct services) { 0 };
}

const struct service *services_find(const struct services *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (streq(s->v[i].name, name))
			return &s->v[i];
	return NULL;
}
