/* --filter until=AGE. */
#include "cli/cutoff.h"

#include <time.h>

#include "base/text.h"

int cutoff_parse(const struct opt_list *l, int64_t *ret, struct err *e)
{
	int64_t cutoff = INT64_MAX;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const char *v = strchr(l->v[i], '=');
		struct tm tm = { 0 };
		const char *end;
		uint64_t n;

		if (!v || (!starts_with(l->v[i], "until=") && !starts_with(l->v[i], "since=")))
			return err_set(e, -EINVAL, "--filter: '%.60s' is not until=AGE", l->v[i]);
		v++;
		end = strptime(v, "%Y-%m-%dT%H:%M:%S", &tm);
		if (end && (streq(end, "Z") || streq(end, "")))
			cutoff = MIN(cutoff, (int64_t)timegm(&tm));
		else if (text_u64(v, INT64_MAX, &n) == 0 && n > 1000000000)
			cutoff = MIN(cutoff, (int64_t)n);
		else if (text_duration_ms(v, &n) == 0)
			cutoff = MIN(cutoff, (int64_t)time(NULL) - (int64_t)(n / 1000));
		else
			return err_set(e, -EINVAL,
				       "--filter: '%.60s' is neither a duration nor a time", v);
	}
	*ret = cutoff;
	return 0;
}
