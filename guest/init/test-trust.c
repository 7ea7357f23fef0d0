/* The files of trust, in a root of its own. The keystore is read back by keytool where there is one. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "guest/init/jks.h"
#include "guest/init/test-pem.h"
#include "guest/init/trust.h"
#include "io/fd.h"

#define BUNDLE   "etc/ssl/certs/ca-certificates.crt"
#define ANCHOR   "usr/local/share/ca-certificates/bac.crt"
#define JAVA     "etc/ssl/certs/java/cacerts"
#define FILE_MAX (1024 * 1024)

static char top[] = "/tmp/test-trust.XXXXXX";
static int root = -1;

static void make_dir(const char *path)
{
	char part[256];
	size_t i;

	for (i = 1; i <= strlen(path); i++) {
		if (path[i] && path[i] != '/')
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
		check(mkdirat(root, part, 0755) == 0 || errno == EEXIST);
	}
}

static void put(const char *path, const char *text)
{
	check(fd_replace_file(root, path, 0644, text, strlen(text)) == 0);
}

/* The content of a file, in one of four buffers that take turns. */
static const char *get(const char *path)
{
	static char *kept[4];
	static unsigned turn;
	char **p = &kept[turn++ % 4];

	free(*p);
	*p = NULL;
	return fd_read_file(root, path, FILE_MAX, p, NULL) == 0 ? *p : NULL;
}

static const char *link_of(const char *path)
{
	static char to[256];
	ssize_t n = readlinkat(root, path, to, sizeof(to) - 1);

	if (n < 0)
		return "";
	to[n] = '\0';
	return to;
}

static void both(const char *path, const char *a, const char *b)
{
	const char *text = get(path);

	check(text && starts_with(text, a) && streq(text + strlen(a), b));
}

static void trust(const char *pem)
{
	struct err e;
	int r = trust_write(root, pem, &e);

	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(r == 0);
}

static unsigned count_temporary(const char *path)
{
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	unsigned n = 0;

	check(d);
	while ((e = readdir(d)))
		n += strstr(e->d_name, "new") != NULL;
	(void)closedir(d);
	return n;
}

static void debian(void)
{
	make_dir("etc/ssl/certs");
	put(BUNDLE, pem_user);
	check(streq(trust_bundle_path(root), "/" BUNDLE));
	trust(pem_first);
	both(BUNDLE, pem_user, pem_first);
	check(streq(get(ANCHOR), pem_first));
	check(streq(link_of("etc/ssl/certs/bac.pem"), "/" ANCHOR));
	check(streq(link_of("etc/ssl/certs/" HASH_FIRST ".0"), "bac.pem"));
	/* the next run's; and again: nothing is added twice */
	trust(pem_second);
	trust(pem_second);
	both(BUNDLE, pem_user, pem_second);
	check(streq(get(ANCHOR), pem_second));
	check(streq(link_of("etc/ssl/certs/" HASH_FIRST ".1"), ""));
	/* another name: what was ours is known by the anchor */
	trust(pem_odd);
	both(BUNDLE, pem_user, pem_odd);
	check(streq(link_of("etc/ssl/certs/" HASH_ODD ".0"), "bac.pem"));
	check(count_temporary("etc/ssl/certs") == 0);
	trust("");
	check(streq(get(BUNDLE), pem_user) && !get(ANCHOR) && !get("etc/bac/trust.jks"));
	check(streq(link_of("etc/ssl/certs/bac.pem"), ""));
}

/* The name that a hash asks for is taken by somebody else's. */
static void taken(void)
{
	check(unlinkat(root, "etc/ssl/certs/" HASH_FIRST ".0", 0) == 0);
	check(symlinkat("other.pem", root, "etc/ssl/certs/" HASH_FIRST ".0") == 0);
	trust(pem_first);
	check(streq(link_of("etc/ssl/certs/" HASH_FIRST ".0"), "other.pem"));
	check(streq(link_of("etc/ssl/certs/" HASH_FIRST ".1"), "bac.pem"));
	trust("");
}

/* Fedora has no Debian path, and links; a link out of the root stays inside. */
static void elsewhere(void)
{
	check(unlinkat(root, BUNDLE, 0) == 0);
	make_dir("etc/pki/ca-trust/extracted/pem");
	make_dir("etc/pki/ca-trust/source/anchors");
	make_dir("etc/pki/tls/certs");
	put("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", pem_user);
	check(symlinkat("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", root,
			"etc/pki/tls/certs/ca-bundle.crt") == 0);
	check(symlinkat("../../../../../../../etc/pki/tls/certs/ca-bundle.crt", root,
			"etc/ssl/cert.pem") == 0);
	check(streq(trust_bundle_path(root), "/etc/pki/tls/certs/ca-bundle.crt"));
	trust(pem_first);
	both("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", pem_user, pem_first);
	check(*link_of("etc/ssl/cert.pem") && *link_of("etc/pki/tls/certs/ca-bundle.crt"));
	check(streq(get("etc/pki/ca-trust/source/anchors/bac.crt"), pem_first));
	check(!get(BUNDLE));
	trust("");
	check(!get("etc/pki/ca-trust/source/anchors/bac.crt"));
	check(unlinkat(root, "etc/ssl/cert.pem", 0) == 0);
	check(unlinkat(root, "etc/pki/tls/certs/ca-bundle.crt", 0) == 0);
}

static void nothing_there(void)
{
	check(streq(trust_bundle_path(root), "/" BUNDLE));
	trust(pem_first);
	check(streq(get(BUNDLE), pem_first));
}

static void not_ours_to_change(void)
{
	struct err e;

	check(trust_write(root, "no certificate", &e) == -EBADMSG);
	check(streq(get(BUNDLE), pem_first));
	check(unlinkat(root, BUNDLE, 0) == 0);
	check(mkfifoat(root, BUNDLE, 0600) == 0);
	check(trust_write(root, pem_first, &e) < 0 && strstr(e.msg, BUNDLE));
	check(streq(get(ANCHOR), pem_first)); /* the rest is done all the same */
	check(unlinkat(root, BUNDLE, 0) == 0);
	check(symlinkat("ca-certificates.crt", root, BUNDLE) == 0);
	check(trust_write(root, pem_first, &e) < 0);
	check(unlinkat(root, BUNDLE, 0) == 0);
	put(BUNDLE, pem_user);
}

/* ---- Java ---- */

static void put_keystore(const char *path, const char *const *pems, size_t n)
{
	struct buf out = BUF_INIT(JKS_MAX);
	struct cert_set s;
	struct jks k;
	size_t i;

	jks_begin(&k, &out, 1000);
	for (i = 0; i < n; i++) {
		char alias[16];

		check(cert_set_read(&s, pems[i], strlen(pems[i])) == 0);
		(void)snprintf(alias, sizeof(alias), "own-%zu", i);
		jks_add(&k, alias, s.v[0].der, s.v[0].n);
	}
	check(jks_end(&k) == 0);
	check(fd_replace_file(root, path, 0644, buf_data(&out), out.n) == 0);
	buf_done(&out);
}

/* Aliases that keytool finds, sorted by itself; false without keytool. */
static bool listed(const char *path, char *dst, size_t max)
{
	int p[2], status;
	ssize_t n;
	pid_t pid;

	check(pipe(p) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		char name[256];

		(void)snprintf(name, sizeof(name), "%s/%s", top, path);
		(void)dup2(p[1], 1);
		(void)close(p[0]);
		(void)execlp("keytool", "keytool", "-list", "-keystore", name, "-storepass",
			     "changeit", (char *)NULL);
		_exit(127);
	}
	(void)close(p[1]);
	n = fd_read_all(p[0], dst, max - 1);
	(void)close(p[0]);
	check(n >= 0);
	dst[n] = '\0';
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 127)
		return false;
	if (WEXITSTATUS(status))
		(void)fprintf(stderr, "%s\n", dst);
	check(WEXITSTATUS(status) == 0);
	return true;
}

static void java(void)
{
	static const char *const before[] = { pem_user, pem_first };
	static char text[65536];

	make_dir("etc/ssl/certs/java");
	put_keystore(JAVA, before, 2);
	trust(pem_second);
	if (!listed(JAVA, text, sizeof(text))) {
		(void)printf("without keytool\n");
		return;
	}
	check(strstr(text, "2 entries") && strstr(text, "own-0") && !strstr(text, "own-1"));
	check(strstr(text, "debian:bac.pem"));
	trust(pem_odd);
	check(listed(JAVA, text, sizeof(text)));
	check(strstr(text, "2 entries") && strstr(text, "own-0"));
	check(listed("etc/bac/trust.jks", text, sizeof(text)));
	check(strstr(text, "2 entries") && strstr(text, "system-0"));
}

/* Another password, another format, damage: left alone. */
static void foreign_keystore(void)
{
	struct buf out = BUF_INIT(JKS_MAX);
	struct cert_set none = { .n = 0 };
	_free_ char *data = NULL;
	size_t n, i;
	struct jks k;

	check(fd_read_file(root, JAVA, FILE_MAX, &data, &n) == 0);
	for (i = 0; i < n; i += 7) {
		out.n = out.off = 0;
		jks_begin(&k, &out, 0);
		data[i] ^= 1;
		check(!jks_copy(&k, data, n, &none, &none));
		data[i] ^= 1;
		check(!jks_copy(&k, data, i, &none, &none));
	}
	buf_done(&out);
	put(JAVA, "0\x82 of PKCS 12");
	trust(pem_first);
	check(streq(get(JAVA), "0\x82 of PKCS 12"));
}

/* How long it takes with what this host trusts; and that keytool reads all of it. */
static void whole_system(void)
{
	static char text[65536];
	_free_ char *bundle = NULL;
	uint64_t begin;
	size_t n;

	if (fd_read_file(AT_FDCWD, "/" BUNDLE, FILE_MAX, &bundle, &n) < 0)
		return;
	check(fd_replace_file(root, BUNDLE, 0644, bundle, n) == 0);
	begin = fd_now_ns();
	trust(pem_second);
	(void)printf("%zu bytes: %llu us\n", n, (unsigned long long)(fd_now_ns() - begin) / 1000);
	both(BUNDLE, bundle, pem_second);
	if (listed("etc/bac/trust.jks", text, sizeof(text)))
		check(strstr(text, "debian:bac.pem") && strstr(text, "system-1,"));
}

static void remove_all(const char *path)
{
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	check(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
	check(mkdtemp(top));
	root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(root >= 0);
	debian();
	taken();
	elsewhere();
	nothing_there();
	not_ours_to_change();
	java();
	foreign_keystore();
	whole_system();
	(void)close(root);
	remove_all(top);
	return 0;
}
