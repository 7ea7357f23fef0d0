#pragma once
/* The orders of a supervisor: all that it must know to run one sandbox.
 *
 * The command that starts a sandbox reads the state and the settings, writes the orders into a
 * memory file and hands it to the supervisor as descriptor 3. The supervisor reads no
 * configuration of its own. The shares follow on descriptor 6, a SEQPACKET socket: one MOUNT frame (wire/msg.h)
 * with one descriptor each, parents first, ended by a START frame. Descriptor 7 is a memory file: the network policy as
 * net_text (policy/net.h), empty where network is 0. Descriptor 8 is a memory file too: the credentials as cred_text (policy/cred.h)
 * and then lines "env NAME=value"; empty where there are none. Both are built from the same tree: the version is checked, the
 * format is a list of fields in the order of this table and is not kept compatible. */
#include "base/buf.h"
#include "wire/frame.h"

enum { ORDER_MAGIC = 0x6261636f, ORDER_MAX = 128 * 1024, ORDER_LIST_MAX = 512 };

#define ORDER_TEXTS(X) \
	X(id)         /* sandbox id: 32 hex digits */ \
	X(name)       /* sandbox name, also the guest's host name */ \
	X(dir)        /* the sandbox's directory: disk.img, logs, run.json */ \
	X(run_dir)    /* directory of ctl.sock */ \
	X(root_image) /* EROFS root, read-only */ \
	X(base_image) /* EROFS, read-only: our own template, beside an image; "": none */ \
	X(disk_image) /* ext4, raw, sparse */ \
	X(kernel)     /* uncompressed ELF with a PVH note */ \
	X(initrd)     /* newc archive with init and its modules */ \
	X(cmdline)    /* added to the kernel's command line */ \
	X(qemu)       /* the QEMU program */ \
	X(workspace)  /* the program of the file server */ \
	X(net)        /* the program that makes the network namespace */ \
	X(proxy)      /* the program of the proxy */ \
	X(audit)      /* the program that writes the receipts */ \
	X(keeper)     /* the program that holds values and the sandbox's authority */ \
	X(fetch)      /* the program that opens the store for it */ \
	X(audit_dir)  /* where it does */ \
	X(upstream)   /* the proxy that is used to reach the world, or "" */ \
	X(no_proxy)   /* comma list: reached without it */ \
	X(machine)    /* "microvm" or "q35" */ \
	X(hostname)   /* what the guest calls itself */ \
	X(workdir)    /* default directory of commands in the guest */

#define ORDER_NUMBERS(X) \
	X(accel) /* enum wire_accel */ \
	X(cpus) \
	X(memory)      /* bytes */ \
	X(disk_size)   /* bytes; limits what QEMU may write to a file */ \
	X(tsc_khz)     /* host's time stamp counter, for emulation; 0: none */ \
	X(tcg_multi)   /* emulate with a thread for each CPU: safe with this QEMU and kernel */ \
	X(boot_ms)     /* deadline of a boot */ \
	X(stop_ms)     /* deadline of an orderly stop */ \
	X(idle_ms)     /* stop after this long without use; 0: never */ \
	X(network)     /* 1: there is a network device, and all that belongs to it */ \
	X(audit_file)  /* bytes of one file of receipts */ \
	X(audit_total) /* and of all of a sandbox's */ \
	X(leak_refuse) /* 1: what holds a secret is not let out; else it is only told */ \
	X(image)       /* 1: the root is an image that bac did not build: IMAGE (ctl.md) */

/* NULL-terminated lists of texts. */
#define ORDER_LISTS(X) \
	X(qemu_files) /* what QEMU needs in its root: absolute paths */ \
	X(root_blobs) /* files that the root disk goes on with */ \
	X(image_env)  /* "NAME=value": the image's, for every command */ \
	X(rules)      /* path rules: "hide PATTERN", "protect PATTERN", "allow PATTERN" */ \
	X(connect)    /* "HOST:PORT=ADDRESS:PORT": dialled there instead */ \
	X(extra_ca) /* files of authorities that servers may be certified by, besides the host's */ \
	X(client_certs) /* "HOST=CERT:KEY": files of the certificate that a server is shown */

struct wire_order {
#define X(n) const char *n;
	ORDER_TEXTS(X)
#undef X
#define X(n) uint64_t n;
	ORDER_NUMBERS(X)
#undef X
#define X(n) \
	const char **n; \
	uint32_t n_##n;
	ORDER_LISTS(X)
#undef X
};

/* 0, -ENOBUFS, -ENOMEM. */
int wire_order_put(struct buf *out, const struct wire_order *m) _must_check_;

/* WIRE_OK, WIRE_E_* or -ENOMEM. Texts borrow from p, the lists are on the heap: wire_order_done(). */
int wire_order_parse(struct wire_order *ret, const void *p, size_t n);
void wire_order_done(struct wire_order *m);
