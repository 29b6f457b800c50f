/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The backend without NIXL's agent, whose locks keep threads apart, and what it holds inside.
 */
#include <thread>

#include "pair.h"

#include "../backend.cpp"

using namespace weft_nixl;

static const size_t LEN = 1 << 20;

static const nixlBackendInitParams *params(const std::string &agent)
{
	static nixl_b_params_t none;
	static nixlBackendInitParams p;

	p.localAgent = agent;
	p.type = "WEFT";
	p.customParams = &none;
	return &p;
}

/* An engine with memory, and what it knows of another's. */
struct Probe : public Engine {
	using Engine::address_, Engine::attempt, Engine::dropped_, Engine::localAgent, Engine::peerOf;
	using Engine::transfers_;

	std::vector<char> mem = std::vector<char>(LEN);
	nixlBackendMD *region = nullptr;
	std::map<std::string, nixlBackendMD *> others;
	notif_list_t notes;

	explicit Probe(const std::string &agent) : Engine(params(agent)) { OK(registerMem(desc(), DRAM_SEG, region)); }

	~Probe() override
	{
		for (auto &[agent, meta] : others)
			OK(unloadMD(meta));
		OK(deregisterMem(region));
	}

	nixlBlobDesc desc() const { return nixlBlobDesc(uintptr_t(mem.data()), LEN, 0, ""); }

	nixlBlobDesc token() const
	{
		nixlBlobDesc d = desc();

		OK(getPublicData(region, d.metaInfo));
		return d;
	}

	void know(const Probe &other)
	{
		if (others.count(other.localAgent))
			return;
		OK(loadRemoteConnInfo(other.localAgent, other.address_));
		OK(loadRemoteMD(other.token(), DRAM_SEG, other.localAgent, others[other.localAgent]));
	}

	/* Prepares a write of some bytes to another's memory. */
	nixlBackendReqH *write(const Probe &other, size_t at, size_t len)
	{
		nixl_meta_dlist_t here(DRAM_SEG), there(DRAM_SEG);
		nixlBackendReqH *request;

		here.addDesc(nixlMetaDesc(uintptr_t(mem.data()) + at, len, 0, region));
		there.addDesc(nixlMetaDesc(uintptr_t(other.mem.data()) + at, len, 0, others[other.localAgent]));
		OK(prepXfer(NIXL_WRITE, here, there, other.localAgent, request, nullptr));
		return request;
	}

	nixl_status_t post(nixlBackendReqH *request, const std::string *note = nullptr)
	{
		nixl_meta_dlist_t none(DRAM_SEG);
		nixl_opt_b_args_t a;

		if (note)
			a.notifMsg = *note;
		a.hasNotif = note != nullptr;
		return postXfer(NIXL_WRITE, none, none, "", request, &a);
	}

	/* Takes what has come. */
	size_t poll()
	{
		OK(getNotifs(notes));
		return notes.size();
	}

	/* How many addresses the address vector has. */
	int addresses() const
	{
		int n = 0;

		for (fi_addr_t a = 0; a < 64; a++) {
			char name[WEFT_NAME_MAX];
			size_t len = sizeof(name);
			n += !fi_av_lookup(av_.get(), a, name, &len);
		}
		return n;
	}

	size_t held() const
	{
		size_t n = 0;

		for (auto &[from, part] : partial_)
			n += part.bytes.size();
		return n;
	}

	/* Takes the domain, and its fabric, out of what the engine closes. */
	std::pair<struct fid_domain *, struct fid_fabric *> keep() { return { domain_.release(), fabric_.release() }; }
};

static double now()
{
	return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Polls an engine on a thread of its own, from some seconds on. */
struct Polling {
	std::atomic<bool> stop{ false };
	std::thread thread;

	explicit Polling(Probe &p, double after = 0)
	    : thread([this, &p, begin = now() + after] {
		      while (!stop)
			      if (now() >= begin)
				      p.poll();
	      })
	{
	}
	~Polling()
	{
		stop = true;
		thread.join();
	}
};

/* Both know each other, and have exchanged something. */
static void meet(Probe &a, Probe &b)
{
	a.know(b);
	b.know(a);
	OK(a.genNotif(b.localAgent, "hello"));
	for (size_t had = b.notes.size(); b.poll() == had;)
		a.poll();
	OK(b.genNotif(a.localAgent, "hello"));
	for (size_t had = a.notes.size(); a.poll() == had;)
		b.poll();
	a.notes.clear();
	b.notes.clear();
}

/* A token of another agent's leaves nothing in the address vector, but what was there before. */
static void strangers()
{
	Probe a("a"), b("b"), c("c");
	nixlBackendMD *meta;

	a.know(b);
	int known = a.addresses();
	EXPECT(a.loadRemoteMD(c.token(), DRAM_SEG, "b", meta), NIXL_ERR_INVALID_PARAM);
	CHECK_THAT(a.addresses() == known);
	a.know(c);
	EXPECT(a.loadRemoteMD(c.token(), DRAM_SEG, "b", meta), NIXL_ERR_INVALID_PARAM);
	CHECK_THAT(a.addresses() == known + 1);
	meet(a, c);
	meet(a, b);
}

/* An agent that ends closes its endpoint, whatever is under way: a domain with one open cannot be closed. */
static void ends(const std::string &how)
{
	auto a = std::make_unique<Probe>("a");
	Probe b("b");

	if (how == "queued")
		a->know(b);
	else
		meet(*a, b);
	nixlBackendReqH *request = a->write(b, 0, 8);
	if (how != "prepared")
		EXPECT(a->post(request), NIXL_IN_PROG);
	if (how == "released")
		OK(a->releaseReqH(request));
	auto [domain, fabric] = a->keep();
	Polling polling(b, 0.3);
	double begin = now();
	a.reset();
	CHECK_THAT(now() - begin < 25);
	CHECK_THAT(fi_close(&domain->fid) == 0 && fi_close(&fabric->fid) == 0);
}

/* A release of what is under way is no refusal; the transfer goes on to its end, and others come behind it. */
static void releases()
{
	Probe a("a"), b("b");

	meet(a, b);
	a.mem[0] = 1;
	nixlBackendReqH *request = a.write(b, 0, 8), *other = a.write(b, 8, 8);
	EXPECT(a.post(request), NIXL_IN_PROG);
	double begin = now();
	OK(a.releaseReqH(request));
	CHECK_THAT(now() - begin < 5 && a.transfers_.size() == 2);
	EXPECT(a.post(other), NIXL_IN_PROG);
	EXPECT(a.post(other), NIXL_ERR_REPOST_ACTIVE);
	for (nixl_status_t status; (status = a.checkXfer(other)) != NIXL_SUCCESS; b.poll())
		CHECK_THAT(status == NIXL_IN_PROG);
	CHECK_THAT(b.mem[0] == 1 && a.transfers_.size() == 1); /* the released one is no more */
	for (int i = 0; i < 100; i++) {
		a.mem[8] = char(i);
		for (nixl_status_t status = a.post(other); status != NIXL_SUCCESS; b.poll())
			status = a.checkXfer(other);
		CHECK_THAT(b.mem[8] == char(i));
	}
	OK(a.releaseReqH(other));
	CHECK_THAT(a.transfers_.empty());
}

/* Sends a part of notification 7, of which left follow, and lets the other take it. */
static void part(Probe &from, Probe &to, bool first, uint64_t left)
{
	uint64_t tag = UINT64_C(7) << 32 | (first ? FIRST : 0) | PART | left;
	std::string bytes(WEFT_NOTE_MAX, 'p');

	while (from.attempt(*from.peerOf(to.localAgent), nullptr, tag, bytes) != NIXL_SUCCESS) {
		from.poll();
		to.poll();
	}
	for (int i = 0; i < 3; i++)
		to.poll();
}

/* Parts without their end. */
static void parts()
{
	Probe r("r"), *s = new Probe("s");

	meet(*s, r);
	uint64_t most = 2 * LONGEST / WEFT_NOTE_MAX, left = most;
	for (part(*s, r, true, left); left > most / 4; part(*s, r, false, left)) {
		CHECK_THAT(r.held() <= LONGEST);
		left--;
	}
	CHECK_THAT(r.held() == 0 && r.dropped_ == 1 && r.notes.empty());
	std::string longest(LONGEST, 'l');
	EXPECT(s->genNotif("r", longest + "l"), NIXL_ERR_INVALID_PARAM);
	OK(s->genNotif("r", longest));
	while (!r.poll())
		s->poll();
	CHECK_THAT(r.notes.size() == 1 && r.notes[0].first == "s" && r.notes[0].second == longest);
	r.notes.clear();

	/* A sender that is silent for a while is no sender that is gone. */
	part(*s, r, true, 1);
	for (double end = now() + 2.5; now() < end;)
		r.poll();
	part(*s, r, false, 0);
	while (!r.poll())
		s->poll();
	CHECK_THAT(r.notes[0].second.size() == 2 * WEFT_NOTE_MAX && r.dropped_ == 1);
	r.notes.clear();

	for (part(*s, r, true, 5); !r.held(); r.poll())
		s->poll();
	delete s;
	for (double end = now() + 30; r.held(); r.poll())
		CHECK_THAT(now() < end);
	CHECK_THAT(r.dropped_ == 2);

	/* One that is disconnected. */
	Probe t("t");
	meet(t, r);
	for (part(t, r, true, 5); !r.held(); r.poll())
		t.poll();
	OK(r.unloadMD(r.others["t"]));
	r.others.erase("t");
	OK(r.disconnect("t"));
	CHECK_THAT(r.held() == 0 && r.dropped_ == 3);
}

/* One call takes so many notifications and no more. */
static void takes()
{
	Probe r("r");
	std::vector<std::unique_ptr<Probe>> senders;
	const size_t each = 100;

	for (int i = 0; i < 4; i++) {
		senders.push_back(std::make_unique<Probe>("s" + std::to_string(i)));
		meet(*senders.back(), r);
	}
	for (auto &s : senders)
		for (size_t i = 0; i < each; i++) {
			OK(s->genNotif("r", std::to_string(i)));
			CHECK_THAT(!s->peerOf("r")->waits());
		}
	CHECK_THAT(r.poll() == TAKEN);
	while (r.poll() < 4 * each)
		for (auto &s : senders)
			s->poll();
	std::map<std::string, size_t> next;
	for (auto &[from, text] : r.notes)
		CHECK_THAT(text == std::to_string(next[from]++));
}

/* What waits for one peer is no matter to others: a notification that has room does not wait for its own time. */
static void apart()
{
	Probe s("s"), mute("mute"), r("r");
	double least = 1;

	meet(s, mute);
	meet(s, r);
	while (!s.peerOf("mute")->waits())
		OK(s.genNotif("mute", std::string(4096, 'm')));
	for (int i = 0; i < 20; i++) {
		double begin = now();
		OK(s.genNotif("r", "n"));
		least = std::min(least, now() - begin);
	}
	CHECK_THAT(least < 0.005 && !s.peerOf("r")->waits());
	while (r.poll() < 20)
		s.poll();
}

/* Threads that post, notify and take on two engines at once: each notification comes once. */
static void threads()
{
	Probe a("a"), b("b");
	const int count = 4, rounds = 300;
	std::vector<std::thread> workers;
	std::vector<notif_list_t> taken(count);
	std::atomic<size_t> left{ size_t(count) * rounds * 2 };

	meet(a, b);
	for (int t = 0; t < count; t++) {
		workers.emplace_back([&, t] {
			size_t at = size_t(t) * 4096;
			for (int i = 0; i < rounds; i++) {
				nixlBackendReqH *request = a.write(b, at, 4096);
				std::string note = "w" + std::to_string(t) + " " + std::to_string(i);
				nixl_status_t status = a.post(request, &note);
				OK(a.genNotif("b", "n" + note));
				while (status == NIXL_IN_PROG)
					status = a.checkXfer(request);
				OK(status);
				OK(a.releaseReqH(request));
			}
		});
		workers.emplace_back([&, t] {
			notif_list_t none;
			while (left) {
				notif_list_t some;
				OK(b.getNotifs(some));
				OK(a.getNotifs(none));
				left -= some.size();
				taken[size_t(t)].insert(taken[size_t(t)].end(), some.begin(), some.end());
				std::this_thread::yield();
			}
			CHECK_THAT(none.empty());
		});
	}
	for (std::thread &w : workers)
		w.join();
	std::set<std::string> all;
	for (const notif_list_t &list : taken)
		for (auto &[from, text] : list)
			CHECK_THAT(from == "a" && all.insert(text).second);
	CHECK_THAT(all.size() == size_t(count) * rounds * 2 && a.transfers_.empty());
}

/* Runs a cell, or each in a process of its own. */
int main(int argc, char **argv)
{
	const std::map<std::string, void (*)()> cells = {
		{ "strangers", strangers },
		{ "releases", releases },
		{ "parts", parts },
		{ "takes", takes },
		{ "apart", apart },
		{ "threads", threads },
		{ "ends, under way", [] { ends("under way"); } },
		{ "ends, queued", [] { ends("queued"); } },
		{ "ends, prepared", [] { ends("prepared"); } },
		{ "ends, released", [] { ends("released"); } },
	};
	int failed = 0;

	if (argc > 1) {
		auto cell = cells.find(argv[1]);
		CHECK_THAT(cell != cells.end());
		alarm(100);
		cell->second();
		return 0;
	}
	for (auto &[name, cell] : cells) {
		pid_t pid = fork();
		if (!pid) {
			execl("/proc/self/exe", argv[0], name.c_str(), nullptr);
			_exit(127);
		}
		int status;
		CHECK_THAT(waitpid(pid, &status, 0) == pid);
		printf("%s - %s\n", status ? "not ok" : "ok", name.c_str());
		failed += status != 0;
	}
	return failed != 0;
}
