/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the backend keeps for NIXL: peers, memory on either side, transfers.
 */
#ifndef WEFT_NIXL_OBJECTS_H
#define WEFT_NIXL_OBJECTS_H

#include <atomic>
#include <deque>
#include <map>
#include <set>

#include "backend/backend_plugin.h"
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <weft/token.h>

namespace weft_nixl
{

struct Transfer;

/* Writes to the log what has failed, ret being an errno of libfabric's, and returns NIXL's status for it. */
inline nixl_status_t failed(const char *what, ssize_t ret)
{
	static const std::map<nixl_status_t, std::set<ssize_t>> known = {
		{ NIXL_ERR_REMOTE_DISCONNECT,
		  { FI_ECONNRESET, FI_ECONNREFUSED, FI_ECONNABORTED, FI_EHOSTUNREACH, FI_ENETUNREACH, FI_ENOTCONN,
		    FI_ESHUTDOWN } },
		{ NIXL_ERR_CANCELED, { FI_ECANCELED } },
		{ NIXL_ERR_NOT_ALLOWED, { FI_EACCES, FI_EPERM, FI_EKEYREJECTED, FI_EBUSY } },
		{ NIXL_ERR_INVALID_PARAM, { FI_EINVAL, FI_EMSGSIZE, FI_EDOMAIN } },
		{ NIXL_ERR_NOT_SUPPORTED, { FI_ENOSYS, FI_EOPNOTSUPP } },
	};
	NIXL_ERROR << "weft: " << what << ": " << fi_strerror(int(-ret));
	for (const auto &[status, errors] : known)
		if (errors.count(-ret))
			return status;
	return NIXL_ERR_BACKEND;
}

/* Closes an object with its owner. */
struct Closer {
	template <class T> void operator()(T *object) const
	{
		if (int ret = fi_close(&object->fid))
			failed("fi_close", ret);
	}
};
template <class T> using Handle = std::unique_ptr<T, Closer>;

/* What a peer has no room for yet: a transfer, or else a notification. */
struct Waiting {
	std::shared_ptr<Transfer> transfer;
	uint64_t tag;
	std::string bytes;
};

/* Another agent's endpoint: its address in the address vector, and as it is named. */
struct Peer {
	fi_addr_t addr;
	std::string name;
	std::mutex lock; /* of waiting */
	std::deque<Waiting> waiting;
};

/* Memory of this agent. */
struct Region : public nixlBackendMD {
	Region() : nixlBackendMD(true) {}
	Handle<struct fid_mr> mr;
	void *desc = nullptr; /* of memory of a device */
	nixlBlobDesc mem;     /* with the token as metaInfo */
};

/* Memory of a peer. */
struct Remote : public nixlBackendMD {
	Remote() : nixlBackendMD(false) {}
	std::shared_ptr<struct weft_remote> region;
	uint64_t shift = 0; /* from addresses in descriptors to the token's, modulo 2^64 */
};

/* A prepared list, and its last post. */
struct Transfer {
	enum State { QUEUED, POSTED, DONE };

	std::shared_ptr<Peer> peer;
	std::set<std::shared_ptr<struct weft_remote>> regions;
	Handle<struct weft_list> list; /* closed before the regions */
	uint32_t op = 0;
	uint64_t tag = 0; /* that the list has */
	bool noted = false;
	std::string note;
	std::shared_ptr<Transfer> self;	     /* while it is posted: its address is the operation's context */
	nixl_status_t status = NIXL_SUCCESS; /* published by state */
	/* DONE is stored (release) by the thread that finds the end, and loaded (acquire) by all; the others are stored
	 * by the thread that posts, and by the one that finds room later, under the peer's lock. */
	std::atomic<int> state{ DONE };

	void end(nixl_status_t how)
	{
		std::shared_ptr<Transfer> keep = std::move(self);
		status = how;
		state.store(DONE, std::memory_order_release);
	}
	bool done() const { return state.load(std::memory_order_acquire) == DONE; }
};

struct Request : public nixlBackendReqH {
	std::shared_ptr<Transfer> transfer = std::make_shared<Transfer>();
	bool refused = false; /* a release */
};

} // namespace weft_nixl

#endif
