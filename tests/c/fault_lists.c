/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that are killed in the middle of lists of many elements (weft/token.h): no byte is anywhere but where a
 * list has it, the survivor goes on with others, and has no more files and mappings in the end than in the beginning.
 * And lists that find no memory.
 * WEFT_TEST_KILLS for more deaths, WEFT_TEST_SEED for another program. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common.h"
#include "tokens.h"

#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct side {
	struct node n;
	struct weft_token_ops *t;
	char *mem;
	uint64_t state;
};

/* What the owner of memory hands out. */
struct hello {
	size_t len;
	char token[WEFT_TOKEN_MAX];
	uint64_t round;
};

static int sideband[2];

static long deaths(long usual)
{
	return getenv("WEFT_TEST_KILLS") ? atol(getenv("WEFT_TEST_KILLS")) : usual;
}

static size_t some(struct side *s, size_t most)
{
	return rnd(&s->state) % most;
}

static void open_side(struct side *s, size_t len)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

	memset(s, 0, sizeof(*s));
	if (!test_is_weft())
		SKIP("an extension of weft");
	s->state = test_seed(1);
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	s->mem = guard_alloc(len);
}

static void open_sideband(void)
{
	char fd[16];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sideband) == 0);
	snprintf(fd, sizeof(fd), "%d", sideband[1]);
	setenv("WEFT_TEST_LISTS_FD", fd, 1);
}

static int others_end(void)
{
	return atoi(getenv("WEFT_TEST_LISTS_FD"));
}

static unsigned files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;

	CHECK(f);
	for (int c; (c = fgetc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

/* What the survivor has of the dead goes, soon; the runtime's own mappings may be some more. */
static void nothing_left(struct side *s, unsigned had, unsigned mapped)
{
	for (int i = 0; files() > had || mappings() > mapped + 60; i++) {
		CHECKF(i < 3000, "%u files, %u before; %u mappings, %u before", files(), had, mappings(), mapped);
		progress(&s->n);
		usleep(10000);
	}
}

/* kill -9 after some time, from a process of its own: in the middle of a system call, too. */
static pid_t kill_later(pid_t pid, unsigned us)
{
	pid_t killer = fork();

	if (killer == 0) {
		usleep(us);
		_exit(kill(pid, SIGKILL));
	}
	return killer;
}

/* ---- initiators die ---- */

enum { ELEMENTS = 3000, WORDS = 5, STEP = 96, LISTS = ELEMENTS * STEP };

/* The word of an element that a post writes. */
static uint64_t word(uint64_t round, uint64_t post, uint64_t element, uint64_t i)
{
	return round << 48 | post << 24 | element << 8 | i;
}

/* Writes lists to the survivor's memory, notifies it, and reads, until it is killed. */
static void initiate(void)
{
	static char from[LISTS];
	struct weft_local_piece here = { .len = WORDS * 8, .stride = STEP, .count = ELEMENTS };
	struct weft_remote_piece there = { .len = WORDS * 8, .stride = STEP, .count = ELEMENTS };
	struct weft_remote_info info;
	struct weft_list *list;
	struct hello h;
	struct side s;

	CHECK(recv(others_end(), &h, sizeof(h), MSG_WAITALL) == sizeof(h));
	open_side(&s, LISTS);
	OK(s.t->open(s.n.ep, h.token, h.len, &there.remote));
	OK(s.t->info(there.remote, &info, sizeof(info)));
	here.addr = s.mem;
	there.addr = info.base;
	OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
	for (uint64_t post = 1;; post++) {
		uint32_t op = post % 4 == 3 ? WEFT_READ : WEFT_WRITE;
		struct fi_cq_tagged_entry e;
		ssize_t rc;

		for (uint64_t k = 0; k < ELEMENTS && op == WEFT_WRITE; k++)
			for (uint64_t i = 0; i < WORDS; i++)
				*(uint64_t *)(s.mem + k * STEP + i * 8) = word(h.round, post, k, i);
		memcpy(from, s.mem, LISTS);
		while ((rc = s.t->post(list, op, NULL, 0, &post, sizeof(post), 0, NULL)) == -FI_EAGAIN)
			progress(&s.n);
		CHECKF(rc == 0, "post: %zd", rc);
		wait_ok(&s.n, s.n.txcq, &e);
		CHECK(op == WEFT_WRITE || !memcmp(from, s.mem, LISTS));
	}
}

/* Every word is of this round, in its place; of a post from least on. Nothing is between elements. */
static void check_words(const char *mem, uint64_t round, uint64_t least, uint64_t most)
{
	for (uint64_t at = 0; at < LISTS / 8; at++) {
		uint64_t k = at * 8 / STEP, i = at % (STEP / 8), w = *(const uint64_t *)(mem + at * 8);

		if (i >= WORDS)
			CHECKF(w == 0, "%#lx behind element %lu", (unsigned long)w, (unsigned long)k);
		else if (w || least)
			CHECKF(w == word(round, w >> 24 & 0xffffff, k, i) && (w >> 24 & 0xffffff) >= least &&
				       (w >> 24 & 0xffffff) <= most,
			       "%#lx at word %lu of element %lu, posts %lu to %lu", (unsigned long)w, (unsigned long)i,
			       (unsigned long)k, (unsigned long)least, (unsigned long)most);
	}
}

/* One initiator: what it has notified of is there, and what it was at when it died is in its place. */
static void outlast(struct side *s, uint64_t round)
{
	struct hello h = { .len = sizeof(h.token), .round = round };
	pid_t pid, killer = 0;
	uint64_t post = 0, last = 0;
	struct weft_note e = { .data = &post, .size = sizeof(post) };
	bool dead = false;
	struct fid_mr *mr;

	memset(s->mem, 0, LISTS);
	OK(fi_mr_reg(s->n.domain, s->mem, LISTS, RIGHTS, 0, round, 0, &mr, NULL));
	OK(s->t->pack(mr, NULL, h.token, &h.len));
	CHECK(write(sideband[0], &h, sizeof(h)) == sizeof(h));
	CHECK((pid = respawn("initiator")) > 0);
	for (int quiet = 0; quiet < 100;) {
		ssize_t rc = s->t->notes(s->n.ep, &e, 1);

		CHECKF(rc >= 0, "notes: %zd", rc);
		if (rc == 0) {
			progress(&s->n);
			quiet += dead;
			dead = dead || waitpid(pid, NULL, WNOHANG) == pid;
			continue;
		}
		CHECKF(post == last + 1, "notification %lu after %lu", (unsigned long)post, (unsigned long)last);
		last = post;
		if (!killer)
			killer = kill_later(pid, (unsigned)some(s, 20000));
		if (post % 8 == 1) /* later writes are under way */
			check_words(s->mem, round, post, 0xffffff);
	}
	CHECK(waitpid(killer, NULL, 0) == killer);
	/* the post behind the last, and one more that has not notified */
	check_words(s->mem, round, last % 4 == 3 ? last - 1 : last, last + 2);
	OK(fi_close(&mr->fid)); /* which no claim of the dead keeps */
}

static void test_initiators(long rounds)
{
	unsigned had = 0, mapped = 0;
	struct side s;

	if (!strcmp(test_role(), "initiator")) {
		initiate();
		return;
	}
	open_sideband();
	open_side(&s, LISTS);
	rounds = deaths(rounds);
	for (long i = 0; i < rounds; i++) {
		outlast(&s, (uint64_t)i + 1);
		if (i == 1)
			had = files() + 4, mapped = mappings();
	}
	nothing_left(&s, had, mapped);
	node_close(&s.n);
	guard_free(s.mem, LISTS);
}

/* ---- owners die, while random lists go to all of them ---- */

enum { OWNERS = 3, MOST = 40, PART = 131072 };

struct owner {
	pid_t pid, killer; /* killer: it dies soon */
	struct weft_remote *remote;
	struct weft_remote_info info;
	char model[PART];
};

/* Owns memory until it is killed, and takes what notifications come. */
static void own(void)
{
	struct hello h = { .len = sizeof(h.token) };
	char note[64];
	struct weft_note e = { .data = note, .size = sizeof(note) };
	struct fid_mr *mr;
	struct side s;

	open_side(&s, PART);
	memset(s.mem, 0, PART);
	OK(fi_mr_reg(s.n.domain, s.mem, PART, RIGHTS, 0, 1, 0, &mr, NULL));
	OK(s.t->pack(mr, NULL, h.token, &h.len));
	CHECK(write(others_end(), &h, sizeof(h)) == sizeof(h));
	for (;;)
		CHECK(s.t->notes(s.n.ep, &e, 1) >= 0);
}

static void replace(struct side *s, struct owner *o)
{
	struct hello h;

	if (o->pid) {
		CHECK(waitpid(o->pid, NULL, 0) == o->pid && waitpid(o->killer, NULL, 0) == o->killer);
		OK(fi_close(&o->remote->fid));
	}
	memset(o, 0, sizeof(*o));
	CHECK((o->pid = respawn("owner")) > 0 && recv(sideband[0], &h, sizeof(h), MSG_WAITALL) == sizeof(h));
	OK(s->t->open(s->n.ep, h.token, h.len, &o->remote));
	OK(s->t->info(o->remote, &o->info, sizeof(o->info)));
}

/* Posts a list and waits for its end. False: its owner is dead. */
static bool post(struct side *s, struct owner *o, struct weft_list *list, uint32_t op, const uint32_t *picks,
		 size_t count)
{
	size_t note = some(s, 3) ? 0 : 1 + some(s, 64);
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = s->t->post(list, op, picks, count, note ? s->mem : NULL, note, 0, s)) == -FI_EAGAIN)
		progress(&s->n);
	if (rc == 0)
		rc = wait_for(&s->n, s->n.txcq, &e, -1);
	if (rc == 1)
		return true;
	CHECKF(o->killer && (rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH), "post: %zd, owner %d", rc, (int)o->pid);
	return false;
}

/* Pieces at random places, behind each other on both sides. */
static size_t make(struct side *s, struct owner *o, struct weft_local_piece *here, struct weft_remote_piece *there)
{
	size_t n = 0, most = 1 + some(s, MOST), at = 0, far = 0, longest = some(s, 4) ? 300 : 3000;

	for (; n < most; n++) {
		size_t len = 1 + some(s, longest);

		at += some(s, 200);
		far += some(s, 200);
		if (at + len > PART || far + len > PART)
			break;
		here[n] = (struct weft_local_piece){ .addr = s->mem + at, .len = len };
		there[n] = (struct weft_remote_piece){ .remote = o->remote, .addr = o->info.base + far, .len = len };
		at += len;
		far += len;
	}
	return n;
}

/* One random list, against the model. False: the owner is dead. */
static bool step(struct side *s, struct owner *o)
{
	static char want[PART], model[PART];
	struct weft_local_piece here[MOST];
	struct weft_remote_piece there[MOST];
	uint32_t picks[MOST], op = some(s, 2) ? WEFT_READ : WEFT_WRITE;
	size_t n = make(s, o, here, there), picked = 0, count = 0;
	bool lives, whole = some(s, 2);
	struct weft_list *list;

	for (uint32_t i = 0; i < n; i++)
		if (some(s, 2) || i + 1 == n)
			picks[picked++] = i;
	fill(s->mem, PART, rnd(&s->state));
	memcpy(want, s->mem, PART);
	memcpy(model, o->model, PART);
	count = whole ? n : picked;
	for (size_t k = 0; k < count; k++) {
		size_t i = whole ? k : picks[k];
		char *local = want + ((char *)here[i].addr - s->mem), *remote = model + (there[i].addr - o->info.base);

		memcpy(op == WEFT_READ ? local : remote, op == WEFT_READ ? remote : local, here[i].len);
	}
	OK(s->t->list(s->n.ep, here, there, n, 0, &list));
	lives = post(s, o, list, op, whole ? NULL : picks, whole ? 0 : picked);
	OK(fi_close(&list->fid));
	if (!lives)
		return false;
	CHECKF(!memcmp(s->mem, want, PART), "op %u of %zu elements", op, count);
	memcpy(o->model, model, PART);
	return true;
}

/* All that the owner has. False: it is dead. */
static bool compare(struct side *s, struct owner *o)
{
	struct weft_local_piece here = { .addr = s->mem, .len = PART / 2, .count = 2 };
	struct weft_remote_piece there = { .remote = o->remote, .addr = o->info.base, .len = PART / 2, .count = 2 };
	struct weft_list *list;
	bool lives;

	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
	lives = post(s, o, list, WEFT_READ, NULL, 0);
	OK(fi_close(&list->fid));
	CHECKF(!lives || !memcmp(s->mem, o->model, PART), "memory of owner %d", (int)o->pid);
	return lives;
}

static void test_program(long rounds)
{
	static struct owner owners[OWNERS];
	unsigned had = 0, mapped = 0;
	long killed = 0;
	struct side s;

	if (!strcmp(test_role(), "owner")) {
		own();
		return;
	}
	open_sideband();
	open_side(&s, PART);
	rounds = deaths(rounds);
	for (int i = 0; i < OWNERS; i++)
		replace(&s, &owners[i]);
	while (killed < rounds) {
		struct owner *o = &owners[some(&s, OWNERS)];

		if (!o->killer && !some(&s, 40))
			o->killer = kill_later(o->pid, (unsigned)some(&s, 1000));
		if (step(&s, o) && (some(&s, 8) || compare(&s, o)))
			continue;
		replace(&s, o);
		if (++killed == 2)
			had = files() + 4, mapped = mappings();
	}
	nothing_left(&s, had, mapped);
	for (int i = 0; i < OWNERS; i++) {
		if (!owners[i].killer)
			owners[i].killer = kill_later(owners[i].pid, 0);
		CHECK(waitpid(owners[i].pid, NULL, 0) > 0 && waitpid(owners[i].killer, NULL, 0) > 0);
		OK(fi_close(&owners[i].remote->fid));
	}
	node_close(&s.n);
	guard_free(s.mem, PART);
}

/* The same by messages, and with lists that both sides copy. */
static void test_program_messages(long rounds)
{
	setenv("FI_WEFT_USE_CMA", "no", 1);
	test_program(rounds);
}

static void test_program_halves(long rounds)
{
	setenv("FI_WEFT_RMA_ASSIST_SIZE", "4096", 1);
	test_program(rounds);
}

/* A list that the process may not have memory for is refused, and a shorter one is prepared and posted. */
static void test_no_memory(long mib)
{
	enum { MANY = WEFT_LIST_MAX };
	struct weft_local_piece *here = calloc(MANY, sizeof(*here));
	struct weft_remote_piece *there = calloc(MANY, sizeof(*there));
	struct weft_list *list = NULL, *some[100];
	struct hello h = { .len = sizeof(h.token) };
	struct fi_cq_tagged_entry e;
	struct weft_remote_info info;
	struct weft_remote *remote;
	char *far = calloc(2, LISTS);
	unsigned long pages = 0;
	struct fid_mr *mr;
	struct rlimit end;
	struct side s;
	int n = 0, rc = 0;
	FILE *f;

	open_side(&s, LISTS);
	OK(fi_mr_reg(s.n.domain, far, 2 * LISTS, RIGHTS, 0, 1, 0, &mr, NULL));
	OK(s.t->pack(mr, NULL, h.token, &h.len));
	OK(s.t->open(s.n.ep, h.token, h.len, &remote));
	OK(s.t->info(remote, &info, sizeof(info)));
	for (size_t i = 0; i < MANY; i++) { /* none joins the one before */
		here[i] = (struct weft_local_piece){ .addr = s.mem + i * 7919 % (LISTS - 1), .len = 1 };
		there[i] = (struct weft_remote_piece){ .remote = remote,
						       .addr = info.base + 2 * (i * i % LISTS),
						       .len = 1 };
	}
	CHECK((f = fopen("/proc/self/statm", "r")) && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	CHECK(getrlimit(RLIMIT_AS, &end) == 0);
	end.rlim_cur = pages * (size_t)getpagesize() + (size_t)mib * 1048576;
	CHECK(setrlimit(RLIMIT_AS, &end) == 0);
	while (rc == 0 && n < (int)ARRAY_LEN(some) - 1) {
		rc = s.t->list(s.n.ep, here, there, MANY, 0, &some[n]);
		n += rc == 0;
	}
	CHECKF(rc == -FI_ENOMEM && n <= mib / 64, "%d lists, then %d", n, rc);
	fill(s.mem, LISTS, 5);
	OK(s.t->list(s.n.ep, here, there, ELEMENTS / 8, 0, &list));
	OK(s.t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, NULL));
	wait_ok(&s.n, s.n.txcq, &e);
	for (size_t i = 0; i < ELEMENTS / 8; i++)
		CHECK(far[2 * (i * i % LISTS)] == s.mem[i * 7919 % (LISTS - 1)] && far[2 * i + 1] == 0);
	OK(fi_close(&list->fid));
	while (n)
		OK(fi_close(&some[--n]->fid));
	end.rlim_cur = end.rlim_max;
	CHECK(setrlimit(RLIMIT_AS, &end) == 0);
	OK(s.t->list(s.n.ep, here, there, MANY, 0, &list));
	OK(fi_close(&list->fid));
	OK(fi_close(&remote->fid));
	OK(fi_close(&mr->fid));
	node_close(&s.n);
	guard_free(s.mem, LISTS);
	free(far);
	free(here);
	free(there);
}

static const struct test tests[] = {
	{ "initiators", test_initiators, 1, 600, 6 },
	{ "program", test_program, 1, 600, 6 },
	{ "program_messages", test_program_messages, 1, 600, 4 },
	{ "program_halves", test_program_halves, 1, 600, 4 },
	{ "no_memory", test_no_memory, 1, 0, 48 }, /* less than a list, more than threads of the runtime take */
	{ "little_memory", test_no_memory, 1, 0, 200 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
