/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A receiver of weft's (FI_WEFT_CXI=native) that has too little room for messages, and does not poll, is closed: all
 * sends of libfabric's CXI provider and of weft's that wait for it end, the last with an error. In one process over the
 * model of the NIC. tests/cxi/interop.sh runs it.
 */
#include "side.h"

enum { SENDS = 200, BYTES = 5000 };

static char out[BYTES];

/* take counts the sends that have ended, and those of them that have failed. */
static void take(struct side *s, int *ended, int *failed)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t rc = fi_cq_read(s->cq, &e, 1);

	if (rc == -FI_EAVAIL) {
		ok("fi_cq_readerr", fi_cq_readerr(s->cq, &err, 0));
		++*failed;
	}
	*ended += rc == 1 || rc == -FI_EAVAIL;
}

static void closes(const char *sender)
{
	struct side ours = { 0 }, theirs = { 0 };
	int posted = 0, ended = 0, failed = 0, before = 0;
	struct timespec pause = { .tv_nsec = 100000 };
	fi_addr_t to;

	open_side(&ours, "weft", FI_MSG | FI_TAGGED);
	open_side(&theirs, sender, FI_MSG | FI_TAGGED);
	ok("fi_av_insert", fi_av_insert(theirs.av, &ours.name, 1, &to, 0, NULL) - 1);
	for (int quiet = 0; quiet < 2000; quiet = ended == before ? quiet + 1 : 0) {
		before = ended;
		if (posted < SENDS && fi_tsend(theirs.ep, out, BYTES, NULL, to, 1, NULL) == 0)
			posted++;
		take(&theirs, &ended, &failed);
		nanosleep(&pause, NULL);
	}
	if (ended == posted || failed)
		ok("the receiver has room, or sends fail", -FI_EINVAL);
	ok("close the receiver", fi_close(&ours.ep->fid));
	for (time_t limit = time(NULL) + 20; ended < posted;) {
		take(&theirs, &ended, &failed);
		if (time(NULL) > limit) {
			printf("not ok - %d of %d sends of %s to a receiver that is closed in flow control end\n",
			       ended, posted, sender);
			exit(1);
		}
	}
	if (!failed)
		ok("no send has failed", -FI_EINVAL);
	printf("ok - %d of %d sends of %s fail, whose receiver is closed in flow control\n", failed, posted, sender);
	ok("close the sender", fi_close(&theirs.ep->fid));
}

int main(void)
{
	setenv("FI_WEFT_CXI_OFLOW_BUF_SIZE", "64k", 1);
	setenv("FI_WEFT_CXI_OFLOW_BUF_COUNT", "2", 1);
	closes("weft");
	closes("cxi");
	return 0;
}
