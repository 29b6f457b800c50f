/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An endpoint of weft's (FI_WEFT_CXI=native) joins a group with one of libfabric's CXI provider, which has no index for
 * messages of weft's own: the join ends with an error, at once, and the endpoints exchange a message after it. In one
 * process over the model of the NIC. tests/cxi/interop.sh runs it.
 */
#include <rdma/fi_collective.h>

#include "side.h"

/* join has ours try to join both, and returns the error. */
static int join(struct side *ours, fi_addr_t first, fi_addr_t last)
{
	struct fi_av_set_attr attr = { .start_addr = first, .end_addr = last, .stride = 1 };
	struct fi_eq_err_entry err = { 0 };
	struct fid_av_set *set;
	struct fid_mc *group;
	uint32_t event;
	char entry[64];
	ssize_t rc;

	ok("fi_av_set", fi_av_set(ours->av, &attr, &set, NULL));
	ok("fi_join_collective", fi_join_collective(ours->ep, FI_ADDR_NOTAVAIL, set, 0, &group, NULL));
	for (time_t end = time(NULL) + 20;;) {
		rc = fi_eq_read(ours->eq, &event, entry, sizeof(entry), 0);
		if (rc != -FI_EAGAIN)
			break;
		if (time(NULL) > end)
			ok("the join does not end", -FI_ETIMEDOUT);
	}
	if (rc == -FI_EAVAIL)
		ok("fi_eq_readerr", fi_eq_readerr(ours->eq, &err, 0));
	ok("close the group", fi_close(&group->fid));
	ok("close the set", fi_close(&set->fid));
	return err.err;
}

/* exchange sends a message from ours to theirs. */
static void exchange(struct side *ours, struct side *theirs, fi_addr_t to)
{
	struct fi_cq_tagged_entry e;
	uint64_t out = 42, in = 0;
	bool sent = false, came = false;

	ok("fi_trecv", fi_trecv(theirs->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 7, 0, NULL));
	ok("fi_tsend", fi_tsend(ours->ep, &out, sizeof(out), NULL, to, 7, NULL));
	for (time_t end = time(NULL) + 20; !sent || !came;) {
		sent = sent || fi_cq_read(ours->cq, &e, 1) == 1;
		came = came || fi_cq_read(theirs->cq, &e, 1) == 1;
		if (time(NULL) > end)
			ok("the message does not come", -FI_ETIMEDOUT);
	}
	if (in != out)
		ok("the message", -FI_EIO);
}

int main(void)
{
	struct side ours = { 0 }, theirs = { 0 };
	fi_addr_t self, other;
	int why;

	open_side(&ours, "weft", FI_MSG | FI_TAGGED | FI_COLLECTIVE);
	open_side(&theirs, "cxi", FI_MSG | FI_TAGGED);
	ok("fi_av_insert", fi_av_insert(ours.av, &ours.name, 1, &self, 0, NULL) - 1);
	ok("fi_av_insert", fi_av_insert(ours.av, &theirs.name, 1, &other, 0, NULL) - 1);
	why = join(&ours, self, other);
	if (why != FI_EHOSTUNREACH) {
		printf("not ok - a join with an endpoint of libfabric's provider ends with %d\n", why);
		return 1;
	}
	exchange(&ours, &theirs, other);
	printf("ok - a join with an endpoint of libfabric's provider ends with an error: %s\n", fi_strerror(why));
	return 0;
}
