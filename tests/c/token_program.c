/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs of lists (weft/token.h) by several processes, each of which owns host and GPU memory that all others
 * read and write, with strides, picks, mixed memories and ways turned off, against a model of what is there. A part of
 * each memory is one requester's own. Notifications count the posts. WEFT_TEST_SEED is for a program of its own,
 * WEFT_TEST_SECONDS or WEFT_TEST_SEEDS for more of them (seeds).
 */
#include "common.h"
#include "gpu.h"
#include "tokens.h"

#define PART ((size_t)16384) /* of a memory, that is one requester's */
#define OPS 60
#define MOST 24 /* pieces of a list */
#define RANKS 4

enum { NO_WAYS = 1, SPLIT_WAYS = 2, AUTO = 4, RANK_WAYS = 8 };

struct owner {
	fi_addr_t addr;
	struct weft_remote *remote[2];
	struct weft_remote_info info[2];
	char *model[2];	 /* of this requester's part */
	uint64_t posted; /* posts with a notification */
	uint64_t taken;	 /* notifications that have come from there */
};

struct side {
	struct node n;
	struct weft_token_ops *t;
	char *mem[2];  /* of the host, of the GPU: a part for each rank */
	char *near[2]; /* from and to which this requester moves: PART bytes */
	struct fid_mr *mr[2], *near_mr[2];
	struct owner owner[RANKS];
	uint64_t state;
};

/* An element as the model has it. */
struct element {
	size_t here, there, len;
	int near, far; /* which memory */
};

struct program {
	struct weft_local_piece here[MOST];
	struct weft_remote_piece there[MOST];
	struct element list[MOST * 4];
	uint32_t picks[MOST * 4];
	size_t pieces, elements, picked;
};

struct tokens {
	size_t len[2];
	char bytes[2][WEFT_TOKEN_MAX];
};

static size_t some(struct side *s, size_t most)
{
	return rnd(&s->state) % most;
}

static struct fid_mr *region(struct side *s, int i, char *mem, size_t len, uint64_t access, uint64_t key)
{
	struct iovec iov = { mem, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = access,
		.requested_key = key,
		.iface = i ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
	};
	struct fid_mr *mr;

	OK(fi_mr_regattr(s->n.domain, &attr, 0, &mr));
	return mr;
}

/* Rank 0 gathers what all have, and gives it to all. */
static void exchange(const void *mine, void *all, size_t size)
{
	memcpy((char *)all + (size_t)test_rank * size, mine, size);
	for (int i = 1; i < test_procs; i++) {
		if (test_rank == 0)
			link_recv(i, (char *)all + (size_t)i * size, size);
		else if (test_rank == i)
			link_send(0, mine, size);
	}
	for (int i = 1; i < test_procs; i++) {
		if (test_rank == 0)
			link_send(i, all, (size_t)test_procs * size);
		else if (test_rank == i)
			link_recv(0, all, (size_t)test_procs * size);
	}
}

static void open_owners(struct side *s)
{
	struct tokens mine, all[RANKS];

	memset(&mine, 0, sizeof(mine));
	for (int i = 0; i < 2; i++) {
		mine.len[i] = WEFT_TOKEN_MAX;
		OK(s->t->pack(s->mr[i], NULL, mine.bytes[i], &mine.len[i]));
	}
	exchange(&mine, all, sizeof(mine));
	for (int r = 0; r < test_procs; r++) {
		struct owner *o = &s->owner[r];

		for (int i = 0; i < 2; i++) {
			OK(s->t->open(s->n.ep, all[r].bytes[i], all[r].len[i], &o->remote[i]));
			OK(s->t->info(o->remote[i], &o->info[i], sizeof(o->info[i])));
			o->model[i] = calloc(1, PART);
		}
		o->addr = o->info[0].addr;
	}
}

/* The program of a seed. */
static void begin(struct side *s, uint64_t seed, long arg)
{
	s->state = (seed * 0x9E3779B97F4A7C15u) ^ (uint64_t)test_rank << 32 ^ (uint64_t)arg;
}

static void open_side(struct side *s, long arg)
{
	static const char *const ways[] = { "auto", "message", "ipc,message", "rdma,message" };
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM, .mr_mode = FI_MR_HMEM };

	memset(s, 0, sizeof(*s));
	if (!test_is_weft())
		SKIP("an extension of weft");
	begin(s, test_seed(1), arg);
	if (arg & NO_WAYS)
		setenv("FI_WEFT_TOKEN_WAYS", "message", 1);
	if (arg & SPLIT_WAYS)
		setenv("FI_WEFT_TOKEN_WAYS", ways[some(s, ARRAY_LEN(ways))], 1);
	if (arg & RANK_WAYS)
		setenv("FI_WEFT_TOKEN_WAYS", ways[(size_t)test_rank % ARRAY_LEN(ways)], 1);
	if (arg & AUTO)
		o.data = FI_PROGRESS_AUTO;
	gpu_open();
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	for (int i = 0; i < 2; i++) {
		size_t len = PART * (size_t)test_procs;
		char *zero = calloc(1, len);

		s->mem[i] = i ? gpu_alloc(len) : calloc(1, len);
		s->near[i] = i ? gpu_alloc(PART) : calloc(1, PART);
		if (i)
			gpu_put(s->mem[i], zero, len);
		s->mr[i] = region(s, i, s->mem[i], len, FI_REMOTE_READ | FI_REMOTE_WRITE, (uint64_t)i);
		s->near_mr[i] = region(s, i, s->near[i], PART, FI_READ | FI_WRITE, 2 + (uint64_t)i);
		free(zero);
	}
	open_owners(s);
}

static void close_side(struct side *s)
{
	for (int i = 0; i < 2; i++) {
		for (int r = 0; r < test_procs; r++) {
			OK(fi_close(&s->owner[r].remote[i]->fid));
			free(s->owner[r].model[i]);
		}
		OK(fi_close(&s->mr[i]->fid));
		OK(fi_close(&s->near_mr[i]->fid));
	}
	barrier(&s->n);
	node_close(&s->n);
	gpu_free(s->mem[1]);
	gpu_free(s->near[1]);
	free(s->mem[0]);
	free(s->near[0]);
}

/* Takes the notifications that have come: those of a sender are numbered in the order of its posts. */
static void take(struct side *s)
{
	uint64_t got[2];
	struct weft_note e = { .data = got, .size = sizeof(got) };
	ssize_t rc;

	while ((rc = s->t->notes(s->n.ep, &e, 1)) == 1) {
		CHECK(e.len == sizeof(got) && got[0] < (uint64_t)test_procs);
		CHECKF(got[1] == s->owner[got[0]].taken, "rank %lu: %lu came instead of %lu", (unsigned long)got[0],
		       (unsigned long)got[1], (unsigned long)s->owner[got[0]].taken);
		s->owner[got[0]].taken++;
	}
	CHECKF(rc == 0, "notes: %zd", rc);
}

/* Pieces that lie behind each other on both sides, with gaps of any length. */
static void make(struct side *s, struct program *p, struct owner *o)
{
	size_t here[2] = { 0, 0 }, there[2] = { 0, 0 }, base = (size_t)test_rank * PART, most = 1 + some(s, MOST);

	p->pieces = p->elements = 0;
	while (p->pieces < most) {
		size_t len = 1 + some(s, some(s, 8) ? 200 : 3000), count = some(s, 3) ? 1 : 1 + some(s, 4);
		size_t step = len + some(s, 64), far = len + some(s, 64);
		int near = (int)some(s, 2), to = (int)some(s, 2);

		here[near] += some(s, 100);
		there[to] += some(s, 100);
		if (here[near] + step * count > PART || there[to] + far * count > PART)
			break;
		p->here[p->pieces] = (struct weft_local_piece){
			s->near[near] + here[near], len, step, count, fi_mr_desc(s->near_mr[near]),
		};
		p->there[p->pieces++] = (struct weft_remote_piece){
			o->remote[to], o->info[to].base + base + there[to], len, far, count,
		};
		for (size_t i = 0; i < count; i++)
			p->list[p->elements++] =
				(struct element){ here[near] + i * step, there[to] + i * far, len, near, to };
		here[near] += step * count;
		there[to] += far * count;
	}
	p->picked = 0;
	for (uint32_t i = 0; i < p->elements; i++)
		if (some(s, 3))
			p->picks[p->picked++] = i;
}

static void post(struct side *s, struct owner *o, struct weft_list *list, uint32_t op, const struct program *p, int how)
{
	static const uint64_t flags[] = { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, 0 };
	uint64_t bits[(MOST * 4 + 63) / 64] = { 0 }, said[2] = { (uint64_t)test_rank, o->posted };
	uint64_t flag = flags[some(s, ARRAY_LEN(flags))];
	const void *picks = how == 1 ? p->picks : how == 2 ? (const void *)bits : NULL;
	size_t count = how == 1 ? p->picked : how == 2 ? p->elements : 0;
	bool noted = some(s, 2);
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	for (size_t i = 0; i < p->picked; i++)
		bits[p->picks[i] / 64] |= 1ull << p->picks[i] % 64;
	while ((rc = s->t->post(list, op | (how == 2 ? WEFT_PICK_BITS : 0), picks, count, noted ? said : NULL,
				noted ? sizeof(said) : 0, flag, list)) == -FI_EAGAIN) {
		progress(&s->n);
		take(s);
	}
	CHECKF(rc == 0, "post: %zd", rc);
	o->posted += noted;
	while ((rc = fi_cq_read(s->n.txcq, &e, 1)) == -FI_EAGAIN)
		take(s);
	CHECKF(rc == 1 && e.op_context == list, "fi_cq_read: %zd", rc);
}

/* What is in the near memories, or goes there. */
static void near_memory(struct side *s, char now[2][PART], bool put)
{
	if (put) {
		memcpy(s->near[0], now[0], PART);
		gpu_put(s->near[1], now[1], PART);
		return;
	}
	memcpy(now[0], s->near[0], PART);
	gpu_get(now[1], s->near[1], PART);
}

static void step(struct side *s)
{
	static char want[2][PART], got[2][PART];
	struct owner *o = &s->owner[some(s, (size_t)test_procs)];
	uint32_t op = some(s, 2) ? WEFT_READ : WEFT_WRITE;
	struct weft_list *list;
	struct program p;
	int how;

	do
		make(s, &p, o);
	while (!p.elements);
	how = p.picked ? (int)some(s, 3) : 0;
	for (int i = 0; i < 2; i++)
		fill(want[i], PART, rnd(&s->state));
	near_memory(s, want, true);
	OK(s->t->list(s->n.ep, p.here, p.there, p.pieces, 0, &list));
	for (int again = (int)some(s, 3); again >= 0; again--)
		post(s, o, list, op, &p, how);
	OK(fi_close(&list->fid));
	for (size_t i = 0; i < (how ? p.picked : p.elements); i++) {
		const struct element *e = &p.list[how ? p.picks[i] : i];
		char *model = o->model[e->far] + e->there, *near = want[e->near] + e->here;

		memcpy(op == WEFT_READ ? near : model, op == WEFT_READ ? model : near, e->len);
	}
	near_memory(s, got, false);
	for (int i = 0; i < 2; i++)
		CHECKF(!memcmp(got[i], want[i], PART), "op %u of %zu elements, picks %d: memory %d", op, p.elements,
		       how, i);
}

/* Reads all that is this requester's, after what was written by any completion level has arrived. */
static void check_owners(struct side *s)
{
	for (int r = 0; r < test_procs; r++) {
		for (int i = 0; i < 2; i++) {
			struct weft_local_piece here = { .addr = s->near[0], .len = PART };
			struct weft_remote_piece there = {
				.remote = s->owner[r].remote[i],
				.len = PART,
				.addr = s->owner[r].info[i].base + (size_t)test_rank * PART,
			};
			struct program none = { .elements = 0 };
			struct weft_list *list;

			OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
			post(s, &s->owner[r], list, WEFT_READ, &none, 0);
			OK(fi_close(&list->fid));
			CHECKF(!memcmp(s->near[0], s->owner[r].model[i], PART), "memory %d of rank %d", i, r);
		}
	}
}

/* All notifications come. */
static void check_notes(struct side *s)
{
	uint64_t posted[RANKS], all[RANKS][RANKS];
	int left = 1;

	memset(posted, 0, sizeof(posted));
	for (int r = 0; r < test_procs; r++)
		posted[r] = s->owner[r].posted;
	barrier(&s->n);
	exchange(posted, all, sizeof(posted));
	while (left) {
		take(s);
		left = 0;
		for (int r = 0; r < test_procs; r++)
			left += s->owner[r].taken != all[r][test_rank];
	}
}

static void run(struct side *s)
{
	for (int i = 0; i < OPS; i++) {
		step(s);
		take(s);
	}
	barrier(&s->n);
	check_owners(s);
	check_notes(s);
	barrier(&s->n);
}

static void test_program(long arg)
{
	struct side s;

	open_side(&s, arg);
	run(&s);
	close_side(&s);
}

/* All memories, and what is known of them, as they were when they were opened. */
static void clear(struct side *s)
{
	static const char zero[RANKS * PART];

	for (int i = 0; i < 2; i++) {
		for (int r = 0; r < test_procs; r++)
			memset(s->owner[r].model[i], 0, PART);
		if (i)
			gpu_put(s->mem[1], zero, PART * (size_t)test_procs);
		else
			memset(s->mem[0], 0, PART * (size_t)test_procs);
	}
	for (int r = 0; r < test_procs; r++)
		s->owner[r].posted = s->owner[r].taken = 0;
	barrier(&s->n);
}

/* Programs of seeds that no run before had, for some seconds, or WEFT_TEST_SEEDS of them; that of WEFT_TEST_SEED alone
 * if it is set. */
static void test_seeds(long arg)
{
	uint64_t ms = getenv("WEFT_TEST_SECONDS") ? strtoull(getenv("WEFT_TEST_SECONDS"), NULL, 0) * 1000 : 3000;
	uint64_t end = now_ms() + ms, seed = (uint64_t)getpid() << 32 ^ now_ms(), all[RANKS];
	const char *count = getenv("WEFT_TEST_SEEDS");
	int most = count ? atoi(count) : 0;
	struct side s;
	int programs;

	open_side(&s, arg);
	for (programs = 0;; programs++) {
		bool left = most ? programs < most : now_ms() < end;
		bool more = !programs || (left && !getenv("WEFT_TEST_SEED"));

		seed = more ? test_seed(seed + 1) : 0;
		exchange(&seed, all, sizeof(seed));
		if (!all[0]) /* rank 0 decides */
			break;
		seed = test_seed(all[0]);
		begin(&s, seed, arg);
		clear(&s);
		run(&s);
	}
	if (test_rank == 0)
		note("%d programs", programs);
	close_side(&s);
}

static const struct test tests[] = {
	{ "one", test_program, 1, 0, 0 },	    { "two", test_program, 2, 0, 0 },
	{ "four", test_program, 4, 0, AUTO },	    { "messages", test_program, 2, 0, NO_WAYS },
	{ "ways", test_program, 4, 0, SPLIT_WAYS }, { "seeds", test_seeds, 3, 0, RANK_WAYS },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
