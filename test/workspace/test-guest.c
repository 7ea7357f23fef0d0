/* What the scenarios of test/workspace need in the guest and busybox has not. Static.
 *
 *   bac-workspace-guest stat N PATH     N times the attributes, past every cache
 *   bac-workspace-guest lock PATH       take a flock, wait for it
 *   bac-workspace-guest rings SYSFS N SEED   drive a virtio device of PCI, which no driver holds, as no driver should: N times
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Where QEMU has them in the device's fourth region: the common registers, and what each queue is notified by. */
enum {
	FEATURES_SEL = 8,
	FEATURES = 12,
	STATUS = 20,
	QUEUE_SEL = 22,
	QUEUE_NUM = 24,
	QUEUE_ENABLE = 28,
	QUEUE_DESC = 32,
	QUEUE_AVAIL = 40,
	QUEUE_USED = 48,
	NOTIFY = 0x3000,
	REGION = 0x4000,
};

enum { NUM = 64, PAGES = 32, PAGE = 4096, BUFFERS = 8, PER_QUEUE = 3 };

struct desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags, next;
};

static volatile uint8_t *reg;
static uint8_t *mem; /* PAGES pages: of each queue table, available, used; then buffers */
static uint64_t at[PAGES];

static int uncached(unsigned long n, const char *path)
{
	struct timespec a, b;
	struct statx st;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	for (unsigned long i = 0; i < n; i++)
		if (statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st) < 0)
			return 1;
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	(void)printf("%.1f us each\n",
		     (double)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec) / 1e3 /
			     (double)n);
	return 0;
}

static void set16(unsigned where, uint16_t v)
{
	*(volatile uint16_t *)(reg + where) = v;
}

static void set32(unsigned where, uint32_t v)
{
	*(volatile uint32_t *)(reg + where) = v;
}

static void set64(unsigned where, uint64_t v)
{
	set32(where, (uint32_t)v);
	set32(where + 4, (uint32_t)(v >> 32));
}

static void start_queue(uint16_t q)
{
	set16(QUEUE_SEL, q);
	set16(QUEUE_NUM, NUM);
	set64(QUEUE_DESC, at[q * PER_QUEUE]);
	set64(QUEUE_AVAIL, at[q * PER_QUEUE + 1]);
	set64(QUEUE_USED, at[q * PER_QUEUE + 2]);
	set16(QUEUE_ENABLE, 1);
}

/* Off, and on again with two empty queues. */
static void start(void)
{
	memset(mem, 0, (size_t)PAGES * PAGE);
	reg[STATUS] = 0;
	reg[STATUS] = 1 | 2;
	set32(FEATURES_SEL, 0);
	set32(FEATURES, 3U << 28); /* tables, event index */
	set32(FEATURES_SEL, 1);
	set32(FEATURES, 1);
	reg[STATUS] = 1 | 2 | 8;
	start_queue(0);
	start_queue(1);
	reg[STATUS] = 1 | 2 | 8 | 4;
}

static uint64_t some_address(void)
{
	switch (rand() % 8) {
	case 0:
		return (uint64_t)rand() << 33 | (unsigned)rand();
	case 1:
		return UINT64_MAX - (unsigned)(rand() % 64);
	case 2:
		return 0x1ffffff0 + (unsigned)(rand() % 32); /* about the end of the memory */
	case 3:
		return 0xa0000 + (unsigned)(rand() % 0x60000);
	case 4:
		return at[rand() % BUFFERS] + (unsigned)(rand() % PAGE); /* the rings themselves */
	default:
		return at[BUFFERS + rand() % (PAGES - BUFFERS)] + (unsigned)(rand() % PAGE);
	}
}

/* Half of it as it should be, a request of a random kind, half of it anything. */
static void fill_queue(unsigned q)
{
	static const uint32_t lens[] = { 0, 1, 16, 40, 80, 4096, 0x10000, UINT32_MAX };
	struct desc *d = (void *)(mem + (size_t)q * PER_QUEUE * PAGE);
	uint16_t *avail = (void *)((uint8_t *)d + PAGE);
	uint32_t *fuse = (void *)(mem + (size_t)BUFFERS * PAGE);

	for (unsigned i = 0; i < NUM; i++) {
		d[i].addr = some_address();
		d[i].len = lens[rand() % 8];
		d[i].flags = (uint16_t)(rand() % 4 ? rand() % 4 : rand() % 8);
		d[i].next = (uint16_t)(rand() % 16 ? rand() % NUM : rand());
		avail[2 + i] = (uint16_t)(rand() % 16 ? rand() % NUM : rand());
	}
	if (rand() % 2) { /* a chain that is one, so that it comes to the file system */
		d[0] = (struct desc) { at[BUFFERS], 40 + (uint32_t)rand() % 100, 1, 1 };
		d[1] = (struct desc) { at[BUFFERS + 1], PAGE, 2, 0 };
		avail[2] = 0;
		fuse[0] = 40 + (uint32_t)rand() % 100;
		fuse[1] = (uint32_t)rand() % 60;
		fuse[4] = (uint32_t)rand() % 4;
		fuse[10] = (uint32_t)rand() % 40;
	}
	__sync_synchronize();
	avail[1] = (uint16_t)(rand() % 4 ? 1 + rand() % 4 : rand());
	set16(NOTIFY + 4 * q, (uint16_t)q);
}

static int open_in(const char *dir, const char *name, int flags)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, flags | O_CLOEXEC);
}

/* The device as it is without a driver: its registers, and the right to read memory. */
static int take_device(const char *dir)
{
	int enable = open_in(dir, "enable", O_WRONLY), config = open_in(dir, "config", O_RDWR);
	int fd = open_in(dir, "resource4", O_RDWR);
	const uint16_t command = 2 | 4;

	if (write(enable, "1", 1) != 1 || pwrite(config, &command, 2, 4) != 2)
		return -1;
	reg = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return reg == MAP_FAILED ? -1 : 0;
}

/* Pages that stay where they are, and where that is. */
static int take_memory(void)
{
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	mem = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE, -1, 0);
	if ((void *)mem == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t entry;
		off_t where = (off_t)(((uintptr_t)mem / PAGE + i) * sizeof(entry));

		if (pread(map, &entry, sizeof(entry), where) != sizeof(entry))
			return -1;
		at[i] = (entry & ((1ULL << 55) - 1)) * PAGE;
		if (!at[i])
			return -1;
	}
	return 0;
}

static int rings(const char *dir, unsigned long n, unsigned seed)
{
	if (take_device(dir) < 0 || take_memory() < 0) {
		perror(dir);
		return 1;
	}
	srand(seed);
	for (unsigned long i = 0; i < n; i++) {
		start();
		fill_queue((unsigned)rand() % 2);
		fill_queue((unsigned)rand() % 2);
		(void)usleep(1000);
	}
	reg[STATUS] = 0;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "stat") == 0)
		return uncached(strtoul(argv[2], NULL, 10), argv[3]);
	if (argc == 3 && strcmp(argv[1], "lock") == 0)
		return flock(open(argv[2], O_RDWR | O_CLOEXEC), LOCK_EX) < 0;
	if (argc == 5 && strcmp(argv[1], "rings") == 0)
		return rings(argv[2], strtoul(argv[3], NULL, 10), (unsigned)atoi(argv[4]));
	return 2;
}
