/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Agents of two processes with memory of a GPU: vram. The driver may be the stand-in of tests/c/fake, whose
 * memory faults when the process touches it.
 */
#include <dlfcn.h>

#include "pair.h"

static const size_t LEN = 256 << 10, PIECE = 4096, COUNT = 16;

/* The driver's calls. */
struct Driver {
	int (*alloc)(uint64_t *, size_t);
	int (*get)(void *, uint64_t, size_t);
	int (*put)(uint64_t, const void *, size_t);

	Driver()
	{
		void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;

		CHECK_THAT(library);
		alloc = reinterpret_cast<int (*)(uint64_t *, size_t)>(dlsym(library, "cuMemAlloc_v2"));
		get = reinterpret_cast<int (*)(void *, uint64_t, size_t)>(dlsym(library, "cuMemcpyDtoH_v2"));
		put = reinterpret_cast<int (*)(uint64_t, const void *, size_t)>(dlsym(library, "cuMemcpyHtoD_v2"));
		auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
		auto retain = reinterpret_cast<int (*)(void **, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
		auto current = reinterpret_cast<int (*)(void *)>(dlsym(library, "cuCtxSetCurrent"));
		CHECK_THAT(alloc && get && put && init && retain && current);
		CHECK_THAT(!init(0) && !retain(&context, 0) && !current(context));
	}
};

/* An agent with memory of the process and of a GPU, both registered. */
struct Both : Side {
	Driver driver;
	uint64_t device = 0;

	explicit Both(const std::string &name) : Side(name, "WEFT", LEN, true)
	{
		nixl_opt_args_t a = args();
		nixl_reg_dlist_t list(VRAM_SEG);

		CHECK_THAT(!driver.alloc(&device, LEN));
		list.addDesc(nixlBlobDesc(device, LEN, 0, ""));
		OK(agent.registerMem(list, &a));
		share(0, LEN);
	}

	void put(bool vram, const std::vector<char> &from)
	{
		if (vram)
			CHECK_THAT(!driver.put(device, from.data(), LEN));
		else
			memcpy(mem.data(), from.data(), LEN);
	}

	std::vector<char> get(bool vram)
	{
		std::vector<char> to(mem);

		if (vram)
			CHECK_THAT(!driver.get(to.data(), device, LEN));
		return to;
	}
};

static std::vector<char> pattern(int seed)
{
	std::vector<char> data(LEN);

	for (size_t i = 0; i < LEN; i++)
		data[i] = char(seed * 31 + i * 7 % 251);
	return data;
}

static nixl_xfer_dlist_t every_other(bool vram, uintptr_t at)
{
	nixl_xfer_dlist_t list(vram ? VRAM_SEG : DRAM_SEG);

	for (size_t i = 0; i < COUNT; i++)
		list.addDesc(nixlBasicDesc(at + 2 * i * PIECE, PIECE, 0));
	return list;
}

/* The bytes that COUNT pieces of one bring into the other. */
static std::vector<char> merged(std::vector<char> to, const std::vector<char> &from)
{
	for (size_t i = 0; i < COUNT; i++)
		memcpy(to.data() + 2 * i * PIECE, from.data() + 2 * i * PIECE, PIECE);
	return to;
}

/* The owner: fills its memory as it is asked to, and says what is there. The notification is behind the bytes. */
static void owner(Road r)
{
	Both s("owner");
	std::string name;

	r.send(s.metadata());
	r.send(std::to_string(uintptr_t(s.mem.data())) + " " + std::to_string(s.device));
	OK(s.agent.loadRemoteMD(r.receive(), name));
	for (int cell = 0; cell < 8; cell++) {
		bool there = cell & 2, read = cell & 4;

		s.put(there, pattern(100 + cell));
		r.send("filled");
		CHECK_THAT(s.take("writer") == std::to_string(cell));
		auto want = read ? pattern(100 + cell) : merged(pattern(100 + cell), pattern(cell));
		CHECK_THAT(s.get(there) == want);
		r.send("seen");
	}
}

/* The writer: each pair of kinds of memory, written and read. */
static void writer(Road r)
{
	Both s("writer");
	nixl_opt_args_t a = s.args();
	std::string name;

	OK(s.agent.loadRemoteMD(r.receive(), name));
	uint64_t at[2];
	CHECK_THAT(name == "owner" && sscanf(r.receive().c_str(), "%lu %lu", &at[0], &at[1]) == 2);
	r.send(s.metadata());
	for (int cell = 0; cell < 8; cell++) {
		bool here = cell & 1, there = cell & 2, read = cell & 4;
		std::string note = std::to_string(cell);
		nixlXferReqH *request;

		CHECK_THAT(r.receive() == "filled");
		s.put(here, pattern(cell));
		OK(s.agent.createXferReq(read ? NIXL_READ : NIXL_WRITE,
					 every_other(here, here ? s.device : uintptr_t(s.mem.data())),
					 every_other(there, at[there]), "owner", request, &a));
		OK(run(s, request, &note));
		auto want = read ? merged(pattern(cell), pattern(100 + cell)) : pattern(cell);
		CHECK_THAT(s.get(here) == want);
		CHECK_THAT(r.receive() == "seen");
		OK(s.agent.releaseXferReq(request));
	}
}

int main()
{
	int fds[2], status;

	alarm(120);
	CHECK_THAT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	pid_t child = fork(); /* before any thread is here */
	CHECK_THAT(child >= 0);
	if (!child) {
		close(fds[1]);
		owner(Road{ fds[0] });
		_exit(0);
	}
	close(fds[0]);
	writer(Road{ fds[1] });
	CHECK_THAT(waitpid(child, &status, 0) == child && !status);
	printf("ok - memory of a GPU, agents of two processes: 8 cells\n");
	return 0;
}
