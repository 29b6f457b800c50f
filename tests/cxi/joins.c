/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An endpoint of weft's (FI_WEFT_CXI=native) joins a group with one of libfabric's CXI provider, which has no index for
 * messages of weft's own: the join ends with an error, at once, and the endpoints exchange a message after it. In one
 * process over the model of the NIC. tests/cxi/interop.sh runs it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* ok ends the program where a call has failed. */
static void ok(const char *what, long rc)
{
	if (rc < 0) {
		printf("not ok - %s: %ld (%s)\n", what, rc, fi_strerror((int)-rc));
		exit(1);
	}
}

/* A provider's endpoint, and what belongs to it. */
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	uint64_t name;
};

static void open_side(struct side *s, const char *provider, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	size_t len = sizeof(s->name);

	hints->caps = caps;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(provider);
	ok(provider, fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	ok("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	ok("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	ok("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	ok("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	ok("fi_eq_open", fi_eq_open(s->fabric, &eq, &s->eq, NULL));
	ok("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	ok("bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	ok("bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	ok("bind", fi_ep_bind(s->ep, &s->eq->fid, 0));
	ok("fi_enable", fi_enable(s->ep));
	ok("fi_getname", fi_getname(&s->ep->fid, &s->name, &len));
}

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
