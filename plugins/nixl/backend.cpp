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

namespace weft_nixl
{

/* A longer notification than one of weft's goes in parts, whose tags have its number, PART, whether this is the first,
 * and how many follow. The tag of a whole one is 0. */
constexpr uint64_t FIRST = UINT64_C(1) << 31, PART = UINT64_C(1) << 30;

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

	explicit Engine(const nixlBackendInitParams *params) : nixlBackendEngine(params)
	{
		size_t len = WEFT_NAME_MAX;

		openObjects(params->enableProgTh);
		must("fi_open_ops",
		     fi_open_ops(&ep_->fid, WEFT_TOKEN_OPS, 0, reinterpret_cast<void **>(&ops_), nullptr));
		must("the agent's name", ops_->agent(ep_.get(), localAgent.c_str()));
		address_.resize(len);
		must("fi_getname", fi_getname(&ep_->fid, address_.data(), &len));
		address_.resize(len);
		note_.data = room_.data();
		note_.size = room_.size();
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
		if (kind == VRAM_SEG) {
			attr.iface = FI_HMEM_CUDA;
			attr.device.cuda = int(mem.devId);
		}
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

	nixl_status_t unloadMD(nixlBackendMD *meta) override
	{
		delete meta;
		return NIXL_SUCCESS;
	}

	nixl_status_t getPublicData(const nixlBackendMD *meta, std::string &out) const override
	{
		out = static_cast<const Region *>(meta)->mem.metaInfo;
		return NIXL_SUCCESS;
	}

	nixl_status_t getConnInfo(std::string &out) const override
	{
		out = address_;
		return NIXL_SUCCESS;
	}

	nixl_status_t loadRemoteConnInfo(Name agent, const std::string &info) override
	{
		std::lock_guard guard(lock_);
		std::shared_ptr<Peer> &peer = addresses_[info];
		auto made = std::make_shared<Peer>();

		made->name = info;
		if (!peer && info.size() == address_.size() &&
		    fi_av_insert(av_.get(), info.data(), 1, &made->addr, 0, nullptr) == 1)
			peer = made;
		if (!peer) {
			addresses_.erase(info);
			return failed(("address of agent '" + agent + "'").c_str(), -FI_EINVAL);
		}
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
			if (w.transfer && !w.transfer->done())
				w.transfer->end(NIXL_ERR_CANCELED);
		queued_ -= peer->waiting.size();
		peer->waiting.clear();
		std::erase_if(partial_, [&](const auto &part) { return part.first.first == peer->name; });
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
		if (int ret = ops_->open(ep_.get(), desc.metaInfo.data(), desc.metaInfo.size(), &remote))
			return failed("open of a token", ret);
		meta->region.reset(remote, Closer());
		ops_->info(remote, &info, sizeof(info));
		if (info.addr != peer->addr || desc.len > info.length)
			return failed(("a token of another agent or of fewer bytes, for '" + agent + "'").c_str(),
				      -FI_EINVAL);
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
		auto request = std::make_unique<Request>();
		Transfer &t = *request->transfer;
		struct weft_list *list;

		handle = nullptr;
		t.op = op == NIXL_READ ? WEFT_READ : WEFT_WRITE;
		t.peer = peerOf(agent);
		if (!t.peer)
			return NIXL_ERR_NOT_FOUND;
		for (int i = 0; i < local.descCount(); i++) {
			const auto *region = static_cast<const Region *>(local[i].metadataP);
			const auto *far = static_cast<const Remote *>(remote[i].metadataP);

			if (!i || there.back().remote != far->region.get())
				t.regions.insert(far->region);
			here.push_back({ reinterpret_cast<void *>(local[i].addr), local[i].len, 0, 1, region->desc });
			there.push_back({ far->region.get(), remote[i].addr + far->shift, remote[i].len, 0, 1 });
		}
		if (int ret = ops_->list(ep_.get(), here.data(), there.data(), here.size(), 0, &list))
			return failed("list", ret);
		t.list.reset(list);
		handle = request.release();
		return NIXL_SUCCESS;
	}

	nixl_status_t postXfer(const nixl_xfer_op_t &, Descs, Descs, const std::string &, nixlBackendReqH *&handle,
			       const nixl_opt_b_args_t *args) const override
	{
		const std::shared_ptr<Transfer> &t = static_cast<Request *>(handle)->transfer;
		ssize_t ret = -FI_EAGAIN;

		if (!t->done()) /* after a release that was refused */
			return NIXL_ERR_REPOST_ACTIVE;
		t->noted = args && args->hasNotif;
		t->note = t->noted ? args->notifMsg : std::string();
		t->state.store(Transfer::QUEUED, std::memory_order_relaxed);
		if (t->note.size() <= WEFT_NOTE_MAX && !queued_)
			ret = launch(t, 0);
		if (ret == -FI_EAGAIN)
			enqueue(*t->peer, t, t->note);
		else if (ret)
			t->end(failed("post", ret));
		return checkXfer(handle);
	}

	nixl_status_t checkXfer(nixlBackendReqH *handle) const override
	{
		const Transfer &t = *static_cast<Request *>(handle)->transfer;

		if (!t.done())
			progress();
		return t.done() ? t.status : NIXL_IN_PROG;
	}

	/* A transfer that is under way is refused once, so that its memory is not given up unknowingly. */
	nixl_status_t releaseReqH(nixlBackendReqH *handle) const override
	{
		auto *request = static_cast<Request *>(handle);
		Transfer &t = *request->transfer;
		{
			std::lock_guard guard(t.peer->lock);
			if (t.state.load(std::memory_order_relaxed) == Transfer::QUEUED)
				t.end(NIXL_ERR_CANCELED);
		}
		if (!t.done())
			fi_cancel(&ep_->fid, &t);
		for (int i = 0; i < 100 && !t.done(); i++)
			progress();
		if (!t.done() && !std::exchange(request->refused, true))
			return NIXL_ERR_REPOST_ACTIVE;
		delete request;
		return NIXL_SUCCESS;
	}

	nixl_status_t getNotifs(notif_list_t &list) override
	{
		std::lock_guard guard(notesLock_);
		ssize_t n;

		while ((n = ops_->notes(ep_.get(), &note_, 1)) == 1)
			take(note_, list);
		if (queued_)
			progress();
		return n < 0 ? failed("notes", n) : NIXL_SUCCESS;
	}

	nixl_status_t genNotif(Name agent, const std::string &note) const override
	{
		std::shared_ptr<Peer> peer = peerOf(agent);
		ssize_t ret = -FI_EAGAIN;

		if (!peer)
			return NIXL_ERR_NOT_FOUND;
		if (note.size() <= WEFT_NOTE_MAX && !queued_)
			ret = send(*peer, 0, note);
		if (ret == -FI_EAGAIN)
			enqueue(*peer, nullptr, note);
		else if (ret)
			return failed("notify", ret);
		/* A peer that is met for the first time has room soon, and the caller may not call again. */
		auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
		do
			progress();
		while (queued_ && std::chrono::steady_clock::now() < end);
		return NIXL_SUCCESS;
	}

      private:
	/* Makes progress: what has ended is known, and what waits is posted where there is room. */
	void progress() const
	{
		struct fi_cq_entry done[16];
		ssize_t n;

		while ((n = fi_cq_read(cq_.get(), done, 16)) > 0 || n == -FI_EAVAIL) {
			struct fi_cq_err_entry err = {};

			for (ssize_t i = 0; i < n; i++)
				if (auto *t = static_cast<Transfer *>(done[i].op_context))
					t->end(NIXL_SUCCESS);
			if (n > 0 || fi_cq_readerr(cq_.get(), &err, 0) != 1)
				break;
			nixl_status_t status = failed(err.op_context ? "a transfer" : "a notification", -err.err);
			if (err.op_context)
				static_cast<Transfer *>(err.op_context)->end(status);
		}
		if (!queued_)
			return;
		std::lock_guard guard(lock_);
		for (auto &known : addresses_)
			drain(*known.second);
	}

	/* Posts what waits for a peer, until one finds no room again. */
	void drain(Peer &peer) const
	{
		std::lock_guard guard(peer.lock);

		for (; !peer.waiting.empty(); peer.waiting.pop_front(), queued_--) {
			Waiting &w = peer.waiting.front();

			if (w.transfer && w.transfer->done())
				continue; /* cancelled */
			ssize_t ret = w.transfer ? launch(w.transfer, w.tag) : send(peer, w.tag, w.bytes);
			if (ret == -FI_EAGAIN)
				return;
			if (ret && w.transfer)
				w.transfer->end(failed("post", ret));
			else if (ret)
				failed("notify", ret);
		}
	}

	ssize_t send(Peer &peer, uint64_t tag, const std::string &bytes) const
	{
		return ops_->notify(ep_.get(), peer.addr, tag, bytes.data(), bytes.size(), 0, nullptr);
	}

	/* Posts a transfer with its notification, or the first part of it. A write is complete when the peer has it,
	 * which a notification knows by itself. */
	ssize_t launch(const std::shared_ptr<Transfer> &t, uint64_t tag) const
	{
		bool plain = t->noted || t->op == WEFT_READ;
		size_t len = std::min(t->note.size(), size_t(WEFT_NOTE_MAX));

		if (tag != t->tag)
			ops_->tag(t->list.get(), tag);
		t->tag = tag;
		t->self = t;
		t->state.store(Transfer::POSTED, std::memory_order_relaxed);
		ssize_t ret = ops_->post(t->list.get(), t->op, nullptr, 0, t->noted ? t->note.data() : nullptr, len,
					 FI_COMPLETION | (plain ? 0 : FI_DELIVERY_COMPLETE), t.get());
		if (ret) {
			t->state.store(Transfer::QUEUED, std::memory_order_relaxed);
			t->self.reset();
		}
		return ret;
	}

	/* Puts a transfer, or a notification, behind what waits. In parts the transfer has the first. */
	void enqueue(Peer &peer, const std::shared_ptr<Transfer> &t, const std::string &note) const
	{
		uint64_t number = ++numbers_;
		std::unique_lock guard(peer.lock);

		for (size_t at = 0; at == 0 || at < note.size(); at += WEFT_NOTE_MAX) {
			uint64_t left = note.empty() ? 0 : (note.size() - at - 1) / WEFT_NOTE_MAX;
			uint64_t tag = note.size() > WEFT_NOTE_MAX ? number << 32 | (at ? 0 : FIRST) | PART | left : 0;

			peer.waiting.push_back(
				{ at ? nullptr : t, tag, at || !t ? note.substr(at, WEFT_NOTE_MAX) : "" });
			queued_++;
		}
		guard.unlock();
		drain(peer);
	}

	/* Takes a notification, or a part of one. The sender is another process. */
	void take(const struct weft_note &note, notif_list_t &list)
	{
		std::string text(static_cast<const char *>(note.data), note.len);
		std::string from(reinterpret_cast<const char *>(note.name), note.namelen);
		auto key = std::make_pair(std::move(from), uint32_t(note.tag >> 32));
		uint32_t left = uint32_t(note.tag & (PART - 1));

		if (note.tag & FIRST)
			partial_[key] = { left, "" };
		if (note.tag) {
			auto it = partial_.find(key);
			if (it == partial_.end())
				return; /* its transfer failed: the first part has not come */
			if (it->second.first-- != left) {
				partial_.erase(it);
				return (void)failed("a part of a notification", -FI_EINVAL);
			}
			it->second.second += text;
			if (left)
				return;
			text = std::move(it->second.second);
			partial_.erase(it);
		}
		list.emplace_back(note.agent, std::move(text));
	}

	void openObjects(bool automatic)
	{
		std::unique_ptr<struct fi_info, decltype(&fi_freeinfo)> info(fi_allocinfo(), fi_freeinfo);
		struct fi_info *found = nullptr;
		struct fi_av_attr av = {};
		struct fi_cq_attr cq = {};

		info->caps = FI_MSG | FI_RMA | FI_HMEM;
		info->ep_attr->type = FI_EP_RDM;
		info->domain_attr->threading = FI_THREAD_SAFE;
		info->domain_attr->data_progress = automatic ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
		info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_HMEM;
		info->fabric_attr->prov_name = strdup("weft");
		must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, info.get(), &found));
		info.reset(found);
		if (info->domain_attr->mr_mode & FI_MR_HMEM)
			mems_.push_back(VRAM_SEG);
		av.type = FI_AV_TABLE;
		cq.format = FI_CQ_FORMAT_CONTEXT;
		make("fi_fabric", fabric_, [&](auto f) { return fi_fabric(info->fabric_attr, f, nullptr); });
		make("fi_domain", domain_, [&](auto d) { return fi_domain(fabric_.get(), info.get(), d, nullptr); });
		make("fi_av_open", av_, [&](auto v) { return fi_av_open(domain_.get(), &av, v, nullptr); });
		make("fi_cq_open", cq_, [&](auto q) { return fi_cq_open(domain_.get(), &cq, q, nullptr); });
		make("fi_endpoint", ep_, [&](auto e) { return fi_endpoint(domain_.get(), info.get(), e, nullptr); });
		must("fi_ep_bind", fi_ep_bind(ep_.get(), &av_->fid, 0));
		must("fi_ep_bind", fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
		must("fi_enable", fi_enable(ep_.get()));
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
	struct weft_note note_ = {};
	/* By the sender and the number: the parts that follow, and the bytes. */
	std::map<std::pair<std::string, uint32_t>, std::pair<uint32_t, std::string>> partial_;
};

} // namespace weft_nixl

extern "C" NIXL_PLUGIN_EXPORT nixlBackendPlugin *nixl_plugin_init()
{
	return nixlBackendPluginCreator<weft_nixl::Engine>::create(NIXL_PLUGIN_API_VERSION, "WEFT", WEFT_VERSION, {},
								   { DRAM_SEG, VRAM_SEG });
}

extern "C" NIXL_PLUGIN_EXPORT void nixl_plugin_fini() {}
