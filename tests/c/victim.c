/* SPDX-License-Identifier: BSD-2-Clause */
#include "victim.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "common.h"
#include "shmdir.h"

#define KILLS 60 /* of each test; WEFT_TEST_KILLS for more */
#define POOL 4	 /* victims that are already loading libfabric */

static struct node n;

static uint64_t head_of(uint32_t serial, uint64_t number)
{
	return (uint64_t)serial << 32 | number;
}

size_t victim_length(uint32_t serial, uint64_t number)
{
	static const size_t sizes[] = { 8, 104, 8, 3000, 8192, 8, 80000, 8193, VICTIM_MAX };
	uint64_t seed = head_of(serial, number);

	return sizes[rnd(&seed) % ARRAY_LEN(sizes)];
}

size_t victim_fill(char *buf, uint32_t serial, uint64_t number)
{
	uint64_t head = head_of(serial, number);
	size_t len = victim_length(serial, number);

	fill(buf, len, head);
	memcpy(buf, &head, sizeof(head));
	return len;
}

uint32_t victim_check(const char *buf, size_t len, uint32_t serial)
{
	static char want[VICTIM_MAX];
	uint64_t head = 0;
	size_t want_len;

	CHECK(len >= sizeof(head));
	memcpy(&head, buf, sizeof(head));
	CHECKF(head >> 32 == serial, "a message of victim %llu, want %u", (unsigned long long)head >> 32, serial);
	want_len = victim_fill(want, serial, (uint32_t)head);
	CHECKF(len == want_len, "message of %zu bytes, sent were %zu", len, want_len);
	CHECKF(memcmp(buf, want, len) == 0, "message of %zu bytes is not whole", len);
	return (uint32_t)head;
}

/* The survivor's name travels to the victims in a file: the sideband is the killer's. */
static void name_file(struct name *name, const char *mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/survivor", getenv("FI_WEFT_SHM_DIR"));
	f = fopen(path, mode);
	CHECK(f != NULL);
	CHECK((mode[0] == 'w' ? fwrite(name, sizeof(*name), 1, f) : fread(name, sizeof(*name), 1, f)) == 1);
	CHECK(fclose(f) == 0);
}

/* ---- the killer ---- */

void victim_start(struct victim_process *v, uint32_t serial)
{
	char text[16];
	int fd[2];

	CHECK(pipe(fd) == 0);
	CHECK(fcntl(fd[1], F_SETFD, FD_CLOEXEC) == 0);
	snprintf(text, sizeof(text), "%d", fd[0]);
	setenv("WEFT_TEST_GATE", text, 1);
	snprintf(text, sizeof(text), "%u", serial);
	v->pid = respawn(text);
	CHECK(v->pid > 0);
	v->gate = fd[1];
	close(fd[0]);
}

void victim_end(struct victim_process *v)
{
	int st;

	kill(v->pid, SIGKILL);
	CHECK(waitpid(v->pid, &st, 0) == v->pid);
	CHECKF(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL, "the victim ended by itself: %#x", st);
	close(v->gate);
}

/* Microseconds from the first message, or from the first opening, to the kill. */
static useconds_t delay(uint64_t *seed, int i)
{
	static const unsigned most[] = { 100, 1000, 5000, 30000 };

	return (useconds_t)(rnd(seed) % most[i % ARRAY_LEN(most)]);
}

void victim_killer(long mode)
{
	const char *more = getenv("WEFT_TEST_KILLS");
	int kills = more ? atoi(more) : KILLS;
	uint64_t seed = (uint64_t)getpid();
	struct victim_note msg = { .kind = 'd' };
	struct victim_process pool[POOL];
	struct name peer;

	link_recv(0, &peer, sizeof(peer));
	name_file(&peer, "w");
	for (int i = 0; i < POOL; i++)
		victim_start(&pool[i], (uint32_t)i);
	for (int i = 0; i < kills; i++) {
		struct victim_process *v = &pool[i % POOL];
		char go = 'g';

		CHECK(write(v->gate, &go, 1) == 1);
		link_recv(0, &go, 1); /* the survivor knows its name */
		usleep(delay(&seed, i) * (mode == VICTIM_OPENS ? 3 : 1));
		victim_end(v);
		link_send(0, &msg, sizeof(msg));
		victim_start(v, (uint32_t)(i + POOL));
		link_recv(0, &go, 1); /* the round is over */
	}
	for (int i = 0; i < POOL; i++)
		victim_end(&pool[i]);
	msg.kind = 'e';
	link_send(0, &msg, sizeof(msg));
}

/* ---- a victim ---- */

struct window {
	char *buf[VICTIM_WINDOW];
	bool busy[VICTIM_WINDOW];
	uint64_t number[VICTIM_WINDOW];
	uint64_t next;
};

static void window_open(struct window *w)
{
	for (int i = 0; i < VICTIM_WINDOW; i++)
		CHECK((w->buf[i] = calloc(1, VICTIM_MAX)) != NULL);
}

/* Sends what there is room for. What it posts is numbered without gaps. */
static void send_some(struct window *w, uint32_t serial, fi_addr_t to)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < VICTIM_WINDOW; i++) {
		struct op o = { .tagged = true, .buf = w->buf[i], .addr = to, .tag = VICTIM_TO_US, .ctx = &w->busy[i] };

		if (w->busy[i])
			continue;
		o.len = victim_fill(w->buf[i], serial, w->next);
		if (op_send(n.ep, &o))
			break;
		w->busy[i] = true;
		w->next++;
	}
	while (wait_for(&n, n.txcq, &e, 0) == 1)
		*(bool *)e.op_context = false;
}

static void receive_some(struct window *w, uint32_t serial)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < VICTIM_WINDOW; i++) {
		struct op o = { .tagged = true,
				.buf = w->buf[i],
				.len = VICTIM_MAX,
				.addr = FI_ADDR_UNSPEC,
				.tag = VICTIM_FROM_US,
				.ctx = &w->busy[i] };

		if (w->busy[i] || op_recv(n.ep, &o))
			continue;
		w->busy[i] = true;
		w->number[i] = w->next++;
	}
	while (wait_for(&n, n.rxcq, &e, 0) == 1) {
		int i = (int)((bool *)e.op_context - w->busy);
		uint32_t got;

		w->busy[i] = false;
		got = victim_check(w->buf[i], e.len, serial);
		CHECKF(got == w->number[i], "message %u, want %llu", got, (unsigned long long)w->number[i]);
	}
}

/* Opens and closes; the first message of each endpoint is number 0. */
static void open_again(struct window *w, struct name *peer)
{
	struct op o = { .tagged = true, .buf = w->buf[0], .len = 8, .tag = 99, .ctx = w };

	node_close(&n);
	node_open(&n, NULL);
	o.addr = node_insert_name(&n, peer);
	for (int i = 0; i < 20 && op_send(n.ep, &o); i++)
		progress(&n);
}

void victim(long mode)
{
	struct victim_note msg = { .kind = 'n', .serial = (uint32_t)atoi(test_role()) };
	struct window out = { .next = 0 }, in = { .next = 0 };
	struct name peer;
	fi_addr_t to;
	char go;

	window_open(&out);
	window_open(&in);
	fi_freeinfo(node_info(NULL)); /* loads everything */
	CHECK(read(atoi(getenv("WEFT_TEST_GATE")), &go, 1) == 1);
	node_open(&n, NULL);
	node_name(&n, &msg.name);
	name_file(&peer, "r");
	to = node_insert_name(&n, &peer);
	link_send(0, &msg, sizeof(msg));
	for (;;) {
		if (mode == VICTIM_OPENS) {
			open_again(&out, &peer);
			continue;
		}
		if (mode != VICTIM_RECEIVES)
			send_some(&out, msg.serial, to);
		if (mode != VICTIM_SENDS)
			receive_some(&in, msg.serial);
		progress(&n);
	}
}
