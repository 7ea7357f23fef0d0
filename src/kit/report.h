#pragma once
/* What is wrong with a file that a person wrote, all of it at once: "spec.yaml:3:5: ports[0].container: found 'x', expected a port". */
#include "base/err.h"
#include "kit/yaml.h"

enum { KIT_FAULTS_MAX = 64, KIT_WARNINGS_MAX = 256 };

struct kit_fault {
	unsigned line, column; /* from 1; 0: it is about the file as a whole */
	char text[384];        /* with file, line, column and field */
};

struct kit_report {
	struct kit_fault *v;
	size_t n;
	char **warnings; /* each one line, with file, line, column and field */
	size_t n_warnings;
	bool failed; /* no memory for one */
};

/* Beyond KIT_FAULTS_MAX faults are counted no more. Control bytes become '?'. at NULL: about the file. The field is that of the node. */
void report_fault(struct kit_report *r, const char *file, const struct yaml *at, const char *fmt,
		  ...) _printf_(4, 5);
void report_fault_at(struct kit_report *r, const char *file, unsigned line, unsigned column,
		     const char *fmt, ...) _printf_(5, 6);
/* Said once, whatever is said twice in the same words. */
void report_warn(struct kit_report *r, const char *file, const struct yaml *at, const char *fmt,
		 ...) _printf_(4, 5);
/* Sorts faults by line; the first of them in e, if there is one: -EINVAL. 0; -ENOMEM. */
int report_result(struct kit_report *r, struct err *e) _must_check_;
void report_done(struct kit_report *r);
