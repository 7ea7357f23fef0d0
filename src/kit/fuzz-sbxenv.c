/* Any text as an sbxenv.yaml, alone and over another: it is told what is wrong, or what comes out is whole. */
#include "base/check.h"
#include "base/text.h"
#include "kit/sbxenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void whole(const struct sbxenv *v)
{
	check(v->agent && (!v->workspace || v->workspace[0] == '/'));
	for (size_t i = 0; i < v->n_folders; i++)
		check(v->folders[i].path[0] == '/');
	for (size_t i = 0; i < v->n_kits; i++)
		check(v->kits[i].source);
	for (size_t i = 0; i < v->n_vars; i++)
		check(v->vars[i].name && v->vars[i].value);
	for (size_t i = 0; i < v->n_ports; i++)
		check(v->ports[i].sandbox);
	for (size_t k = 0; k < SBXENV_PHASES; k++)
		for (size_t i = 0; i < v->n_commands[k]; i++)
			check(v->commands[k][i].command && v->commands[k][i].name &&
			      v->commands[k][i].workdir[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const char base[] =
		"schemaVersion: '1'\nagent: shell\nargs: {a: {default: x}}\nworkspace: .\n"
		"env: {A: b}\nkits: [./k]\nports: [{sandbox: 1}]\n";
	const struct sbxenv_file files[] = {
		{ .name = "/p/base.yaml", .dir = "/p", .text = base, .n = strlen(base) },
		{ .name = "/q/r/it.yaml", .dir = "/q/r", .text = (const char *)p, .n = n },
	};

	for (size_t first = 0; first < 2; first++) {
		struct kit_report rep = { 0 };
		struct kit_args args = { 0 };
		struct sbxenv v;
		struct err e = { 0 };
		int r = kit_args_add(&args, "a=$${ env.args.a }}", &e);

		check(r == 0);
		r = sbxenv_parse(files + first, 2 - first, "/q/r", &args, &v, &rep, &e);
		check(r == 0 || e.msg[0]);
		if (r == 0) {
			whole(&v);
			sbxenv_done(&v);
		}
		report_done(&rep);
		kit_args_done(&args);
	}
	return 0;
}
