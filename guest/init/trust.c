/* Trust.
 *
 * There is no one place. What Debian's tools make of /usr/local/share/ca-certificates is made here directly, since they take
 * seconds: the bundle with ours at its end, the link beside it, and the hash by which OpenSSL finds a certificate in a folder. It comes out as
 * they would do it, so that whoever runs update-ca-certificates later, for a certificate of his own, gets both. Fedora's and
 * Alpine's bundles, where they are there, get it too. Java reads none of it: the keystore of Debian's JDK is changed in place, and one with all
 * that the bundle has is made for others.
 *
 * Paths are followed inside the root, through links but never into another mount: a folder of the host that is shared at
 * such a place is not written to. */
#include "guest/init/trust.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/init/cert.h"
#include "guest/init/jks.h"
#include "io/fd.h"

#define ANCHOR         TRUST_ANCHOR
#define FEDORA_ANCHORS "/etc/pki/ca-trust/source/anchors"
#define FEDORA_ANCHOR  FEDORA_ANCHORS "/bac.crt"
#define DEBIAN_PATH    "/etc/ssl/certs/ca-certificates.crt"
#define LINK           "/etc/ssl/certs/bac.pem"
#define LINK_NAME      "bac.pem"
#define ALIAS          "debian:" LINK_NAME /* as Debian's hook for Java calls it */

enum {
	BUNDLE_MAX = TRUST_BUNDLE_MAX,
	PEM_MAX = 64 * 1024,
	LINKS_MAX = 8,
	HASHES_MAX = 10, /* certificates of one hash */
	PLACE_PATH_MAX = 1024,
};

const char *const trust_names[] = {
	"SSL_CERT_FILE", /* OpenSSL, Go, Ruby, httpx, uv */
	"CURL_CA_BUNDLE",      "GIT_SSL_CAINFO",
	"REQUESTS_CA_BUNDLE",  "PIP_CERT",
	"AWS_CA_BUNDLE",       "CARGO_HTTP_CAINFO",
	"NODE_EXTRA_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
};
const size_t trust_n_names = ARRAY_SIZE(trust_names);

_Static_assert(ARRAY_SIZE(trust_names) <= TRUST_NAMES_MAX, "there is room");

static const char *const bundles[] = {
	DEBIAN_PATH, "/etc/pki/tls/certs/ca-bundle.crt", /* Fedora */
	"/etc/ssl/cert.pem",                             /* Alpine */
};

static const char *const keystores[] = {
	"/etc/ssl/certs/java/cacerts", /* Debian, Alpine, Arch */
	"/etc/pki/java/cacerts",       /* Fedora */
};

/* ---- places ---- */

/* A file by its folder and its name in it, which is no link. */
struct place {
	int dir;
	char name[256];
};

static int open_in(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int open_parent(int root, const char *path, struct place *ret)
{
	const char *slash = strrchr(path, '/');
	char dir[PLACE_PATH_MAX];
	int n = slash ? snprintf(ret->name, sizeof(ret->name), "%s", slash + 1) : -1;

	if (n <= 0 || (size_t)n >= sizeof(ret->name) || strlen(path) >= sizeof(dir))
		return -ENAMETOOLONG;
	(void)snprintf(dir, sizeof(dir), "%.*s/", (int)(slash - path), path);
	ret->dir = open_in(root, dir, O_RDONLY | O_DIRECTORY);
	return ret->dir < 0 ? ret->dir : 0;
}

/* Follows a link at the end, up to LINKS_MAX times. 0 or -errno; ret->dir is the caller's. */
static int open_place(int root, const char *path, struct place *ret)
{
	char at[PLACE_PATH_MAX], to[PLACE_PATH_MAX];
	unsigned i;

	(void)snprintf(at, sizeof(at), "%s", path);
	for (i = 0; i < LINKS_MAX; i++) {
		int r = open_parent(root, at, ret), up;
		ssize_t n;

		if (r < 0)
			return r;
		n = readlinkat(ret->dir, ret->name, to, sizeof(to) - 1);
		if (n < 0)
			return 0;
		to[n] = '\0';
		ret->dir = fd_close(ret->dir);
		up = *to == '/' ? 0 : (int)(strrchr(at, '/') - at) + 1;
		if ((size_t)up + (size_t)n >= sizeof(at))
			return -ENAMETOOLONG;
		memcpy(at + up, to, (size_t)n + 1);
	}
	return -ELOOP;
}

/* A regular file's content. 0 or -errno. */
static int read_place(const struct place *p, size_t max, char **ret, size_t *ret_n)
{
	struct stat st;

	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return fd_read_file(p->dir, p->name, max, ret, ret_n);
}

static int write_beside(const struct place *p, const char *tmp, const void *data, size_t n)
{
	_close_ int fd =
		openat(p->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

	return fd < 0 ? -errno : fd_write_all(fd, data, n);
}

/* Does not wait for the disk: the file is made anew at every start. */
static int write_place(const struct place *p, const void *data, size_t n)
{
	static const char tmp[] = ".bac-new";
	int r;

	(void)unlinkat(p->dir, tmp, 0);
	r = write_beside(p, tmp, data, n);
	if (r == 0 && renameat(p->dir, tmp, p->dir, p->name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(p->dir, tmp, 0);
	return r;
}

/* mkdir -p for all but the last component. */
static void make_parents(int root, const char *path)
{
	char part[PLACE_PATH_MAX];
	size_t i;

	for (i = 1; i < sizeof(part) && path[i]; i++) {
		_close_ int dir = -1;
		struct place p = { .dir = -1 };

		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (open_parent(root, part, &p) < 0)
			return;
		dir = p.dir;
		(void)mkdirat(dir, p.name, 0755);
	}
}

/* ---- what goes where ---- */

struct work {
	int root;
	const char *pem;
	size_t n;
	struct cert_set ours, old;
	char *bundle; /* the first one, as it was; "" if there is none */
	size_t n_bundle;
	struct err *e;
	int r; /* the first failure */
};

static void failed(struct work *w, const char *path, int r)
{
	if (r < 0 && w->r == 0)
		w->r = err_errno(w->e, r, "cannot write %s", path);
}

static void put_file(struct work *w, const char *path, const void *data, size_t n)
{
	_close_ int dir = -1;
	struct place p = { .dir = -1 };
	int r;

	r = open_place(w->root, path, &p);
	if (r == -ENOENT) {
		make_parents(w->root, path);
		r = open_place(w->root, path, &p);
	}
	dir = p.dir;
	if (r == 0)
		r = write_place(&p, data, n);
	failed(w, path, r);
}

static void remove_file(struct work *w, const char *path)
{
	_close_ int dir = -1;
	struct place p = { .dir = -1 };

	if (open_parent(w->root, path, &p) < 0)
		return;
	dir = p.dir;
	(void)unlinkat(dir, p.name, 0);
}

/* What was put there the last time. */
static void read_old(struct work *w)
{
	_free_ char *text = NULL;
	_close_ int dir = -1;
	struct place p = { .dir = -1 };
	size_t n = 0;

	w->old.n = 0;
	if (open_place(w->root, ANCHOR, &p) < 0)
		return;
	dir = p.dir;
	if (read_place(&p, PEM_MAX, &text, &n) < 0 || cert_set_read(&w->old, text, n) < 0)
		w->old.n = 0;
}

/* must: it is made where there is none. */
static void change_bundle(struct work *w, const char *path, bool must)
{
	struct buf out = BUF_INIT(BUNDLE_MAX + PEM_MAX);
	_free_ char *text = NULL;
	_close_ int dir = -1;
	struct place p = { .dir = -1 };
	size_t n = 0;
	int r;

	r = open_place(w->root, path, &p);
	if (r == -ENOENT && must && w->n) {
		make_parents(w->root, path);
		r = open_place(w->root, path, &p);
	}
	dir = p.dir;
	if (r == 0)
		r = read_place(&p, BUNDLE_MAX, &text, &n);
	if (r == -ENOENT && !(must && dir >= 0 && w->n))
		return;
	if (r == 0 || r == -ENOENT)
		r = cert_bundle(&out, text ? text : "", n, &w->old, &w->ours, w->pem, w->n);
	if (r == 0 && !(text && out.n == n && !memcmp(buf_data(&out), text, n)))
		r = write_place(&p, buf_data(&out), out.n);
	failed(w, path, r);
	if (text && !w->bundle) {
		w->bundle = take_ptr(text);
		w->n_bundle = n;
	}
	buf_done(&out);
}

static void make_link(int dir, const char *to, const char *name)
{
	(void)unlinkat(dir, name, 0);
	(void)symlinkat(to, dir, name);
}

/* HASH.0 to HASH.9 beside it: our own link if there is one, else the first free name. None is missed where all fails: programs look into the bundle
 * as well. */
static void change_links(struct work *w)
{
	_close_ int dir = -1;
	struct place p = { .dir = -1 };
	uint32_t hash;
	unsigned i;

	if (open_parent(w->root, LINK, &p) < 0)
		return;
	dir = p.dir;
	make_link(dir, ANCHOR, LINK_NAME);
	if (!cert_name_hash(&w->ours.v[0], &hash))
		return;
	for (i = 0; i < HASHES_MAX; i++) {
		char name[16], to[sizeof(LINK_NAME)];
		ssize_t n;

		(void)snprintf(name, sizeof(name), "%08x.%u", hash, i);
		if (symlinkat(LINK_NAME, dir, name) == 0)
			return;
		n = readlinkat(dir, name, to, sizeof(to));
		if (n == sizeof(LINK_NAME) - 1 && !memcmp(to, LINK_NAME, (size_t)n))
			return;
	}
}

/* ---- Java ---- */

static void add_ours(struct jks *k, const struct cert_set *ours)
{
	char alias[32];
	size_t i;

	for (i = 0; i < ours->n; i++) {
		(void)snprintf(alias, sizeof(alias), i ? ALIAS "-%zu" : ALIAS, i);
		jks_add(k, alias, ours->v[i].der, ours->v[i].n);
	}
}

static void add_bundle(struct jks *k, const struct work *w)
{
	uint8_t mem[CERT_DER_MAX];
	struct cert_text t;
	size_t at = 0;
	unsigned i = 0;

	while (w->bundle && cert_next(w->bundle, w->n_bundle, &at, &t)) {
		char alias[32];
		struct cert c;

		if (cert_read(&t, mem, sizeof(mem), &c) < 0 || cert_set_has(&w->old, &c) ||
		    cert_set_has(&w->ours, &c))
			continue;
		(void)snprintf(alias, sizeof(alias), "system-%u", i++);
		jks_add(k, alias, c.der, c.n);
	}
}

static void make_keystore(struct work *w)
{
	struct buf out = BUF_INIT(JKS_MAX);
	struct jks k;
	int r;

	jks_begin(&k, &out, fd_real_ns() / 1000000);
	add_bundle(&k, w);
	add_ours(&k, &w->ours);
	r = jks_end(&k);
	if (r == 0)
		put_file(w, TRUST_KEYSTORE, buf_data(&out), out.n);
	failed(w, TRUST_KEYSTORE, r);
	buf_done(&out);
}

static void change_keystore(struct work *w, const char *path)
{
	struct buf out = BUF_INIT(JKS_MAX);
	_free_ char *data = NULL;
	_close_ int dir = -1;
	struct place p = { .dir = -1 };
	size_t n = 0;
	struct jks k;
	int r = open_place(w->root, path, &p);

	dir = p.dir;
	if (r < 0 || read_place(&p, JKS_MAX / 2, &data, &n) < 0)
		return;
	jks_begin(&k, &out, fd_real_ns() / 1000000);
	if (jks_copy(&k, data, n, &w->old, &w->ours)) {
		add_ours(&k, &w->ours);
		r = jks_end(&k);
		if (r == 0)
			r = write_place(&p, buf_data(&out), out.n);
		failed(w, path, r);
	}
	buf_done(&out);
}

/* ---- all of it ---- */

const char *trust_bundle_path(int root)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bundles); i++) {
		_close_ int fd = open_in(root, bundles[i], O_PATH);

		if (fd >= 0)
			return bundles[i];
	}
	return DEBIAN_PATH;
}

int trust_read_bundle(int root, char **ret, size_t *ret_n)
{
	int r = -ENOENT;
	size_t i;

	for (i = 0; r < 0 && i < ARRAY_SIZE(bundles); i++) {
		struct place p = { .dir = -1 };
		_close_ int dir = -1;

		r = open_place(root, bundles[i], &p);
		dir = p.dir;
		if (r == 0)
			r = read_place(&p, BUNDLE_MAX, ret, ret_n);
	}
	return r;
}

static void change_all(struct work *w)
{
	bool must = streq(trust_bundle_path(w->root), DEBIAN_PATH);
	_close_ int fedora = open_in(w->root, FEDORA_ANCHORS, O_PATH);
	size_t i;

	read_old(w);
	for (i = 0; i < ARRAY_SIZE(bundles); i++)
		change_bundle(w, bundles[i], must && i == 0);
	for (i = 0; i < ARRAY_SIZE(keystores); i++)
		change_keystore(w, keystores[i]);
	/* the anchors last: they say what to take away the next time */
	if (!w->n) {
		remove_file(w, LINK);
		remove_file(w, ANCHOR);
		remove_file(w, FEDORA_ANCHOR);
		remove_file(w, TRUST_KEYSTORE);
		return;
	}
	make_keystore(w);
	put_file(w, ANCHOR, w->pem, w->n);
	change_links(w);
	if (fedora >= 0)
		put_file(w, FEDORA_ANCHOR, w->pem, w->n);
}

int trust_write(int root, const char *pem, struct err *e)
{
	struct work *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return err_errno(e, -ENOMEM, "trust");
	w->root = root;
	w->pem = pem;
	w->n = strlen(pem);
	w->e = e;
	if (w->n)
		r = cert_set_read(&w->ours, pem, w->n);
	if (r < 0)
		r = err_set(e, -EBADMSG, "the host's authority is not a certificate");
	if (r == 0) {
		change_all(w);
		r = w->r;
	}
	free(w->bundle);
	free(w);
	return r;
}
