/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An all-to-all of parts of different lengths (weft/coll.h): four processes give each other words, then what
 * became of the operation is read. On one host there is something to read with FI_WEFT_RTT_SCHED_ENABLE=yes.
 *
 *	cc alltoallv.c $(pkg-config --cflags --libs weft)
 *
 * Between hosts it is the same: each process joins with the names of all, in the same order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <weft/coll.h>

#define RANKS 4
#define NAME_MAX_BYTES 256
#define UNIT 16384
#define PART (3 * UNIT) /* words: the most that one has for another */

struct member {
	int rank;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mc *group;
	struct weft_coll_ops *coll;
	fi_addr_t peers[RANKS];
};

static void must(long ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
		exit(1);
	}
}

static void open_member(struct member *m)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };

	if (!hints)
		must(-FI_ENOMEM, "fi_allocinfo");
	hints->caps = FI_COLLECTIVE;
	hints->ep_attr->type = FI_EP_RDM;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &m->info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(m->info->fabric_attr, &m->fabric, NULL), "fi_fabric");
	must(fi_domain(m->fabric, m->info, &m->domain, NULL), "fi_domain");
	must(fi_eq_open(m->fabric, &eq, &m->eq, NULL), "fi_eq_open");
	must(fi_av_open(m->domain, &av, &m->av, NULL), "fi_av_open");
	must(fi_cq_open(m->domain, &cq, &m->cq, NULL), "fi_cq_open");
	must(fi_endpoint(m->domain, m->info, &m->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(m->ep, &m->eq->fid, 0), "fi_ep_bind"); /* where joins end */
	must(fi_ep_bind(m->ep, &m->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(m->ep, &m->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(m->ep), "fi_enable");
	must(fi_open_ops(&m->ep->fid, WEFT_COLL_OPS, 0, (void **)&m->coll, NULL), "fi_open_ops");
}

/* Joins a group of all whose names have come, in their order. */
static void join(struct member *m, char names[RANKS][NAME_MAX_BYTES])
{
	struct fi_av_set_attr attr = { .count = RANKS, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fi_eq_entry entry;
	struct fid_av_set *set;
	fi_addr_t addr;
	uint32_t event;
	ssize_t ret;

	must(fi_av_set(m->av, &attr, &set, NULL), "fi_av_set"); /* empty */
	for (int r = 0; r < RANKS; r++) {
		if (fi_av_insert(m->av, names[r], 1, &m->peers[r], 0, NULL) != 1)
			must(-FI_EINVAL, "fi_av_insert");
		must(fi_av_set_insert(set, m->peers[r]), "fi_av_set_insert");
	}
	must(fi_av_set_addr(set, &addr), "fi_av_set_addr");
	must(fi_join_collective(m->ep, addr, set, 0, &m->group, NULL), "fi_join_collective");
	while ((ret = fi_eq_read(m->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
		fi_cq_read(m->cq, NULL, 0); /* makes progress */
	must(ret, "fi_eq_read");
	must(fi_close(&set->fid), "close set"); /* the group has its own */
}

/* How many words one rank has for another, and one of them. */
static uint64_t words(int from, int to)
{
	return (uint64_t)((from + 2 * to) % 4) * UNIT;
}

static uint64_t word(int from, int to, uint64_t i)
{
	return (uint64_t)(from * RANKS + to) << 32 | i;
}

/* Gives and gets, and returns how many words are wrong. */
static int exchange(struct member *m)
{
	static uint64_t given[RANKS * PART], got[RANKS * PART];
	uint64_t to[RANKS], to_at[RANKS], from[RANKS], from_at[RANKS];
	struct fi_cq_entry entry;
	int wrong = 0;
	ssize_t ret;

	for (int r = 0; r < RANKS; r++) {
		to[r] = words(m->rank, r);
		from[r] = words(r, m->rank);
		to_at[r] = from_at[r] = (uint64_t)r * PART;
		for (uint64_t i = 0; i < to[r]; i++)
			given[to_at[r] + i] = word(m->rank, r, i);
	}
	struct weft_alltoallv v = {
		.size = sizeof(v),
		.elem = sizeof(*given),
		.buf = given,
		.counts = to,
		.displs = to_at,
		.result = got,
		.result_counts = from,
		.result_displs = from_at,
		.coll_addr = fi_mc_addr(m->group),
		.context = m,
	};
	while ((ret = m->coll->alltoallv(m->ep, &v)) == -FI_EAGAIN)
		fi_cq_read(m->cq, NULL, 0);
	must(ret, "alltoallv");
	while ((ret = fi_cq_read(m->cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == -FI_EAVAIL) { /* a member is gone, or counts do not agree */
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(m->cq, &err, 0);
		ret = -err.err;
	}
	must(ret, "completion");
	for (int r = 0; r < RANKS; r++)
		for (uint64_t i = 0; i < from[r]; i++)
			wrong += got[from_at[r] + i] != word(r, m->rank, i);
	return wrong;
}

/* Says what became of the last operation, and what is known of the path to the next rank. */
static void send_name(struct member *m)
{
	struct weft_coll_report r = { .size = sizeof(r), .coll_addr = fi_mc_addr(m->group) };
	struct weft_coll_path p = { .size = sizeof(p) };
	int ret = m->coll->report(m->ep, &r);

	if (ret == 0)
		printf("rank %d: %llu bytes sent and %llu received in %llu us\n", m->rank, (unsigned long long)r.out,
		       (unsigned long long)r.received, (unsigned long long)r.took / 1000);
	else if (ret == -FI_ENODATA)
		printf("rank %d: no operation has followed the network\n", m->rank);
	else
		must(ret, "report");
	ret = m->coll->path(m->ep, m->peers[(m->rank + 1) % RANKS], &p);
	if (ret == 0)
		printf("rank %d: %llu us to the next rank and back\n", m->rank, (unsigned long long)p.smoothed / 1000);
	else if (ret == -FI_EOPNOTSUPP)
		printf("rank %d: the next rank is on this host\n", m->rank);
	else if (ret != -FI_ENODATA)
		must(ret, "path");
}

/* What a rank does. Names go over a socket, on which those of all come back. */
static int member(int rank, int sock)
{
	char name[NAME_MAX_BYTES] = "", names[RANKS][NAME_MAX_BYTES];
	struct member m = { .rank = rank };
	size_t size = sizeof(name);

	open_member(&m);
	must(fi_getname(&m.ep->fid, name, &size), "fi_getname");
	if (send(sock, name, sizeof(name), 0) != sizeof(name) ||
	    recv(sock, names, sizeof(names), MSG_WAITALL) != sizeof(names))
		must(-FI_EIO, "names");
	join(&m, names);
	int wrong = exchange(&m);
	send_name(&m);

	must(fi_close(&m.group->fid), "close group"); /* the others see that this one has left */
	must(fi_close(&m.ep->fid), "close endpoint");
	must(fi_close(&m.cq->fid), "close cq");
	must(fi_close(&m.av->fid), "close av");
	must(fi_close(&m.eq->fid), "close eq");
	must(fi_close(&m.domain->fid), "close domain");
	must(fi_close(&m.fabric->fid), "close fabric");
	fi_freeinfo(m.info);
	return wrong != 0;
}

/* Starts the ranks, each a process of its own, and passes their names on. */
int main(int argc, char **argv)
{
	char names[RANKS][NAME_MAX_BYTES];
	int sockets[RANKS][2], failed = 0;

	if (argc == 3)
		return member(atoi(argv[1]), atoi(argv[2]));
	for (int r = 0; r < RANKS; r++) {
		char rank[16], sock[16];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[r]))
			return 1;
		snprintf(rank, sizeof(rank), "%d", r);
		snprintf(sock, sizeof(sock), "%d", sockets[r][1]);
		if (fork() == 0) {
			close(sockets[r][0]);
			execl("/proc/self/exe", argv[0], rank, sock, NULL);
			_exit(1);
		}
		close(sockets[r][1]);
	}
	for (int r = 0; r < RANKS; r++)
		failed |= recv(sockets[r][0], names[r], NAME_MAX_BYTES, MSG_WAITALL) != NAME_MAX_BYTES;
	for (int r = 0; r < RANKS && !failed; r++)
		failed |= send(sockets[r][0], names, sizeof(names), MSG_NOSIGNAL) != sizeof(names);
	for (int r = 0; r < RANKS; r++)
		close(sockets[r][0]);
	for (int status, r = 0; r < RANKS; r++) {
		wait(&status);
		failed |= status;
	}
	return failed != 0;
}
