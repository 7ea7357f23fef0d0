#pragma once
/* A kit: the environment of an agent as reviewed text. docs/kits.md has the language.
 *
 * Life: kit_parse() reads one specification into a checked value (hostile bytes are fine), kit_compose() makes one kit of a sandbox kit, its parents and its mixins; what runs
 * is made of that. Nothing here makes a system call. All that hangs at a struct kit is its own, until kit_done(); a struct kit of zeros may be given to kit_done(). */
#include "kit/args.h"
#include "kit/declare.h"
#include "kit/pool.h"
#include "kit/report.h"

enum {
	KIT_NAME_MAX = 64,
	KIT_EXTENDS_MAX = 5, /* parents of a kit */
	KIT_MIXINS_MAX = 64,
	KIT_ITEMS_MAX = 1024, /* of one list */
};

enum kit_kind { KIT_SANDBOX = 1, KIT_MIXIN };
enum kit_protocol { KIT_TCP4 = 0 /* what is said by nothing: TCP on IPv4 */, KIT_TCP, KIT_UDP };

struct kit_texts {
	char **v; /* NULL-terminated where n > 0 */
	size_t n;
};
struct kit_var {
	char *name,
		*value; /* PATH: has "${PATH}" once, where what is there already goes: kit_path() */
	const char *kit; /* whose it is */
};
struct kit_step {
	char **argv; /* startup: argv; install: "sh", "-c", COMMAND. NULL-terminated */
	size_t argc;
	char *user; /* "0", "1000", a name */
	char *description;
	bool background;
	const char *kit;
};
struct kit_setup_file {
	char *path, *content /* ${WORKDIR} is for who writes it to replace */, *description;
	unsigned mode;
	bool only_if_missing;
	const char *kit;
};
struct kit_port {
	uint16_t container;
	uint8_t protocol; /* enum kit_protocol */
	char *name;
	const char *kit;
};
struct kit_volume {
	char *path;
	bool tmpfs;
	uint64_t size; /* bytes; 0: default */
	unsigned mode; /* 0: default */
	const char *kit;
};
struct kit_instructions {
	char *filename, *content; /* either may be NULL */
	const char *kit;
};

struct kit {
	uint8_t kind, version; /* version: 1 or 2, as written */
	char *name, *kit_version, *display_name, *description, *source_url;
	struct kit_texts licenses, locked;
	bool privileged;
	char *requires_agent, *extends;
	struct kit_texts mixins;
	char *image;
	struct kit_texts entrypoint, command, interactive;
	bool has_command, has_interactive; /* said, if only as an empty list */
	double cpu;
	uint64_t memory;
	char *gpu; /* resources; 0, NULL: not said */
	struct kit_texts allow,
		deny; /* as policy/net.h writes them. A bare name in allow has become NAME:443; in deny it is every port */
	struct kit_port *ports;
	size_t n_ports;
	struct kit_var *vars;
	size_t n_vars;
	struct kit_step *install, *startup;
	size_t n_install, n_startup;
	struct kit_setup_file *files;
	size_t n_files;
	struct kit_volume *volumes;
	size_t n_volumes;
	struct kit_instructions
		*instructions; /* one in a kit, all of them in a composition, the sandbox's first */
	size_t n_instructions;
	struct declarations credentials;
	struct kit_args args; /* declared ones, with the value that was given, or the default */
	struct pool pool;     /* that all of it is in, but credentials */
};

/* file: for messages. args: what was given; those of other kits are left alone, those that this one has are marked `used`. NULL: none. 0; -EINVAL with all
 * faults in the report and the first in e; -E2BIG; -ENOMEM. Warnings are in the report either way. The caller zeroes the report, and calls report_done(). */
int kit_parse(const char *file, const char *text, size_t n, struct kit_args *args, struct kit *ret,
	      struct kit_report *rep, struct err *e) _must_check_;
void kit_done(struct kit *k);

/* One sandbox kit (parents of extends already found: chain, nearest first) and mixins in order. 0; -EINVAL with the report; -ENOMEM. */
int kit_compose(const struct kit *base, const struct kit *const *parents, size_t n_parents,
		const struct kit *const *mixins, size_t n_mixins, struct kit *ret,
		struct kit_report *rep, struct err *e) _must_check_;

/* The normal form of one kit, schema 2, as YAML: kit_parse() reads it into the same again. Of a composition, all but the instructions of mixins and whose what is. 0; -ENOBUFS; -ENOMEM. */
int kit_write(const struct kit *k, struct buf *out) _must_check_;
/* The same as JSON, in one line. */
int kit_write_json(const struct kit *k, struct buf *out) _must_check_;
/* Just its credentials, as a text for declare_parse(). Nothing where there are none. */
int kit_write_credentials(const struct kit *k, struct buf *out) _must_check_;

/* The domains of credentials that nothing on the allow list opens, each once for a service; what each() returns below 0 ends it and is returned. The approval of a credential opens
 * such a domain, for HTTPS. 0; -ENOMEM. */
int kit_unlisted(const struct kit *k,
		 int (*each)(void *arg, const char *service, const char *resource), void *arg)
	_must_check_;
/* The value of the kit's PATH with what is there already in the place of "${PATH}". 0; -ENOBUFS; -ENOMEM. */
int kit_path(const char *value, const char *there, struct buf *out) _must_check_;
/* Whose configuration a file below the home directory is ("claude" for ".claude/settings.json"): only that agent's own kit, or one that is made for it, may bring it. NULL: nobody's. */
const char *kit_reserved(const char *below_home);
/* Does a text that sets variables (.env, a devcontainer.json, a Compose file) set this one? It is looked at by lines and by words, not parsed: hostile bytes are fine. */
bool kit_sets(const char *text, size_t n, const char *name);
