/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which entry of a table entry's lists takes a message, and how much room it has.
 */
#include <stdlib.h>
#include "nic.h"

/* same_initiator compares a match id with the initiator's, either half of which may be any. */
static bool same_initiator(uint32_t id, uint32_t initiator, bool logical)
{
	const uint32_t rank = (1u << (32 - PID_BITS)) - 1, nid = LIMIT_NID_ANY;
	uint32_t want = id & rank, have = initiator & rank;

	if (id >> (32 - PID_BITS) != LIMIT_PID_ANY && id >> (32 - PID_BITS) != initiator >> (32 - PID_BITS))
		return false;
	return want == rank || (!logical && (want & nid) == nid) || want == have;
}

/* command_matches compares a message with an append or a search. */
bool command_matches(const struct pte *p, const uint8_t *cmd, const struct request *rq)
{
	uint64_t ignore = get(cmd, TARGET_IGNORE_BITS);

	if (!p->opts.is_matching)
		return true;
	return !((get(cmd, TARGET_MATCH_BITS) ^ rq->match_bits) & ~ignore) &&
	       same_initiator((uint32_t)get(cmd, TARGET_MATCH_ID), rq->initiator, p->opts.use_logical);
}

/* entry_left is the room at which the next message lands. */
uint64_t entry_left(const struct entry *e)
{
	return get(e->cmd, TARGET_LENGTH) - e->used;
}

/* entry_matches reports whether an entry takes a message. One that may not truncate is passed over by
 * what it has no room for. */
bool entry_matches(const struct entry *e, const struct request *rq)
{
	if (!command_matches(e->pte, e->cmd, rq))
		return false;
	return !get(e->cmd, TARGET_NO_TRUNCATE) || !get(e->cmd, TARGET_MANAGE_LOCAL) || rq->length <= entry_left(e);
}

static struct entry *search(struct pte *p, int list, const struct request *rq)
{
	for (struct link *i = p->lists[list].next; i != &p->lists[list]; i = i->next) {
		struct entry *e = CONTAINER(i, struct entry, link);

		if (entry_matches(e, rq))
			return e;
	}
	return NULL;
}

/* match_entry finds what takes a message: the priority list, then the overflow list, or the request list where software
 * does the matching of what no receive takes. */
struct entry *match_entry(struct pte *p, const struct request *rq, int *list)
{
	int skipped = p->state == PTLTE_STATE_SOFTWARE_MANAGED ? LIST_OVERFLOW : LIST_REQUEST;
	struct entry *e;

	for (*list = LIST_PRIORITY; *list <= LIST_REQUEST; (*list)++) {
		if (*list == skipped)
			continue;
		e = search(p, *list, rq);
		if (e)
			return e;
	}
	return NULL;
}

/* entry_spent reports whether an entry goes after the operation that just used it. */
bool entry_spent(const struct entry *e)
{
	uint64_t min_free = get(e->cmd, TARGET_MIN_FREE);

	return get(e->cmd, TARGET_USE_ONCE) ||
	       (get(e->cmd, TARGET_MANAGE_LOCAL) && min_free && entry_left(e) < min_free);
}

/* entry_release frees an entry that is in no list once nothing lands there. */
void entry_release(struct entry *e)
{
	if (e->unlinked && !e->busy) {
		le_give(e->pte);
		free(e);
	}
}
