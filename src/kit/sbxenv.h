#pragma once
/* sbxenv.yaml: one file for a whole environment: which agent, with which kits, folders, secrets, and which commands of the host around it. docs/env.md has the language.
 *
 * Several files are one: maps are merged by key, lists go behind each other, a later text takes an earlier one's place. Then references are replaced: ${{ env.args.NAME }},
 * ${{ env.projectDir }}, ${{ env.fileDir }}; "$${{" is "${{". What is replaced is a value that YAML has read, so no value becomes a key or another line. Hostile bytes are fine;
 * nothing here makes a system call. What is in the language and not built is refused by its name. */
#include "kit/kit.h"

enum { SBXENV_FILES_MAX = 16, SBXENV_COMMANDS_MAX = 64 };

struct sbxenv_file {
	const char *name; /* absolute path */
	const char *dir;  /* its folder, absolute */
	const char *text;
	size_t n;
	bool user; /* the user's defaults: may not name the sandbox, and its workspace is the project or below */
};

/* Exactly one of value, ref and command. */
struct sbxenv_source {
	char *value, *ref, *command, *refresh;
	bool snapshot, no_verify;
};
struct sbxenv_secret {
	char *service;
	struct sbxenv_source source;
};
struct sbxenv_registry {
	char *host;
	struct sbxenv_source secret, username;
};
struct sbxenv_binding {
	char *service;
	struct kit_texts api_key, oauth; /* domains */
};
struct sbxenv_kit {
	char *source; /* paths are absolute */
	struct kit_var *args;
	size_t n_args;
};
struct sbxenv_folder {
	char *path; /* absolute */
	bool read_only;
};
struct sbxenv_port {
	uint16_t sandbox, host;   /* host 0: any */
	char *protocol, *host_ip; /* or NULL */
};
enum sbxenv_phase { SBXENV_INITIALIZE = 0, SBXENV_POST_CREATE, SBXENV_PRE_REMOVE, SBXENV_PHASES };
struct sbxenv_command {
	char *name;          /* never NULL */
	char *command;       /* of a shell */
	char *workdir;       /* absolute */
	uint64_t timeout_ms; /* 0: none */
};

struct sbxenv {
	char *name, *agent; /* name: NULL if it is not said */
	char *workspace;    /* absolute, or NULL */
	bool clone;
	char *tmpl, *pull; /* or NULL */
	uint64_t memory;   /* bytes; 0: not said */
	uint32_t cpus;
	struct sbxenv_kit *kits;
	struct sbxenv_folder *folders;
	struct kit_var *vars;
	struct sbxenv_secret *secrets;
	struct sbxenv_registry *registries;
	struct sbxenv_binding *bindings;
	struct sbxenv_port *ports;
	struct sbxenv_command *commands[SBXENV_PHASES];
	size_t n_kits, n_folders, n_vars, n_secrets, n_registries, n_bindings, n_ports,
		n_commands[SBXENV_PHASES];
	struct pool pool; /* that all of it is in */
};

/* project: ${{ env.projectDir }}. args: --env-arg; those that are declared are marked used. 0; -EINVAL with all faults in the report and the first in e; -E2BIG; -ENOMEM. The
 * caller zeroes the report, and calls report_done(). sbxenv_done() on success. */
int sbxenv_parse(const struct sbxenv_file *files, size_t n, const char *project,
		 struct kit_args *args, struct sbxenv *ret, struct kit_report *rep, struct err *e)
	_must_check_;
void sbxenv_done(struct sbxenv *v);
