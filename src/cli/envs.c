/* Environment of a command. */
#include "cli/envs.h"

#include <fcntl.h>
#include <unistd.h>

#include "io/fd.h"
#include "wire/limits.h"

enum { ENV_FILE_MAX = 1024 * 1024 };

int envs_add(struct envs *s, const char *entry, struct err *e)
{
	size_t name = strcspn(entry, "="), i;
	char **more, *copy;

	if (!name || !entry[name])
		return err_set(e, -EINVAL, "'%.60s' is not NAME=value", entry);
	if (strlen(entry) > WIRE_ARG_LEN_MAX)
		return err_set(e, -E2BIG, "the value of %.*s is too long (%d bytes)",
			       (int)MIN(name, (size_t)60), entry, WIRE_ARG_LEN_MAX);
	copy = strdup(entry);
	if (!copy)
		return err_errno(e, -ENOMEM, "environment");
	for (i = 0; i < s->n; i++)
		if (strncmp(s->v[i], entry, name + 1) == 0) {
			free(s->v[i]);
			s->v[i] = copy;
			return 0;
		}
	more = s->n < WIRE_ENV_MAX ? realloc(s->v, (s->n + 2) * sizeof(*more)) : NULL;
	if (!more) {
		free(copy);
		return err_set(e, -E2BIG, "too many environment variables (%d)", WIRE_ENV_MAX);
	}
	s->v = more;
	s->v[s->n++] = copy;
	s->v[s->n] = NULL;
	return 0;
}

static int add_or_copy(struct envs *s, const char *entry, struct err *e)
{
	_free_ char *both = NULL;
	const char *ours;

	if (strchr(entry, '='))
		return envs_add(s, entry, e);
	ours = getenv(entry);
	if (!ours)
		return 0;
	if (asprintf(&both, "%s=%s", entry, ours) < 0)
		return err_errno(e, -ENOMEM, "environment");
	return envs_add(s, both, e);
}

static int from_file(struct envs *s, const char *path, struct err *e)
{
	_free_ char *text = NULL;
	char *line, *next;
	unsigned n = 0;
	size_t len;
	int r = fd_read_file(AT_FDCWD, path, ENV_FILE_MAX, &text, &len);

	if (r == 0 && strlen(text) != len)
		r = -EINVAL;
	if (r < 0)
		return err_errno(e, r, "cannot read the environment file %s", path);
	for (line = text; line && *line; line = next) {
		char *end = line + strcspn(line, "\n");

		next = *end ? end + 1 : NULL;
		*end = '\0';
		n++;
		if (end > line && end[-1] == '\r')
			end[-1] = '\0';
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		r = add_or_copy(s, line, e);
		if (r < 0)
			return err_ctx(e, "%s: line %u", path, n);
	}
	return 0;
}

int envs_collect(struct envs *s, const struct opt_list *files, const struct opt_list *entries,
		 struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < files->n && r == 0; i++)
		r = from_file(s, files->v[i], e);
	for (i = 0; i < entries->n && r == 0; i++) {
		r = add_or_copy(s, entries->v[i], e);
		if (r < 0)
			return err_ctx(e, "--env");
	}
	return r;
}

void envs_done(struct envs *s)
{
	while (s->n)
		free(s->v[--s->n]);
	free(s->v);
	s->v = NULL;
}
