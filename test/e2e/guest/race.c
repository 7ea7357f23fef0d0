/* Races in a shared folder, run by root in the guest: one thread swaps a folder for a symlink to somewhere else as fast
 * as it can, others open, create, rename, link and remove through it. The file server must never follow the link
 * on the host. race FOLDER OUTSIDE SECONDS: OUTSIDE is what the links lead to. Says how often each thing went
 * well, and "LEAK" if it ever read a word of what lies outside. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop;
static atomic_ulong swaps, opens, makes, leaks;

static void *swap(void *link)
{
	while (!stop) {
		if (renameat2(AT_FDCWD, "d", AT_FDCWD, link, RENAME_EXCHANGE) == 0)
			swaps++;
		(void)renameat2(AT_FDCWD, "d/in", AT_FDCWD, "d/out", RENAME_EXCHANGE);
	}
	return NULL;
}

static void *look(void *unused)
{
	static const char *const paths[] = {
		"d/f",    "d/in/f",       "d/out/f",
		"d/../f", "d/in/../../f", "d/in/../../../../../../../../../etc/shadow"
	};
	char text[256];

	while (!stop)
		for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
			int fd = open(paths[i], O_RDWR);
			ssize_t n;

			if (fd < 0)
				continue;
			opens++;
			n = read(fd, text, sizeof(text) - 1);
			text[n > 0 ? n : 0] = '\0';
			if (strstr(text, "OUTSIDE"))
				leaks++;
			(void)!pwrite(fd, "inside", 6, 0);
			(void)close(fd);
		}
	return unused;
}

static void *make(void *unused)
{
	while (!stop) {
		int fd = open("d/new", O_WRONLY | O_CREAT, 0600);

		if (fd >= 0) {
			makes++;
			(void)close(fd);
		}
		(void)link("d/new", "d/linked");
		(void)link("d/f", "stolen");
		(void)rename("d/new", "d/in/new");
		(void)mkdir("d/dir", 0700);
		(void)symlink("../../../outside", "d/sym");
		(void)unlink("d/sym");
		(void)unlink("d/linked");
		(void)unlink("stolen");
		(void)rmdir("d/dir");
		(void)chmod("d/f", 0640);
		(void)truncate("d/f", 6);
		(void)unlink("d/in/new");
	}
	return unused;
}

int main(int argc, char **argv)
{
	struct timespec ts = { .tv_sec = argc > 3 ? atoi(argv[3]) : 1 };
	pthread_t t[4];
	char up[4096];
	FILE *f;

	if (argc < 4 || chdir(argv[1]) < 0)
		return 2;
	(void)snprintf(up, sizeof(up), "../../..%s", argv[2]);
	/* made elsewhere: the host swaps "d" as soon as it is there */
	(void)mkdir("made", 0755);
	(void)mkdir("made/in", 0755);
	(void)!symlink(argv[2], "link1");
	(void)!symlink(up, "link2");
	(void)!symlink(argv[2], "made/out");
	for (int i = 0; i < 2; i++) {
		f = fopen(i ? "made/in/f" : "made/f", "w");
		if (!f || fputs("inside", f) < 0 || fclose(f) != 0)
			return 2;
	}
	if (rename("made", "d") < 0)
		return 2;
	(void)pthread_create(&t[0], NULL, swap, "link1");
	(void)pthread_create(&t[1], NULL, swap, "link2");
	(void)pthread_create(&t[2], NULL, look, NULL);
	(void)pthread_create(&t[3], NULL, make, NULL);
	(void)nanosleep(&ts, NULL);
	stop = true;
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	printf("swaps %lu opens %lu makes %lu%s\n", swaps, opens, makes, leaks ? " LEAK" : "");
	return leaks ? 1 : 0;
}
