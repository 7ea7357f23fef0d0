#pragma once
/* What a kit's setup.install makes, done once and kept.
 *
 * The steps run in a machine of their own: the new sandbox's disk, template, network and credentials, but none of its folders, and no name of its own. So
 * the disk holds nothing of one sandbox when it is unmounted again, and is kept in cache/kits-installed/KEY/disk.img: KEY is a digest of template, kits,
 * arguments, variables and the disk's size. The next sandbox of that kind begins with a copy (reflinked where the file system can), and installs nothing. What is kept
 * is bounded (setting kit.cacheSize); what was used longest ago goes first. */
#include "cli/kit-box.h"
#include "cli/start.h"

struct kit_install {
	struct start_opts *start; /* quiet from the second start on */
	bool no_cache;            /* install anew, and keep that */
	bool quiet;
	uint64_t docker; /* bytes of the disk's second file system: cli/disk.h */
	int lock;        /* of the sandbox, borrowed */
};

/* Make the disk of a new sandbox. 0 and whether files/home and the steps are on it already; -Exxx with a message that names the step and its log: then nothing of it runs. */
int kit_install_disk(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		     const struct kit_install *o, bool *ret_installed, struct err *e) _must_check_;

/* Run steps from a number on in a sandbox that runs, for 'bac kit add'. */
int kit_install_steps(struct ctx *c, const struct sandbox *b, const struct kit_box *k, size_t from,
		      bool quiet, struct err *e) _must_check_;
