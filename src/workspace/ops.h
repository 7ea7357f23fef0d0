#pragma once
/* The opcodes' own functions, one call_fn each; fs.c has the table. */
#include "workspace/fs-priv.h"

/* op-init.c */
ssize_t op_init(struct fs *f, struct call *c);
ssize_t op_destroy(struct fs *f, struct call *c);
ssize_t op_interrupt(struct fs *f, struct call *c);
ssize_t op_statfs(struct fs *f, struct call *c);
ssize_t op_syncfs(struct fs *f, struct call *c);

/* op-lookup.c */
ssize_t op_lookup(struct fs *f, struct call *c);
ssize_t op_forget(struct fs *f, struct call *c);
ssize_t op_batch_forget(struct fs *f, struct call *c);

/* op-name.c */
ssize_t op_symlink(struct fs *f, struct call *c);
ssize_t op_mknod(struct fs *f, struct call *c);
ssize_t op_mkdir(struct fs *f, struct call *c);
ssize_t op_unlink(struct fs *f, struct call *c);
ssize_t op_rmdir(struct fs *f, struct call *c);
ssize_t op_rename(struct fs *f, struct call *c);
ssize_t op_rename2(struct fs *f, struct call *c);
ssize_t op_link(struct fs *f, struct call *c);

/* op-attr.c */
ssize_t op_getattr(struct fs *f, struct call *c);
ssize_t op_setattr(struct fs *f, struct call *c);
ssize_t op_readlink(struct fs *f, struct call *c);

/* op-open.c */
ssize_t op_open(struct fs *f, struct call *c);
ssize_t op_create(struct fs *f, struct call *c);
ssize_t op_tmpfile(struct fs *f, struct call *c);
ssize_t op_release(struct fs *f, struct call *c); /* RELEASEDIR too */

/* op-file.c */
ssize_t op_read(struct fs *f, struct call *c);
ssize_t op_write(struct fs *f, struct call *c);
ssize_t op_flush(struct fs *f, struct call *c);
ssize_t op_fsync(struct fs *f, struct call *c); /* FSYNCDIR too */
ssize_t op_fallocate(struct fs *f, struct call *c);
ssize_t op_lseek(struct fs *f, struct call *c);
ssize_t op_copy_file_range(struct fs *f, struct call *c);

/* op-dir.c */
enum { OP_DIR_TOLD = 8192 }; /* entries with attributes, of one reading of a directory */
ssize_t op_opendir(struct fs *f, struct call *c);
ssize_t op_readdir(struct fs *f, struct call *c);
ssize_t op_readdirplus(struct fs *f, struct call *c);

/* op-xattr.c */
ssize_t op_getxattr(struct fs *f, struct call *c);
ssize_t op_setxattr(struct fs *f, struct call *c);
ssize_t op_listxattr(struct fs *f, struct call *c);
ssize_t op_removexattr(struct fs *f, struct call *c);

/* op-poke.c: what serves this opcode if it is a poke; NULL: it is like any other. */
call_fn *op_poke(uint32_t opcode, uint32_t group);

/* op-lock.c */
ssize_t op_getlk(struct fs *f, struct call *c);
ssize_t op_setlk(struct fs *f, struct call *c);
ssize_t op_setlkw(struct fs *f, struct call *c);
