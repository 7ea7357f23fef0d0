#pragma once
/* System calls that touch nothing but their arguments: no errno, no cancellation, no locks. For code that
 * shares its memory with another process (see spawn.c). Each returns the result or -errno. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "init needs the system call instruction of this architecture: add it here"
#endif

static inline long raw(long nr, long a, long b, long c)
{
	return raw6(nr, a, b, c, 0, 0, 0);
}

static inline int raw_open(const char *path, int flags)
{
	return (int)raw6(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline long raw_read(int fd, void *p, size_t n)
{
	return raw(SYS_read, fd, (long)p, (long)n);
}

static inline long raw_write(int fd, const void *p, size_t n)
{
	return raw(SYS_write, fd, (long)p, (long)n);
}

static inline void raw_close(int fd)
{
	(void)raw(SYS_close, fd, 0, 0);
}

static inline long raw_ioctl(int fd, unsigned long what, long arg)
{
	return raw(SYS_ioctl, fd, (long)what, arg);
}

static inline void __attribute__((noreturn)) raw_exit(int code)
{
	for (;;)
		(void)raw(SYS_exit_group, code, 0, 0);
}
