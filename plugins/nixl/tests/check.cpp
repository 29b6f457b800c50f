/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The backend through NIXL's own agent: check one | host | hosts NAMESPACE NAMESPACE.
 */
#include <functional>

#include "pair.h"

static const size_t LEN = 1 << 20;

static void fill(Side &s, char seed)
{
	for (size_t i = 0; i < s.mem.size(); i++)
		s.mem[i] = char(seed + i * 7 % 251);
}

/* Reads and writes of one piece and of many, contiguous and apart, each posted again and again. */
static void moves(Side &s, uintptr_t base, const std::string &owner, Side *other)
{
	nixl_opt_args_t a = s.args();
	uintptr_t mine = uintptr_t(s.mem.data());

	for (size_t count : { 1, 3, 1000 }) {
		size_t len = count == 1000 ? 128 : 4096, stride = count == 3 ? len : 2 * len;
		nixlXferReqH *out, *in;

		OK(s.agent.createXferReq(NIXL_WRITE, pieces(mine, len, stride, count), pieces(base, len, stride, count),
					 owner, out, &a));
		OK(s.agent.createXferReq(NIXL_READ, pieces(mine + LEN / 2, len, stride, count),
					 pieces(base, len, stride, count), owner, in, &a));
		for (int round = 0; round < 20; round++) {
			fill(s, char(round));
			std::vector<char> before(s.mem);
			OK(run(s, out, nullptr, other));
			OK(run(s, in, nullptr, other));
			for (size_t i = 0; i < count; i++)
				CHECK_THAT(
					!memcmp(s.mem.data() + LEN / 2 + i * stride, before.data() + i * stride, len));
			CHECK_THAT(stride == len || s.mem[LEN / 2 + len] == before[LEN / 2 + len]);
		}
		OK(s.agent.releaseXferReq(out));
		OK(s.agent.releaseXferReq(in));
	}
	/* By lists that are prepared on either side, and picks of them. */
	nixlDlistH *here, *there;
	nixlXferReqH *some;
	OK(s.agent.prepXferDlist(NIXL_INIT_AGENT, pieces(mine, 512, 1024, 100), here, &a));
	OK(s.agent.prepXferDlist(owner, pieces(base, 512, 512, 100), there, &a));
	OK(s.agent.makeXferReq(NIXL_WRITE, here, { 5, 6, 80 }, there, { 0, 99, 7 }, some, &a));
	OK(run(s, some, nullptr, other));
	OK(s.agent.releaseXferReq(some));
	OK(s.agent.releasedDlistH(here));
	OK(s.agent.releasedDlistH(there));
}

/* Notifications of every length, with transfers and without, in their order. */
static const size_t LENGTHS[] = { 0, 1, 255, 257, 4096, 4097, 65536, 65537, 131072, 1000000 };

static std::string text(size_t len)
{
	return std::string(len, char('a' + len % 26));
}

static void tell(Side &s, uintptr_t base, const std::string &owner, Side *other)
{
	nixl_opt_args_t a = s.args();
	nixlXferReqH *out;

	OK(s.agent.createXferReq(NIXL_WRITE, pieces(uintptr_t(s.mem.data()), 4096), pieces(base, 4096), owner, out,
				 &a));
	for (size_t len : LENGTHS) {
		std::string note = text(len);
		memset(s.mem.data(), int(len % 256), 4096);
		OK(run(s, out, &note, other));
		OK(s.agent.genNotif(owner, note + "alone", &a));
	}
	OK(s.agent.releaseXferReq(out));
}

static void hear(Side &s, const std::string &sender, Side *from)
{
	for (size_t len : LENGTHS) {
		CHECK_THAT(s.take(sender, from) == text(len));
		CHECK_THAT(s.take(sender, from) == text(len) + "alone");
	}
}

/* What cannot be: it is refused, and the agent goes on. */
static void refuse(Side &s, Side &other)
{
	nixl_opt_args_t a = s.args();
	uintptr_t mine = uintptr_t(s.mem.data()), base = uintptr_t(other.mem.data());
	std::string whole = other.metadata(), name;
	nixlXferReqH *request;

	EXPECT(s.agent.createXferReq(NIXL_WRITE, pieces(mine, 8), pieces(base, 8), "unknown", request, &a),
	       NIXL_ERR_NOT_FOUND);
	EXPECT(s.agent.createXferReq(NIXL_WRITE, pieces(mine, 8), pieces(base + LEN - 4, 8), other.name, request, &a),
	       NIXL_ERR_NOT_FOUND);
	EXPECT(s.agent.genNotif("unknown", "text", &a), NIXL_ERR_NOT_FOUND);
	/* The token with a bit changed, in each byte: it is refused, or the transfer fails, or the bytes go where they
	 * should. */
	size_t at = whole.find("wtok"), len = uint8_t(whole[at + 6]) | uint8_t(whole[at + 7]) << 8;
	CHECK_THAT(at < whole.size() && at + len <= whole.size());
	OK(s.agent.invalidateRemoteMD(other.name));
	fill(other, 1);
	std::vector<char> before(other.mem);
	for (size_t i = 0; i < len; i++) {
		std::string bad(whole);
		bad[at + i] = char(bad[at + i] ^ 1 << i % 8);
		if (s.agent.loadRemoteMD(bad, name) == NIXL_SUCCESS &&
		    s.agent.createXferReq(NIXL_WRITE, pieces(mine, 8), pieces(base + 64, 8), other.name, request, &a) ==
			    NIXL_SUCCESS) {
			run(s, request, nullptr, &other);
			OK(s.agent.releaseXferReq(request));
		}
		s.agent.invalidateRemoteMD(other.name);
		memcpy(before.data() + 64, other.mem.data() + 64, 8);
		CHECK_THAT(before == other.mem);
	}
	OK(s.agent.loadRemoteMD(whole, name));
	CHECK_THAT(name == other.name);
}

/* Memory that is given up, agents that are forgotten and found again. */
static void lives(Side &s, Side &other)
{
	nixl_opt_args_t a = s.args(), b = other.args();
	uintptr_t mine = uintptr_t(s.mem.data()), base = uintptr_t(other.mem.data());
	nixlXferReqH *request;
	std::string name;

	OK(s.agent.createXferReq(NIXL_WRITE, pieces(mine, 64), pieces(base, 64), other.name, request, &a));
	OK(run(s, request, nullptr, &other));
	OK(s.agent.invalidateRemoteMD(other.name));
	EXPECT(s.agent.postXferReq(request, &a), NIXL_ERR_NOT_FOUND);
	OK(s.agent.loadRemoteMD(other.metadata(), name));
	EXPECT(s.agent.postXferReq(request, &a), NIXL_ERR_NOT_FOUND); /* it is of the agent as it was */
	OK(s.agent.releaseXferReq(request));
	OK(s.agent.makeConnection(other.name, &a));
	moves(s, base, other.name, &other);

	/* Requests are released and made anew, and each is posted again. */
	for (int i = 0; i < 50; i++) {
		OK(s.agent.createXferReq(NIXL_WRITE, pieces(mine, 64), pieces(base, 64), other.name, request, &a));
		for (int round = 0; round < 4; round++) {
			fill(s, char(4 * i + round));
			OK(run(s, request, nullptr, &other));
			CHECK_THAT(!memcmp(other.mem.data(), s.mem.data(), 64));
		}
		OK(s.agent.releaseXferReq(request));
	}

	/* The owner closes the region: the bytes do not go there, the transfer says so, and of its notification, short
	 * or in parts, nothing comes. */
	OK(s.agent.createXferReq(NIXL_WRITE, pieces(mine, 64), pieces(base, 64), other.name, request, &a));
	OK(other.agent.deregisterMem(other.region(0, LEN), &b));
	memset(other.mem.data(), 0, 64);
	fill(s, 3);
	for (size_t len : { 10, 200000 }) {
		std::string note(len, 'x');
		nixl_status_t status = run(s, request, &note, &other);
		CHECK_THAT(status == NIXL_ERR_NOT_ALLOWED || status == NIXL_ERR_BACKEND);
		OK(s.agent.genNotif(other.name, "behind it", &a));
		CHECK_THAT(other.take(s.name, &s) == "behind it");
	}
	CHECK_THAT(std::string(other.mem.data(), 64) == std::string(64, 0));
	OK(s.agent.releaseXferReq(request));
	other.share(0, LEN);
	OK(s.agent.invalidateRemoteMD(other.name));
	OK(s.agent.loadRemoteMD(other.metadata(), name));
	moves(s, base, other.name, &other);
}

/* Two agents of one process, and one with itself. */
static void one(bool thread)
{
	auto a = std::make_unique<Side>("first", "WEFT", 2 * LEN, thread),
	     b = std::make_unique<Side>("second", "WEFT", 2 * LEN, thread);
	std::string name;

	/* Metadata of an agent without memory: it is enough to notify. */
	OK(a->agent.loadRemoteMD(b->metadata(), name));
	CHECK_THAT(name == "second");
	nixl_opt_args_t args = a->args();
	OK(a->agent.genNotif("second", "early", &args));
	CHECK_THAT(b->take("first") == "early");
	a->share(0, 2 * LEN);
	b->share(0, LEN);
	OK(a->agent.loadRemoteMD(b->metadata(), name)); /* more memory than before */
	OK(b->agent.loadRemoteMD(a->metadata(), name));
	uintptr_t base = uintptr_t(b->mem.data());

	moves(*a, base, "second", b.get());
	moves(*a, uintptr_t(a->mem.data()) + LEN + LEN / 2, "first", nullptr);
	OK(a->agent.genNotif("first", "to myself", &args));
	CHECK_THAT(a->take("first") == "to myself");
	tell(*a, base, "second", b.get());
	hear(*b, "first", a.get());
	tell(*b, uintptr_t(a->mem.data()), "first", a.get());
	hear(*a, "second", b.get());
	refuse(*a, *b);
	lives(*a, *b);

	/* A name that no token takes: no agent is better than one whose notifications have another's. */
	nixlAgent nameless(std::string(65, 'n'), Side::config(false));
	nixlBackendH *handle;
	EXPECT(nameless.createBackend("WEFT", {}, handle), NIXL_ERR_BACKEND);
}

/* The owner: shares, takes notifications, and goes on until it hears "stop". */
static void owner(const Road &road, const char *host, bool thread)
{
	if (host)
		enter(host);
	Side s("owner", "WEFT", LEN, thread);
	std::string name;

	s.share(0, LEN);
	road.send(s.metadata());
	road.send(std::to_string(uintptr_t(s.mem.data())));
	OK(s.agent.loadRemoteMD(road.receive(), name));
	nixl_opt_args_t a = s.args();
	OK(s.agent.genNotif("writer", "ready", &a));
	while (s.take("writer") != "notes")
		;
	hear(s, "writer", nullptr);
	CHECK_THAT(std::string(s.mem.data(), 4096) == std::string(4096, char(1000000 % 256)));
	OK(s.agent.genNotif("writer", text(200000), &a));
	while (s.take("writer") != "stop")
		;
}

/* Writes and ends while that is under way. That nothing stays open then is seen by the log, see run.sh. */
static void leave(const std::string &metadata, uintptr_t base, bool thread)
{
	Side s("leaver", "WEFT", LEN, thread);
	nixl_opt_args_t a = s.args();
	nixlXferReqH *request;
	std::string name;

	s.share(0, LEN);
	OK(s.agent.loadRemoteMD(metadata, name));
	OK(s.agent.createXferReq(NIXL_WRITE, pieces(uintptr_t(s.mem.data()), 128, 256, 3000),
				 pieces(base, 128, 256, 3000), name, request, &a));
	OK(run(s, request));
	CHECK_THAT(s.agent.postXferReq(request, &a) >= 0);
}

static uintptr_t meet(Side &s, const Road &road, std::string &metadata)
{
	std::string name;

	metadata = road.receive();
	OK(s.agent.loadRemoteMD(metadata, name));
	CHECK_THAT(name == "owner");
	uintptr_t base = std::stoull(road.receive());
	road.send(s.metadata());
	CHECK_THAT(s.take("owner") == "ready");
	return base;
}

struct Child {
	Road road;
	pid_t pid;

	explicit Child(const std::function<void(Road)> &body)
	{
		int fds[2];

		CHECK_THAT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			close(fds[0]);
			body(Road{ fds[1] });
			_exit(0);
		}
		close(fds[1]);
		road.fd = fds[0];
	}

	int wait() const
	{
		int status;

		CHECK_THAT(waitpid(pid, &status, 0) == pid);
		close(road.fd);
		return status;
	}
};

/* Agents of two processes; then owners that are killed in the middle of transfers, and others of the same name. */
static void two(const char *here, const char *there, bool thread)
{
	auto owned = [&](Road r) { owner(r, there, thread); };
	std::vector<std::unique_ptr<Child>> owners;

	for (int i = 0; i < 4; i++) /* before any thread is here */
		owners.push_back(std::make_unique<Child>(owned));
	if (here)
		enter(here);
	Side s("writer", "WEFT", 2 * LEN, thread);
	nixl_opt_args_t a = s.args();
	s.share(0, 2 * LEN);
	for (size_t i = 0; i < owners.size(); i++) {
		std::string metadata;
		uintptr_t base = meet(s, owners[i]->road, metadata);
		nixlXferReqH *request;

		moves(s, base, "owner", nullptr);
		OK(s.agent.genNotif("owner", "notes", &a));
		tell(s, base, "owner", nullptr);
		CHECK_THAT(s.take("owner") == text(200000));
		leave(metadata, base, thread);
		if (i == owners.size() - 1) {
			OK(s.agent.genNotif("owner", "stop", &a));
			while (waitpid(owners[i]->pid, nullptr, WNOHANG) == 0)
				OK(s.agent.getNotifs(s.notes));
			break;
		}
		OK(s.agent.createXferReq(NIXL_WRITE, pieces(uintptr_t(s.mem.data()), 128, 256, 3000),
					 pieces(base, 128, 256, 3000), "owner", request, &a));
		std::string note = "never heard";
		for (size_t k = 0; k <= 10 * i; k++)
			OK(run(s, request));
		nixl_status_t status = s.agent.postXferReq(request, &a);
		kill(owners[i]->pid, SIGKILL);
		owners[i]->wait();
		while ((status = complete(s, request, status)) == NIXL_SUCCESS) /* until it is known to be gone */
			status = s.agent.postXferReq(request, &a);
		CHECK_THAT(status == NIXL_ERR_REMOTE_DISCONNECT);
		EXPECT(s.agent.postXferReq(request, &a), NIXL_ERR_NOT_FOUND); /* NIXL has invalidated it */
		OK(s.agent.releaseXferReq(request));
		EXPECT(s.agent.genNotif("owner", "to an unknown agent", &a), NIXL_ERR_NOT_FOUND);
	}
}

int main(int argc, char **argv)
{
	std::string what = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	for (bool thread : { false, true }) {
		Child child([&](Road) {
			alarm(120);
			if (what == "one")
				one(thread);
			else if (what == "host")
				two(nullptr, nullptr, thread);
			else if (what == "hosts" && argc == 4)
				two(argv[2], argv[3], thread);
			else
				CHECK_THAT(!"usage: check one | host | hosts NAMESPACE NAMESPACE");
		});
		int status = child.wait();
		if (status) {
			fprintf(stderr, "not ok - %s, %s a progress thread: status %d\n", what.c_str(),
				thread ? "with" : "without", status);
			return 1;
		}
		printf("ok - %s, %s a progress thread\n", what.c_str(), thread ? "with" : "without");
	}
	return 0;
}
