/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program written to libfabric that links libweft.so and nothing else:
 *
 *	cc hello.c $(pkg-config --cflags --libs weft)
 *
 * It opens an endpoint and sends itself a tagged message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

static void must(long ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int)ret));
		exit(1);
	}
}

static struct fi_info *find(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (!hints)
		must(-FI_ENOMEM, "fi_allocinfo");
	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->av_type = FI_AV_TABLE;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

/* Waits for the completion of the receive; that of the send comes too. */
static struct fi_cq_tagged_entry wait_recv(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;

	do {
		ssize_t n;
		while ((n = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
			;
		must(n, "fi_cq_read");
	} while (!(entry.flags & FI_RECV));
	return entry;
}

int main(void)
{
	struct fi_info *info = find();
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");

	char name[256], got[64] = "";
	size_t size = sizeof(name);
	fi_addr_t self;
	must(fi_getname(&ep->fid, name, &size), "fi_getname");
	must(fi_av_insert(av, name, 1, &self, 0, NULL), "fi_av_insert");

	const char text[] = "hello over weft";
	must(fi_trecv(ep, got, sizeof(got), NULL, self, 7, 0, NULL), "fi_trecv");
	ssize_t ret;
	while ((ret = fi_tinject(ep, text, sizeof(text), self, 7)) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0); /* makes progress */
	must(ret, "fi_tinject");
	struct fi_cq_tagged_entry entry = wait_recv(cq);
	printf("%s: \"%s\", %zu bytes, tag %llu, provider %s on %s\n", fi_tostr("", FI_TYPE_VERSION), got, entry.len,
	       (unsigned long long)entry.tag, info->fabric_attr->prov_name, info->domain_attr->name);
	int wrong = strcmp(got, text) || entry.len != sizeof(text) || entry.tag != 7;

	must(fi_close(&ep->fid), "close endpoint");
	must(fi_close(&cq->fid), "close cq");
	must(fi_close(&av->fid), "close av");
	must(fi_close(&domain->fid), "close domain");
	must(fi_close(&fabric->fid), "close fabric");
	fi_freeinfo(info);
	return wrong;
}
