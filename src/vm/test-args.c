/* QEMU's words: what must be there, and that nothing of the user's can become an option. */
#include "vm/args.h"

#include "base/check.h"

static struct vm_args a;

static const struct vm_spec plain = {
	.qemu = "/usr/bin/qemu",
	.machine = "microvm",
	.cpus = 2,
	.memory = (uint64_t)1536 << 20,
	.kernel = "/a,b=c/vmlinux",
	.initrd = "/a,b=c/initrd",
	.cmdline = "x,y=z",
	.tsc_khz = 2400000,
	.root_image = "/a,readonly=off/root",
	.disk_image = "/a,b/disk",
};

static bool has(const char *word)
{
	for (size_t i = 0; i < a.n; i++)
		if (streq(a.v[i], word))
			return true;
	return false;
}

static const char *after(const char *option)
{
	for (size_t i = 0; i + 1 < a.n; i++)
		if (streq(a.v[i], option))
			return a.v[i + 1];
	return "";
}

static unsigned mentions(const char *text)
{
	unsigned n = 0;

	for (size_t i = 0; i < a.n; i++)
		n += strstr(a.v[i], text) != NULL;
	return n;
}

static void emulated(void)
{
	struct vm_spec one = plain;

	check(vm_args_make(&plain, &a) == 0);
	check(!a.v[a.n] && streq(a.v[0], "/usr/bin/qemu"));
	check(has("-nodefaults") && has("-no-user-config") && has("-no-reboot"));
	check(streq(after("-sandbox"),
		    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"));
	check(starts_with(after("-accel"), "tcg,thread=single") &&
	      streq(after("-cpu"), "max,-erms,-fsrm"));
	check(!has("-bios")); /* not among the files */
	check(streq(after("-smp"), "2") && streq(after("-m"), "1536M"));
	one.cpus = 1;
	check(vm_args_make(&one, &a) == 0 && streq(after("-smp"), "1,maxcpus=2"));
	check(starts_with(after("-accel"), "tcg,thread=multi"));
	one.tcg_multi = true;
	check(vm_args_make(&one, &a) == 0 && streq(after("-smp"), "1"));
	check(vm_args_make(&plain, &a) == 0);
	check(streq(after("-object"), "memory-backend-memfd,id=mem,size=1536M,share=on"));
	check(streq(after("-kernel"), "/vm/kernel") && streq(after("-initrd"), "/vm/initrd"));
	check(streq(after("-append"),
		    "reboot=t panic=-1 tsc=reliable no_timer_check swiotlb=noforce "
		    "quiet console=ttyS0 noreplace-smp tsc_early_khz=2400000 lpj=9600000 x,y=z"));
	check(has("virtio-blk-device,drive=root,serial=root"));
	check(has("virtio-blk-device,drive=disk,serial=disk,discard=on"));
	check(has("virtserialport,bus=serial.0,chardev=ctl,name=ctl"));
	/* no path of the host, and the user's text in one word only */
	check(mentions("/a,") == 0 && mentions("x,y=z") == 1);
	check(mentions("vhost") == 0 && mentions("share,") == 0);
	check(mentions("netdev") == 0 && mentions("-pci") == 0);
}

static void others(void)
{
	static char longest[VM_ARG_TEXT_MAX];
	const char *const files[] = { "/usr/bin/qemu", "/usr/share/qemu/qboot.rom", NULL };
	struct vm_spec s = plain;

	s.qemu_files = files;
	s.tcg_multi = true;
	check(vm_args_make(&s, &a) == 0);
	check(starts_with(after("-accel"), "tcg,thread=multi"));
	check(streq(after("-bios"), "qboot.rom"));
	s.kvm = true;
	s.cmdline = NULL;
	s.root_image = s.disk_image = NULL;
	check(vm_args_make(&s, &a) == 0);
	check(streq(after("-accel"), "kvm") && streq(after("-cpu"), "host"));
	check(!strstr(after("-append"), "tsc_early") && !strstr(after("-append"), "noreplace") &&
	      mentions("blk") == 0);
	s.machine = "q35";
	check(vm_args_make(&s, &a) == 0);
	check(starts_with(after("-M"), "q35,") && !has("-bios") && mentions("serial-pci") == 1);
	s.share_fd = 9;
	check(vm_args_make(&s, &a) == 0 &&
	      mentions("vhost-user-fs-pci,chardev=share,tag=bac") == 1);
	s.tap_fd = 10;
	s.mac = "02:00:00:00:00:02";
	check(vm_args_make(&s, &a) == 0 && streq(after("-netdev"), "tap,id=net,fd=8,vhost=off"));
	check(has("virtio-net-pci,netdev=net,mac=02:00:00:00:00:02,romfile="));
	s.machine = "microvm";
	check(vm_args_make(&s, &a) == 0 &&
	      has("virtio-net-device,netdev=net,mac=02:00:00:00:00:02"));
	s.machine = "pc,accel=kvm";
	check(vm_args_make(&s, &a) == -EINVAL);
	s.machine = "microvm";
	memset(longest, 'x', sizeof(longest) - 1);
	s.cmdline = longest;
	check(vm_args_make(&s, &a) == -E2BIG);
	s.kvm = false;
	s.tsc_khz = 0; /* not known: not said */
	s.cmdline = "";
	check(vm_args_make(&s, &a) == 0);
	check(!strstr(after("-append"), "tsc_early") && !strstr(after("-append"), "lpj"));
}

/* Meta and blobs are one disk; what the description says of them. */
static void layers(void)
{
	const char *blobs[VM_BLOBS_MAX + 1] = { "/x,y/blob", "/x,y/blob2" };
	const uint64_t sizes[] = { 8192, 4096, 0, 1048576 }, odd[] = { 4096, 100 }, none[] = { 0 };
	struct buf out = BUF_INIT(4096);
	struct vm_spec s = plain;

	s.root_blobs = blobs;
	s.base_image = "/b,c/root";
	check(vm_args_make(&s, &a) == 0);
	check(mentions("/x,") == 0 && mentions("/b,") == 0 && mentions("-blk-") == 3);
	check(has("driver=vmdk,node-name=root,file=root-file,read-only=on"));
	check(has("fd=11,set=11") && has("fd=12,set=12") && !has("fd=13,set=13"));
	check(has("virtio-blk-device,drive=base,serial=base"));
	for (size_t i = 0; i < VM_BLOBS_MAX; i++)
		blobs[i] = "x";
	check(vm_args_make(&s, &a) == 0 && has("fd=138,set=138"));

	check(vm_args_extents(&out, sizes, 4) == 0);
	check(strstr(buf_str(&out), "\"\nRW 16 FLAT \"/dev/fdset/5\" 0\n"
				    "RW 8 FLAT \"/dev/fdset/11\" 0\n"
				    "RW 2048 FLAT \"/dev/fdset/13\" 0\n"));
	check(!strstr(buf_str(&out), "\n\n"));
	check(vm_args_extents(&out, odd, 2) == -EINVAL);
	check(vm_args_extents(&out, none, 1) == -EINVAL);
	buf_done(&out);
}

int main(void)
{
	emulated();
	others();
	layers();
	return 0;
}
