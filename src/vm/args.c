/* QEMU's command line: one machine with two or three disks, one serial port for us and one for the kernel.
 *
 * Why each thing is there:
 *   acpi=on          Debian's kernels find virtio-mmio devices through it only, and power off with it
 *   pic, pit         without them emulated boots hung
 *   rtc=on           without it the kernel polls a clock that is not there: 5 s and more
 *   share=on         a vhost-user device of another process may map the guest's memory
 *   force-legacy     vhost-user devices want the modern transport
 *   qboot.rom        the smaller firmware; newer QEMU has another default, which with x-option-roms=off
 *                    never starts an ELF kernel
 *   thread=single    QEMU before 8.1 may fail otherwise (vm_probe.tcg_safe), if there is more than one CPU
 *   maxcpus=2        with one CPU, that QEMU is not on one thread then and would leave the guest's memory fences out, since nobody
 *                    else is there to see; but devices are, and an interrupt was lost now and then: the guest waited for ever
 *   -erms, -fsrm     emulation does rep movsb byte by byte; without these the guest copies otherwise
 *   reboot=t, panic  a kernel that dies resets the machine, and -no-reboot makes this QEMU's end
 *   tsc_early_khz    an emulated kernel cannot always measure its clock: one boot of ten hung
 *   lpj              the same for the delay loop of the other CPUs (HZ is 250): 0.1 s
 *   noreplace-smp    a kernel on one CPU takes its lock prefixes out, some 9,000 of them, each through a page table of its own: emulated 0.1 to 0.2 s,
 *                    and what it gains after that cannot be measured
 *   swiotlb          beyond 3 GiB of memory the kernel keeps 64 MiB to copy through for devices that cannot reach all of it. None of ours is such a one:
 *                    emulated 0.1 s, and 64 MiB of the host
 *
 * A root of layers is several files that the guest sees as one disk. QEMU's VMDK driver reads such a disk's description: a text with
 * one line for each file. It opens the files itself, by the names of the sets that they are in, and as what they are: it does not look into
 * them for a format. (No empty line before the first of these lines: QEMU counts the one after it twice.) */
#include "vm/args.h"

#include <stdarg.h>
#include <stdio.h>

#define KERNEL_WORDS \
	"reboot=t panic=-1 tsc=reliable no_timer_check swiotlb=noforce quiet console=ttyS0"

enum { HZ_FACTOR = 4 }; /* kHz of the clock to loops in a jiffy at 250 Hz */

static void word(struct vm_args *a, const char *w)
{
	if (a->bad || a->n == VM_ARGS_MAX) {
		a->bad = true;
		return;
	}
	a->v[a->n++] = w;
	a->v[a->n] = NULL;
}

static void pair(struct vm_args *a, const char *option, const char *value)
{
	word(a, option);
	word(a, value);
}

static _printf_(3, 4) void made(struct vm_args *a, const char *option, const char *fmt, ...)
{
	size_t room = sizeof(a->text) - a->used;
	char *at = a->text + a->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room) {
		a->bad = true;
		return;
	}
	a->used += (size_t)n + 1;
	pair(a, option, at);
}

static bool has_qboot(const struct vm_spec *s)
{
	for (const char *const *f = s->qemu_files; f && *f; f++) {
		const char *slash = strrchr(*f, '/');

		if (slash && streq(slash, "/qboot.rom"))
			return true;
	}
	return false;
}

static int machine(struct vm_args *a, const struct vm_spec *s)
{
	if (streq(s->machine, "microvm"))
		pair(a, "-M",
		     "microvm,acpi=on,pic=on,pit=on,rtc=on,isa-serial=on,x-option-roms=off,"
		     "auto-kernel-cmdline=on,memory-backend=mem");
	else if (streq(s->machine, "q35"))
		pair(a, "-M", "q35,usb=off,vmport=off,sata=off,smbus=off,memory-backend=mem");
	else
		return -EINVAL;
	if (streq(s->machine, "microvm") && has_qboot(s))
		pair(a, "-bios", "qboot.rom");
	return 0;
}

static void processor(struct vm_args *a, const struct vm_spec *s)
{
	unsigned long long mib = s->memory >> 20;
	const bool alone = !s->kvm && !s->tcg_multi && s->cpus == 1;

	if (s->kvm)
		pair(a, "-accel", "kvm");
	else
		made(a, "-accel", "tcg,thread=%s,tb-size=256",
		     s->tcg_multi || alone ? "multi" : "single");
	pair(a, "-cpu", s->kvm ? "host" : "max,-erms,-fsrm");
	made(a, "-smp", alone ? "%u,maxcpus=2" : "%u", s->cpus);
	made(a, "-m", "%lluM", mib);
	made(a, "-object", "memory-backend-memfd,id=mem,size=%lluM,share=on", mib);
}

/* One disk on an inherited descriptor: a set of one, which QEMU opens by name. */
static void disk(struct vm_args *a, const struct vm_spec *s, int fd, const char *name,
		 bool writable)
{
	bool mmio = streq(s->machine, "microvm");

	made(a, "-add-fd", "fd=%d,set=%d", fd, fd);
	made(a, "-blockdev", "driver=file,node-name=%s-file,filename=/dev/fdset/%d,aio=threads,%s",
	     name, fd, writable ? "discard=unmap,locking=on" : "read-only=on,locking=off");
	made(a, "-blockdev", "driver=raw,node-name=%s,file=%s-file,%s", name, name,
	     writable ? "discard=unmap,detect-zeroes=off" : "read-only=on");
	made(a, "-device", "virtio-blk-%s,drive=%s,serial=%s%s", mmio ? "device" : "pci", name,
	     name, writable ? ",discard=on" : "");
}

/* A read-only disk of several files: its description says which. */
static void extents(struct vm_args *a, const struct vm_spec *s)
{
	bool mmio = streq(s->machine, "microvm");
	size_t i;

	made(a, "-add-fd", "fd=%d,set=%d", VM_FD_ROOT, VM_FD_ROOT);
	made(a, "-add-fd", "fd=%d,set=%d", VM_FD_EXTENTS, VM_FD_EXTENTS);
	for (i = 0; i < VM_BLOBS_MAX && s->root_blobs[i]; i++)
		made(a, "-add-fd", "fd=%zu,set=%zu", VM_FD_BLOBS + i, VM_FD_BLOBS + i);
	made(a, "-blockdev",
	     "driver=file,node-name=root-file,filename=/dev/fdset/%d,aio=threads,read-only=on,"
	     "locking=off",
	     VM_FD_EXTENTS);
	pair(a, "-blockdev", "driver=vmdk,node-name=root,file=root-file,read-only=on");
	made(a, "-device", "virtio-blk-%s,drive=root,serial=root", mmio ? "device" : "pci");
}

int vm_args_extents(struct buf *out, const uint64_t *sizes, size_t n)
{
	size_t i;
	int r = buf_printf(out, "# Disk DescriptorFile\nversion=1\nCID=fffffffe\n"
				"parentCID=ffffffff\ncreateType=\"twoGbMaxExtentFlat\"\n");

	for (i = 0; i < n && r == 0; i++) {
		if (sizes[i] % 4096 || !sizes[0])
			return -EINVAL;
		if (!sizes[i])
			continue;
		r = buf_printf(out, "RW %llu FLAT \"/dev/fdset/%zu\" 0\n",
			       (unsigned long long)(sizes[i] / 512),
			       i ? VM_FD_BLOBS + i - 1 : VM_FD_ROOT);
	}
	return r;
}

/* The file server. Its queue is as long as the device allows, since one request of 1 MiB takes 258 places. */
static void shares(struct vm_args *a, const struct vm_spec *s)
{
	made(a, "-chardev", "socket,id=share,fd=%d", VM_FD_SHARE);
	made(a, "-device", "vhost-user-fs-%s,chardev=share,tag=bac,queue-size=1024",
	     streq(s->machine, "microvm") ? "device" : "pci");
}

/* A wire that ends in this sandbox's own network namespace. Offloads are on: the guest hands over 64 KiB at a time, and
 * nobody computes a checksum. No option ROM: it would boot from the network. */
static void network(struct vm_args *a, const struct vm_spec *s)
{
	bool mmio = streq(s->machine, "microvm");

	made(a, "-netdev", "tap,id=net,fd=%d,vhost=off", VM_FD_TAP);
	made(a, "-device", "virtio-net-%s,netdev=net,mac=%s%s", mmio ? "device" : "pci", s->mac,
	     mmio ? "" : ",romfile=");
}

static void ports(struct vm_args *a, const struct vm_spec *s)
{
	bool mmio = streq(s->machine, "microvm");

	made(a, "-chardev", "socket,id=ctl,fd=%d", VM_FD_CTL);
	made(a, "-device", "virtio-serial-%s,id=serial,max_ports=2", mmio ? "device" : "pci");
	pair(a, "-device", "virtserialport,bus=serial.0,chardev=ctl,name=ctl");
	made(a, "-chardev", "socket,id=qmp,fd=%d", VM_FD_QMP);
	pair(a, "-mon", "chardev=qmp,mode=control");
	/* stdin is /dev/null, stdout the console: works with any kind of descriptor */
	pair(a, "-chardev", "stdio,id=console,signal=off");
	pair(a, "-serial", "chardev:console");
}

static void kernel(struct vm_args *a, const struct vm_spec *s)
{
	const char *space = s->cmdline && *s->cmdline ? " " : "";
	const char *more = s->cmdline ? s->cmdline : "";
	const char *words = s->kvm ? KERNEL_WORDS : KERNEL_WORDS " noreplace-smp";
	unsigned long long khz = s->tsc_khz;

	pair(a, "-kernel", VM_KERNEL);
	pair(a, "-initrd", VM_INITRD);
	if (!s->kvm && khz)
		made(a, "-append", "%s tsc_early_khz=%llu lpj=%llu%s%s", words, khz,
		     khz * HZ_FACTOR, space, more);
	else
		made(a, "-append", "%s%s%s", words, space, more);
}

int vm_args_make(const struct vm_spec *s, struct vm_args *ret)
{
	struct vm_args *a = ret;

	a->n = a->used = 0;
	a->bad = false;
	word(a, s->qemu);
	word(a, "-nodefaults");
	word(a, "-no-user-config");
	word(a, "-no-reboot");
	pair(a, "-display", "none");
	pair(a, "-sandbox",
	     "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	if (machine(a, s) < 0)
		return -EINVAL;
	pair(a, "-global", "virtio-mmio.force-legacy=false");
	processor(a, s);
	ports(a, s);
	if (s->root_image && s->root_blobs && s->root_blobs[0])
		extents(a, s);
	else if (s->root_image)
		disk(a, s, VM_FD_ROOT, "root", false);
	if (s->base_image)
		disk(a, s, VM_FD_BASE, "base", false);
	if (s->disk_image)
		disk(a, s, VM_FD_DISK, "disk", true);
	if (s->share_fd)
		shares(a, s);
	if (s->tap_fd)
		network(a, s);
	kernel(a, s);
	return a->bad ? -E2BIG : 0;
}
