#pragma once
/* For tests only: check() stays whatever NDEBUG says, names the place and ends the test. */
#include <stdio.h>
#include <stdlib.h>

#define check(x) \
	do { \
		if (!(x)) { \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort(); \
		} \
	} while (0)

/* A test that cannot run says why on stdout and exits with 77: counted as skipped. */
#define skip(why) \
	do { \
		(void)printf("skipped: %s\n", why); \
		exit(77); \
	} while (0)
