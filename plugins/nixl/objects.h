/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the backend keeps for NIXL: peers, memory on either side, transfers.
 */
#ifndef WEFT_NIXL_OBJECTS_H
#define WEFT_NIXL_OBJECTS_H

#include <atomic>
#include <chrono>
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
/* Writes to the log what has failed, ret being an errno of libfabric's, and returns NIXL's status for it. */
inline nixl_status_t failed(const std::string &what, ssize_t ret)
{
	constexpr nixl_status_t gone = NIXL_ERR_REMOTE_DISCONNECT, denied = NIXL_ERR_NOT_ALLOWED;
	constexpr nixl_status_t wrong = NIXL_ERR_INVALID_PARAM, unknown = NIXL_ERR_NOT_SUPPORTED;
	static const std::map<ssize_t, nixl_status_t> known = {
		{ FI_ECONNRESET, gone },    { FI_ECONNREFUSED, gone },
		{ FI_ECONNABORTED, gone },  { FI_EHOSTUNREACH, gone },
		{ FI_ENETUNREACH, gone },   { FI_ENOTCONN, gone },
		{ FI_ESHUTDOWN, gone },	    { FI_EACCES, denied },
		{ FI_EPERM, denied },	    { FI_EKEYREJECTED, denied },
		{ FI_EINVAL, wrong },	    { FI_EMSGSIZE, wrong },
		{ FI_EDOMAIN, wrong },	    { FI_ENOSYS, unknown },
		{ FI_EOPNOTSUPP, unknown }, { FI_ECANCELED, NIXL_ERR_CANCELED },
	};
	NIXL_ERROR << "weft: " << what << ": " << fi_strerror(int(-ret));
	auto it = known.find(-ret);
	return it == known.end() ? NIXL_ERR_BACKEND : it->second;
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
	struct Transfer *transfer;
	uint64_t tag;
	std::string bytes;
};

/* Another agent's endpoint: its address in the address vector, and as it is named. */
struct Peer {
	fi_addr_t addr;
	std::string name;
	std::mutex lock; /* of waiting */
	std::deque<Waiting> waiting;

	bool waits() { return std::lock_guard(lock), !waiting.empty(); }
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

/* A prepared list, and its last post, whose context is the address. */
struct Transfer : public nixlBackendReqH {
	std::shared_ptr<Peer> peer;
	std::set<std::shared_ptr<struct weft_remote>> regions;
	Handle<struct weft_list> list; /* closed before the regions */
	uint32_t op = 0;
	uint64_t tag = 0; /* that the list has */
	bool noted = false;
	bool released = false; /* under the engine's lock of transfers */
	std::string note;
	nixl_status_t status = NIXL_SUCCESS; /* published by done */
	std::atomic<bool> done{ true };	     /* false by the thread that posts, true by one that finds the end */
};

/* What has come of a notification in parts. */
struct Partial {
	uint64_t next; /* the tag of the part that follows */
	std::string bytes;
	std::chrono::steady_clock::time_point when; /* its last part came, or its sender was asked */
};

} // namespace weft_nixl

#endif
