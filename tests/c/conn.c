/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections (FI_EP_MSG): connect, accept, reject, private data, names, every kind of transfer,
 * shutdown, and the death of a peer.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static struct fabric f;
static struct end a, b;
static uint8_t addr[64];
static size_t addr_len = sizeof(addr);

static void test_talk(long arg)
{
	struct fid_pep *pep;
	struct event ev;

	(void)arg;
	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	join(&f, &a, &b, addr);
	talk(&a, &b, "there");
	talk(&b, &a, "and back");
	OK(fi_shutdown(a.ep, 0));
	event_wait(&f, &ev, FI_SHUTDOWN);
	event_wait(&f, &ev, FI_SHUTDOWN); /* one for each side */
	CHECK(event_none(&f, 50));
	EXPECT_RC(fi_send(a.ep, "x", 1, NULL, 0, NULL), -FI_ESHUTDOWN);
	EXPECT_RC(fi_send(b.ep, "x", 1, NULL, 0, NULL), -FI_ESHUTDOWN);
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

static void test_names(long arg)
{
	struct fid_pep *pep;
	uint8_t one[64], two[64];
	size_t len1 = sizeof(one), len2 = sizeof(two);

	(void)arg;
	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	end_open(&f, &a, NULL);
	EXPECT_RC(fi_getpeer(a.ep, one, &len1), -FI_ENOTCONN);
	end_close(&a);
	join(&f, &a, &b, addr);
	len1 = sizeof(one);
	OK(fi_getpeer(a.ep, one, &len1)); /* what it connected to */
	CHECK(len1 == addr_len && !memcmp(one, addr, len1));
	OK(fi_getname(&b.ep->fid, two, &len2)); /* the same on the other side */
	CHECK(len2 == addr_len && !memcmp(two, addr, len2));
	len1 = len2 = sizeof(one);
	OK(fi_getname(&a.ep->fid, one, &len1));
	OK(fi_getpeer(b.ep, two, &len2));
	CHECK(len1 == len2 && !memcmp(one, two, len1));
	len1 = 4;
	EXPECT_RC(fi_getpeer(b.ep, two, &len1), -FI_ETOOSMALL);
	CHECK(len1 == len2);
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

static void test_data(long arg)
{
	struct fid_pep *pep;
	struct event ev, up;
	size_t max = 0, size = sizeof(max);
	uint8_t data[1024];

	(void)arg;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	OK(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max, &size));
	CHECKF(size == sizeof(max) && max > 0 && max < sizeof(data) / 2, "%zu bytes", max);
	end_open(&f, &a, NULL);
	EXPECT_RC(fi_connect(a.ep, addr, data, max + 1), -FI_EINVAL);
	OK(fi_connect(a.ep, addr, data, max));
	event_wait(&f, &ev, FI_CONNREQ);
	CHECK(ev.cm.fid == &pep->fid && ev.cm.fid->context == &f);
	CHECK(ev.len == max && !memcmp(ev.data, data, max));
	CHECK(ev.cm.info && ev.cm.info->handle && ev.cm.info->handle->fclass == FI_CLASS_CONNREQ);
	end_open(&f, &b, ev.cm.info);
	OK(fi_accept(b.ep, data + 1, 3));
	fi_freeinfo(ev.cm.info);
	for (int i = 0; i < 2; i++) {
		event_wait(&f, &up, FI_CONNECTED);
		if (up.cm.fid == &a.ep->fid)
			CHECK(up.len == 3 && !memcmp(up.data, data + 1, 3));
		else
			CHECK(up.len == 0);
	}
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

/* An info that was only peeked at stays the event queue's, which frees it, and what names the request with it. */
static void test_peeked(long unread)
{
	struct fi_info *info = NULL;
	struct fid_pep *pep;
	struct event ev;

	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	end_open(&f, &a, NULL);
	OK(fi_connect(a.ep, addr, NULL, 0));
	for (int i = 0; i < 3; i++) {
		CHECK_RC(fi_eq_sread(f.eq, &ev.number, &ev.cm, sizeof(ev.cm), 60000, FI_PEEK), sizeof(ev.cm));
		CHECK(ev.number == FI_CONNREQ && ev.cm.info && (!info || ev.cm.info == info));
		info = ev.cm.info;
	}
	if (unread) {
		CHECK_RC(fi_eq_read(f.eq, &ev.number, NULL, 0, 0), 0);
		CHECK(event_none(&f, 50));
	}
	OK(fi_close(&pep->fid));
	CHECK(info->ep_attr->type == FI_EP_MSG);
	end_close(&a);
	fabric_close(&f);
}

static void test_reject(long arg)
{
	struct fid_pep *pep;
	struct event ev;
	char in[8];
	struct fi_cq_tagged_entry c;

	(void)arg;
	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	for (int i = 0; i < 3; i++) {
		end_open(&f, &a, NULL);
		OK(fi_enable(a.ep));
		OK(fi_recv(a.ep, in, sizeof(in), NULL, 0, in));
		OK(fi_connect(a.ep, addr, "please", 6));
		event_wait(&f, &ev, FI_CONNREQ);
		if (i == 2)
			end_open(&f, &b, ev.cm.info); /* what has an endpoint may be rejected, too */
		OK(fi_reject(pep, ev.cm.info->handle, "never", i ? 5 : 0));
		EXPECT_RC(fi_reject(pep, ev.cm.info->handle, NULL, 0), -FI_EINVAL);
		if (i == 2) {
			EXPECT_RC(fi_accept(b.ep, NULL, 0), -FI_EINVAL);
			end_close(&b);
		}
		fi_freeinfo(ev.cm.info);
		event_error(&f, &ev, FI_ECONNREFUSED);
		CHECK(ev.cm.fid == &a.ep->fid);
		CHECK(ev.len == (i ? 5u : 0u) && !memcmp(ev.data, "never", ev.len));
		CHECK(end_wait(&a, &c) == FI_ECANCELED && c.op_context == in);
		EXPECT_RC(fi_connect(a.ep, addr, NULL, 0), -FI_EOPBADSTATE); /* once in its lifetime */
		end_close(&a);
	}
	OK(fi_close(&pep->fid));
	/* Nothing listens any more. */
	end_open(&f, &a, NULL);
	OK(fi_connect(a.ep, addr, NULL, 0));
	event_error(&f, &ev, FI_ECONNREFUSED);
	end_close(&a);
	fabric_close(&f);
}

/* Everything else that an endpoint has: tagged, long and many messages, RMA, atomics. */
static void test_transfers(long arg)
{
	static char out[1 << 20], in[1 << 20];
	struct fid_pep *pep;
	struct fi_cq_tagged_entry c;
	struct fid_mr *mr;
	uint64_t word = 5, old = 0, add = 3;
	ssize_t rc;

	(void)arg;
	fabric_open(&f, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
	pep = pep_open(&f, addr, &addr_len);
	join(&f, &a, &b, addr);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 31);
	for (size_t len = 0; len <= sizeof(out); len = len ? len * 4 : 1) {
		memset(in, 0, len);
		OK(fi_trecv(b.ep, in, sizeof(in), NULL, 99, len, 0, in));
		OK(fi_tsend(a.ep, out, len, NULL, 99, len, out));
		CHECK(end_wait(&b, &c) == 0 && c.len == len && !memcmp(in, out, len));
		CHECK(end_wait(&a, &c) == 0 && c.op_context == out);
	}
	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t got = 0;
		OK(fi_recv(a.ep, &got, sizeof(got), NULL, 0, &got));
		while ((rc = fi_inject(b.ep, &i, sizeof(i), 7)) == -FI_EAGAIN)
			;
		OK(rc);
		CHECK(end_wait(&a, &c) == 0 && got == i);
	}
	OK(fi_mr_reg(f.domain, in, sizeof(in), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	memset(in, 0, sizeof(in));
	OK(fi_write(a.ep, out, sizeof(out), NULL, 5, 0, fi_mr_key(mr), out));
	while ((rc = fi_cq_read(a.cq, &c, 1)) == -FI_EAGAIN)
		fi_cq_read(b.cq, &c, 0);
	CHECK(rc == 1 && !memcmp(in, out, sizeof(out)));
	memcpy(in, &word, sizeof(word));
	OK(fi_fetch_atomic(a.ep, &add, 1, NULL, &old, NULL, 9, 0, fi_mr_key(mr), FI_UINT64, FI_SUM, &add));
	while ((rc = fi_cq_read(a.cq, &c, 1)) == -FI_EAGAIN)
		fi_cq_read(b.cq, &c, 0);
	memcpy(&word, in, sizeof(word));
	CHECK(rc == 1 && old == 5 && word == 8);
	OK(fi_close(&mr->fid));
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

/* What the peer sent before it left comes; what was posted for more ends. */
static void test_shutdown(long arg)
{
	struct fid_pep *pep;
	struct event ev;
	struct fi_cq_tagged_entry c;
	char in[4][16] = { "" };
	static char big[1 << 20];

	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	join(&f, &a, &b, addr);
	for (int i = 0; i < 2; i++)
		OK(fi_recv(b.ep, in[i], 16, NULL, 0, in[i]));
	OK(fi_inject(a.ep, "last words", 11, 0));
	OK(fi_send(a.ep, big, sizeof(big), NULL, 0, big)); /* nothing fetches it in time */
	if (arg) {
		OK(fi_shutdown(a.ep, 0));
		CHECK(end_wait(&a, &c) == FI_ECANCELED && c.op_context == big);
	} else {
		end_close(&a);
	}
	event_wait(&f, &ev, FI_SHUTDOWN);
	if (arg)
		event_wait(&f, &ev, FI_SHUTDOWN);
	CHECK(end_wait(&b, &c) == 0 && c.op_context == in[0] && !strcmp(in[0], "last words"));
	int rc = end_wait(&b, &c); /* the notice may have met it */
	CHECKF(c.op_context == in[1] && (rc == FI_ECANCELED || rc == FI_ECONNRESET || rc == FI_ETRUNC), "%d", rc);
	OK(fi_recv(b.ep, in[2], 16, NULL, 0, in[2])); /* later ones end, too */
	CHECK(end_wait(&b, &c) == FI_ECANCELED && c.op_context == in[2]);
	OK(fi_shutdown(b.ep, 0));
	if (arg)
		end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

/* A message whose send has ended with the connection is not received with what its buffer holds by then. */
static void test_shutdown_reuses(long len)
{
	char *out = malloc((size_t)len), *in = calloc(1, (size_t)len);
	struct fid_pep *pep;
	struct fi_cq_tagged_entry c;

	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	join(&f, &a, &b, addr);
	memset(out, 1, (size_t)len);
	OK(fi_recv(b.ep, in, (size_t)len, NULL, 0, in));
	OK(fi_send(a.ep, out, (size_t)len, NULL, 0, out));
	OK(fi_shutdown(a.ep, 0));
	CHECK(end_wait(&a, &c) == FI_ECANCELED && c.op_context == out);
	memset(out, 2, (size_t)len);
	int rc = end_wait(&b, &c);
	CHECKF(c.op_context == in && (rc == FI_ECONNRESET || rc == FI_ECANCELED), "%d, %d received", rc, in[0]);
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
	free(out);
	free(in);
}

/* One-sided operations end with the connection, whether they wait for the target or for room on the way to it. */
static void test_shutdown_writes(long arg)
{
	static char out[1 << 20], in[1 << 20];
	struct fid_pep *pep;
	struct fi_cq_tagged_entry c;
	struct fi_cq_err_entry err;
	struct fid_mr *mr;
	uint64_t old[2], add = 1;
	int posted = 0, ended = 0;

	if (arg)
		setenv("FI_WEFT_USE_CMA", "no", 1); /* a write is messages, which the target takes in */
	fabric_open(&f, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
	pep = pep_open(&f, addr, &addr_len);
	join(&f, &a, &b, addr);
	OK(fi_mr_reg(f.domain, in, sizeof(in), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	for (int i = 0; i < 2; i++, posted++)
		OK(fi_fetch_atomic(a.ep, &add, 1, NULL, &old[i], NULL, 9, 0, fi_mr_key(mr), FI_UINT64, FI_SUM, &add));
	for (int i = 0; arg && i < 8 && !fi_write(a.ep, out, sizeof(out), NULL, 5, 0, fi_mr_key(mr), out); i++)
		posted++;
	CHECK(posted > (arg ? 2 : 1));
	OK(fi_shutdown(a.ep, 0));
	while (fi_cq_read(a.cq, &c, 1) == -FI_EAVAIL) {
		memset(&err, 0, sizeof(err));
		CHECK(fi_cq_readerr(a.cq, &err, 0) == 1 && (err.op_context == out || err.op_context == &add));
		CHECKF(err.err == FI_ECANCELED, "operation %d ends with %d", ended, err.err);
		ended++;
	}
	CHECKF(ended == posted, "%d of %d operations have ended", ended, posted);
	OK(fi_close(&mr->fid));
	end_close(&a);
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

/* Connects to the port that its role names, and waits to be killed. */
static void victim(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct event ev;

	to.sin_port = htons((uint16_t)atoi(test_role()));
	fabric_open(&f, 0);
	end_open(&f, &a, NULL);
	OK(fi_connect(a.ep, &to, NULL, 0));
	event_wait(&f, &ev, FI_CONNECTED);
	for (;;)
		pause();
}

/* The survivor hears of a peer's death without searching for it. */
static void test_kill(long arg)
{
	struct fid_pep *pep;
	struct event ev;
	struct fi_cq_tagged_entry c;
	struct sockaddr_in *in4 = (struct sockaddr_in *)addr;
	char in[16], role[16];
	static char big[1 << 20];
	pid_t pid;

	(void)arg;
	if (*test_role())
		victim();
	fabric_open(&f, 0);
	pep = pep_open(&f, addr, &addr_len);
	snprintf(role, sizeof(role), "%u", ntohs(in4->sin_port));
	pid = respawn(role);
	event_wait(&f, &ev, FI_CONNREQ);
	end_open(&f, &b, ev.cm.info);
	OK(fi_accept(b.ep, NULL, 0));
	fi_freeinfo(ev.cm.info);
	event_wait(&f, &ev, FI_CONNECTED);
	OK(fi_recv(b.ep, in, sizeof(in), NULL, 0, in));
	OK(fi_send(b.ep, big, sizeof(big), NULL, 0, big));
	CHECK(fi_cq_read(b.cq, &c, 1) == -FI_EAGAIN);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	event_wait(&f, &ev, FI_SHUTDOWN);
	CHECK(ev.cm.fid == &b.ep->fid);
	bool recv_ended = false, send_ended = false;
	for (int i = 0; i < 2; i++) {
		int rc = end_wait(&b, &c);
		recv_ended |= c.op_context == in && rc == FI_ECANCELED;
		send_ended |= c.op_context == big && rc == FI_ECONNRESET;
	}
	CHECK(recv_ended && send_ended);
	CHECK(event_none(&f, 50));
	end_close(&b);
	OK(fi_close(&pep->fid));
	fabric_close(&f);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "talk", test_talk, .seconds = 120 },
		{ "names", test_names, .seconds = 120 },
		{ "data", test_data, .seconds = 120 },
		{ "reject", test_reject, .seconds = 120 },
		{ "peeked", test_peeked, .seconds = 120 },
		{ "peeked_unread", test_peeked, .seconds = 120, .arg = 1 },
		{ "transfers", test_transfers, .seconds = 120 },
		{ "shutdown", test_shutdown, .seconds = 120, .arg = 1 },
		{ "close", test_shutdown, .seconds = 120 },
		{ "shutdown_reuses", test_shutdown_reuses, .seconds = 120, .arg = 200000 },
		{ "shutdown_reuses_long", test_shutdown_reuses, .seconds = 120, .arg = 4 << 20 },
		{ "shutdown_atomics", test_shutdown_writes, .seconds = 120 },
		{ "shutdown_writes", test_shutdown_writes, .seconds = 120, .arg = 1 },
		{ "kill", test_kill, .seconds = 120 },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
