#pragma once
/* The parts of a specification, schema 2; what each reads goes into the kit of t. */
#include "kit/kit.h"
#include "kit/take.h"

void spec_sandbox(struct take *t, const struct yaml *y, void *into);
void spec_instructions(struct take *t, const struct yaml *y, void *into);
void spec_permissions(struct take *t, const struct yaml *y, void *into);
void spec_ports(struct take *t, const struct yaml *y, void *into);
void spec_environment(struct take *t, const struct yaml *y, void *into);
void spec_setup(struct take *t, const struct yaml *y, void *into);
void spec_volumes(struct take *t, const struct yaml *y, void *into);

/* `args` of the tree, and what was given, into the kit's. 0 (faults are in the report) or -ENOMEM. */
int spec_args(struct take *t, const struct yaml *tree, struct kit_args *given) _must_check_;
