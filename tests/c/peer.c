/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#define PATIENCE_MS 20000

void fabric_open(struct fabric *f, uint64_t caps)
{
	struct fi_info *hints = node_hints(NULL);
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	NEED_WAY(WAY_UDP, "connections");
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = caps ? caps : FI_MSG | FI_TAGGED;
	int rc = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &f->info);
	NEED(rc == 0, "FI_EP_MSG");
	fi_freeinfo(hints);
	OK(fi_fabric(f->info->fabric_attr, &f->fabric, NULL));
	OK(fi_domain(f->fabric, f->info, &f->domain, NULL));
	OK(fi_eq_open(f->fabric, &eq, &f->eq, NULL));
}

void fabric_close(struct fabric *f)
{
	OK(fi_close(&f->domain->fid));
	OK(fi_close(&f->eq->fid));
	OK(fi_close(&f->fabric->fid));
	fi_freeinfo(f->info);
}

struct fid_pep *pep_open(struct fabric *f, void *addr, size_t *len)
{
	struct fid_pep *pep;

	OK(fi_passive_ep(f->fabric, f->info, &pep, f));
	OK(fi_pep_bind(pep, &f->eq->fid, 0));
	OK(fi_listen(pep));
	OK(fi_getname(&pep->fid, addr, len));
	return pep;
}

void end_open(struct fabric *f, struct end *e, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	OK(fi_cq_open(f->domain, &cq, &e->cq, NULL));
	OK(fi_endpoint(f->domain, info ? info : f->info, &e->ep, e));
	OK(fi_ep_bind(e->ep, &f->eq->fid, 0));
	OK(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
}

void end_close(struct end *e)
{
	OK(fi_close(&e->ep->fid));
	OK(fi_close(&e->cq->fid));
}

void event_wait(struct fabric *f, struct event *ev, uint32_t number)
{
	uint8_t raw[sizeof(ev->cm) + sizeof(ev->data)];
	ssize_t n = fi_eq_sread(f->eq, &ev->number, raw, sizeof(raw), PATIENCE_MS, 0);

	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry err = { 0 };
		fi_eq_readerr(f->eq, &err, 0);
		CHECKF(0, "error %d (%s) instead of event %u", err.err, fi_strerror(err.err), number);
	}
	CHECKF(n >= (ssize_t)sizeof(ev->cm), "event: %zd", n);
	CHECKF(ev->number == number, "event %u, not %u", ev->number, number);
	memcpy(&ev->cm, raw, sizeof(ev->cm));
	ev->len = (size_t)n - sizeof(ev->cm);
	memcpy(ev->data, raw + sizeof(ev->cm), ev->len);
}

void event_error(struct fabric *f, struct event *ev, int want)
{
	struct fi_eq_err_entry err = { 0 };
	uint8_t raw[64];
	ssize_t n = fi_eq_sread(f->eq, &ev->number, raw, sizeof(raw), PATIENCE_MS, 0);

	CHECKF(n == -FI_EAVAIL, "error %d: read gives %zd", want, n);
	CHECK(fi_eq_readerr(f->eq, &err, 0) == sizeof(err));
	CHECKF(err.err == want, "error %d (%s), not %d", err.err, fi_strerror(err.err), want);
	ev->cm.fid = err.fid;
	ev->len = err.err_data_size;
	CHECK(ev->len <= sizeof(ev->data));
	memcpy(ev->data, err.err_data, ev->len);
}

bool event_none(struct fabric *f, int ms)
{
	uint8_t raw[64];
	uint32_t number;

	return fi_eq_sread(f->eq, &number, raw, sizeof(raw), ms, FI_PEEK) == -FI_EAGAIN;
}

void join(struct fabric *f, struct end *a, struct end *b, const void *addr)
{
	struct event ev;
	bool seen[2] = { false, false };

	end_open(f, a, NULL);
	OK(fi_connect(a->ep, addr, NULL, 0));
	event_wait(f, &ev, FI_CONNREQ);
	end_open(f, b, ev.cm.info);
	OK(fi_accept(b->ep, NULL, 0));
	fi_freeinfo(ev.cm.info);
	for (int i = 0; i < 2; i++) {
		event_wait(f, &ev, FI_CONNECTED);
		seen[ev.cm.fid == &b->ep->fid] = true;
		CHECK(ev.cm.fid == &a->ep->fid || ev.cm.fid == &b->ep->fid);
	}
	CHECK(seen[0] && seen[1]);
}

int end_wait(struct end *e, struct fi_cq_tagged_entry *c)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	ssize_t n;

	do {
		n = fi_cq_read(e->cq, c, 1);
		if (n == 1)
			return 0;
		if (n == -FI_EAVAIL) {
			struct fi_cq_err_entry err = { 0 };
			CHECK(fi_cq_readerr(e->cq, &err, 0) == 1);
			c->op_context = err.op_context;
			return err.err;
		}
		CHECKF(n == -FI_EAGAIN, "fi_cq_read: %zd", n);
	} while (now_ms() < end);
	CHECKF(0, "no completion");
	return -1;
}

void talk(struct end *a, struct end *b, const char *text)
{
	struct fi_cq_tagged_entry c;
	char in[64] = "";
	ssize_t rc;

	OK(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	do
		rc = fi_send(a->ep, text, strlen(text) + 1, NULL, 12345, a); /* the address is ignored */
	while (rc == -FI_EAGAIN);
	OK(rc);
	CHECK(end_wait(a, &c) == 0 && c.op_context == a);
	CHECK(end_wait(b, &c) == 0 && c.op_context == in);
	CHECKF(!strcmp(in, text), "got %s, not %s", in, text);
}
