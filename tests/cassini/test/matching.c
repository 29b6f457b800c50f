/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Matching against a plain reference: random appends, unlinks and puts, and every event compared.
 */
#include "rig.h"

#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
enum { SEEDS = 400 };
#else
enum { SEEDS = 2000 };
#endif
enum { MOST = 512, STEPS = 120, AREA = 4096, AREAS = 200, GRAIN = 16 };

struct ref_entry {
	unsigned int id, flags;
	uint64_t bits, length, used, min_free;
};

struct ref_message {
	uint64_t bits, length, kept;
};

/* The reference: three lists as arrays, in order, and the events that must come. */
static struct reference {
	struct ref_entry entries[2][MOST];
	unsigned int count[2];
	struct ref_message unexpected[MOST];
	unsigned int waiting;
	struct {
		int type;
		unsigned int id, rc;
		uint64_t mlength;
		bool whole;
	} events[MOST];
	unsigned int due;
} ref;

static void expect(int type, unsigned int id, unsigned int rc, uint64_t mlength)
{
	ref.events[ref.due].type = type;
	ref.events[ref.due].id = id;
	ref.events[ref.due].rc = rc;
	ref.events[ref.due++].mlength = mlength;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool takes(const struct ref_entry *e, int list, uint64_t bits, uint64_t length)
{
	if (list == LIST_PRIORITY && e->bits != bits)
		return false;
	return !(e->flags & NO_TRUNCATE && e->flags & MANAGED) || length <= e->length - e->used;
}

static bool spent(const struct ref_entry *e)
{
	return e->flags & USE_ONCE || (e->flags & MANAGED && e->min_free && e->length - e->used < e->min_free);
}

static void take_out(int list, unsigned int i)
{
	memmove(&ref.entries[list][i], &ref.entries[list][i + 1], (ref.count[list] - i - 1) * sizeof(struct ref_entry));
	ref.count[list]--;
}

static void ref_append(int list, struct ref_entry e)
{
	for (unsigned int i = 0; list == LIST_PRIORITY && i < ref.waiting;) {
		struct ref_message m = ref.unexpected[i];

		if (!takes(&e, list, m.bits, m.length)) {
			i++;
			continue;
		}
		memmove(&ref.unexpected[i], &ref.unexpected[i + 1], (ref.waiting - i - 1) * sizeof m);
		ref.waiting--;
		if (e.flags & MANAGED)
			e.used += least(m.length, e.length - e.used);
		expect(EVENT_PUT_OVERFLOW, e.id, RC_OK, m.kept);
		if (spent(&e))
			return;
	}
	ref.entries[list][ref.count[list]++] = e;
	expect(EVENT_LINK, e.id, RC_OK, 0);
}

static void ref_unlink(int list, unsigned int id)
{
	for (unsigned int i = 0; i < ref.count[list]; i++)
		if (ref.entries[list][i].id == id) {
			take_out(list, i);
			expect(EVENT_UNLINK, id, RC_OK, 0);
			return;
		}
	expect(EVENT_UNLINK, id, RC_ENTRY_NOT_FOUND, 0);
}

static void ref_put(uint64_t bits, uint64_t length)
{
	for (int list = LIST_PRIORITY; list <= LIST_OVERFLOW; list++)
		for (unsigned int i = 0; i < ref.count[list]; i++) {
			struct ref_entry *e = &ref.entries[list][i];
			uint64_t kept = least(length, e->length - e->used);
			unsigned int id = e->id;

			if (!takes(e, list, bits, length))
				continue;
			if (!(e->flags & MANAGED) && length > e->length) {
				expect(EVENT_ACK, 0, RC_ADDR_OUT_OF_RANGE, 0);
				return;
			}
			if (e->flags & MANAGED)
				e->used += kept;
			if (list == LIST_OVERFLOW)
				ref.unexpected[ref.waiting++] = (struct ref_message){ bits, length, kept };
			if (spent(e)) {
				take_out(list, i);
				expect(EVENT_UNLINK, id, RC_OK, 0);
			}
			expect(EVENT_PUT, id, RC_OK, kept);
			expect(EVENT_ACK, 0, RC_OK, kept);
			return;
		}
	expect(EVENT_PUT, 0, RC_ENTRY_NOT_FOUND, 0);
	expect(EVENT_ACK, 0, RC_ENTRY_NOT_FOUND, 0);
}

/* compare takes the events of one step. */
static void compare(struct rig *r, uint64_t seed, int step)
{
	uint8_t e[64];
	int type;

	for (unsigned int i = 0; i < ref.due; i++) {
		bool ack;

		type = next(r, e);
		ack = type == EVENT_ACK;
		if (type != ref.events[i].type || event_rc(e) != ref.events[i].rc ||
		    (!ack && get(e, EVENT_TARGET_LONG_BUFFER_ID) != ref.events[i].id) ||
		    (ack ? get(e, EVENT_INITIATOR_MLENGTH) : get(e, EVENT_TARGET_LONG_MLENGTH)) !=
			    ref.events[i].mlength) {
			fprintf(stderr, "seed %lu, step %d, event %u: type %d not %d, rc %u not %u\n",
				(unsigned long)seed, step, i, type, ref.events[i].type, type < 0 ? 0 : event_rc(e),
				ref.events[i].rc);
			exit(1);
		}
	}
	CHECK(next(r, e) == -1);
	ref.due = 0;
}

/* one_append chooses an entry and appends it on both sides. */
static void one_append(struct rig *r, uint64_t *state, unsigned int id)
{
	int list = draw(state) % 3 ? LIST_PRIORITY : LIST_OVERFLOW;
	struct ref_entry e = { .id = id, .bits = draw(state) % 4, .length = 64 + GRAIN * (draw(state) % 28) };
	static const unsigned int kinds[] = { USE_ONCE, USE_ONCE | MANAGED, USE_ONCE | MANAGED | NO_TRUNCATE, MANAGED,
					      0 };

	e.flags = kinds[draw(state) % 5];
	if (list == LIST_OVERFLOW) {
		e.flags = MANAGED;
		e.length = 2048;
	}
	if (e.flags == MANAGED)
		e.min_free = draw(state) % 3 ? GRAIN * (1 + draw(state) % 12) : 0;
	append(r, list, e.id, e.bits, (id % AREAS) * AREA, e.length, e.flags, (uint32_t)e.min_free);
	ref_append(list, e);
}

static void run_seed(uint64_t seed)
{
	struct pt_opts opts = { .is_matching = 1, .use_long_event = 1 };
	uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
	unsigned int id = 1;
	struct rig r;

	memset(&ref, 0, sizeof ref);
	rig_open(&r, opts, 16 * PAGE);
	for (int step = 0; step < STEPS; step++) {
		uint64_t bits = draw(&state) % 4;
		uint32_t length = GRAIN * (draw(&state) % 38);
		int list = draw(&state) % 2 ? LIST_PRIORITY : LIST_OVERFLOW;
		unsigned int some = 1 + draw(&state) % id;

		switch (draw(&state) % 8) {
		case 0:
		case 1:
		case 2:
			one_append(&r, &state, id++);
			break;
		case 3:
			unlink_id(&r, list, some);
			ref_unlink(list, some);
			break;
		default:
			dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, bits, AREA * AREAS, length, 0);
			ref_put(bits, length);
		}
		compare(&r, seed, step);
	}
	rig_close(&r);
}

static void reference(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_seed(seed);
}

const struct test matching_tests[] = { { "reference", reference }, {} };
