#pragma once
/* The Debian mirrors that a host's apt configuration names. Parses texts only, and trusts none. */
#include "base/base.h"

enum { IMAGE_URI_MAX = 512 };

struct image_apt {
	char mirror[IMAGE_URI_MAX];   /* "" if none is found */
	char security[IMAGE_URI_MAX]; /* of debian-security; likewise */
};

/* Look through the text of one file: sources.list, or with deb822 a *.sources. codename is the host's own
 * suite ("bookworm"): only entries for it count, and only those whose address looks like a Debian
 * mirror's. What is already in *a stays. mirror+file: addresses are taken as they are. */
void image_apt_read(struct image_apt *a, const char *text, bool deb822, const char *codename);

/* May this be written into a sources.list? http or https, no spaces, brackets or quotes. */
bool image_apt_is_uri(const char *uri);

/* VERSION_CODENAME of /etc/os-release into dst if ID is debian; false otherwise. */
bool image_apt_codename(const char *os_release, char *dst, size_t max);
