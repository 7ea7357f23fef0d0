/* What both directions of a copy share: names, and how they are shown. */
#include "io/tree.h"

#include <stdio.h>

#include "io/tree-show.h"

int tree_source_name(const char *path, char ret_name[COPY_NAME_MAX + 1])
{
	size_t end = strlen(path), start;

	if (!end)
		return -EINVAL;
	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/';)
		start--;
	path += start;
	end -= start;
	if (!end || (end == 1 && path[0] == '.') || (end == 2 && path[0] == '.' && path[1] == '.'))
		return 0;
	if (end > COPY_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, path, end);
	ret_name[end] = '\0';
	return 1;
}

const char *tree_show(char dst[TREE_SHOW_MAX], const char *top, const char *path)
{
	size_t top_len = strlen(top), len = strlen(path), room = TREE_SHOW_MAX - 1;
	const char *slash = len && top_len && top[top_len - 1] != '/' ? "/" : "";

	if (top_len + 1 + len <= room)
		(void)snprintf(dst, TREE_SHOW_MAX, "%.*s%s%.*s", (int)top_len, top, slash, (int)len,
			       path);
	else if (len && len + 4 <= room)
		(void)snprintf(dst, TREE_SHOW_MAX, ".../%s", path);
	else if (len)
		(void)snprintf(dst, TREE_SHOW_MAX, "...%s", path + len - (room - 3));
	else
		(void)snprintf(dst, TREE_SHOW_MAX, "...%s", top + top_len - (room - 3));
	return dst;
}

int tree_fault(struct err *e, int code, const char *what, const char *top, const char *path)
{
	char shown[TREE_SHOW_MAX];

	return err_errno(e, code, "%s '%s'", what, tree_show(shown, top, path));
}
