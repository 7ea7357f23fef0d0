/* Images out of archives and layouts.
 *
 *	source		a directory (OCI layout), or an archive: a list of its members, by bac-layer, with where their bytes are
 *	docker		manifest.json names configuration and layers of each image
 *	layout		index.json names manifests, also through further indexes; those of our machine are taken
 *	image		its configuration is read, each layer is applied once, the template is made (make.h)
 *
 * An archive of a present docker is both: then the layout is read, since its digests are checked. A layer that is in the cache is not looked
 * for: so a layout may leave out what the cache has. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/layer.h"
#include "image/make.h"
#include "io/fd.h"

enum { LINKS_MAX = 8 };

struct source {
	int dir;   /* a layout, or -1 */
	int file;  /* an archive, or -1 */
	int plain; /* where the members' offsets count: file, or unpacked */
	struct image_member *v;
	size_t n;
};

/* Some bytes of a file. */
struct span {
	int fd; /* the caller's only if own */
	bool own;
	uint64_t offset, size;
};

struct load {
	struct image_work w;
	struct source s;
	const char *tag;       /* the user's, plain, or NULL */
	const char *which;     /* one entry of the index, or NULL */
	const char *reference; /* or NULL */
	bool partial;          /* only one image is meant */
	struct image_template *v;
	size_t n;
	char others[128]; /* the machines that images were for, and not ours, as an index says */
	bool other;       /* a configuration says it: the message is its */
};

/* ---- the source ---- */

static void source_done(struct source *s)
{
	image_members_free(s->v, s->n);
	if (s->plain != s->file)
		(void)fd_close(s->plain);
	(void)fd_close(s->file);
	(void)fd_close(s->dir);
}

static int source_open(struct load *l, const char *path, struct err *e)
{
	struct source *s = &l->s;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		r = err_errno(e, -errno, "cannot open it");
		(void)fd_close(fd);
		return r;
	}
	if (S_ISDIR(st.st_mode)) {
		s->dir = fd;
		return 0;
	}
	s->file = s->plain = fd;
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "that is neither a file nor a directory");
	image_work_say(&l->w, "reading the archive");
	return image_layer_list(l->w.b, fd, &s->v, &s->n, &s->plain, e);
}

static const char *plain_name(const char *name)
{
	while (starts_with(name, "./"))
		name += 2;
	return name;
}

/* Of two with one name the later, as with an unpacked archive. */
static const struct image_member *member(const struct source *s, const char *name)
{
	size_t i;

	for (i = s->n; i-- > 0;)
		if (streq(s->v[i].name, name))
			return &s->v[i];
	return NULL;
}

/* Where a link leads that stands at name: only within the archive. False: nowhere. */
static bool follow(const char *name, const char *target, char dst[OCI_NAME_MAX + 1])
{
	const char *slash = strrchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	while (starts_with(target, "../")) {
		if (!n)
			return false;
		while (n && name[n - 1] != '/')
			n--;
		n -= n ? 1 : 0;
		target += 3;
	}
	return *target != '/' && !strstr(target, "../") &&
	       (size_t)snprintf(dst, OCI_NAME_MAX + 1, "%.*s%s%s", (int)n, name, n ? "/" : "",
				target) <= OCI_NAME_MAX;
}

/* An old docker has a link to a layer that is there already. 0, or -ENOENT (silent). */
static int find_member(const struct source *s, const char *name, struct span *ret)
{
	char at[OCI_NAME_MAX + 1], to[OCI_NAME_MAX + 1];
	const struct image_member *m = member(s, name);
	unsigned links;

	for (links = 0; m && m->type == 'l' && links < LINKS_MAX; links++) {
		(void)snprintf(at, sizeof(at), "%s", m->name);
		m = follow(at, m->target, to) ? member(s, to) : NULL;
	}
	if (!m || m->type != 'f')
		return -ENOENT;
	*ret = (struct span) { s->plain, false, m->offset, m->size };
	return 0;
}

static int find_file(const struct source *s, const char *name, struct span *ret)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	_close_ int fd = (int)syscall(SYS_openat2, s->dir, name, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret = (struct span) { take_fd(&fd), true, 0, (uint64_t)st.st_size };
	return 0;
}

static int source_find(const struct source *s, const char *name, struct span *ret)
{
	return s->dir >= 0 ? find_file(s, name, ret) : find_member(s, name, ret);
}

static bool source_has(const struct source *s, const char *name)
{
	struct span x;

	if (source_find(s, name, &x) < 0)
		return false;
	if (x.own)
		(void)fd_close(x.fd);
	return true;
}

static int read_span(const struct span *x, char **ret)
{
	_free_ char *text = malloc((size_t)x->size + 1);
	uint64_t done = 0;

	while (text && done < x->size) {
		ssize_t k = pread(x->fd, text + done, (size_t)(x->size - done),
				  (off_t)(x->offset + done));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -ENODATA;
		done += (uint64_t)k;
	}
	if (!text)
		return -ENOMEM;
	text[x->size] = '\0';
	*ret = take_ptr(text);
	return 0;
}

/* A text of the source. digest: what it must have, or NULL; got: what it has, or NULL. */
static int source_text(const struct source *s, const char *name, const char *digest, char **ret,
		       size_t *ret_n, char got[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	char hex[IMAGE_DIGEST_MAX + 1];
	_free_ char *text = NULL;
	struct span x = { .fd = -1 };
	int r = source_find(s, name, &x);

	if (r < 0)
		return err_set(e, -EINVAL, "it is damaged or not whole: %.100s is not there", name);
	r = x.size > OCI_TEXT_MAX ? -E2BIG : read_span(&x, &text);
	if (x.own)
		(void)fd_close(x.fd);
	if (r == 0)
		r = image_digest_plain(text, (size_t)x.size, hex);
	if (r < 0)
		return err_errno(e, r, "cannot read its %.100s", name);
	if (digest && !streq(digest, hex))
		return err_set(e, -EBADMSG,
			       "it is damaged: the content of %.100s has another digest", name);
	if (got)
		memcpy(got, hex, sizeof(hex));
	*ret = take_ptr(text);
	*ret_n = (size_t)x.size;
	return 0;
}

static void blob_name(char dst[96], const char *digest)
{
	(void)snprintf(dst, 96, "blobs/sha256/%s", digest);
}

/* ---- layers ---- */

/* Says which of how many, whatever is done with it. */
struct counted {
	const struct image_progress *p; /* may be NULL */
	char step[64];
};

static void say_counted(void *user, const char *line, int percent)
{
	struct counted *c = user;

	(void)line;
	if (c->p)
		c->p->say(c->p->user, c->step, percent);
}

/* Layer i of n: in the archive it is called name; digest: of the bytes as they are there, or NULL. */
static int take_layer(struct load *l, size_t i, size_t n, const char *name, const char *digest,
		      const char *diff, struct err *e)
{
	struct counted c = { .p = l->w.b->progress };
	const struct image_progress progress = { say_counted, &c };
	struct image_build b = *l->w.b;
	struct image_layer done;
	struct span x = { .fd = -1 };
	int r = image_work_check(&l->w, e);

	if (r < 0)
		return r;
	b.progress = &progress;
	(void)snprintf(c.step, sizeof(c.step), "layer %zu of %zu (%.12s)", i + 1, n, diff);
	if (image_layer_get(b.cache, diff, &done) == 0) {
		char text[96];

		(void)snprintf(text, sizeof(text), "%s is already there", c.step);
		image_work_say(&l->w, text);
		return 0;
	}
	if (source_find(&l->s, name, &x) < 0)
		return err_set(e, -EINVAL, "it is damaged or not whole: %s is not there (%.100s)",
			       c.step, name);
	image_work_say(&l->w, c.step); /* off a terminal, the counts within are left out */
	r = image_layer_apply(&b, x.fd, x.offset, x.size, digest, diff, &done, e);
	if (x.own)
		(void)fd_close(x.fd);
	return r < 0 && r != -EINTR ? err_ctx(e, "%s", c.step) : r;
}

/* ---- one image ---- */

/* The tags that it gets: the user's, and those that it brings. */
static int plain_tags(const struct load *l, const char *const *brought, char ***ret, struct err *e)
{
	char plain[IMAGE_TAG_MAX + 1];
	char **v = calloc(OCI_TAGS_MAX + 2, sizeof(*v));
	size_t n = 0;
	struct err none;

	if (v && l->tag)
		v[n++] = strdup(l->tag);
	for (; v && brought && *brought && n <= OCI_TAGS_MAX; brought++)
		if (image_tag_plain(*brought, plain, &none) == 0)
			v[n++] = strdup(plain);
	for (size_t i = 0; i < n; i++)
		if (!v[i]) {
			while (n)
				free(v[--n]);
			free(v);
			v = NULL;
		}
	if (!v)
		return err_errno(e, -ENOMEM, "cannot load the image");
	*ret = v;
	return 0;
}

static int made(struct load *l, const struct image_source *s, const char *const *brought,
		struct err *e)
{
	struct image_source with = *s;
	struct image_template *more;
	char **tags = NULL;
	int r = plain_tags(l, brought, &tags, e);

	if (r < 0)
		return r;
	with.tags = (const char *const *)tags;
	with.reference = l->reference;
	more = reallocarray(l->v, l->n + 1, sizeof(*more));
	if (more)
		l->v = more;
	r = more ? image_image_make(&l->w, &with, &l->v[l->n], e)
		 : err_errno(e, -ENOMEM, "cannot load the image");
	if (r == 0)
		l->n++;
	for (char **t = tags; *t; t++)
		free(*t);
	free(tags);
	return r;
}

/* Not for this machine: remembered for a message, and passed over. 1, or r. */
static int pass_over(struct load *l, int r, const char *os, const char *arch)
{
	size_t n = strlen(l->others);

	if (r != -ENOEXEC)
		return r;
	l->other = !*arch;
	if (l->other)
		return 1;
	(void)snprintf(l->others + n, sizeof(l->others) - n, "%s%s/%s", n ? ", " : "", os, arch);
	return 1;
}

static int take_config(struct load *l, const char *name, const char *digest, struct oci_config *ret,
		       char got[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	_free_ char *text = NULL;
	size_t n = 0;
	int r = source_text(&l->s, name, digest, &text, &n, got, e);

	return r < 0 ? r : oci_config_parse(text, n, oci_arch(), ret, e);
}

/* ---- docker ---- */

/* "blobs/sha256/HEX": the digits; else NULL. */
static const char *digest_in(const char *name, char hex[IMAGE_DIGEST_MAX + 1])
{
	static const char prefix[] = "blobs/sha256/";
	char text[IMAGE_DIGEST_MAX + 16];

	if (!starts_with(name, prefix))
		return NULL;
	(void)snprintf(text, sizeof(text), "sha256:%s", name + sizeof(prefix) - 1);
	return oci_digest(text, hex) ? hex : NULL;
}

static int docker_image(struct load *l, const struct oci_docker *d, struct err *e)
{
	char got[IMAGE_DIGEST_MAX + 1], hex[IMAGE_DIGEST_MAX + 1];
	struct image_source s = { .config_digest = got };
	struct oci_config c = { 0 };
	size_t i, n = 0;
	int r = take_config(l, plain_name(d->config), NULL, &c, got, e);

	if (r < 0)
		return pass_over(l, r, "", "");
	while (d->layers[n])
		n++;
	if (n != c.n)
		r = err_set(e, -EINVAL,
			    "it is damaged: an image has %zu layers, its configuration %zu", n,
			    c.n);
	for (i = 0; i < n && r == 0; i++) {
		const char *name = plain_name(d->layers[i]);

		r = take_layer(l, i, n, name, digest_in(name, hex), c.diffs[i], e);
	}
	s.config = &c;
	if (r == 0)
		r = made(l, &s, (const char *const *)d->tags, e);
	oci_config_done(&c);
	return r;
}

static int load_docker(struct load *l, struct err *e)
{
	struct oci_docker *v = NULL;
	_free_ char *text = NULL;
	size_t n = 0, len = 0, i;
	int r = source_text(&l->s, "manifest.json", NULL, &text, &len, NULL, e);

	if (r == 0)
		r = oci_docker_parse(text, len, &v, &n, e);
	if (r < 0)
		return r;
	if (l->tag && n > 1)
		r = err_set(e, -EINVAL, "it has %zu images; a tag is for one", n);
	for (i = 0; i < n && r >= 0; i++)
		r = docker_image(l, &v[i], e);
	oci_docker_done(v, n);
	return MIN(r, 0);
}

/* ---- layout ---- */

static int layout_manifest(struct load *l, const struct oci_desc *d, const char *text, size_t n,
			   const char *name, struct err *e)
{
	const char *brought[] = { *name ? name : NULL, NULL };
	char digest[IMAGE_DIGEST_MAX + 16], blob[96];
	struct image_source s = { .manifest = digest };
	struct oci_manifest m = { 0 };
	struct oci_config c = { 0 };
	size_t i;
	int r = oci_manifest_parse(text, n, &m, e);

	if (r < 0)
		return r;
	(void)snprintf(digest, sizeof(digest), "sha256:%s", d->digest);
	blob_name(blob, m.config.digest);
	r = take_config(l, blob, m.config.digest, &c, NULL, e);
	if (r == 0 && c.n != m.n)
		r = err_set(e, -EINVAL,
			    "it is damaged: the manifest has %zu layers, the configuration %zu",
			    m.n, c.n);
	for (i = 0; r == 0 && i < m.n; i++) {
		blob_name(blob, m.layers[i].digest);
		r = take_layer(l, i, m.n, blob, m.layers[i].digest, c.diffs[i], e);
	}
	s.config = &c;
	s.config_digest = m.config.digest;
	if (r == 0)
		r = made(l, &s, brought, e);
	oci_config_done(&c);
	oci_manifest_done(&m);
	return pass_over(l, r, d->os, d->arch);
}

static bool for_us(const struct oci_desc *d)
{
	return (!*d->os || streq(d->os, "linux")) && (!*d->arch || streq(d->arch, oci_arch()));
}

static int layout_index(struct load *l, const char *text, size_t n, const char *name,
			unsigned depth, struct err *e);

/* An entry of an index. 0; 1: nothing for us. */
/* NOLINTNEXTLINE(misc-no-recursion): at most OCI_NESTED_MAX deep */
static int layout_entry(struct load *l, const struct oci_desc *d, const char *name, unsigned depth,
			struct err *e)
{
	_free_ char *text = NULL;
	char blob[96];
	size_t n = 0;
	int r;

	if (d->attestation || streq(d->os, "unknown"))
		return 1;
	if (!for_us(d))
		return pass_over(l, -ENOEXEC, d->os, d->arch);
	blob_name(blob, d->digest);
	r = source_text(&l->s, blob, d->digest, &text, &n, NULL, e);
	if (r == 0)
		r = oci_kind(text, n, d->type, e);
	if (r < 0)
		return r;
	return r == 1 ? layout_index(l, text, n, name, depth + 1, e)
		      : layout_manifest(l, d, text, n, name, e);
}

/* Inside an index that is one image for several machines: the first that is for us. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int layout_one(struct load *l, const struct oci_index *x, const char *name, unsigned depth,
		      struct err *e)
{
	int r = 1;

	for (size_t i = 0; i < x->n && r == 1; i++)
		r = layout_entry(l, &x->v[i], name, depth, e);
	return r;
}

static bool is_meant(const struct load *l, const struct oci_desc *d)
{
	char plain[2][IMAGE_TAG_MAX + 1];
	struct err none;

	if (!l->which)
		return true;
	if (starts_with(l->which, "sha256:"))
		return streq(l->which + 7, d->digest);
	return streq(l->which, d->name) ||
	       (image_tag_plain(l->which, plain[0], &none) == 0 &&
		image_tag_plain(d->name, plain[1], &none) == 0 && streq(plain[0], plain[1]));
}

/* Several images in a layout. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int layout_all(struct load *l, const struct oci_index *x, struct err *e)
{
	size_t i, meant = 0;
	int r = 0;

	for (i = 0; i < x->n; i++)
		meant += is_meant(l, &x->v[i]) && !x->v[i].attestation && for_us(&x->v[i]);
	if (l->tag && meant > 1)
		return err_set(e, -EINVAL, "it has %zu images; a tag is for one", meant);
	if (l->partial && meant > 1)
		return err_set(e, -EINVAL, "it has %zu images; say which", meant);
	for (i = 0; i < x->n && r >= 0; i++)
		if (is_meant(l, &x->v[i]))
			r = layout_entry(l, &x->v[i], x->v[i].name, 0, e);
	return MIN(r, 0);
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int layout_index(struct load *l, const char *text, size_t n, const char *name,
			unsigned depth, struct err *e)
{
	struct oci_index x = { 0 };
	int r;

	if (depth > OCI_NESTED_MAX)
		return err_set(e, -EINVAL, "it has indexes in each other without end");
	r = oci_index_parse(text, n, &x, e);
	if (r < 0)
		return r;
	r = depth ? layout_one(l, &x, name, depth, e) : layout_all(l, &x, e);
	oci_index_done(&x);
	return r;
}

static int load_oci(struct load *l, struct err *e)
{
	_free_ char *text = NULL;
	size_t n = 0;
	int r = source_text(&l->s, "index.json", NULL, &text, &n, NULL, e);

	return r < 0 ? r : layout_index(l, text, n, "", 0, e);
}

/* ---- all of it ---- */

static int load_source(struct load *l, struct err *e)
{
	int r;

	if (source_has(&l->s, "index.json"))
		r = load_oci(l, e);
	else if (source_has(&l->s, "manifest.json"))
		r = load_docker(l, e);
	else
		return err_set(e, -EINVAL,
			       "that is no image: it has neither manifest.json (docker save) nor "
			       "index.json (OCI)");
	if (r < 0 || l->n)
		return r;
	if (l->other)
		return e->code;
	if (l->others[0])
		return err_set(e, -ENOEXEC, "it has no image for linux/%s (it has: %s)", oci_arch(),
			       l->others);
	return l->which ? err_set(e, -ENOENT, "it has no image '%.80s'", l->which)
			: err_set(e, -EINVAL, "it has no image");
}

static void templates_free(struct image_template *v, size_t n)
{
	while (n)
		image_template_done(&v[--n]);
	free(v);
}

/* l: what is asked for. */
static int run(struct load *l, const struct image_build *b, const char *path, const char *tag,
	       struct err *e)
{
	char plain[IMAGE_TAG_MAX + 1];
	struct err none;
	int r = tag ? image_tag_plain(tag, plain, e) : 0;

	if (r < 0)
		return r;
	l->tag = tag ? plain : NULL;
	l->s = (struct source) { .dir = -1, .file = -1, .plain = -1 };
	r = image_work_begin(&l->w, b, IMAGE_TEMPLATES, e);
	if (r == 0) {
		r = source_open(l, path, e);
		if (r == 0)
			r = load_source(l, e);
		if (r < 0) /* what it has put there, and nobody has */
			(void)!image_layers_orphaned(b->cache, NULL, &none);
		if (r < 0 && r != -EINTR)
			r = err_ctx(e, "%.200s", l->reference ? l->reference : path);
	}
	source_done(&l->s);
	image_work_end(&l->w);
	if (r < 0)
		templates_free(l->v, l->n);
	return r;
}

int image_load(const struct image_build *b, const char *path, const char *tag,
	       struct image_template **ret, size_t *ret_n, struct err *e)
{
	struct load l = { 0 };
	int r = run(&l, b, path, tag, e);

	if (r < 0)
		return r;
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

int image_load_layout(const struct image_build *b, const char *path, const char *which,
		      const char *tag, const char *reference, struct image_template *ret,
		      struct err *e)
{
	struct load l = { .which = which, .reference = reference, .partial = true };
	int r = run(&l, b, path, tag, e);

	if (r < 0)
		return r;
	*ret = l.v[0];
	l.v[0] = (struct image_template) { 0 };
	templates_free(l.v, l.n);
	return 0;
}
