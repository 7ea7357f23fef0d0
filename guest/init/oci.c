/* Containers trust whom the sandbox trusts.
 *
 * The engine has no hook that a container's own settings cannot undo, so what it calls to make one is ours: its configuration gets a folder more, mounted
 * at WHERE, and variables that name the bundle in it. The bundle is the container's own with the sandbox's authority at its end; of an image
 * that has none, the sandbox's. A variable that the image or the user has set is theirs.
 *
 * Why not over the container's own bundle: the file would be a mount, and what many a Dockerfile does ("apk add ca-certificates",
 * update-ca-certificates) replaces it by rename, which fails on a mount. Why below /dev: a file system of the container's own, which is in no image;
 * a mount point anywhere else would be left behind in what is built.
 *
 * Whatever goes wrong here, the container is made as it was asked for. */
#include "guest/init/oci.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/init/boot.h"
#include "guest/init/spec.h"
#include "guest/init/sum.h"
#include "guest/init/trust.h"
#include "guest/init/volume.h"
#include "io/fd.h"

#define WHERE   "/dev/bac-trust"
#define BUNDLE  "ca.crt"
#define BUNDLES VOLUME_DIR "/bac-trust" /* HASH/ca.crt */
#define WITH    OCI_DIR "/with"         /* a file for each container that has the folder */

enum { NOT_FOUND = 127, PATH_LEN = 4096, ID_MAX = 255, ENV_TEXT_MAX = 4096 };

/* ---- the real one ---- */

/* The next runc in PATH. Returns only on failure. */
static void become_runc(char **argv)
{
	const char *at = getenv("PATH");
	char path[PATH_LEN];

	while (at && *at) {
		size_t len = strcspn(at, ":");
		int n = snprintf(path, sizeof(path), "%.*s/runc", (int)len, at);

		if (len && n > 0 && (size_t)n < sizeof(path) && !starts_with(path, OCI_DIR "/"))
			(void)execv(path, argv);
		at += len + (at[len] ? 1 : 0);
	}
}

/* ---- its arguments ---- */

/* Which command; options of runc itself come before it, five of them with a value. NULL: none. */
static char **find_command(char **argv)
{
	static const char *const with_value[] = { "root", "log", "log-format", "criu", "rootless" };
	char **a;
	size_t i;

	for (a = argv + 1; *a; a++) {
		const char *name = *a + strspn(*a, "-");

		if (**a != '-')
			return a;
		for (i = 0; i < ARRAY_SIZE(with_value); i++)
			if (streq(name, with_value[i]))
				break;
		if (i < ARRAY_SIZE(with_value) && !*++a)
			return NULL;
	}
	return NULL;
}

/* The value of an option, as "--name value" or "--name=value"; NULL if it is not there. */
static const char *option(char **a, const char *name, const char *letter)
{
	size_t n = strlen(name);

	for (; *a; a++) {
		const char *at = *a + strspn(*a, "-");

		if (**a != '-')
			continue;
		if (streq(at, name) || streq(at, letter))
			return a[1];
		if (!strncmp(at, name, n) && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

static const char *last(char **a)
{
	while (a[1])
		a++;
	return *a;
}

/* The file that says that this container has the folder. */
static bool mark_of(const char *id, char path[PATH_LEN])
{
	if (!*id || *id == '.' || *id == '-' || strchr(id, '/') || strlen(id) > ID_MAX)
		return false;
	(void)snprintf(path, PATH_LEN, WITH "/%s", id);
	return true;
}

/* ---- the bundle ---- */

/* The container's, or else the sandbox's, and the authority at its end. 0 or -errno. */
static int make_bundle(struct buf *out, const char *root, const char *pem)
{
	_close_ int of = *root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	_free_ char *text = NULL;
	size_t n = 0;
	int r = of < 0 ? -ENOENT : trust_read_bundle(of, &text, &n);

	if (r < 0 || !n) {
		base_freep(&text);
		text = NULL;
		(void)fd_close(of);
		of = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = trust_read_bundle(of, &text, &n);
	}
	if (r == 0)
		r = buf_add(out, text, n);
	if (r == 0 && n && text[n - 1] != '\n')
		r = buf_add(out, "\n", 1);
	if (r == 0 && !(text && strstr(text, pem)))
		r = buf_add(out, pem, strlen(pem));
	return r;
}

/* Kept by what is in it: containers of one image share it. dir gets the folder. 0 or -errno. */
static int keep_bundle(const struct buf *b, char dir[PATH_LEN])
{
	uint8_t sum[SHA1_SIZE];
	struct sum_sha1 s;
	_close_ int fd = -1;
	size_t i;
	int n;

	sum_sha1_init(&s);
	sum_sha1_add(&s, buf_data(b), b->n);
	sum_sha1_end(&s, sum);
	n = snprintf(dir, PATH_LEN, BUNDLES "/");
	for (i = 0; i < sizeof(sum); i++)
		n += snprintf(dir + n, PATH_LEN - (size_t)n, "%02x", sum[i]);
	n = boot_make_dirs(dir, 0755);
	if (n < 0)
		return n;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (faccessat(fd, BUNDLE, R_OK, 0) == 0)
		return 0;
	return fd_replace_file(fd, BUNDLE, 0644, buf_data(b), b->n);
}

/* ---- the configuration ---- */

static int write_env(struct buf *env, uint32_t has)
{
	size_t i, n = 0;
	int r = 0;

	for (i = 0; r == 0 && i < trust_n_names; i++)
		if (!(has & UINT32_C(1) << i))
			r = buf_printf(env, "%s\"%s=" WHERE "/" BUNDLE "\"", n++ ? "," : "",
				       trust_names[i]);
	return r;
}

static int write_mount(struct buf *mount, const char *from)
{
	int r = buf_printf(mount, "{\"destination\":\"" WHERE "\",\"type\":\"bind\",\"source\":");

	if (r == 0)
		r = spec_quote(mount, from);
	return r == 0 ? buf_printf(mount, ",\"options\":[\"rbind\",\"ro\",\"nosuid\",\"nodev\","
					  "\"noexec\",\"rprivate\"]}")
		      : r;
}

/* Put the changed text in the place of the file. */
static int replace(const char *path, const struct spec *s, const char *text, size_t n,
		   const char *from)
{
	struct buf out = BUF_INIT((size_t)SPEC_MAX + 2UL * PATH_LEN + ENV_TEXT_MAX);
	struct buf env = BUF_INIT(ENV_TEXT_MAX), mount = BUF_INIT(2UL * PATH_LEN);
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : write_env(&env, s->has);

	if (r == 0 && from)
		r = write_mount(&mount, from);
	if (r == 0)
		r = spec_write(&out, s, text, n, buf_str(&mount), buf_str(&env));
	if (r == 0)
		r = fd_replace_file(AT_FDCWD, path, st.st_mode & 0777, buf_data(&out), out.n);
	buf_done(&out);
	buf_done(&env);
	buf_done(&mount);
	return r;
}

/* runc's own working folder is the bundle's. */
static void root_of(const char *bundle, const char *root, char dst[PATH_LEN])
{
	int n = *root == '/' ? snprintf(dst, PATH_LEN, "%s", root)
			     : snprintf(dst, PATH_LEN, "%s/%s", bundle, root);

	if (!*root || n < 0 || n >= PATH_LEN)
		*dst = '\0';
}

static int new_container(char **args, const char *pem)
{
	const char *bundle = option(args, "bundle", "b");
	char config[PATH_LEN], root[PATH_LEN], from[PATH_LEN], mark[PATH_LEN];
	struct buf text = BUF_INIT(TRUST_BUNDLE_MAX);
	_free_ char *spec_text = NULL;
	struct spec s;
	size_t n = 0;
	int r, len;

	bundle = bundle ? bundle : ".";
	len = snprintf(config, sizeof(config), "%s/config.json", bundle);
	if (len < 0 || (size_t)len >= sizeof(config) || !mark_of(last(args), mark))
		return -EINVAL;
	r = fd_read_file(AT_FDCWD, config, SPEC_MAX, &spec_text, &n);
	if (r < 0)
		return r;
	r = spec_read(&s, SPEC_CONTAINER, spec_text, n, trust_names, trust_n_names, WHERE);
	if (r < 0 || !s.dev || s.taken || !s.mounts.there)
		return r;
	root_of(bundle, s.root, root);
	r = make_bundle(&text, root, pem);
	if (r == 0)
		r = keep_bundle(&text, from);
	buf_done(&text);
	if (r == 0)
		r = replace(config, &s, spec_text, n, from);
	if (r == 0 && boot_make_dirs(WITH, 0755) == 0)
		(void)fd_close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	return r;
}

static int new_process(char **args, const char *pem)
{
	const char *path = option(args, "process", "p");
	_free_ char *text = NULL;
	char mark[PATH_LEN];
	struct spec s;
	size_t n = 0;
	int r;

	(void)pem;
	if (!path || !mark_of(last(args), mark) || access(mark, F_OK) < 0)
		return 0;
	r = fd_read_file(AT_FDCWD, path, SPEC_MAX, &text, &n);
	if (r == 0)
		r = spec_read(&s, SPEC_PROCESS, text, n, trust_names, trust_n_names, WHERE);
	return r == 0 ? replace(path, &s, text, n, NULL) : r;
}

static int gone(char **args, const char *pem)
{
	char mark[PATH_LEN];

	(void)pem;
	if (mark_of(last(args), mark))
		(void)unlink(mark);
	return 0;
}

static const struct {
	const char *name;
	int (*fn)(char **args, const char *pem);
} commands[] = {
	{ "create", new_container },
	{ "run", new_container },
	{ "exec", new_process },
	{ "delete", gone },
};

static void look(char **argv)
{
	char **command = find_command(argv);
	_free_ char *pem = NULL;
	size_t i;

	if (!command || !command[1])
		return;
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (streq(*command, commands[i].name))
			break;
	if (i == ARRAY_SIZE(commands))
		return;
	/* no authority: nothing to trust */
	if (fd_read_file(AT_FDCWD, TRUST_ANCHOR, TRUST_BUNDLE_MAX, &pem, NULL) < 0)
		return;
	(void)commands[i].fn(command + 1, pem);
}

int oci_main(char **argv)
{
	look(argv);
	become_runc(argv);
	(void)fprintf(stderr, "runc: not found\n");
	return NOT_FOUND;
}
