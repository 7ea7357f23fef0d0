#pragma once
/* bac-layer, started and listened to. */
#include "image/image.h"
#include "sys/spawn.h"
#include "wire/layer.h"

struct image_layer_run {
	const struct image_build *b;
	const char *const *args;  /* behind the program's name, NULL-terminated */
	const struct sys_fd *fds; /* without 1 and 2 */
	size_t n_fds;
	const char *step; /* what is said meanwhile */
	uint64_t total;   /* bytes that it will read; 0: unknown */
};

/* 0 and the line of the result, with n numbers; -EINTR when a signal came: it is dead then; or -Exxx with its message. */
int image_layer_run(const struct image_layer_run *run, size_t n, struct layer_line *ret,
		    struct err *e) _must_check_;

/* The limits that b asks for. */
const char *image_layer_limits(char dst[LAYER_LIMITS_TEXT], const struct image_build *b);
