/* bzImage: real-mode sectors, then a loader that carries the kernel as a compressed ELF file. The setup
 * header (Documentation/arch/x86/boot.rst) says where that payload lies:
 *
 *	0x1f1  u8   sectors of real-mode code after the first; 0 means 4
 *	0x1fe  u16  0xaa55
 *	0x202  "HdrS"
 *	0x206  u16  version of the boot protocol
 *	0x248  u32  payload_offset, from the end of the real-mode code
 *	0x24c  u32  payload_length
 *
 * All little endian. Behind the compressed stream the payload ends with the length of the plain data, as
 * u32: gzip has it in its own format, for the other compressors the kernel's build adds it. */
#include "image/vmlinux.h"

#include <elf.h>

#include "image/unpack.h"

enum { HEADER_END = 0x250 };

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

int image_vmlinux_payload(const uint8_t *p, size_t n, const uint8_t **ret, size_t *ret_n,
			  struct err *e)
{
	size_t setup, off, len;

	if (n < HEADER_END || p[0x1fe] != 0x55 || p[0x1ff] != 0xaa ||
	    memcmp(p + 0x202, "HdrS", 4) != 0)
		return err_set(e, -EINVAL, "not a Linux kernel (bzImage)");
	if ((p[0x206] | p[0x207] << 8) < 0x208)
		return err_set(e, -EINVAL, "the kernel is older than 2.6.26");
	setup = ((size_t)(p[0x1f1] ? p[0x1f1] : 4) + 1) * 512;
	off = le32(p + 0x248);
	len = le32(p + 0x24c);
	if (setup > n || off > n - setup || len > n - setup - off || len < 8)
		return err_set(e, -EINVAL, "the kernel's payload lies outside the file");
	*ret = p + setup + off;
	*ret_n = len;
	return 0;
}

static bool is_kernel(const uint8_t *p, size_t n)
{
	const Elf64_Ehdr *h = (const void *)p;

	return n >= sizeof(*h) && memcmp(p, ELFMAG, SELFMAG) == 0 && p[EI_CLASS] == ELFCLASS64 &&
	       p[EI_DATA] == ELFDATA2LSB && (p[18] | p[19] << 8) == EM_X86_64;
}

int image_vmlinux(const void *p, size_t n, struct buf *out, struct err *e)
{
	const uint8_t *pay = NULL;
	bool gzip;
	size_t len = 0;
	int r = image_vmlinux_payload(p, n, &pay, &len, e);

	if (r < 0)
		return r;
	gzip = pay[0] == 0x1f && pay[1] == 0x8b;
	r = image_unpack(pay, gzip ? len : len - 4, out, e);
	if (r < 0)
		return err_ctx(e, "the kernel's payload");
	if (out->n != le32(pay + len - 4))
		return err_set(e, -EINVAL, "the kernel's payload is damaged: %zu bytes, not %u",
			       out->n, le32(pay + len - 4));
	if (!is_kernel(buf_data(out), out->n))
		return err_set(e, -EINVAL, "the kernel's payload is not an x86-64 ELF file");
	return 0;
}
