/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What providers other than weft do differently from what a test asks. weft has no entry: add one
 * only for a provider that is not ours. A key is "program.test", with wildcards as in the shell (the
 * whole test is skipped), or a name that one check asks for with deviates().
 */
#include "common.h"

#include <fnmatch.h>

static const struct {
	const char *provider; /* as in WEFT_TEST_PROV; "*": all but weft */
	const char *key;
	const char *reason;
} table[] = {
	{ "shm", "match.model_*", "1.17 finds no unexpected message through an ignore mask" },
	{ "shm", "match_depth.unexpected_wildcards", "1.17 finds no unexpected message through an ignore mask" },
	{ "shm", "match_peek.*", "1.17 ignores FI_PEEK without a match, and err is negative" },
	{ "shm", "cancel.prompt_peek", "1.17 ignores FI_PEEK without a match" },
	{ "shm", "multi_recv.[!s]*", "1.17 crashes in fi_setopt before fi_enable" },
	{ "shm", "multi_recv.stream*", "1.17 crashes in fi_setopt before fi_enable" },
	{ "sockets", "msg_basic.*_unexpected*", "drops FI_REMOTE_CQ_DATA of an unexpected message" },
	{ "sockets", "match_peek.peek_*", "drops FI_REMOTE_CQ_DATA of an unexpected message" },
	{ "sockets", "multi_recv.selective", "suppresses the completion that gives the buffer back" },
	{ "tcp;ofi_rxm", "match_peek.[dp]*", "a peek reports no CQ data and no length" },
	{ "tcp;ofi_rxm", "multi_recv.selective", "suppresses the completion that gives the buffer back" },
	{ "shm", "source.known_small", "1.17 finds no unexpected message through an ignore mask" },
	{ "shm", "source.unknown", "gives a source that was never inserted" },
	{ "shm", "source.removed", "gives a source that was removed" },
	{ "tcp;ofi_rxm", "source.removed", "gives a source that was removed" },
	{ "tcp;ofi_rxm", "source.no_source", "leaves src_addr alone without FI_SOURCE" },
	{ "shm", "selective.errors", "err of a truncation is negative" },
	{ "tcp;ofi_rxm", "selective.errors", "sets olen to another value than the man page says" },
	{ "sockets", "selective.counters", "fi_cntr_wait returns +110 at once" },
	{ "shm", "edges.truncation_*", "err of a truncation is negative" },
	{ "sockets", "trunc-len", "gives the sent length, not the received one" },
	{ "tcp;ofi_rxm", "edges.truncation_*", "sets olen to 0 and loses the message behind" },
	{ "tcp;ofi_rxm", "levels.sender_leaves_[dt]*", "fi_close of the domain is busy after a pending send" },
	{ "shm", "levels.delivery_complete", "no completion for zero bytes with FI_DELIVERY_COMPLETE" },
	{ "sockets", "cancel-unknown", "fi_cancel returns -FI_ENOENT when nothing is pending" },
	{ "shm", "threads.senders_*", "1.17 finds no unexpected message through an ignore mask" },
	{ "shm", "threads.readers_*", "a full receive queue gives -FI_ENOMEM" },
	{ "shm", "eagain.small_cq", "a full receive queue gives -FI_ENOMEM" },
	{ "shm", "eagain.receives", "a full receive queue gives -FI_ENOMEM" },
	{ "sockets", "threads.readers_*", "linear matching: does not end in the time given" },
	{ "shm", "objects_life.domain_busy", "the AV has no context" },
	{ "tcp;ofi_rxm", "objects_life.domain_busy", "the AV has no context" },
	{ "*", "objects_life.eq_busy", "an EQ bound to an endpoint is not busy (rxm crashes)" },
	{ "sockets", "objects_life.*", "does not count what uses a fabric and frees it" },
	{ "tcp;ofi_rxm", "objects_life.*", "does not count what uses an AV and frees it" },
	{ "*", "objects_ep.enable_without", "other errors or none, rxm crashes" },
	{ "*", "objects_ep.bind_rules", "other errors or none" },
	{ "*", "objects_ep.not_enabled", "no check: shm and rxm crash" },
	{ "shm", "objects_ep.getname", "a name that does not fit is not cut but left out" },
	{ "*", "objects_ep.options", "fi_getopt does not read the size; shm crashes" },
	{ "shm", "objects_ep.[oa]*", "has no FI_GETOPSFLAG and no fi_ep_alias" },
	{ "tcp;ofi_rxm", "objects_ep.[oas]*", "no FI_GETOPSFLAG, no fi_ep_alias; renames when enabled" },
	{ "sockets", "objects_av.table", "never uses an index again" },
	{ "*", "objects_av.lookup", "no check of the index; shm leaves out a name that does not fit" },
	{ "shm", "objects_av.straddr", "a text that does not fit is not terminated" },
	{ "*", "objects_av.bad_address", "no FI_SYNC_ERR; inserts what cannot be reached" },
	{ "sockets", "objects_av.insert*", "resolves any service; returns one address only" },
	{ "tcp;ofi_rxm", "objects_av.insertsvc", "resolves any service" },
	{ "shm", "objects_av.grow", "has room for 256 peers" },
	{ "tcp;ofi_rxm", "objects_av.grow", "300 endpoints are too slow" },
	{ "*", "objects_avshared.*", "opens AVs that do not exist, ignores FI_EVENT, writes to read-only" },
	{ "shm", "objects_ctx.srx", "refuses FI_SHARED_CONTEXT" },
	{ "sockets", "objects_ctx.s[rt]x", "does not count what uses a shared context" },
	{ "tcp;ofi_rxm", "objects_mr.*_keys", "frees a domain that is in use" },
	{ "shm", "objects_cntr.wait_[uy]*", "never times out" },
	{ "shm", "objects_cntr.errors", "err of a truncation is negative" },
	{ "sockets", "objects_cntr.*", "fi_cntr_wait returns +110 at once; fi_cntr_add loses values" },
	{ "*", "objects_eq.not_writable", "FI_WRITE is not asked for (sockets does)" },
	{ "shm", "objects_eq.sread_[uy]*", "never times out" },
	{ "sockets", "objects_eq.fd", "fi_trywait does not see a waiting event" },
	{ "shm", "objects_cq.sread_*", "never times out; err of a truncation is negative" },
	{ "*", "objects_cq.wait_none", "no check: shm and rxm crash" },
	{ "*", "objects_cq.error_order", "an error overtakes, or has no olen" },
	{ "sockets", "objects_cq.signal_*", "a signal gives -FI_ECANCELED" },
	{ "sockets", "objects_cq.sread_error", "fi_cq_sread does not wake for an error" },
	{ "sockets", "objects_cq.bad_attr", "crashes on FI_WAIT_SET without a set" },
	{ "*", "objects_signal.*", "gives -FI_EINTR, or sleeps on" },
	{ "*", "objects_wait.wait_set_*", "no CQ in a wait set (shm), or the set is not busy" },
	{ "sockets", "objects_wait.poll_set", "fi_poll does not name what has events" },
	{ "sockets", "objects_wait.getwait_none", "gives a descriptor that was not asked for" },
	{ "tcp;ofi_rxm", "objects_wait.poll_set", "fi_poll gives -FI_EAVAIL or the like" },
	{ "sockets", "getinfo.addr_format", "gives IPv6 for FI_SOCKADDR_IN" },
	{ "tcp;ofi_rxm", "getinfo.addr_format", "gives IPv6 for FI_SOCKADDR_IN" },
	{ "*", "getinfo_names.names", "names of domains and fabrics in hints are not read" },
	{ "*", "getinfo_names.node_service", "FI_NUMERICHOST is not read" },
	{ "tcp;ofi_rxm", "getinfo_names.versions", "crashes closing an endpoint that was not enabled" },
	{ "tcp;ofi_rxm", "getinfo_names.round_trip", "crashes closing an endpoint that was not enabled" },
	{ "*", "profile.*", "has no variables" },
	{ "*", "directed.*", "has no such capabilities" },
	{ "*", "tclass.*", "ignores traffic classes" },
	{ "*", "later.*", "the libfabric under test may be older than the slots" },
	{ "cxi", "avkeys_service", "fi_av_lookup_auth_key gives 0 for the service of a key" },
	{ "cxi", "native_opts.options", "has no FI_OPT_SHARED_MEMORY_PERMITTED" },
	{ "cxi", "native_avkeys.getinfo", "has other numbers of keys, and reads FI_DIRECTED_RECV at fi_endpoint" },
	{ "cxi", "native_avkeys.me[sm]*",
	  "sends to a second VNI by cxil_modify_cp, which services without exclusive profiles refuse" },
	{ "sockets", "cq-flags", "sets FI_MSG beside FI_TAGGED, and op flags, in completions" },
};

const char *deviation_reason(const char *key)
{
	if (test_is_weft())
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (fnmatch(table[i].key, key, 0) == 0 &&
		    (strcmp(table[i].provider, "*") == 0 || strcmp(table[i].provider, test_provider()) == 0))
			return table[i].reason;
	return NULL;
}

bool deviates(const char *key)
{
	static const char *notified[16]; /* one thread or another prints a line twice: no harm */
	static unsigned count;
	const char *reason = deviation_reason(key);

	for (unsigned i = 0; reason && i < count; i++)
		if (notified[i] == reason)
			return true;
	if (reason && count < ARRAY_LEN(notified))
		notified[count++] = reason;
	if (reason)
		note("%s deviates (%s): %s", test_provider(), key, reason);
	return reason != NULL;
}
