/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NIXL's backend over weft's memory tokens (weft/token.h). An agent is an endpoint, a registration a region whose token
 * is its metadata, a transfer a list that is prepared once and posted often. Where a peer is, and how its memory is
 * reached, is weft's affair alone. What goes wrong is a status of NIXL's and a line in its log.
 *
 * All calls may be made by any thread at any time, those for one transfer by one at a time.
 */
#include "objects.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace weft_nixl
{
/* A longer notification than one of weft's goes in parts, whose tags have its number, PART, whether this is the first,
 * and how many follow. The tag of a whole one is 0, and no number is. */
constexpr uint64_t FIRST = UINT64_C(1) << 31, PART = UINT64_C(1) << 30;
constexpr size_t LONGEST = 64 << 20; /* bytes of a notification, so of what is held of one sender's */
constexpr int TAKEN = 256;	     /* notifications, or parts, by one call */

using std::chrono::milliseconds, std::chrono::steady_clock;

static void must(const char *what, int ret)
{
	if (ret)
		throw std::runtime_error(std::string("weft: ") + what + ": " + fi_strerror(-ret));
}

template <class T, class Call> static void make(const char *what, Handle<T> &handle, Call call)
{
	T *object = nullptr;
	must(what, call(&object));
	handle.reset(object);
}

using Name = const std::string &;
using Descs = const nixl_meta_dlist_t &;
class Engine : public nixlBackendEngine
{
      public:
	bool supportsRemote() const override { return true; }
	bool supportsLocal() const override { return true; }
	bool supportsNotif() const override { return true; }
	nixl_mem_list_t getSupportedMems() const override { return mems_; }
	nixl_status_t deregisterMem(nixlBackendMD *meta) override { return unloadMD(meta); }
	nixl_status_t unloadMD(nixlBackendMD *meta) override { return delete meta, NIXL_SUCCESS; }
	nixl_status_t getConnInfo(std::string &out) const override { return out = address_, NIXL_SUCCESS; }

	explicit Engine(const nixlBackendInitParams *params) : nixlBackendEngine(params)
	{
		std::unique_ptr<struct fi_info, decltype(&fi_freeinfo)> info(fi_allocinfo(), fi_freeinfo);
		struct fi_info *found = nullptr;
		struct fi_av_attr av = {};
		struct fi_cq_attr cq = { 0, 0, FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE, 0, FI_CQ_COND_NONE, nullptr };
		size_t len = WEFT_NAME_MAX;
		info->caps = FI_MSG | FI_RMA | FI_HMEM;
		info->ep_attr->type = FI_EP_RDM;
		info->domain_attr->threading = FI_THREAD_SAFE;
		info->domain_attr->data_progress = params->enableProgTh ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
		info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_HMEM;
		info->fabric_attr->prov_name = strdup("weft");
		must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, info.get(), &found));
		info.reset(found);
		if (info->domain_attr->mr_mode & FI_MR_HMEM)
			mems_.push_back(VRAM_SEG);
		make("fi_fabric", fabric_, [&](auto f) { return fi_fabric(info->fabric_attr, f, nullptr); });
		make("fi_domain", domain_, [&](auto d) { return fi_domain(fabric_.get(), info.get(), d, nullptr); });
		make("fi_av_open", av_, [&](auto v) { return fi_av_open(domain_.get(), &av, v, nullptr); });
		make("fi_cq_open", cq_, [&](auto q) { return fi_cq_open(domain_.get(), &cq, q, nullptr); });
		make("fi_endpoint", ep_, [&](auto e) { return fi_endpoint(domain_.get(), info.get(), e, nullptr); });
		must("fi_ep_bind", fi_ep_bind(ep_.get(), &av_->fid, 0));
		must("fi_ep_bind", fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
		must("fi_enable", fi_enable(ep_.get()));
		must("fi_open_ops",
		     fi_open_ops(&ep_->fid, WEFT_TOKEN_OPS, 0, reinterpret_cast<void **>(&ops_), nullptr));
		must("the agent's name", ops_->agent(ep_.get(), localAgent.c_str()));
		address_.resize(len);
		must("fi_getname", fi_getname(&ep_->fid, address_.data(), &len));
		address_.resize(len);
	}

	/* What is under way has some time to end; then it is dropped with the endpoint. */
	~Engine() override
	{
		auto done = [](const auto &known) -> bool { return known.first->done; };
		for (auto &known : transfers_)
			cancel(*known.first);
		until(milliseconds(100), [&] { return std::ranges::all_of(transfers_, done); });
	}

	nixl_status_t registerMem(const nixlBlobDesc &mem, const nixl_mem_t &kind, nixlBackendMD *&out) override
	{
		auto region = std::make_unique<Region>();
		struct iovec iov = { reinterpret_cast<void *>(mem.addr), mem.len };
		struct weft_token_attr owner = { ep_.get(), localAgent.c_str() };
		struct fi_mr_attr attr = {};
		struct fid_mr *mr;
		size_t len = WEFT_TOKEN_MAX;
		out = nullptr;
		if (std::find(mems_.begin(), mems_.end(), kind) == mems_.end())
			return failed("memory of this kind", -FI_ENOSYS);
		attr.mr_iov = &iov;
		attr.iov_count = 1;
		attr.access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
		attr.iface = kind == VRAM_SEG ? FI_HMEM_CUDA : FI_HMEM_SYSTEM;
		attr.device.cuda = kind == VRAM_SEG ? int(mem.devId) : 0;
		if (int ret = fi_mr_regattr(domain_.get(), &attr, 0, &mr))
			return failed("fi_mr_regattr", ret);
		region->mr.reset(mr);
		region->desc = kind == VRAM_SEG ? fi_mr_desc(mr) : nullptr;
		region->mem = mem;
		region->mem.metaInfo.resize(len);
		if (int ret = ops_->pack(mr, &owner, region->mem.metaInfo.data(), &len))
			return failed("pack", ret);
		region->mem.metaInfo.resize(len);
		out = region.release();
		return NIXL_SUCCESS;
	}

	nixl_status_t getPublicData(const nixlBackendMD *meta, std::string &out) const override
	{
		out = static_cast<const Region *>(meta)->mem.metaInfo;
		return NIXL_SUCCESS;
	}

	nixl_status_t loadRemoteConnInfo(Name agent, const std::string &info) override
	{
		std::lock_guard guard(lock_);
		std::shared_ptr<Peer> peer = peerAt(info);
		if (!peer)
			return failed("address of agent '" + agent + "'", -FI_EINVAL);
		agents_[agent] = peer;
		return NIXL_SUCCESS;
	}

	/* Nothing is sent: the first post finds the agent. */
	nixl_status_t connect(Name agent) override
	{
		return agent == localAgent ? loadRemoteConnInfo(agent, address_)
		       : peerOf(agent)	   ? NIXL_SUCCESS
					   : NIXL_ERR_NOT_FOUND;
	}

	/* Gives up what waits for an agent and what has come of it in part. Its address goes at a later one. */
	nixl_status_t disconnect(Name agent) override
	{
		std::shared_ptr<Peer> peer = peerOf(agent);
		if (!peer)
			return NIXL_ERR_NOT_FOUND;
		std::scoped_lock guard(notesLock_, peer->lock, lock_);
		for (Waiting &w : peer->waiting)
			end(w.transfer, NIXL_ERR_CANCELED);
		queued_ -= peer->waiting.size();
		peer->waiting.clear();
		drop(peer->name);
		agents_.erase(agent);
		std::erase_if(addresses_, [&](const auto &known) {
			bool unused = known.second.use_count() == 1 + (known.second == peer);
			return unused && !fi_av_remove(av_.get(), &known.second->addr, 1, 0);
		});
		return NIXL_SUCCESS;
	}

	nixl_status_t loadRemoteMD(const nixlBlobDesc &desc, const nixl_mem_t &, Name agent,
				   nixlBackendMD *&out) override
	{
		std::shared_ptr<Peer> peer = peerOf(agent);
		auto meta = std::make_unique<Remote>();
		struct weft_remote *remote;
		struct weft_remote_info info;
		out = nullptr;
		if (!peer)
			return NIXL_ERR_NOT_FOUND;
		std::lock_guard guard(lock_);
		if (int ret = ops_->open(ep_.get(), desc.metaInfo.data(), desc.metaInfo.size(), &remote))
			return failed("open of a token", ret);
		meta->region.reset(remote, Closer());
		ops_->info(remote, &info, sizeof(info));
		auto owns = [&](const auto &known) { return known.second->addr == info.addr; };
		if (info.addr != peer->addr && std::ranges::none_of(addresses_, owns)) {
			meta->region.reset();
			fi_av_remove(av_.get(), &info.addr, 1, 0);
		}
		if (info.addr != peer->addr || desc.len > info.length)
			return failed("a token of another agent or of fewer bytes, for '" + agent + "'", -FI_EINVAL);
		meta->shift = info.base - desc.addr;
		out = meta.release();
		return NIXL_SUCCESS;
	}

	nixl_status_t loadLocalMD(nixlBackendMD *meta, nixlBackendMD *&out) override
	{
		return loadRemoteMD(static_cast<Region *>(meta)->mem, DRAM_SEG, localAgent, out);
	}

	nixl_status_t prepXfer(const nixl_xfer_op_t &op, Descs local, Descs remote, Name agent,
			       nixlBackendReqH *&handle, const nixl_opt_b_args_t *) const override
	{
		std::vector<struct weft_local_piece> here;
		std::vector<struct weft_remote_piece> there;
		auto t = std::make_unique<Transfer>();
		struct weft_list *list;
		handle = nullptr;
		t->op = op == NIXL_READ ? WEFT_READ : WEFT_WRITE;
		t->peer = peerOf(agent);
		if (!t->peer)
			return NIXL_ERR_NOT_FOUND;
		for (int i = 0; i < local.descCount(); i++) {
			const auto *region = static_cast<const Region *>(local[i].metadataP);
			const auto *far = static_cast<const Remote *>(remote[i].metadataP);
			if (!i || there.back().remote != far->region.get())
				t->regions.insert(far->region);
			here.push_back({ reinterpret_cast<void *>(local[i].addr), local[i].len, 0, 1, region->desc });
			there.push_back({ far->region.get(), remote[i].addr + far->shift, remote[i].len, 0, 1 });
		}
		if (int ret = ops_->list(ep_.get(), here.data(), there.data(), here.size(), 0, &list))
			return failed("list", ret);
		t->list.reset(list);
		handle = t.get();
		std::lock_guard guard(transfersLock_);
		transfers_[t.get()] = std::move(t);
		return NIXL_SUCCESS;
	}

	nixl_status_t postXfer(const nixl_xfer_op_t &, Descs, Descs, Name, nixlBackendReqH *&handle,
			       const nixl_opt_b_args_t *args) const override
	{
		auto *t = static_cast<Transfer *>(handle);
		if (!t->done)
			return NIXL_ERR_REPOST_ACTIVE;
		t->noted = args && args->hasNotif;
		t->note = t->noted ? args->notifMsg : std::string();
		t->done = false;
		submit(*t->peer, t, t->note);
		return checkXfer(handle);
	}

	nixl_status_t checkXfer(nixlBackendReqH *handle) const override
	{
		const auto &t = *static_cast<Transfer *>(handle);
		if (!t.done)
			progress();
		return t.done ? t.status : NIXL_IN_PROG;
	}

	/* What is under way has some time to end; then it goes on by itself. */
	nixl_status_t releaseReqH(nixlBackendReqH *handle) const override
	{
		auto &t = *static_cast<Transfer *>(handle);
		cancel(t);
		if (!t.done && !until(milliseconds(100), [&]() -> bool { return t.done; }))
			failed("a released transfer until it ends", -FI_EBUSY);
		std::lock_guard guard(transfersLock_);
		t.released = true;
		if (t.done)
			transfers_.erase(&t);
		return NIXL_SUCCESS;
	}

	nixl_status_t getNotifs(notif_list_t &list) override
	{
		std::lock_guard guard(notesLock_);
		ssize_t n = 0;
		for (int i = 0; i < TAKEN && (n = ops_->notes(ep_.get(), &note_, 1)) == 1; i++)
			take(note_, list);
		askSenders();
		if (queued_)
			progress();
		return n < 0 ? failed("notes", n) : NIXL_SUCCESS;
	}

	nixl_status_t genNotif(Name agent, const std::string &note) const override
	{
		std::shared_ptr<Peer> peer = peerOf(agent);
		if (!peer)
			return NIXL_ERR_NOT_FOUND;
		nixl_status_t status = submit(*peer, nullptr, note);
		/* A peer that is met for the first time has room soon, and the caller may not call again. */
		until(milliseconds(10), [&] { return !peer->waits(); });
		return status;
	}

      protected:
	/* Makes progress: what has ended is known, and what waits is posted where there is room. */
	void progress() const
	{
		struct fi_cq_entry done[16];
		struct fi_cq_err_entry err = {};
		ssize_t n = fi_cq_read(cq_.get(), done, 16);
		for (ssize_t i = 0; i < n; i++)
			end(static_cast<Transfer *>(done[i].op_context), NIXL_SUCCESS);
		for (; n == -FI_EAVAIL && fi_cq_readerr(cq_.get(), &err, 0) == 1; err = {})
			end(static_cast<Transfer *>(err.op_context),
			    failed(err.op_context ? "a transfer" : "a notification", -err.err));
		if (!queued_)
			return;
		std::lock_guard guard(lock_);
		for (auto &known : addresses_)
			drain(*known.second);
	}

	/* Makes progress until something holds, for some time at most, and returns whether it does. */
	template <class Holds> bool until(milliseconds most, Holds holds) const
	{
		auto end = steady_clock::now() + most;
		for (progress(); !holds() && steady_clock::now() < end; progress())
			std::this_thread::yield();
		return holds();
	}

	/* Takes in the end of a transfer, if there is one, and returns how it was. */
	nixl_status_t end(Transfer *t, nixl_status_t how) const
	{
		std::lock_guard guard(transfersLock_);
		if (!t)
			return how;
		t->status = how;
		t->done = true;
		if (t->released)
			transfers_.erase(t);
		return how;
	}

	/* Takes back what is not under way. */
	void cancel(Transfer &t) const
	{
		std::lock_guard guard(t.peer->lock);
		size_t taken = std::erase_if(t.peer->waiting, [&](const Waiting &w) { return w.transfer == &t; });
		queued_ -= taken;
		if (taken)
			end(&t, NIXL_ERR_CANCELED);
		else if (!t.done)
			fi_cancel(&ep_->fid, &t);
	}

	/* Posts what waits for a peer, until one finds no room again. */
	void drain(Peer &peer) const
	{
		std::lock_guard guard(peer.lock);
		for (; !peer.waiting.empty(); peer.waiting.pop_front(), queued_--) {
			Waiting &w = peer.waiting.front();
			if (attempt(peer, w.transfer, w.tag, w.bytes) == NIXL_IN_PROG)
				return;
		}
	}

	/* Posts a transfer with its notification, or the first part of it, or else a notification. Returns NIXL_IN_PROG
	 * if there is no room. A write is complete when the peer has it, which a notification knows by itself. */
	nixl_status_t attempt(Peer &peer, Transfer *t, uint64_t tag, const std::string &note) const
	{
		ssize_t ret;
		if (t) {
			uint64_t level = t->noted || t->op == WEFT_READ ? 0 : FI_DELIVERY_COMPLETE;
			if (tag != t->tag)
				ops_->tag(t->list.get(), tag);
			t->tag = tag;
			ret = ops_->post(t->list.get(), t->op, nullptr, 0, t->noted ? t->note.data() : nullptr,
					 tag ? WEFT_NOTE_MAX : t->note.size(), FI_COMPLETION | level, t);
		} else {
			ret = ops_->notify(ep_.get(), peer.addr, tag, note.data(), note.size(), 0, nullptr);
		}
		if (!ret || ret == -FI_EAGAIN)
			return ret ? NIXL_IN_PROG : NIXL_SUCCESS;
		return end(t, failed(t ? "post" : "notify", ret));
	}

	/* Posts a transfer or a notification, or puts it behind what waits. In parts the transfer has the first. */
	nixl_status_t submit(Peer &peer, Transfer *t, const std::string &note) const
	{
		if (note.size() > LONGEST || (note.size() <= WEFT_NOTE_MAX && !peer.waits()))
			if (nixl_status_t status = attempt(peer, t, 0, note); status != NIXL_IN_PROG)
				return status;
		uint64_t number = ++numbers_;
		std::unique_lock guard(peer.lock);
		for (size_t at = 0; at == 0 || at < note.size(); at += WEFT_NOTE_MAX) {
			uint64_t left = note.empty() ? 0 : (note.size() - at - 1) / WEFT_NOTE_MAX;
			uint64_t tag = note.size() > WEFT_NOTE_MAX ? number << 32 | (at ? 0 : FIRST) | PART | left : 0;
			peer.waiting.push_back({ at ? nullptr : t, tag, note.substr(at, WEFT_NOTE_MAX) });
			queued_++;
		}
		guard.unlock();
		drain(peer);
		return NIXL_SUCCESS;
	}

	/* Takes a notification, or a part of one. The sender is another process. */
	void take(const struct weft_note &note, notif_list_t &list)
	{
		std::string text(static_cast<const char *>(note.data), note.len);
		std::string from(reinterpret_cast<const char *>(note.name), note.namelen);
		uint64_t tag = note.tag & ~FIRST;
		if (note.tag & FIRST) {
			drop(from); /* what has not come to its end */
			partial_[from] = { tag, "", steady_clock::now() };
		}
		if (tag) {
			auto it = partial_.find(from);
			if (it == partial_.end() || (it->second.next ^ tag) >> 32)
				return; /* of a dropped one, or one whose transfer failed; or of none, by askSenders */
			Partial &p = it->second;
			if (p.next-- != tag || p.bytes.size() + text.size() > LONGEST)
				return drop(from);
			p.bytes += text;
			p.when = steady_clock::now();
			if (tag & (PART - 1))
				return;
			text = std::move(p.bytes);
			partial_.erase(it);
		}
		list.emplace_back(note.agent, std::move(text));
	}

	void drop(Name from)
	{
		auto it = partial_.find(from);
		if (it == partial_.end())
			return;
		NIXL_WARN << "weft: notification " << ++dropped_ << " dropped, " << it->second.bytes.size() << " bytes";
		partial_.erase(it);
	}

	/* Drops what has come of senders that are gone: those that have been silent get a part that they ignore. */
	void askSenders()
	{
		for (auto it = partial_.begin(); it != partial_.end();) {
			auto &[from, part] = *it++;
			auto now = steady_clock::now();
			if (now - part.when < milliseconds(1000))
				continue;
			part.when = now;
			std::lock_guard guard(lock_);
			std::shared_ptr<Peer> peer = peerAt(from);
			if (!peer || attempt(*peer, nullptr, PART, "") < 0)
				drop(from);
		}
	}

	std::shared_ptr<Peer> peerOf(Name agent) const
	{
		std::lock_guard guard(lock_);
		auto it = agents_.find(agent);
		if (it != agents_.end())
			return it->second;
		NIXL_ERROR << "weft: agent '" << agent << "' is not known";
		return nullptr;
	}

	/* Returns the peer with an address, which may be new. The caller holds lock_. */
	std::shared_ptr<Peer> peerAt(Name address)
	{
		auto [it, fresh] = addresses_.try_emplace(address, std::make_shared<Peer>());
		std::shared_ptr<Peer> peer = it->second;
		peer->name = address;
		if (!fresh || (address.size() == address_.size() &&
			       fi_av_insert(av_.get(), address.data(), 1, &peer->addr, 0, nullptr) == 1))
			return peer;
		addresses_.erase(it);
		return nullptr;
	}

	nixl_mem_list_t mems_ = { DRAM_SEG };
	std::string address_;
	Handle<struct fid_fabric> fabric_;
	Handle<struct fid_domain> domain_;
	Handle<struct fid_av> av_;
	Handle<struct fid_cq> cq_;
	Handle<struct fid_ep> ep_;
	struct weft_token_ops *ops_ = nullptr;
	mutable std::mutex lock_; /* of the two maps */
	std::map<std::string, std::shared_ptr<Peer>> agents_, addresses_;
	mutable std::atomic<size_t> queued_{ 0 };    /* all that waits: any thread, in any order */
	mutable std::atomic<uint32_t> numbers_{ 0 }; /* of notifications in parts: the same */
	std::mutex notesLock_;			     /* of what follows */
	std::vector<char> room_ = std::vector<char>(WEFT_NOTE_MAX);
	struct weft_note note_ = { room_.data(), room_.size(), 0, 0, 0, 0, 0, 0, {}, {} };
	std::map<std::string, Partial> partial_;			    /* by the sender's address */
	size_t dropped_ = 0;						    /* notifications */
	mutable std::mutex transfersLock_;				    /* of what follows, after all other locks */
	mutable std::map<Transfer *, std::unique_ptr<Transfer>> transfers_; /* not released, or under way */
};

} // namespace weft_nixl

extern "C" NIXL_PLUGIN_EXPORT nixlBackendPlugin *nixl_plugin_init()
{
	return nixlBackendPluginCreator<weft_nixl::Engine>::create(NIXL_PLUGIN_API_VERSION, "WEFT", WEFT_VERSION, {},
								   { DRAM_SEG, VRAM_SEG });
}

extern "C" NIXL_PLUGIN_EXPORT void nixl_plugin_fini() {}
