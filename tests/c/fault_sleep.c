/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of a thread that sleeps is killed, or stops without a word, or its cable is pulled. Nothing arrives then
 * that could wake the sleeper, whatever it sleeps in, but what it waits for ends with an error in bounded time; nor
 * does a send to nothing wait for ever. Rank 0 sleeps; rank 1 never opens anything but starts and kills the peer.
 */
#include "common.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define LIMIT_MS 20000 /* for the sleeper to hear of it; FI_WEFT_PEER_TIMEOUT is a second */
#define LONG (1 << 20)

enum {
	RECEIVE = 0x01, /* a receive from the peer */
	SEND = 0x02,	/* a send that the peer does not take */
	FETCH = 0x04,	/* a long send that the peer does not fetch */
	SREAD = 0x10,
	COUNTER = 0x20,
	POLL = 0x40,	/* on the queue's descriptor, after fi_trywait */
	SILENT = 0x100, /* the peer is stopped: its host does not know that it is gone */
	CABLE = 0x200,	/* its host is cut off before the operation, and back after it */
	AUTO = 0x400,	/* a thread of the provider's makes the progress */
};

static struct node n;
static char buf[LONG];

/* Takes a message and then does nothing any more, or takes another. */
static void peer(long mode)
{
	struct fi_cq_tagged_entry e;
	struct name name;

	setenv("FI_WEFT_PROGRESS_THREAD", "no", 1); /* a thread would take what comes then */
	node_open(&n, NULL);
	node_name(&n, &name);
	link_send(0, &name, sizeof(name));
	for (int i = 0; i < (mode & CABLE ? 2 : 1); i++) {
		trecv(&n, buf, sizeof(buf), FI_ADDR_UNSPEC, 1, 0, buf);
		while (wait_for(&n, n.rxcq, &e, 1000) == 0)
			;
	}
	wait_none(&n, n.rxcq, 100); /* the sender hears that it was taken */
	for (;;)
		pause();
}

static void command(const char *fmt, const char *interface)
{
	char text[256];

	snprintf(text, sizeof(text), fmt, interface);
	CHECKF(system(text) == 0, "%s", text);
}

/* Pulls the cable of this host or plugs it in. */
static void cable(bool in)
{
	struct if_nameindex *all = if_nameindex(), *i = all;

	CHECK(all != NULL);
	while (i->if_name && !strcmp(i->if_name, "lo"))
		i++;
	CHECKF(i->if_name != NULL, "no interface but lo");
	command("sysctl -qw net.ipv6.conf.%s.keep_addr_on_down=1", i->if_name);
	command(in ? "ip link set %s up" : "ip link set %s down", i->if_name);
	if_freenameindex(all);
}

static void killer(long mode)
{
	pid_t pid = respawn("peer");
	char go;
	int st;

	link_recv(0, &go, 1);
	if (mode & CABLE)
		cable(false);
	else
		CHECK(kill(pid, mode & SILENT ? SIGSTOP : SIGKILL) == 0 && waitpid(pid, &st, WUNTRACED) == pid);
	link_send(0, "d", 1);
	link_recv(0, &go, 1); /* it has heard */
	if (mode & CABLE) {
		cable(true);
		link_recv(0, &go, 1); /* and has spoken to the peer again */
	}
	if (mode & (SILENT | CABLE))
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &st, 0) == pid);
}

/* A send that is complete when the peer has taken the message. */
static struct op tracked(fi_addr_t to, uint64_t tag)
{
	struct op o = { .form = F_MSG,
			.tagged = true,
			.iov = { { buf, 8 } },
			.count = 1,
			.addr = to,
			.tag = tag,
			.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
			.ctx = buf };

	return o;
}

static void post(long mode, fi_addr_t to)
{
	struct op o = tracked(to, 3);

	if (mode & RECEIVE)
		trecv(&n, buf, sizeof(buf), to, 2, 0, buf);
	else if (mode & SEND)
		post_send(&n, &o);
	else
		tsend(&n, buf, sizeof(buf), to, 3, buf);
	wait_none(&n, mode & RECEIVE ? n.rxcq : n.txcq, 50);
}

/* Sleeps on the descriptor, as an application with an event loop does, and reads when it wakes. */
static ssize_t poll_once(struct fid_cq *cq, struct fi_cq_tagged_entry *e, int ms)
{
	struct fid *fids[] = { &cq->fid };
	struct pollfd p = { .events = POLLIN };

	OK(fi_control(&cq->fid, FI_GETWAIT, &p.fd));
	if (fi_trywait(n.fabric, fids, 1) == 0)
		CHECKF(poll(&p, 1, ms) == 1, "the descriptor does not wake what waits");
	return fi_cq_read(cq, e, 1);
}

/* Returns when what was posted has ended with an error. */
static void sleep_till_end(long mode)
{
	struct fid_cq *cq = mode & RECEIVE ? n.rxcq : n.txcq;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	uint64_t end = now_ms() + LIMIT_MS;
	ssize_t rc;

	do {
		int left = (int)(end - now_ms());

		if (mode & COUNTER)
			rc = fi_cntr_wait(mode & RECEIVE ? n.rxcntr : n.txcntr, 2, left);
		else if (mode & SREAD)
			rc = fi_cq_sread(cq, &e, 1, NULL, left);
		else
			rc = poll_once(cq, &e, left);
	} while (rc == -FI_EAGAIN && now_ms() < end);
	CHECKF(rc == -FI_EAVAIL, "the sleeper does not hear that its peer is gone: %zd (%s)", rc,
	       fi_strerror((int)-rc));
	CHECK(fi_cq_readerr(cq, &err, 0) == 1);
	CHECKF(err.err == FI_ECONNRESET && err.op_context == buf, "error completion %d (%s)", err.err,
	       fi_strerror(err.err));
}

/* A peer that is back takes a message again. Until it is reached, sends are refused or end with an error. */
static void speak_again(fi_addr_t to)
{
	uint64_t end = now_ms() + LIMIT_MS;
	struct fi_cq_tagged_entry e;
	struct op o = tracked(to, 1);
	ssize_t rc;

	do {
		CHECKF(now_ms() < end, "a peer that is back is not reached");
		progress(&n);
		rc = op_send(n.ep, &o);
		CHECKF(rc == 0 || rc == -FI_EAGAIN || rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH, "send = %zd", rc);
	} while (rc || wait_for(&n, n.txcq, &e, LIMIT_MS) != 1);
}

static void sleeper(long mode)
{
	enum fi_progress progress = mode & AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV,
			       .counters = true,
			       .control = progress,
			       .data = progress,
			       .wait = mode & POLL ? FI_WAIT_FD : FI_WAIT_UNSPEC };
	struct name name;
	struct op hello;
	uint64_t killed;
	fi_addr_t to;
	char dead;

	node_open(&n, &o);
	link_recv(1, &name, sizeof(name));
	to = node_insert_name(&n, &name);
	hello = tracked(to, 1);
	post_send(&n, &hello);
	wait_ctx(&n, n.txcq, buf);
	usleep(200000); /* it is idle */
	if (!(mode & CABLE))
		post(mode, to);
	killed = now_ms();
	link_send(1, "k", 1);
	link_recv(1, &dead, 1);
	if (mode & CABLE)
		post(mode, to);
	sleep_till_end(mode);
	note("after %llu ms", (unsigned long long)(now_ms() - killed));
	link_send(1, "e", 1);
	if (mode & CABLE) {
		speak_again(to);
		link_send(1, "e", 1);
	}
	node_close(&n);
}

/* Nothing has the address: a send says so when the time to connect is over, and not before. */
static void test_nobody(long arg)
{
	struct op o = tracked(0, 1);
	struct name name;
	uint64_t begin;
	ssize_t rc;

	(void)arg;
	setenv("FI_WEFT_CONNECT_TIMEOUT", "500ms", 1);
	node_open(&n, NULL);
	node_name(&n, &name);
	if (!getenv("WEFT_TEST_NETNS") || n.info->addr_format != FI_SOCKADDR_IN)
		SKIP("needs a network of IPv4 with free addresses");
	((unsigned char *)&((struct sockaddr_in *)name.bytes)->sin_addr)[3] ^= 0x40;
	o.addr = node_insert_name(&n, &name);
	begin = now_ms();
	while ((rc = op_send(n.ep, &o)) == -FI_EAGAIN && now_ms() < begin + LIMIT_MS)
		progress(&n);
	CHECK_RC(rc, -FI_EHOSTUNREACH);
	CHECKF(now_ms() >= begin + 400, "after %llu ms", (unsigned long long)(now_ms() - begin));
	node_close(&n);
}

static void test_sleep(long mode)
{
	const char *hosts = getenv("WEFT_TEST_NETNS");

	if (mode & (SILENT | CABLE) && (!hosts || getenv("WEFT_TEST_APART")))
		SKIP("one host: a process that is stopped is not gone, and there is no cable");
	setenv("FI_WEFT_PEER_TIMEOUT", "1s", 0);
	if (test_role()[0])
		peer(mode);
	else if (test_rank == 1)
		killer(mode);
	else
		sleeper(mode);
}

static const struct test tests[] = {
	{ "receive_sread", test_sleep, 2, 60, RECEIVE | SREAD },
	{ "receive_poll", test_sleep, 2, 60, RECEIVE | POLL },
	{ "send_sread", test_sleep, 2, 60, SEND | SREAD },
	{ "send_counter", test_sleep, 2, 60, SEND | COUNTER },
	{ "fetch_sread", test_sleep, 2, 60, FETCH | SREAD },
	{ "auto_receive_sread", test_sleep, 2, 60, AUTO | RECEIVE | SREAD },
	{ "silent_receive_sread", test_sleep, 2, 60, SILENT | RECEIVE | SREAD },
	{ "silent_receive_poll", test_sleep, 2, 60, SILENT | RECEIVE | POLL },
	{ "silent_send_counter", test_sleep, 2, 60, SILENT | SEND | COUNTER },
	{ "silent_fetch_sread", test_sleep, 2, 60, SILENT | FETCH | SREAD },
	{ "nobody", test_nobody, 1, 60, 0 },
	{ "cable_send_sread", test_sleep, 2, 60, CABLE | SEND | SREAD },
	{ "cable_receive_poll", test_sleep, 2, 60, CABLE | RECEIVE | POLL },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
