/* Of all that terminals understand only control sequences (ECMA-48: ESC '[', parameters, a final byte) are looked at, and of these only those that
 * switch a mode. Strings (OSC, DCS, APC, PM, SOS) are passed over as a whole, so that nothing inside of them counts. */
#include "base/term.h"

enum { GROUND, ESCAPE, CONTROL, STRING, STRING_ESCAPE };
enum { ESC = 0x1b, BEL = 0x07, CAN = 0x18, SUB = 0x1a };

/* DEC private modes; `off` are those that a new terminal has on. */
static const struct mode {
	uint16_t number;
	bool off, draws;
} modes[TERM_MODES] = {
	{ 1049, false, true },  { 1047, false, true },  { 47, false, true },
	{ 25, true, true }, /* a cursor that is not shown */
	{ 1, false, false },    { 7, true, false },     { 1000, false, false },
	{ 1002, false, false }, { 1003, false, false }, { 1004, false, false },
	{ 1005, false, false }, { 1006, false, false }, { 1015, false, false },
	{ 1016, false, false }, { 2004, false, false }, { 2031, false, false },
};

static unsigned number(const char **p)
{
	unsigned v = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		v = MIN(v * 10 + (unsigned)(**p - '0'), 100000U);
	return v;
}

static void set_modes(struct term *t, bool set)
{
	const char *p = t->params;

	for (;;) {
		unsigned v = number(&p);

		for (size_t i = 0; i < TERM_MODES; i++)
			if (modes[i].number == v)
				t->on = (uint16_t)(set != modes[i].off ? t->on | 1U << i
								       : t->on & ~(1U << i));
		if (*p++ != ';')
			return;
	}
}

static void keyboard(struct term *t)
{
	const char *p = t->params;
	unsigned v = number(&p);

	if (t->mark == '>') {
		t->kitty = (uint8_t)MIN(t->kitty + 1, 100);
		t->flags = (uint16_t)(v & 31);
	} else if (t->mark == '<') {
		v = v ? v : 1;
		t->kitty = (uint8_t)(t->kitty > v ? t->kitty - v : 0);
	} else if (t->mark == '=') {
		t->flags = (uint16_t)(v & 31);
		t->kitty = t->kitty ? t->kitty : v != 0;
	}
}

static void control(struct term *t, uint8_t final)
{
	const char *p = t->params;

	t->params[t->n] = '\0';
	if (t->mark == '?' && (final == 'h' || final == 'l'))
		set_modes(t, final == 'h');
	else if (final == 'u')
		keyboard(t);
	else if (t->mark == '>' && final == 'm' && number(&p) == 4)
		t->modify = *p == ';' && p[1] >= '1' && p[1] <= '9';
	else if (final == 'p' && !t->mark && streq(t->params, "!"))
		t->on = 0; /* soft reset */
}

static void begin(struct term *t)
{
	t->state = CONTROL;
	t->mark = t->n = 0;
}

static void escape(struct term *t, uint8_t c)
{
	t->state = GROUND;
	if (c == '[')
		begin(t);
	else if (c && strchr("]PX^_", c))
		t->state = STRING;
	else if (c == ESC)
		t->state = ESCAPE;
	else if (c == 'c') /* reset */
		*t = (struct term) { 0 };
}

static void in_control(struct term *t, uint8_t c)
{
	if (c == ESC) {
		t->state = ESCAPE;
	} else if (c == CAN || c == SUB) {
		t->state = GROUND;
	} else if (c >= 0x40 && c < 0x7f) {
		t->state = GROUND;
		control(t, c);
	} else if (!t->n && !t->mark && c >= 0x3c && c <= 0x3f) {
		t->mark = c;
	} else if (c >= 0x20) {
		/* one that is too long means nothing that is looked for */
		if (t->n == TERM_PARAMS_MAX)
			t->state = GROUND;
		else
			t->params[t->n++] = (char)c;
	}
}

static void in_string(struct term *t, uint8_t c)
{
	if (c == ESC)
		t->state = STRING_ESCAPE;
	else if (c == BEL || c == CAN || c == SUB || (c == '\\' && t->state == STRING_ESCAPE))
		t->state = GROUND;
	else
		t->state = STRING;
}

void term_see(struct term *t, const void *p, size_t n)
{
	const uint8_t *c = p, *end = c + n;

	for (; c < end; c++) {
		switch (t->state) {
		case GROUND:
			c = memchr(c, ESC, (size_t)(end - c));
			if (!c)
				return;
			t->state = ESCAPE;
			break;
		case ESCAPE:
			escape(t, *c);
			break;
		case CONTROL:
			in_control(t, *c);
			break;
		default:
			in_string(t, *c);
		}
	}
}

bool term_draws(const struct term *t)
{
	for (size_t i = 0; i < TERM_MODES; i++)
		if (modes[i].draws && t->on & 1U << i)
			return true;
	return t->kitty;
}

static int put(const struct term *t, struct buf *out, bool back)
{
	int r = 0;

	/* the screen first, since a terminal keeps its keyboard modes by the screen; on the way back last */
	for (size_t k = 0; k < TERM_MODES && r == 0; k++) {
		size_t i = back ? TERM_MODES - 1 - k : k;

		if (t->on & 1U << i)
			r = buf_printf(out, "\x1b[?%u%c", modes[i].number,
				       back != modes[i].off ? 'l' : 'h');
		if (r == 0 && !back && i == 2 && t->kitty)
			r = buf_printf(out, "\x1b[>%uu", t->flags);
		if (r == 0 && back && i == 3 && t->kitty)
			r = buf_printf(out, "\x1b[<%uu", t->kitty);
	}
	if (r == 0 && t->modify)
		r = buf_printf(out, back ? "\x1b[>4;0m" : "\x1b[>4;2m");
	return r;
}

int term_put(const struct term *t, struct buf *out)
{
	return put(t, out, false);
}

int term_undo(const struct term *t, struct buf *out)
{
	int r = put(t, out, true);

	return r == 0 ? buf_printf(out, "\x1b[0m") : r;
}
