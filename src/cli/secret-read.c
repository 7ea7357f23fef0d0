/* Reading a secret, and choosing one. */
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "cli/secret.h"
#include "cli/tty.h"
#include "io/fd.h"

static int finish(char *bytes, size_t n, char **ret, size_t *ret_n, struct err *e)
{
	char *value;

	if (n && bytes[n - 1] == '\n')
		n--;
	if (n && bytes[n - 1] == '\r')
		n--;
	if (!n)
		return err_set(e, -ENODATA, "the secret is empty");
	if (n > STORE_VALUE_MAX)
		return err_set(e, -EINVAL, "a secret has %d bytes at most", STORE_VALUE_MAX);
	value = malloc(n + 1);
	if (!value)
		return err_errno(e, -ENOMEM, "cannot read the secret");
	memcpy(value, bytes, n);
	value[n] = '\0';
	*ret = value;
	*ret_n = n;
	return 0;
}

enum key { KEY_NONE, KEY_END, KEY_BREAK };

/* A byte of the terminal, which is raw: nobody else edits the line. */
static enum key press(char c, char *bytes, size_t max, size_t *n)
{
	switch (c) {
	case '\r':
	case '\n':
		return KEY_END;
	case 3: /* ^C */
	case 26:
	case 28:
		return KEY_BREAK;
	case 4: /* ^D */
		return *n ? KEY_NONE : KEY_BREAK;
	case 8:
	case 127:
		*n -= *n ? 1 : 0;
		return KEY_NONE;
	case 21: /* ^U */
		*n = 0;
		return KEY_NONE;
	default:
		if (*n < max)
			bytes[(*n)++] = c;
		return KEY_NONE;
	}
}

static int from_terminal(const char *prompt, char *bytes, size_t max, size_t *ret_n, struct err *e)
{
	enum key key = KEY_NONE;
	struct tty *t;
	char c;
	int r;

	/* first, so that nothing is shown that is typed as soon as it is asked for */
	r = tty_raw(STDIN_FILENO, &t);
	if (r < 0)
		return err_errno(e, r, "cannot read from the terminal");
	(void)fprintf(stderr, "%s (not shown): ", prompt);
	(void)fflush(stderr);
	while (key == KEY_NONE) {
		ssize_t k = read(STDIN_FILENO, &c, 1);

		if (k < 0 && errno == EINTR)
			continue;
		key = k <= 0 ? KEY_BREAK : press(c, bytes, max, ret_n);
	}
	explicit_bzero(&c, sizeof(c));
	(void)tty_restore(t);
	(void)fputc('\n', stderr);
	return key == KEY_BREAK ? err_set(e, -ECANCELED, "nothing was stored") : 0;
}

int secret_read(const char *prompt, char **ret, size_t *ret_n, struct err *e)
{
	static char bytes[STORE_VALUE_MAX + 3];
	size_t n = 0;
	ssize_t k;
	int r = 0;

	if (isatty(STDIN_FILENO)) {
		r = from_terminal(prompt, bytes, sizeof(bytes), &n, e);
	} else {
		k = fd_read_all(STDIN_FILENO, bytes, sizeof(bytes));
		if (k < 0)
			r = err_errno(e, (int)k, "cannot read stdin");
		n = k > 0 ? (size_t)k : 0;
	}
	if (r == 0)
		r = finish(bytes, n, ret, ret_n, e);
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

int secret_pick(const char *title, const char *const *list, size_t n, struct err *e)
{
	struct buf all = BUF_INIT(16UL * 1024);
	char answer[16] = "";
	unsigned long at;
	size_t i;
	int r = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		for (i = 0; i < n && r == 0; i++)
			r = buf_printf(&all, "%s%s", i ? ", " : "", list[i]);
		r = err_set(e, -ENOTTY, "%s: name one of %s", title, r == 0 ? buf_str(&all) : "");
		buf_done(&all);
		return r;
	}
	for (i = 0; i < n; i++)
		(void)fprintf(stderr, "%3zu  %s\n", i + 1, list[i]);
	(void)fprintf(stderr, "%s (1-%zu): ", title, n);
	(void)fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		return err_set(e, -ECANCELED, "nothing was chosen");
	at = strtoul(answer, NULL, 10);
	return at >= 1 && at <= n ? (int)at - 1 : err_set(e, -ECANCELED, "nothing was chosen");
}
