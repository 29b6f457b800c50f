/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is killed and started again on the same address and port. Rank 0 survives; rank 1 opens
 * nothing but starts the victims, one after the other, and kills them. Survivor and victim flood each
 * other with messages that carry the victim's serial. What was meant for a victim never reaches its
 * successor, and what came from it is never behind what came from that; what waits for it ends; its
 * successor is soon talked to, and loses nothing while it lives.
 *
 * The survivor hears of a death before it happens, and posts nothing more to that victim, because what is
 * posted to a dead peer rightly goes to whatever has its address next. It waits for none of what it has
 * posted, and the victim has answered before: so all that was bound for this process.
 */
#include "common.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "shmdir.h"
#include "victim.h"

#define RESTARTS 12    /* WEFT_TEST_KILLS for more */
#define LIMIT_MS 30000 /* for a send to end, and for a new victim to be talked to */
#define TALK 20	       /* messages each way before every second victim may be killed */
#define DELAY_US 30000 /* the most from there to the kill */
#define BIND_MS 5000   /* for the port of the dead to be free */
#define PORT_MIN 16384 /* of the survivor and the victims, below the ephemeral ports */
#define PORT_MAX 32768
#define ACK_SHIFT 8    /* a victim's tag: above it, how many messages it has received */
#define ENDED_SHIFT 36 /* and above this, how many of its sends have ended before the first that has not */

struct slot {
	char *buf;
	bool busy;
	uint32_t serial; /* of the message that is sent */
	uint64_t number; /* of it */
	uint64_t since;	 /* ms, when it was posted */
	size_t len;	 /* of what was received */
	uint64_t tag;
	int err;
};

/* What was received last: receives match in the order of posting, messages in that of sending. */
struct place {
	uint32_t serial; /* 0: nothing yet */
	uint64_t next;	 /* number after the last message of this victim */
	uint64_t count;	 /* messages with this serial */
	uint64_t acked;	 /* messages that the victim had received when it sent the last one */
	uint64_t ended;	 /* and its own sends that had ended by then, before the first that had not */
};

/* What a victim is notified when it may start. */
struct go {
	struct name survivor;
	in_port_t port;
};

static struct node n;
static struct slot out[VICTIM_WINDOW], in[VICTIM_WINDOW];
static uint64_t posted, taken; /* receives, and how many of them were read; receive i is in[i % window] */
static uint32_t serial;	       /* survivor: of the victim that was ready last; victim: its own */
static uint64_t number;	       /* of the next message to send */
static struct place seen;
static uint32_t doomed; /* survivor: this victim and those before it are killed or will be at once */
static uint64_t whole, reset_sends, reset_receives;
static uint64_t resets; /* receives that ended with an error since the last whole message */

/* ---- both sides ---- */

static void open_windows(void)
{
	for (int i = 0; i < VICTIM_WINDOW; i++) {
		CHECK((out[i].buf = calloc(1, VICTIM_MAX)) != NULL);
		CHECK((in[i].buf = calloc(1, VICTIM_MAX)) != NULL);
	}
}

static bool gone(int err)
{
	return err == FI_ECONNRESET || err == FI_EHOSTUNREACH;
}

/* Takes one completion of a window's CQ. */
static bool reap(struct fid_cq *cq, struct slot *window)
{
	struct fi_cq_tagged_entry e;
	int rc = wait_for(&n, cq, &e, 0);
	struct slot *s = rc > 0 ? e.op_context : n.err.op_context;

	if (rc == 0)
		return false;
	CHECKF(s >= window && s < window + VICTIM_WINDOW, "completion of an unknown context %p", (void *)s);
	CHECKF(s->busy, "slot %zd completed twice", s - window);
	s->busy = false;
	s->err = rc < 0 ? -rc : 0;
	s->len = e.len;
	s->tag = e.tag;
	return true;
}

/* Sends what there is room for. What is posted is numbered without gaps. */
static void send_some(fi_addr_t to, uint64_t tag)
{
	for (struct slot *s = out; s < out + VICTIM_WINDOW; s++) {
		struct op o = { .tagged = true, .buf = s->buf, .addr = to, .tag = tag, .ctx = s };
		ssize_t rc;

		if (s->busy)
			continue;
		o.len = victim_fill(s->buf, serial, number);
		rc = op_send(n.ep, &o);
		CHECKF(rc == 0 || rc == -FI_EAGAIN || gone((int)-rc), "send = %zd (%s)", rc, fi_strerror((int)-rc));
		if (rc)
			break;
		s->busy = true;
		s->serial = serial;
		s->since = now_ms();
		s->number = number++;
	}
}

static void receive_some(fi_addr_t from, uint64_t tag, void (*inspect)(struct slot *s))
{
	while (posted < taken + VICTIM_WINDOW) {
		struct slot *s = &in[posted % VICTIM_WINDOW];
		struct op o = { .tagged = true,
				.buf = s->buf,
				.len = VICTIM_MAX,
				.addr = from,
				.tag = tag,
				.ignore = ~0ull << ACK_SHIFT,
				.ctx = s };
		ssize_t rc = op_recv(n.ep, &o);

		CHECKF(rc == 0 || rc == -FI_EAGAIN, "receive = %zd (%s)", rc, fi_strerror((int)-rc));
		if (rc)
			break;
		s->busy = true;
		posted++;
	}
	while (reap(n.rxcq, in))
		;
	for (; taken < posted && !in[taken % VICTIM_WINDOW].busy; taken++)
		inspect(&in[taken % VICTIM_WINDOW]);
}

/* Whose message it is, whole. */
static uint32_t serial_of(const struct slot *s)
{
	uint64_t head;

	CHECKF(s->len >= sizeof(head), "a message of %zu bytes", s->len);
	memcpy(&head, s->buf, sizeof(head));
	return (uint32_t)(head >> 32);
}

/* ---- the killer ---- */

/* A port of this host that neither protocol uses, below those that the kernel gives
   sockets without one: a connection of a dead victim keeps its port for a while. */
static in_port_t free_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	uint64_t seed = (uint64_t)getpid() ^ now_ms();
	bool both;

	do {
		int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);

		sin.sin_port = htons((uint16_t)(PORT_MIN + rnd(&seed) % (PORT_MAX - PORT_MIN)));
		CHECK(udp >= 0 && tcp >= 0);
		both = bind(udp, (struct sockaddr *)&sin, sizeof(sin)) == 0 &&
		       bind(tcp, (struct sockaddr *)&sin, sizeof(sin)) == 0;
		close(udp);
		close(tcp);
	} while (!both);
	return sin.sin_port;
}

/* A word of the survivor, while the victim must live. */
static void await(const struct victim_process *v, char want)
{
	struct pollfd p = { .fd = link_fd(0), .events = POLLIN };
	char got;

	while (poll(&p, 1, 20) == 0)
		CHECKF(waitpid(v->pid, NULL, WNOHANG) == 0, "the victim ended by itself");
	link_recv(0, &got, 1);
	CHECK(got == want);
}

static void killer(void)
{
	const char *more = getenv("WEFT_TEST_KILLS");
	uint32_t last = 1 + (uint32_t)(more ? atoi(more) : RESTARTS);
	struct victim_note doom = { .kind = 'd' }, over = { .kind = 'e' };
	struct victim_process v, next; /* next loads libfabric while the one before it is killed */
	struct go go = { .port = free_port() };
	uint64_t seed = (uint64_t)getpid();

	victim_start(&next, 1);
	link_recv(0, &go.survivor, sizeof(go.survivor));
	for (uint32_t i = 1; i <= last; i++) {
		v = next;
		CHECK(write(v.gate, &go, sizeof(go)) == sizeof(go));
		victim_start(&next, i + 1);
		await(&v, 't');
		usleep((useconds_t)(rnd(&seed) % DELAY_US));
		link_send(0, &doom, sizeof(doom));
		await(&v, 's');
		victim_end(&v);
	}
	victim_end(&next);
	link_send(0, &over, sizeof(over));
}

/* ---- a victim ---- */

/* The port may be taken for a moment, until the kernel has done with the dead one. */
static void open_on(in_port_t port, struct name *own)
{
	struct node_opts o = { .disabled = true };
	uint64_t until = now_ms() + BIND_MS;
	int rc;

	node_open(&n, &o);
	node_name(&n, own);
	((struct sockaddr_in *)own->bytes)->sin_port = port; /* IPv6 has it at the same place */
	while ((rc = fi_setname(&n.ep->fid, own->bytes, own->len)) == -FI_EADDRINUSE && now_ms() < until)
		usleep(1000);
	OK(rc);
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	node_name(&n, own);
}

static void inspect_as_victim(struct slot *s)
{
	uint32_t whose;
	uint64_t got;

	CHECKF(s->err == 0, "a receive from the survivor ended with %d (%s)", s->err, fi_strerror(s->err));
	whose = serial_of(s);
	got = victim_check(s->buf, s->len, whose);
	CHECKF(whose == serial, "victim %u got message %llu (%zu bytes) of victim %u", serial, (unsigned long long)got,
	       s->len, whose);
	/* The first ones were perhaps posted to the connection of the one before, and failed. */
	CHECKF(seen.count == 0 || got == seen.next, "victim %u got message %llu, want %llu", serial,
	       (unsigned long long)got, (unsigned long long)seen.next);
	seen.next = got + 1;
	seen.count++;
}

/* Sends that have ended, before the first that has not. */
static uint64_t ended(void)
{
	uint64_t first = number;

	for (struct slot *s = out; s < out + VICTIM_WINDOW; s++) {
		CHECKF(s->err == 0, "a send to the survivor ended with %d (%s)", s->err, fi_strerror(s->err));
		if (s->busy && s->number < first)
			first = s->number;
	}
	return first;
}

static void live(void)
{
	struct victim_note ready = { .kind = 'n', .serial = (uint32_t)atoi(test_role()) };
	struct go go;
	fi_addr_t to;

	serial = ready.serial;
	open_windows();
	fi_freeinfo(node_info(NULL)); /* loads everything */
	CHECK(read(atoi(getenv("WEFT_TEST_GATE")), &go, sizeof(go)) == sizeof(go));
	open_on(go.port, &ready.name);
	to = node_insert_name(&n, &go.survivor);
	link_send(0, &ready, sizeof(ready));
	for (;;) {
		send_some(to, VICTIM_TO_US | seen.count << ACK_SHIFT | ended() << ENDED_SHIFT);
		while (reap(n.txcq, out))
			;
		receive_some(FI_ADDR_UNSPEC, VICTIM_FROM_US, inspect_as_victim);
		progress(&n);
		if (serial % 3 == 2)
			usleep(3000); /* a slow one: more is on the way when it dies */
	}
}

/* ---- the survivor ---- */

static void inspect_as_survivor(struct slot *s)
{
	uint32_t whose;
	uint64_t got;

	if (s->err) {
		CHECKF(s->err == FI_ECONNRESET, "a receive ended with %d (%s)", s->err, fi_strerror(s->err));
		resets++;
		reset_receives++;
		return;
	}
	whose = serial_of(s);
	got = victim_check(s->buf, s->len, whose);
	CHECKF(whose >= seen.serial, "message %llu (%zu bytes) of victim %u came after one of victim %u",
	       (unsigned long long)got, s->len, whose, seen.serial);
	CHECKF(whose <= serial + 1, "a message of victim %u, %u was ready last", whose, serial);
	if (whose > seen.serial)
		seen = (struct place){ .serial = whose };
	CHECKF(got >= seen.next, "message %llu of victim %u came after %llu", (unsigned long long)got, whose,
	       (unsigned long long)seen.next - 1);
	/* What the dead one has only rendezvous is not delivered. */
	CHECKF(got == seen.next || whose <= doomed,
	       "message %llu (%zu bytes) of victim %u, which lives, is lost: %llu came, %llu receives before it ended "
	       "with FI_ECONNRESET",
	       (unsigned long long)seen.next, victim_length(whose, seen.next), whose, (unsigned long long)got,
	       (unsigned long long)resets);
	resets = 0;
	seen.next = got + 1;
	seen.count++;
	seen.ended = s->tag >> ENDED_SHIFT;
	seen.acked = s->tag >> ACK_SHIFT & ((1u << (ENDED_SHIFT - ACK_SHIFT)) - 1);
	whole++;
}

/* The killer's and the victims' next word, if there is one. */
static bool notified(struct victim_note *msg)
{
	ssize_t got = recv(link_fd(1), msg, sizeof(*msg), MSG_DONTWAIT);

	if (got <= 0)
		return false;
	link_recv(1, (char *)msg + got, sizeof(*msg) - (size_t)got);
	return true;
}

/* The sends that have ended. Those that wait must not do so for long, whatever they are for. */
static bool end_sends(void)
{
	bool busy = false;

	while (reap(n.txcq, out))
		;
	for (struct slot *s = out; s < out + VICTIM_WINDOW; s++) {
		CHECKF(s->err == 0 || gone(s->err), "a send ended with %d (%s)", s->err, fi_strerror(s->err));
		reset_sends += s->err != 0;
		s->err = 0;
		busy |= s->busy;
		CHECKF(!s->busy || now_ms() < s->since + LIMIT_MS, "a send of %zu bytes to victim %u does not end",
		       victim_length(s->serial, s->number), s->serial);
	}
	return busy;
}

/* A victim has opened its endpoint. Every one has the name of the first. */
static fi_addr_t meet(const struct victim_note *msg)
{
	static struct name first;
	static fi_addr_t to;

	CHECK(msg->serial == serial + 1);
	if (serial == 0) {
		first = msg->name;
		to = node_insert_name(&n, &first);
	}
	CHECKF(first.len == msg->name.len && memcmp(first.bytes, msg->name.bytes, first.len) == 0,
	       "victim %u has another name", msg->serial);
	serial = msg->serial;
	number = 0;
	return to;
}

/* Whether the victim that was ready last is talked to, both ways. */
static bool talks(uint64_t ready)
{
	uint64_t goal = serial % 2 ? TALK : 1;
	struct place p = { .serial = serial };

	if (seen.serial == serial)
		p = seen; /* else nothing has come yet */
	if (p.count >= goal && p.acked >= goal && p.ended >= goal)
		return true;
	CHECKF(now_ms() < ready + LIMIT_MS,
	       "victim %u sent %llu messages that came, got %llu, and of its sends %llu "
	       "have ended",
	       serial, (unsigned long long)p.count, (unsigned long long)p.acked, (unsigned long long)p.ended);
	return false;
}

/* directed: receives name the victim, by the address that the first one got. */
static void survive(bool directed)
{
	struct victim_note msg = { .kind = 0 };
	fi_addr_t to = FI_ADDR_UNSPEC;
	uint64_t ready = 0, longest = 0;
	bool waiting = false; /* the killer does, for this victim to be talked to */

	while (msg.kind != 'e') {
		if (notified(&msg) && msg.kind == 'n') {
			to = meet(&msg);
			ready = now_ms();
			waiting = true;
		} else if (msg.kind == 'd' && doomed < serial) {
			doomed = serial;
			link_send(1, "s", 1);
		}
		if (doomed < serial)
			send_some(to, VICTIM_FROM_US);
		end_sends();
		if (!directed || serial)
			receive_some(directed ? to : FI_ADDR_UNSPEC, VICTIM_TO_US, inspect_as_survivor);
		progress(&n);
		if (waiting && talks(ready)) {
			waiting = false;
			longest = now_ms() - ready > longest ? now_ms() - ready : longest;
			link_send(1, "t", 1);
		}
	}
	while (end_sends())
		progress(&n);
	note("%u victims, %llu whole messages received; %llu sends, %llu receives ended with an error; %llu ms until "
	     "the slowest was talked to",
	     serial, (unsigned long long)whole, (unsigned long long)reset_sends, (unsigned long long)reset_receives,
	     (unsigned long long)longest);
}

static void test_restart(long directed)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | (directed ? FI_DIRECTED_RECV : 0) };
	struct name own;
	int left;

	setenv("FI_WEFT_PEER_CHECK_INTERVAL", "20ms", 0);
	setenv("FI_WEFT_PEER_TIMEOUT", "1s", 0);
	setenv("FI_WEFT_CONNECT_TIMEOUT", "10s", 0);
	if (test_role()[0]) {
		live();
		return;
	}
	shmdir_make();
	if (test_rank == 1) {
		killer();
		return;
	}
	open_windows();
	node_open(&n, &o);
	NEED(node_has_sockaddr(&n), "names that are ports");
	node_name(&n, &own);
	link_send(1, &own, sizeof(own));
	survive(directed);
	node_close(&n);
	node_open(&n, &o); /* opening searches for leftovers */
	node_close(&n);
	left = shmdir_count();
	CHECKF(left <= 0, "%d files are left", left);
	shmdir_remove();
}

static const struct test tests[] = {
	{ "same_port", test_restart, 2, 120, 0 },
	{ "same_port_directed", test_restart, 2, 120, 1 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
