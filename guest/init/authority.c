/* Whom programs are told to trust.
 *
 * Most read the system's bundle; some have their own, and a variable that names another. All of them get the system's: it has ours
 * at its end, and what people add with update-ca-certificates is in it too. Nothing is said to Java, whose variables make it print a line on
 * stderr at each start: the keystore of the system's JDK is changed in place (trust.h). None names a proxy: no program here needs one. */
#include "guest/init/authority.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "guest/init/die.h"
#include "guest/init/loop.h"
#include "guest/init/spawn.h"
#include "guest/init/sum.h"
#include "guest/init/trust.h"
#include "io/fd.h"

#define BASE64_NAME "PROXY_CA_CERT_B64="

enum { SETTLE_MS = 10 * 1000, ENTRY_MAX = 128 };

enum { OURS_MAX = TRUST_NAMES_MAX + 2 };

/* ---- the environment ---- */

static void make_base64(struct authority *a)
{
	size_t n = strlen(a->pem), at = sizeof(BASE64_NAME) - 1;

	a->base64 = malloc(at + sum_base64_size(n) + 1);
	if (!a->base64)
		die_check(-ENOMEM);
	memcpy(a->base64, BASE64_NAME, at);
	sum_base64(a->base64 + at, a->pem, n);
	a->base64[at + sum_base64_size(n)] = '\0';
}

static void make_all(struct authority *a)
{
	static const struct env none;
	char text[TRUST_NAMES_MAX][ENTRY_MAX];
	const char *ours[OURS_MAX];
	const struct env *given = a->given ? a->given : &none;
	const struct env *image = a->image ? a->image : &none;
	struct env *own;
	size_t n = 0;

	a->all = env_drop(a->all);
	if (a->pem) {
		for (; n < trust_n_names; n++) {
			(void)snprintf(text[n], ENTRY_MAX, "%s=%s", trust_names[n], a->path);
			ours[n] = text[n];
		}
		ours[n++] = "DENO_TLS_CA_STORE=system";
		ours[n++] = a->base64;
	}
	own = env_new(image->v, image->n, ours, n);
	if (own)
		a->all = env_new(own->v, own->n, given->v, given->n);
	if (!a->all)
		die_check(-ENOMEM);
	(void)env_drop(own);
}

void authority_image(struct authority *a, const struct wire_env *m)
{
	a->image = env_drop(a->image);
	a->image = env_new(m->v, m->n, NULL, 0);
	if (!a->image)
		die_check(-ENOMEM);
	make_all(a);
}

void authority_env(struct authority *a, const struct wire_env *m)
{
	a->given = env_drop(a->given);
	a->given = env_new(m->v, m->n, NULL, 0);
	if (!a->given)
		die_check(-ENOMEM);
	make_all(a);
}

/* ---- the files ---- */

static int write_files(void *ctx, int data, int report)
{
	struct err e;
	int r = trust_write(data, ctx, &e);

	if (r < 0)
		spawn_report(report, 1, e.msg);
	return r < 0;
}

static void begin(struct authority *a)
{
	_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t pid;

	a->path = trust_bundle_path(root);
	pid = spawn_fn(root, write_files, a->pem ? a->pem : (void *)"", &a->report);
	if (pid < 0)
		die_note("the sandbox's authority is not trusted: %s", err_text(pid));
}

void authority_trust(struct authority *a, const char *pem)
{
	bool had = a->pem;

	authority_settle(a);
	base_freep(&a->pem);
	base_freep(&a->base64);
	a->pem = a->base64 = NULL;
	if (!*pem && !had)
		return;
	if (*pem) {
		a->pem = strdup(pem);
		if (!a->pem)
			die_check(-ENOMEM);
		make_base64(a);
	}
	begin(a);
	make_all(a);
}

void authority_begin(struct authority *a)
{
	if (!a->pem && a->report < 0 && access(TRUST_ANCHOR, F_OK) == 0)
		begin(a);
}

void authority_settle(struct authority *a)
{
	uint8_t said[SPAWN_REPORT_MAX + 1] = "";
	struct pollfd p = { .fd = a->report, .events = POLLIN };
	uint64_t end = loop_now() + (uint64_t)SETTLE_MS * 1000000;
	ssize_t n = -1;

	if (a->report < 0)
		return;
	/* readable: what went wrong, or the end */
	while (loop_now() < end && poll(&p, 1, SETTLE_MS) < 0)
		;
	n = read(a->report, said, sizeof(said) - 1);
	if (n != 0)
		die_note("the sandbox's authority: %s",
			 n > 0 ? (const char *)said + 1 : "writing it down takes too long");
	a->report = fd_close(a->report);
}
