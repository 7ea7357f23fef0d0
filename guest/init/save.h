#pragma once
/* The sandbox's file system as a tar archive on stdout: what `bac template save` runs inside.
 *
 * Init's own program in another role: it is at /proc/1/exe whatever the image has. What it archives is the root mount alone,
 * by a private copy of it without the mounts that lie on it: no /proc, no /dev, no workspace, no /var/lib/docker, and what those cover up
 * comes to light (an empty directory). Programs stand still meanwhile (pause.h).
 *
 * Left out: sockets; the folders that shares are mounted on; the content of /etc/machine-id. In the order of names, so that the same
 * files make the same bytes. */

/* The exit status; what went wrong is one line on stderr. */
int save_main(void);
