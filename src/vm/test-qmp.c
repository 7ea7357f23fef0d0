/* QMP lines, good ones and others. */
#include "vm/qmp.h"

#include "base/check.h"

static struct buf in = BUF_INIT(2 * QMP_LINE_MAX);
static char text[128];

static int feed(const char *s, enum qmp_event *ev)
{
	check(buf_add(&in, s, strlen(s)) == 0);
	return qmp_next(&in, ev, text, sizeof(text));
}

/* One line is refused; start over. */
static void refuse(const char *s)
{
	enum qmp_event ev = QMP_RESUMED;

	check(feed(s, &ev) == -EPROTO);
	check(ev == QMP_RESUMED);
	buf_consume(&in, in.n);
}

static void lines(void)
{
	enum qmp_event ev = QMP_NOTHING;

	check(feed("", &ev) == 0);
	check(feed("{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \"major\": "
		   "7}, "
		   "\"package\": \"Debian\"}, \"capabilities\": [\"oob\"]}}\r\n",
		   &ev) == 1);
	check(ev == QMP_GREETING);
	check(feed("{\"return\": {}}\r\n{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, "
		   "\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true}}\r\n{\"event\": \"ST",
		   &ev) == 1);
	check(ev == QMP_NOTHING);
	check(feed("", &ev) == 1 && ev == QMP_SHUTDOWN);
	check(feed("", &ev) == 0);
	check(feed("OP\"}\n\n\r\n{\"event\": \"RESUME\"}\n", &ev) == 1 && ev == QMP_STOPPED);
	check(feed("", &ev) == 1 && ev == QMP_RESUMED);
	check(feed("{\"event\": \"RESET\"}\n", &ev) == 1 && ev == QMP_RESET);
	check(feed("{\"event\": \"GUEST_PANICKED\"}\n", &ev) == 1 && ev == QMP_PANICKED);
	check(feed("{\"event\": \"NIC_RX_FILTER_CHANGED\"}\n", &ev) == 1 && ev == QMP_NOTHING);
	check(feed("{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\\u001b[1m way\"}}\n",
		   &ev) == 1);
	check(ev == QMP_ERROR && streq(text, "no?[1m way"));
	check(feed("{\"error\": {}}\n", &ev) == 1 && streq(text, "no reason given"));
	check(in.n == 0);
}

static void refused(void)
{
	char big[QMP_LINE_MAX + 2];
	enum qmp_event ev;

	refuse("hello\n");
	refuse("[]\n");
	refuse("{}\n");
	refuse("{\"event\": 1}\n");
	refuse("{\"QMP\": 1}\n");
	refuse("{\"event\": \"STOP\"} {}\n");
	refuse("{\"event\": \"STOP\", \"event\": \"STOP\"}\n");
	refuse("{\"return\": \"\xff\"}\n");
	refuse("{\"event\": \"STOP\"\n}\n");

	/* deep, but in a string it does not count */
	memset(big, '[', 40);
	(void)snprintf(big + 40, 20, "\n");
	refuse(big);
	check(feed("{\"return\": \"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\"}\n",
		   &ev) == 1);

	/* the longest line, and one byte more */
	memset(big, ' ', sizeof(big));
	big[0] = '\0';
	(void)snprintf(big, 40, "{\"event\": \"STOP\"}");
	big[strlen(big)] = ' ';
	big[QMP_LINE_MAX - 1] = '\n';
	big[QMP_LINE_MAX] = '\0';
	check(feed(big, &ev) == 1 && ev == QMP_STOPPED);
	big[QMP_LINE_MAX - 1] = ' ';
	big[QMP_LINE_MAX] = '\n';
	big[QMP_LINE_MAX + 1] = '\0';
	refuse(big);
}

int main(void)
{
	struct buf out = BUF_INIT(64);

	lines();
	refused();
	check(qmp_command(&out, "qmp_capabilities") == 0);
	check(streq(buf_str(&out), "{\"execute\":\"qmp_capabilities\"}\n"));
	check(qmp_command(&out, "human-monitor-command-of-a-length") == -ENOBUFS);
	buf_done(&out);
	buf_done(&in);
	return 0;
}
