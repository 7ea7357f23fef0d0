#pragma once
/* Calls that fail to compile, each with what to use instead. Included last by
 * base.h, after the headers that declare them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef gmtime
#undef localtime
#undef ctime
#undef asctime
#undef strtok
#undef system
#undef popen
#undef mktemp

#define strcpy(x, y)     banned_use_text_copy_instead_of_strcpy
#define strcat(x, y)     banned_use_buf_printf_instead_of_strcat
#define strncpy(x, y, n) banned_use_text_copy_instead_of_strncpy
#define strncat(x, y, n) banned_use_buf_printf_instead_of_strncat
#define sprintf(...)     banned_use_snprintf_instead_of_sprintf
#define vsprintf(...)    banned_use_vsnprintf_instead_of_vsprintf
#define gmtime(t)        banned_use_gmtime_r
#define localtime(t)     banned_use_localtime_r
#define ctime(t)         banned_use_strftime
#define asctime(t)       banned_use_strftime
#define strtok(s, d)     banned_use_strtok_r
#define system(c)        banned_use_sys_spawn
#define popen(c, m)      banned_use_sys_spawn
#define mktemp(t)        banned_use_mkostemp
#define atoi(s)          banned_use_text_u64_instead_of_atoi
#define atol(s)          banned_use_text_u64_instead_of_atol
