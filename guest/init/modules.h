#pragma once
/* Kernel modules of the initramfs. */

/* Load what /modules/order names, in that order. A module that cannot be loaded is noted in the kernel's
 * log: whether it was needed shows when its device is missing. */
void modules_load(void);

/* Show the modules of this kernel, of our own template's root (a directory), at /usr/lib/modules of a root that has them not. What cannot be
 * done is noted. */
void modules_show(int base);
