#pragma once
/* What the supervisor must know of the two texts that it passes on, and no more: whether they call for a keeper, and the environment behind the
 * credentials. They were written by a command of the user's; policy/cred.h and policy/net.h say how they look. Whoever decides by them parses them. */
#include "wire/msg.h"

/* Is there a use in these credentials? */
bool need_cred(const char *p, size_t n);
/* Is there a rule with a method in this policy? */
bool need_net(const char *p, size_t n);

/* The lines "env NAME=value" behind the credentials. What is no such line, or one too many, is left out. The texts are borrowed from p, which is written to.
 * 0, -ENOMEM. The array: wire_env_done(). */
int need_env(char *p, size_t n, struct wire_env *ret) _must_check_;
