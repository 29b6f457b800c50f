/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: what a caller may get wrong, objects in use, and many connections.
 */
#include "peer.h"

static struct fabric f;
static uint8_t addr[64];
static size_t addr_len = sizeof(addr);

static void test_errnos(long arg)
{
	struct fi_info *rdm = NULL, *hints = node_hints(NULL);
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_pep *pep, *idle, *wrong = NULL;
	struct fid_av *av;
	struct end a, b;
	struct event ev;
	size_t value, size = sizeof(value);
	int backlog = 0;

	(void)arg;
	fabric_open(&f, 0);
	OK(fi_passive_ep(f.fabric, f.info, &idle, NULL));
	EXPECT_RC(fi_listen(idle), -FI_ENOEQ);
	EXPECT_RC(fi_pep_bind(idle, &f.eq->fid, FI_SEND), -FI_EBADFLAGS);
	EXPECT_RC(fi_pep_bind(idle, &f.domain->fid, 0), -FI_EINVAL);
	EXPECT_RC(fi_control(&idle->fid, FI_BACKLOG, &backlog), -FI_EINVAL);
	backlog = 5;
	OK(fi_control(&idle->fid, FI_BACKLOG, &backlog));
	EXPECT_RC(fi_getopt(&idle->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &size), -FI_ENOPROTOOPT);
	EXPECT_RC(fi_setopt(&idle->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof(value)), -FI_ENOPROTOOPT);
	EXPECT_RC(fi_reject(idle, NULL, NULL, 0), -FI_EINVAL);
	EXPECT_RC(fi_reject(idle, &f.eq->fid, NULL, 0), -FI_EINVAL);
	EXPECT_RC(fi_close(&f.fabric->fid), -FI_EBUSY);
	pep = pep_open(&f, addr, &addr_len);
	EXPECT_RC(fi_listen(pep), -FI_EOPBADSTATE);
	EXPECT_RC(fi_setname(&pep->fid, addr, addr_len), -FI_EOPBADSTATE);
	EXPECT_RC(fi_setname(&idle->fid, addr, addr_len), -FI_EADDRINUSE);
	OK(fi_close(&idle->fid));

	OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &rdm));
	EXPECT_RC(fi_passive_ep(f.fabric, rdm, &wrong, NULL), -FI_EINVAL);
	fi_freeinfo(rdm);
	fi_freeinfo(hints);

	end_open(&f, &a, NULL);
	OK(fi_av_open(f.domain, &av_attr, &av, NULL));
	EXPECT_RC(fi_ep_bind(a.ep, &av->fid, 0), -FI_EINVAL); /* it has one peer */
	OK(fi_close(&av->fid));
	EXPECT_RC(fi_recv(a.ep, addr, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_enable(a.ep));
	EXPECT_RC(fi_accept(a.ep, NULL, 0), -FI_EINVAL); /* nothing asked */
	EXPECT_RC(fi_connect(a.ep, NULL, NULL, 0), -FI_EINVAL);
	EXPECT_RC(fi_connect(a.ep, addr, NULL, 4), -FI_EINVAL);
	EXPECT_RC(fi_shutdown(a.ep, 0), -FI_ENOTCONN);
	EXPECT_RC(fi_shutdown(a.ep, 1), -FI_EBADFLAGS);
	EXPECT_RC(fi_send(a.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	OK(fi_connect(a.ep, addr, NULL, 0));
	EXPECT_RC(fi_connect(a.ep, addr, NULL, 0), -FI_EALREADY);
	event_wait(&f, &ev, FI_CONNREQ);
	end_open(&f, &b, ev.cm.info);
	struct fid_ep *second;
	EXPECT_RC(fi_endpoint(f.domain, ev.cm.info, &second, NULL), -FI_EINVAL); /* it has its endpoint */
	EXPECT_RC(fi_connect(b.ep, addr, NULL, 0), -FI_EINVAL);
	OK(fi_accept(b.ep, NULL, 0));
	EXPECT_RC(fi_reject(pep, ev.cm.info->handle, NULL, 0), -FI_EINVAL);
	fi_freeinfo(ev.cm.info);
	event_wait(&f, &ev, FI_CONNECTED);
	event_wait(&f, &ev, FI_CONNECTED);
	EXPECT_RC(fi_connect(a.ep, addr, NULL, 0), -FI_EISCONN);
	EXPECT_RC(fi_close(&f.eq->fid), -FI_EBUSY);
	talk(&a, &b, "still fine");
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

/* Closing in every state, with events that nothing has read. */
static void test_close(long arg)
{
	struct fid_pep *pep;
	struct end a, b;
	struct event ev;

	(void)arg;
	fabric_open(&f, 0);
	for (int stage = 0; stage < 5; stage++) {
		addr_len = sizeof(addr);
		pep = pep_open(&f, addr, &addr_len);
		end_open(&f, &a, NULL);
		if (stage > 0)
			OK(fi_connect(a.ep, addr, "x", 1));
		if (stage > 1)
			event_wait(&f, &ev, FI_CONNREQ);
		if (stage > 2)
			end_open(&f, &b, ev.cm.info);
		if (stage > 3)
			OK(fi_accept(b.ep, NULL, 0));
		if (stage > 1)
			fi_freeinfo(ev.cm.info);
		OK(fi_close(&pep->fid));
		end_close(&a);
		if (stage > 2)
			end_close(&b);
		CHECK(event_none(&f, 20));
	}
	fabric_close(&f);
}

/* More connections than the backlog, all at once; each end talks to its own other one. */
static void test_many(long n)
{
	struct end *ends = calloc(2 * (size_t)n, sizeof(*ends)), *in = ends + n;
	struct fid_pep *pep;
	struct event ev;
	long asked = 0, up = 0;
	int backlog = 4;

	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	OK(fi_control(&pep->fid, FI_BACKLOG, &backlog));
	for (long i = 0; i < n; i++) {
		end_open(&f, &ends[i], NULL);
		OK(fi_connect(ends[i].ep, addr, &i, sizeof(i)));
	}
	while (up < 2 * n) {
		ssize_t rc = fi_eq_sread(f.eq, &ev.number, &ev.cm, sizeof(ev.cm) + sizeof(ev.data), 60000, 0);
		CHECKF(rc >= (ssize_t)sizeof(ev.cm), "after %ld requests and %ld connections: %zd", asked, up, rc);
		if (ev.number == FI_CONNECTED) {
			up++;
			continue;
		}
		CHECK(ev.number == FI_CONNREQ && rc == sizeof(ev.cm) + sizeof(long));
		long i;
		memcpy(&i, (char *)&ev.cm + sizeof(ev.cm), sizeof(i));
		CHECK(i >= 0 && i < n && !in[i].ep);
		end_open(&f, &in[i], ev.cm.info);
		OK(fi_accept(in[i].ep, NULL, 0));
		fi_freeinfo(ev.cm.info);
		asked++;
	}
	for (long i = 0; i < n; i++) {
		char text[32];
		snprintf(text, sizeof(text), "number %ld", i);
		talk(&ends[i], &in[i], text);
		talk(&in[i], &ends[i], text);
	}
	for (long i = 0; i < n; i++) {
		end_close(&ends[i]);
		end_close(&in[i]);
	}
	OK(fi_close(&pep->fid));
	fabric_close(&f);
	free(ends);
}

/* Authorisation keys: of the passive endpoint, the one that asks, and the one that accepts. */
static const struct keys {
	const char *passive, *active, *accepting; /* accepting NULL: as the request's info has it */
	int err;				  /* of the active side, or of what accepts, 0: connected */
} keys[] = {
	{ "one", "one", NULL, 0 },
	{ "one", "two", NULL, FI_ECONNREFUSED },
	{ "one", NULL, NULL, FI_ECONNREFUSED },
	{ NULL, "one", NULL, FI_ECONNREFUSED },
	{ "one", "one", "two", FI_EACCES },
};

static struct fi_info *with_key(const char *key)
{
	struct fi_info *info = fi_dupinfo(f.info);

	if (key) {
		info->ep_attr->auth_key = (uint8_t *)strdup(key);
		info->ep_attr->auth_key_size = strlen(key);
	}
	return info;
}

static void test_keys(long which)
{
	const struct keys *k = &keys[which];
	struct fi_info *info[3];
	struct fid_pep *pep;
	struct end a, b = { 0 };
	struct event ev;

	fabric_open(&f, 0);
	for (int i = 0; i < 3; i++)
		info[i] = with_key(i == 0 ? k->passive : i == 1 ? k->active : k->accepting);
	OK(fi_passive_ep(f.fabric, info[0], &pep, NULL));
	OK(fi_pep_bind(pep, &f.eq->fid, 0));
	OK(fi_listen(pep));
	OK(fi_getname(&pep->fid, addr, &addr_len));
	end_open(&f, &a, info[1]);
	OK(fi_connect(a.ep, addr, "secret", 6));
	if (k->err == FI_ECONNREFUSED) {
		event_error(&f, &ev, k->err); /* and no request before it */
	} else {
		struct fi_ep_attr *attr;

		event_wait(&f, &ev, FI_CONNREQ);
		CHECK(ev.len == 6 && !memcmp(ev.data, "secret", 6));
		attr = ev.cm.info->ep_attr;
		CHECK(attr->auth_key_size == 3 && !memcmp(attr->auth_key, k->passive, 3));
		if (k->accepting) {
			info[2]->handle = ev.cm.info->handle;
			end_open(&f, &b, info[2]);
		} else {
			end_open(&f, &b, ev.cm.info);
		}
		OK(fi_accept(b.ep, NULL, 0));
		fi_freeinfo(ev.cm.info);
	}
	if (!k->err) {
		event_wait(&f, &ev, FI_CONNECTED);
		event_wait(&f, &ev, FI_CONNECTED);
		talk(&a, &b, "under one key");
	} else if (k->accepting) {
		struct fi_eq_err_entry e = { 0 };
		int errs[2];

		for (int i = 0; i < 2; i++) { /* the data would not get through; the other side sees the end */
			CHECK_RC(fi_eq_sread(f.eq, &ev.number, &ev.cm, sizeof(ev.cm), 20000, 0), -FI_EAVAIL);
			CHECK(fi_eq_readerr(f.eq, &e, 0) == sizeof(e));
			errs[i] = e.err;
		}
		CHECKF(errs[0] + errs[1] == FI_EACCES + FI_ECONNRESET, "errors %d, %d", errs[0], errs[1]);
	}
	end_close(&a);
	if (b.ep)
		end_close(&b);
	CHECK(event_none(&f, 20));
	OK(fi_close(&pep->fid));
	for (int i = 0; i < 3; i++)
		fi_freeinfo(info[i]);
	fabric_close(&f);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "errnos", test_errnos, .seconds = 120 },
		{ "close", test_close, .seconds = 120 },
		{ "many", test_many, .seconds = 120, .arg = 50 },
		{ "same_key", test_keys, .seconds = 60, .arg = 0 },
		{ "other_key", test_keys, .seconds = 60, .arg = 1 },
		{ "key_missing", test_keys, .seconds = 60, .arg = 2 },
		{ "key_too_much", test_keys, .seconds = 60, .arg = 3 },
		{ "accepted_with_other_key", test_keys, .seconds = 60, .arg = 4 },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
