#pragma once
/* Kernel modules of the initramfs. */

/* Load what /modules/order names, in that order. A module that cannot be loaded is noted in the kernel's
 * log: whether it was needed shows when its device is missing. */
void modules_load(void);
