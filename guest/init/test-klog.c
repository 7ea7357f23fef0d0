/* Records of the kernel's log. */
#include "base/check.h"
#include "guest/init/klog.h"

static bool is(const char *record, const char *want, uint64_t want_seq)
{
	char line[64];
	uint64_t seq = 0;
	size_t n = klog_format(line, sizeof(line), record, strlen(record), &seq);

	return n == strlen(want) && !memcmp(line, want, n) && seq == want_seq;
}

int main(void)
{
	check(is("6,339,5140900,-;hello\n", "[    5.140900] hello\n", 339));
	check(is("6,339,5140900,-;hello\n SUBSYSTEM=x\n DEVICE=y\n", "[    5.140900] hello\n",
		 339));
	check(is("4,7,99,c,caller=T1;no newline", "[    0.000099] no newline\n", 7));
	check(is("6,1,123456789000001,-;\n", "[123456789.000001] \n", 1));
	check(is("6,1,2,-;a;b\n", "[    0.000002] a;b\n", 1));
	/* cut, with its newline */
	check(is("6,1,2,-;0123456789012345678901234567890123456789012345678901234567890123\n",
		 "[    0.000002] 012345678901234567890123456789012345678901234567\n", 1));
	/* not records */
	check(is("", "", 0) && is("hello\n", "", 0) && is(";\n", "", 0) &&
	      is("6,x,2,-;a\n", "", 0));
	check(is("6,1;a\n", "", 0));
	return 0;
}
