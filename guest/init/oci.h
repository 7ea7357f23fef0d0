#pragma once
/* runc's place in the PATH of dockerd. */

#define OCI_DIR "/run/bac/oci" /* holds a link "runc" to this program */

/* This program was called as runc: see that the container trusts the sandbox's authority, then be the real runc. Returns only where there is none:
 * the exit status. */
int oci_main(char **argv);
