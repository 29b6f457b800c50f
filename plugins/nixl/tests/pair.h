/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Two agents for tests and figures: of one process, or of two that a socket joins.
 */
#ifndef WEFT_NIXL_PAIR_H
#define WEFT_NIXL_PAIR_H

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nixl.h"

/* Ends the process if something does not hold. */
#define CHECK_THAT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold (process %d)\n", __FILE__, __LINE__, #condition, \
				int(getpid())); \
			_exit(1); \
		} \
	} while (0)

/* Expects a status of NIXL's. */
#define EXPECT(call, status) \
	do { \
		nixl_status_t got_ = (call); \
		if (got_ != (status)) { \
			fprintf(stderr, "%s:%d: %s is %d and not %d (process %d)\n", __FILE__, __LINE__, #call, \
				int(got_), int(status), int(getpid())); \
			_exit(1); \
		} \
	} while (0)
#define OK(call) EXPECT(call, NIXL_SUCCESS)

/* A process's end of a socket to the other. */
struct Road {
	int fd;

	void send(const std::string &text) const
	{
		uint64_t len = text.size();

		CHECK_THAT(write(fd, &len, sizeof(len)) == sizeof(len));
		for (size_t at = 0; at < len;) {
			ssize_t n = write(fd, text.data() + at, len - at);
			CHECK_THAT(n > 0);
			at += size_t(n);
		}
	}

	std::string receive() const
	{
		uint64_t len;

		CHECK_THAT(recv(fd, &len, sizeof(len), MSG_WAITALL) == sizeof(len));
		std::string text(len, 0);
		CHECK_THAT(!len || recv(fd, text.data(), len, MSG_WAITALL) == ssize_t(len));
		return text;
	}
};

/* An agent with a backend and memory. */
struct Side {
	std::string name;
	std::string backend;
	nixlAgent agent;
	nixlBackendH *handle = nullptr;
	std::vector<char> mem;
	nixl_notifs_t notes;

	/* Parameters are those that differ from the backend's own. */
	Side(const std::string &name, const std::string &backend, size_t bytes, bool thread = false,
	     const nixl_b_params_t &parameters = {})
	    : name(name), backend(backend), agent(name, config(thread)), mem(bytes)
	{
		nixl_b_params_t params;
		nixl_mem_list_t mems;

		OK(agent.getPluginParams(backend, mems, params));
		for (auto &[parameter, value] : parameters)
			params[parameter] = value;
		OK(agent.createBackend(backend, params, handle));
	}

	static nixlAgentConfig config(bool thread)
	{
		nixlAgentConfig c;

		c.useProgThread = thread;
		return c;
	}

	nixl_opt_args_t args() const
	{
		nixl_opt_args_t a;

		a.backends.push_back(handle);
		return a;
	}

	nixl_reg_dlist_t region(size_t at, size_t len)
	{
		nixl_reg_dlist_t list(DRAM_SEG);

		list.addDesc(nixlBlobDesc(uintptr_t(mem.data()) + at, len, 0, ""));
		return list;
	}

	void share(size_t at, size_t len)
	{
		nixl_opt_args_t a = args();

		OK(agent.registerMem(region(at, len), &a));
	}

	std::string metadata()
	{
		std::string blob;

		OK(agent.getLocalMD(blob));
		return blob;
	}

	/* Takes the next notification of a sender; there is none of others. A sender without a progress thread makes
	 * progress in its calls alone. */
	std::string take(const std::string &sender, Side *from = nullptr)
	{
		while (notes.empty()) {
			OK(agent.getNotifs(notes));
			if (from)
				OK(from->agent.getNotifs(from->notes));
		}
		CHECK_THAT(notes.size() == 1 && notes.count(sender) && !notes[sender].empty());
		std::string text = notes[sender].front();
		notes[sender].erase(notes[sender].begin());
		if (notes[sender].empty())
			notes.clear();
		return text;
	}
};

/* Descriptors of count pieces of memory, len bytes each, stride bytes apart. */
inline nixl_xfer_dlist_t pieces(uintptr_t at, size_t len, size_t stride = 0, size_t count = 1)
{
	nixl_xfer_dlist_t list(DRAM_SEG);

	for (size_t i = 0; i < count; i++)
		list.addDesc(nixlBasicDesc(at + i * stride, len, 0));
	return list;
}

/* Polls a transfer until it has ended; the other agent, if one is given, may have to take part. */
inline nixl_status_t complete(Side &s, nixlXferReqH *request, nixl_status_t status, Side *other = nullptr)
{
	while (status == NIXL_IN_PROG) {
		if (other)
			OK(other->agent.getNotifs(other->notes));
		status = s.agent.getXferStatus(request);
	}
	return status;
}

inline nixl_status_t run(Side &s, nixlXferReqH *request, const std::string *note = nullptr, Side *other = nullptr)
{
	nixl_opt_args_t a;

	if (note)
		a.notif = *note;
	return complete(s, request, s.agent.postXferReq(request, &a), other);
}

/* Enters a network namespace. */
inline void enter(const char *host)
{
	int fd = open((std::string("/var/run/netns/") + host).c_str(), O_RDONLY | O_CLOEXEC);

	CHECK_THAT(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
	close(fd);
}

#endif
