/* Any bytes as a ZIP: what is taken has plain names, unpacks to what its directory says, and can be written and read again. */
#include "archive/zip.h"
#include "base/check.h"
#include "wire/copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void again(const struct zip_entry *f, const void *bytes, size_t n)
{
	struct buf out = BUF_INIT(ZIP_BYTES_MAX + 65536), got = BUF_INIT(ZIP_BYTES_MAX + 1);
	struct zip_out w;
	struct zip z;
	struct err e;

	zip_out_begin(&w, &out);
	check(zip_out_add(&w, f->name, bytes, n, f->exec, &e) == 0);
	check(zip_out_end(&w, &e) == 0);
	check(zip_read(buf_data(&out), out.n, &z, &e) == 0 && z.n_v == 1);
	check(streq(z.v[0].name, f->name) && z.v[0].exec == f->exec && z.v[0].size == n);
	check(zip_data(&z, &z.v[0], &got, &e) == 0 && got.n == n);
	check(!n || !memcmp(buf_data(&got), bytes, n));
	zip_done(&z);
	zip_out_done(&w);
	buf_done(&out);
	buf_done(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(ZIP_BYTES_MAX + 1);
	uint64_t bytes = 0;
	struct zip z;
	struct err e;

	if (zip_read(p, n, &z, &e) < 0) {
		check(e.msg[0]);
		return 0;
	}
	for (size_t i = 0; i < z.n_v; i++) {
		const struct zip_entry *f = &z.v[i];

		check(copy_path_ok(f->name) && !strchr(f->name, '\\'));
		check(f->data <= n && f->packed <= n - f->data);
		bytes += f->size;
		buf_consume(&out, out.n);
		if (f->dir || zip_data(&z, f, &out, &e) < 0)
			continue;
		check(out.n == f->size);
		if (f->size < 65536)
			again(f, buf_data(&out), out.n);
	}
	check(bytes <= ZIP_BYTES_MAX);
	zip_done(&z);
	buf_done(&out);
	return 0;
}
