/* Finding QEMU, its files, and the accelerator; the cache of the answer. Needs QEMU, but no guest: the
 * kernel is rubbish here, so KVM, if there is any, is found not to work. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "vm/vm.h"

static char dir[] = "/tmp/test-probe-XXXXXX", kernel[64], cache[64];
static char *qemu;

static bool lists(char **files, const char *end)
{
	for (; *files; files++) {
		size_t n = strlen(*files), k = strlen(end);

		if (n >= k && streq(*files + n - k, end))
			return true;
	}
	return false;
}

static void find(void)
{
	struct err e = { 0 };
	char **files = NULL;
	char *found = NULL;
	size_t n = 0;

	check(vm_find_qemu("/none/qemu", &found, &e) == -ENOENT);
	check(starts_with(e.msg, "the setting vm.qemu: /none/qemu is not installed"));
	check(vm_find_qemu("", &found, &e) == 0 && streq(found, qemu));
	free(found);
	check(vm_files(qemu, &files, &n, &e) == 0);
	check(n > 3 && files[n] == NULL && streq(files[0], qemu));
	check(lists(files, "/libc.so.6") && lists(files, ".bin"));
	for (char **f = files; *f; f++) {
		check(access(*f, R_OK) == 0 && !strstr(*f, "/../") && !strstr(*f, "//"));
		for (char **g = files; g < f; g++)
			check(!streq(*f, *g));
	}
	check(!vm_files_free(files));
	check(vm_files(kernel, &files, &n, &e) == -ENOEXEC);
	check(strstr(e.msg, "is not a 64-bit ELF program"));
	check(vm_files("/none", &files, &n, &e) == -ENOENT);
}

static uint64_t ino(void)
{
	struct stat st;

	check(stat(cache, &st) == 0);
	return st.st_ino;
}

static void ask(bool fresh)
{
	struct vm_probe p = { 0 };
	struct err e = { 0 };

	if (vm_probe(dir, qemu, kernel, kernel, fresh, &p, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
	check(p.n_qemu_files > 3 && !p.qemu_files[p.n_qemu_files]);
	check(!p.kvm && p.why[0]);
	vm_probe_done(&p);
	vm_probe_done(&p);
}

static void put(const char *text, size_t n)
{
	check(fd_replace_file(AT_FDCWD, cache, 0600, text, n) == 0);
}

static char *replace(const char *text, const char *a, const char *b)
{
	const char *at = strstr(text, a);
	char *s = NULL;

	check(at);
	check(asprintf(&s, "%.*s%s%s", (int)(at - text), text, b, at + strlen(a)) > 0);
	return s;
}

/* A good file is believed; one that was cut anywhere, or is about something else, is not. */
static void cached(void)
{
	static const char *const swaps[][2] = {
		{ "\"version\": 2", "\"version\": 1" },
		{ "\"tcg_safe\": ", "\"tcg_safe\": 1, \"x\": " },
		{ "boot=", "boot=x" },
		{ "qemu=/", "qemu=//" },
		{ "\"kvm\": false", "\"kvm\": 0" },
		{ "\"why\": \"", "\"why\": 1, \"x\": \"" },
		{ "\"tsc_khz\": ", "\"tsc_khz\": -1" },
		{ "\"qemu_files\": [", "\"qemu_files\": [\"../etc/passwd\"," },
		{ "\"qemu_files\": [", "\"qemu_files\": [\"/usr/../etc/passwd\"," },
		{ "\"qemu_files\": [", "\"qemu_files\": [\"/none\"," },
		{ "\"qemu_files\": [", "\"qemu_files\": [7," },
		{ "\"qemu_files\": [", "\"qemu_files\": [],\"x\": [" },
	};
	_free_ char *good = NULL;
	uint64_t before;
	size_t n;

	ask(false);
	before = ino();
	check(fd_read_file(AT_FDCWD, cache, 1 << 20, &good, &n) == 0);
	ask(false);
	check(ino() == before);
	ask(true);
	check(ino() != before);
	for (size_t i = 0; i < 8; i++) {
		put(good, n * i / 8);
		before = ino();
		ask(false);
		check(ino() != before);
	}
	for (size_t i = 0; i < ARRAY_SIZE(swaps); i++) {
		_free_ char *bad = replace(good, swaps[i][0], swaps[i][1]);

		put(bad, strlen(bad));
		before = ino();
		ask(false);
		check(ino() != before);
	}
}

/* Twenty at once: one probes, the others take its answer. */
static void together(void)
{
	uint64_t seen;
	int p[2], st;

	check(unlink(cache) == 0 && pipe(p) == 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		check(pid >= 0);
		if (pid == 0) {
			ask(false);
			seen = ino();
			check(write(p[1], &seen, sizeof(seen)) == (ssize_t)sizeof(seen));
			_exit(0);
		}
	}
	for (int i = 0; i < 20; i++) {
		check(wait(&st) > 0 && st == 0);
		check(read(p[0], &seen, sizeof(seen)) == (ssize_t)sizeof(seen));
		check(seen == ino());
	}
	check(close(p[0]) == 0 && close(p[1]) == 0);
}

static void clock_rate(void)
{
	uint64_t a = vm_tsc_khz(20), b = vm_tsc_khz(20);

	if (!a || !b)
		return; /* not a constant one */
	check(a < b + b / 100 && b < a + a / 100);
}

int main(void)
{
	struct err e = { 0 };

	if (vm_find_qemu(NULL, &qemu, &e) < 0)
		skip(e.msg);
	check(mkdtemp(dir));
	check(snprintf(kernel, sizeof(kernel), "%s/kernel", dir) > 0);
	check(snprintf(cache, sizeof(cache), "%s/probe.json", dir) > 0);
	check(fd_replace_file(AT_FDCWD, kernel, 0644, "rubbish", 7) == 0);
	clock_rate();
	find();
	cached();
	together();
	free(qemu);
	check(execlp("rm", "rm", "-r", dir, NULL) == 0);
	return 0;
}
