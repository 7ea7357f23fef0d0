#pragma once
/* Every limit of every conversation, in one place. docs/protocol/ctl.md names them, and
 * test-msg.c compares. Sizes in bytes, times in milliseconds. */

enum {
	WIRE_FRAME_MAX = 32 * 1024, /* payload of one frame */
	WIRE_WINDOW = 256 * 1024,   /* credit of one channel at its start, and the most there is */
	WIRE_EXEC_MAX = 2 * 1024 * 1024 + 128 * 1024, /* one EXEC message, all its frames */
	WIRE_ARGS_MAX = 16384,                        /* arguments of one EXEC */
	WIRE_ENV_MAX = 4096,                          /* environment entries of one EXEC */
	WIRE_ARG_LEN_MAX =
		131071,           /* one argument or entry (the kernel's MAX_ARG_STRLEN less NUL) */
	WIRE_STREAMS_MAX = 256,   /* open at once in one guest */
	WIRE_NAME_MAX = 63,       /* sandbox name, host name */
	WIRE_USER_MAX = 255,      /* user[:group] */
	WIRE_PATH_MAX = 4095,     /* any path in a message */
	WIRE_TEXT_MAX = 1023,     /* messages for people */
	WIRE_RELEASE_MAX = 127,   /* kernel release */
	WIRE_PEM_MAX = 16 * 1024, /* the sandbox's own certificate authority */
	WIRE_DEFAULTS_MAX = 256,  /* entries of one ENV */
	COPY_EXTENT_MAX = 1024 * 1024, /* one extent of a copy stream */
	COPY_NAME_MAX = 255,           /* one component of a path in a copy stream */
	COPY_LINKS_MAX = 262144,       /* HARD may name one of the first so many FILEs */
	DOOR_SHARES_MAX = 1024,        /* folders and files shared with one sandbox */
	DOOR_CLIENTS_MAX = 320,        /* connections to one supervisor */
	DOOR_JOBS_MAX = 64,            /* detached jobs remembered by one supervisor */
	DOOR_JOB_RING = 256 * 1024,    /* output kept of each */
	DOOR_COMMAND_MAX = 511,        /* a job's command line, cut, in a JOB message */
	SHARE_MSG_MAX = 192 * 1024, /* one message between a supervisor and its workspace server */
	SHARE_RULES_MAX = 512,      /* path rules of one workspace server */
	SHARE_REFUSALS_MAX = 16,    /* REFUSED messages in a second; the rest is counted */
	PROXY_FLOWS_MAX = 12000,    /* connections of one sandbox through the proxy */
	LOG_FILE_MAX = 1024 * 1024, /* a sandbox's console log; one older one is kept */
};
