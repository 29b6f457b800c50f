/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues: writing, reading, peeking, waiting. */
#include "common.h"

#include <poll.h>
#include <pthread.h>

static struct node n;

static struct fid_eq *open_eq(uint64_t flags, enum fi_wait_obj wait, size_t size)
{
	struct fi_eq_attr attr = { .size = size, .flags = flags, .wait_obj = wait };
	struct fid_eq *eq = NULL;

	NEED(fi_eq_open(n.fabric, &attr, &eq, &n) == 0, "event queues with this wait object");
	return eq;
}

static void put(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry e = { .fid = &eq->fid, .context = &n, .data = data };

	CHECK_RC(fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0), sizeof(e));
}

static void expect(struct fid_eq *eq, uint64_t data, uint64_t flags)
{
	struct fi_eq_entry e = { 0 };
	uint32_t event = 0;

	CHECK_RC(fi_eq_read(eq, &event, &e, sizeof(e), flags), sizeof(e));
	CHECK(event == FI_NOTIFY && e.fid == &eq->fid && e.context == &n);
	CHECKF(e.data == data, "event %llu, want %llu", (unsigned long long)e.data, (unsigned long long)data);
}

static void test_write_read(long arg)
{
	struct fi_eq_entry e;
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	struct fid_eq *eq;

	(void)arg;
	node_open_domain(&n, NULL);
	eq = open_eq(FI_WRITE, FI_WAIT_NONE, 128);
	CHECK_RC(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	CHECK_RC(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	for (uint64_t i = 0; i < 100; i++)
		put(eq, i);
	expect(eq, 0, FI_PEEK);
	expect(eq, 0, FI_PEEK);
	/* No man page says what a short buffer gets: as in libfabric's own queues the event is cut. */
	event = 0;
	CHECK_RC(fi_eq_read(eq, &event, NULL, 0, FI_PEEK), 0);
	CHECK(event == FI_NOTIFY);
	CHECK_RC(fi_eq_read(eq, &event, NULL, sizeof(e), FI_PEEK), 0);
	CHECK_RC(fi_eq_read(eq, &event, &e, 0, FI_PEEK), 0);
	CHECK_RC(fi_eq_read(eq, NULL, &e, 3, FI_PEEK), 3);
	expect(eq, 0, 0);
	CHECK_RC(fi_eq_read(eq, &event, &e, 3, 0), 3);
	CHECK_RC(fi_eq_read(eq, &event, NULL, 0, 0), 0);
	for (uint64_t i = 3; i < 100; i++)
		expect(eq, i, 0);
	CHECK_RC(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	OK(fi_close(&eq->fid));
	node_close_domain(&n);
}

static void test_not_writable(long arg)
{
	struct fi_eq_entry e = { 0 };
	struct fid_eq *eq;

	(void)arg;
	node_open_domain(&n, NULL);
	eq = open_eq(0, FI_WAIT_NONE, 0);
	EXPECT(fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0) < 0);
	OK(fi_close(&eq->fid));
	node_close_domain(&n);
}

static void *later(void *p)
{
	usleep(30000);
	put(p, 7);
	return NULL;
}

static void test_sread(long wait)
{
	struct fi_eq_entry e;
	struct fid_eq *eq;
	uint32_t event;
	uint64_t start;
	pthread_t t;

	node_open_domain(&n, NULL);
	eq = open_eq(FI_WRITE, (enum fi_wait_obj)wait, 0);
	start = now_ms();
	CHECK_RC(fi_eq_sread(eq, &event, &e, sizeof(e), 50, 0), -FI_EAGAIN);
	CHECKF(now_ms() - start >= 45, "waited %llu ms", (unsigned long long)(now_ms() - start));
	put(eq, 6);
	CHECK_RC(fi_eq_sread(eq, &event, &e, sizeof(e), -1, 0), sizeof(e));
	CHECK(e.data == 6);
	CHECK(pthread_create(&t, NULL, later, eq) == 0);
	CHECK_RC(fi_eq_sread(eq, &event, &e, sizeof(e), 10000, 0), sizeof(e));
	CHECK(e.data == 7);
	pthread_join(t, NULL);
	OK(fi_close(&eq->fid));
	node_close_domain(&n);
}

/* The descriptor is readable when an event waits, and quiet when none does. */
static void test_fd(long arg)
{
	struct fid *fids[1];
	struct pollfd p = { .events = POLLIN };
	struct fid_eq *eq;

	(void)arg;
	node_open_domain(&n, NULL);
	eq = open_eq(FI_WRITE, FI_WAIT_FD, 0);
	fids[0] = &eq->fid;
	OK(fi_control(&eq->fid, FI_GETWAIT, &p.fd));
	for (uint64_t i = 0; i < 50; i++) {
		OK(fi_trywait(n.fabric, fids, 1));
		CHECK(poll(&p, 1, 0) == 0);
		put(eq, i);
		CHECK(poll(&p, 1, 1000) == 1);
		CHECK_RC(fi_trywait(n.fabric, fids, 1), -FI_EAGAIN);
		expect(eq, i, 0);
	}
	OK(fi_close(&eq->fid));
	node_close_domain(&n);
}

static void test_strerror(long arg)
{
	char buf[64] = "";
	struct fid_eq *eq;
	const char *s;

	(void)arg;
	node_open_domain(&n, NULL);
	eq = open_eq(0, FI_WAIT_NONE, 0);
	s = fi_eq_strerror(eq, FI_EINVAL, NULL, buf, sizeof(buf));
	CHECK(s != NULL && strlen(s) > 0);
	CHECK(fi_eq_strerror(eq, 123456, NULL, NULL, 0) != NULL);
	OK(fi_close(&eq->fid));
	node_close_domain(&n);
}

/* Puts other bytes where objects that were freed have been. */
static void fill_freed(void)
{
	static void *blocks[64][16];

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		for (size_t k = 0; k < ARRAY_LEN(blocks[0]); k++) {
			blocks[i][k] = malloc(16 * (i + 1));
			CHECK(blocks[i][k] != NULL);
			memset(blocks[i][k], 0xff, 16 * (i + 1));
		}
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		for (size_t k = 0; k < ARRAY_LEN(blocks[0]); k++)
			free(blocks[i][k]);
}

/* An error is read after the fabric is closed, in the form of the fabric's version; or the fabric stays. */
static void test_readerr_after_fabric(long arg)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct fi_eq_err_entry err = { .err_data_size = 77 };
	char name[4096] = { 0 };
	struct fid_av *av;
	struct fid_eq *eq;
	fi_addr_t addr;
	int rc;

	(void)arg;
	node_open_domain(&n, &(struct node_opts){ .version = FI_VERSION(1, 4) });
	if (n.info->addr_format == FI_ADDR_CXI)
		SKIP("each 8 bytes are an address of FI_ADDR_CXI: no insertion fails");
	eq = open_eq(0, FI_WAIT_NONE, 0);
	NEED(fi_av_open(n.domain, &attr, &av, NULL) == 0, "address vectors with events");
	OK(fi_av_bind(av, &eq->fid, 0));
	OK(fi_av_insert(av, name, 1, &addr, 0, NULL));
	OK(fi_close(&av->fid));
	OK(fi_close(&n.domain->fid));
	rc = fi_close(&n.fabric->fid);
	CHECKF(rc == 0 || rc == -FI_EBUSY, "close the fabric = %d", rc);
	if (rc == 0)
		fill_freed();
	CHECK_RC(fi_eq_readerr(eq, &err, 0), offsetof(struct fi_eq_err_entry, err_data_size));
	CHECK(err.err == FI_EINVAL && err.err_data_size == 77);
	OK(fi_close(&eq->fid));
	if (rc)
		OK(fi_close(&n.fabric->fid));
	fi_freeinfo(n.info);
}

static const struct test tests[] = {
	{ "write_read", test_write_read, 1, 0, 0 },
	{ "not_writable", test_not_writable, 1, 0, 0 },
	{ "sread_unspec", test_sread, 1, 0, FI_WAIT_UNSPEC },
	{ "sread_fd", test_sread, 1, 0, FI_WAIT_FD },
	{ "sread_mutex_cond", test_sread, 1, 0, FI_WAIT_MUTEX_COND },
	{ "sread_yield", test_sread, 1, 0, FI_WAIT_YIELD },
	{ "fd", test_fd, 1, 0, 0 },
	{ "strerror", test_strerror, 1, 0, 0 },
	{ "readerr_after_fabric", test_readerr_after_fabric, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
