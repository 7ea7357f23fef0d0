/* dockerd with what is its own: its file system, its log, and our runc before the real one.
 *
 * Its output goes through a process that writes the log and keeps it short, since dockerd and containerd write for as long as the sandbox lives. That
 * process ends when nobody is left who could write. */
#include "guest/init/engine.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest/init/oci.h"
#include "guest/init/volume.h"
#include "io/fd.h"

#define LOG        "/var/log/docker.log"
#define LOG_BEFORE LOG ".1"
#define PATH_TAIL  ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum {
	LOG_MAX = 1024 * 1024,
	CHUNK = 16 * 1024,
	LISTENER = 3,
	TAIL = 4096,
	LOG_WAITS = 200,
	ENTRY_MAX = 192
};

static const char *const places[] = { "/usr/bin/dockerd", "/usr/sbin/dockerd",
				      "/usr/local/bin/dockerd" };

static const char *find(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

bool engine_there(void)
{
	return find();
}

/* ---- the log ---- */

static int open_log(void)
{
	return open(LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
}

static void _noreturn_ keep_log(int from)
{
	static char chunk[CHUNK];
	int fd = open_log();
	struct stat st;
	ssize_t n;

	(void)flock(fd, LOCK_SH);
	/* the last lines are those of the shutdown */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	while ((n = read(from, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0 || fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && st.st_size > LOG_MAX) {
			(void)fd_close(fd);
			(void)rename(LOG, LOG_BEFORE);
			fd = open_log();
			(void)flock(fd, LOCK_SH);
		}
		(void)!fd_write_all(fd, chunk, (size_t)n);
	}
	_exit(0);
}

/* A child of nobody, so that dockerd has none that it does not know. The writing end. */
static int start_log(void)
{
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (fork() != 0)
			_exit(0);
		(void)fd_close(p[1]);
		(void)fd_close(LISTENER);
		(void)fd_close(LISTENER + 1);
		keep_log(p[0]);
	}
	(void)fd_close(p[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return p[1];
}

/* Whoever writes the log holds a lock on it: what was said last may be on the way. */
static void wait_log(int fd)
{
	struct timespec ts = { .tv_nsec = 10L * 1000 * 1000 };
	int i;

	for (i = 0; i < LOG_WAITS && flock(fd, LOCK_EX | LOCK_NB) < 0; i++)
		(void)nanosleep(&ts, NULL);
}

void engine_last_words(char *dst, size_t max)
{
	char text[TAIL + 1];
	_close_ int fd = open(LOG, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;
	char *line;

	*dst = '\0';
	wait_log(fd);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = pread(fd, text, TAIL, MAX(st.st_size - TAIL, 0));
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	if (n <= 0)
		return;
	text[n] = '\0';
	line = strrchr(text, '\n');
	(void)snprintf(dst, max, "%s", line ? line + 1 : text);
}

/* ---- becoming it ---- */

static int put_runc(struct err *e)
{
	int r = boot_make_dirs(OCI_DIR, 0755);

	if (r == 0 && symlink("/proc/1/exe", OCI_DIR "/runc") < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? err_errno(e, r, "cannot make " OCI_DIR "/runc") : 0;
}

static int set_stdio(struct err *e)
{
	_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC), log = start_log();

	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		return err_errno(e, -errno, "cannot set up the log of dockerd");
	return 0;
}

int engine_run(const struct boot *b, const char *notify, struct err *e)
{
	char path[ENTRY_MAX], pid[ENTRY_MAX], ready[ENTRY_MAX];
	const char *const argv[] = { "dockerd", "-H", "fd://", NULL };
	const char *const env[] = { path,           pid,          ready,
				    "LISTEN_FDS=1", "HOME=/root", "LANG=C.UTF-8",
				    "IS_SANDBOX=1", NULL };
	const char *program = find();
	int no_volume, r;

	if (!program)
		return err_set(e, -ENOENT, "dockerd is not installed any more");
	no_volume = volume_mount(b->disk_dev, e);
	r = no_volume < 0 ? no_volume : put_runc(e);
	if (r == 0)
		r = set_stdio(e);
	if (r < 0)
		return r;
	if (no_volume)
		(void)fprintf(stderr,
			      "bac: " VOLUME_DIR " is on the sandbox's disk and not limited: "
			      "this kernel does not allow more (on the host: bac kernel build)\n");
	(void)snprintf(path, sizeof(path), "PATH=" OCI_DIR PATH_TAIL);
	(void)snprintf(pid, sizeof(pid), "LISTEN_PID=%d", (int)getpid());
	(void)snprintf(ready, sizeof(ready), "NOTIFY_SOCKET=@%s", notify);
	if (fcntl(LISTENER, F_SETFD, 0) < 0)
		return err_errno(e, -errno, "cannot hand over the socket");
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execve(program, (char *const *)argv, (char *const *)env);
	return err_errno(e, -errno, "cannot run %s", program);
}
