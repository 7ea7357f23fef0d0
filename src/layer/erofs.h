#pragma once
/* An EROFS image of files that lie in blobs behind it (fs/erofs/erofs_fs.h of Linux; what is used here is read by Linux 5.4 and later).
 *
 * Block size 4,096. Block 0 has the superblock; from block 1 on lie the inodes, all of the extended form; behind them the blocks of large
 * directories and long symbolic links. Small ones lie behind their inode (tail packing). A regular file is flat: its content lies in
 * whole blocks one after the other, so all that is said of it is the first block's number, counted over image and blobs.
 * No feature bits are needed but those of the check sum and of times. */
#include "layer/nodes.h"

struct erofs {
	struct nodes *tree;
	int out;
	const uint64_t *blobs; /* their bytes, whole blocks */
	size_t n_blobs;
	uint8_t uuid[16];
	/* answers */
	uint64_t bytes, inodes;
};

/* 0 or -errno with *e. The tree's directories are sorted. */
int erofs_write(struct erofs *x, struct err *e) _must_check_;
