/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Written by "make man" from internal/config and provider/info: do not edit.
 */
#ifndef WEFT_LOADER_TABLE_GEN_H
#define WEFT_LOADER_TABLE_GEN_H

#include <stdint.h>

/* The build says it, but for checks of single files. */
#ifndef WEFT_PROV_VERSION
#define WEFT_PROV_VERSION FI_VERSION(0, 1)
#endif

/* Flags of fi_getinfo that are known, and that by which utility providers ask. */
#define WEFT_GETINFO_FLAGS 0xfec0000800000000ull
#define WEFT_GETINFO_UTILITY 0x800000000000000ull

/* Capabilities whose bits meant something else before API 2.0. */
#define WEFT_CAPS_2_0 0x1600000000000ull

/* The endpoint types that are offered, and the capabilities of each. */
static const struct {
	int type; /* enum fi_ep_type */
	uint64_t caps;
} weft_ep_types[] = {
	{ 3, 0xf3dea0000313f5eull },
	{ 1, 0x118400000213f1eull },
	{ 2, 0xa3d000000010c02ull },
};

/* The address formats that hints may ask for. */
static const uint32_t weft_addr_formats[] = {
	0,
	1,
	2,
	3,
	17,
	9,
	0,
};

/* The names of FI_WEFT_NAME beside weft's own. */
static const struct {
	const char *name;
} weft_aliases[] = {
	{ "tcp" },
	{ "tcp;ofi_rxm" },
	{ "verbs" },
	{ "verbs;ofi_rxm" },
	{ "sockets" },
	{ "shm" },
	{ "efa" },
	{ "cxi" },
};

/* The variables: names as fi_param_define takes them, and help. All are registered as
 * strings: libfabric turns a number that it cannot parse into 0 without a word, while
 * weft must name what is wrong. So the type stands in the help. */
static const struct {
	const char *name;
	const char *help;
} weft_params[] = {
	{ "name",
	  "The provider's name, for programs that accept only providers of a list: fi_getinfo answers as that provider, with its protocols and address formats. FI_WEFT_* variables and log lines keep weft's own. See NAMES. (string; default: weft; range: weft, tcp, tcp;ofi_rxm, verbs, verbs;ofi_rxm, sockets, shm, efa, cxi)" },
	{ "tx_stripes",
	  "Transmit stripes of an endpoint. 0 means the smaller of the number of cores and the transmit size divided by the smallest stripe. (integer, stripes; default: 0; range: 0 to 1024)" },
	{ "mpsc_ring_size",
	  "Entries of a completion queue's ring, rounded up to a power of two. 0 means the size the application gives the queue. (size, entries; default: 0; range: 0 to 16m)" },
	{ "ring_slots",
	  "Slots of each of an endpoint's inbound rings. (size, slots; default: 256; range: 16 to 1m, a power of two)" },
	{ "bounce_size",
	  "Size of a bounce buffer. (size, bytes; default: 8k; range: 256 to 16m)" },
	{ "bounce_count",
	  "Bounce buffers of an endpoint. (integer, buffers; default: 64; range: 1 to 65536)" },
	{ "eager_size",
	  "Largest message sent through a bounce buffer; at most FI_WEFT_BOUNCE_SIZE, which also lowers the default. (size, bytes; default: 8k; range: 0 to 16m)" },
	{ "shm_eager_size",
	  "Largest message that goes to a process of this host without being announced, which is the size of its bounce buffers if that is more than FI_WEFT_BOUNCE_SIZE; 0 means FI_WEFT_EAGER_SIZE, as does the default where that or FI_WEFT_BOUNCE_SIZE is set. (size, bytes; default: 16k; range: 0 to 16m)" },
	{ "assist_size",
	  "Smallest rendezvous that the sender helps to copy while it makes progress; 0 for none. (size, bytes; default: 256k; range: 0 to 1024g)" },
	{ "rma_assist_size",
	  "Smallest read or write that the target on this host helps to copy while it makes progress; 0 for none. (size, bytes; default: 1m; range: 0 to 1024g)" },
	{ "rma_lend_size",
	  "Smallest read or write that is left whole to the target on this host while the application posts others; 0 for none. (size, bytes; default: 32k; range: 0 to 1024g)" },
	{ "huge_region_size",
	  "Smallest memory region for peers that is put on huge pages when it is registered, which copies it once; 0 for none. (size, bytes; default: 0; range: 0 to 1024g)" },
	{ "huge_after",
	  "Bytes that are copied between processes of this host to or from 2 MiB of memory, in pieces of 32 KiB and more, before it is put on a huge page; 0 for never. (size, bytes; default: 16m; range: 0 to 1024g)" },
	{ "inject_size",
	  "Largest message that can be injected; at most FI_WEFT_BOUNCE_SIZE, which also lowers the default. (size, bytes; default: 4096; range: 0 to 16m)" },
	{ "unexpected_bytes",
	  "Data of unexpected messages that an endpoint holds before it slows its senders down. (size, bytes; default: 64m; range: 64k to 1024g)" },
	{ "max_peers",
	  "Peers on this host that can be attached to an endpoint at a time. (size, peers; default: 1024; range: 1 to 65534)" },
	{ "av_size_max",
	  "Most addresses that an address vector holds. (size, addresses; default: 1m; range: 1 to 64m)" },
	{ "use_cma",
	  "Copy large messages by cross-memory attach: auto tries it once per peer, no copies through shared buffers, yes fails where the kernel refuses. (string; default: auto; range: auto, yes, no)" },
	{ "hmem_map_size",
	  "Smallest message in memory of a device that a receiver on the same host reads by mapping the sender's memory; 0 for none, which sends all through bounce buffers. (size, bytes; default: 256k; range: 0 to 1024g)" },
	{ "ipc_cache",
	  "Mappings of other processes' memory of devices that are kept when nothing uses them; beyond, those go that were used least recently. 0 keeps none. (integer, mappings; default: 1024; range: 0 to 1048576)" },
	{ "ipc_cache_size",
	  "Bytes of mappings of other processes' memory of devices above which those that nothing uses go, the least recently used first. (size, bytes; default: 64g; range: 0 to 65536g)" },
	{ "token_ways",
	  "Ways that pieces of lists of memory under tokens may take: ipc copies between processes of this host, rdma by an RDMA device, message by the peer's process; auto for all. Operations on pieces for which none is left are refused. (string; default: auto; range: auto, or some of ipc, rdma and message separated by commas)" },
	{ "note_bytes",
	  "Notifications that an endpoint holds until they are taken, beyond 16 KiB of each sender, before their senders wait; and those of its own that wait to be sent before posts are refused for a while. Each counts 128 bytes more than it has. (size, bytes; default: 16m; range: 128k to 1024g)" },
	{ "udp",
	  "Reach other hosts over UDP: auto for endpoints of every interface but the loopback one, yes for those too, no for none. (string; default: auto; range: auto, yes, no)" },
	{ "udp_stripes",
	  "Sockets of an endpoint over UDP, each with its own lock. Peers are dealt out to them. (integer, sockets; default: 1; range: 1 to 64)" },
	{ "udp_eager_size",
	  "Largest message that goes over UDP without being announced; 0 means FI_WEFT_EAGER_SIZE. (size, bytes; default: 64k; range: 0 to 16m)" },
	{ "udp_xdp",
	  "Send and receive UDP datagrams past the kernel's network stack, by AF_XDP: auto where the interface and the rights (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF) allow it, yes fails where they do not. One endpoint of a host for each interface can; firewall rules do not apply to its datagrams. (string; default: no; range: auto, yes, no)" },
	{ "udp_inbox",
	  "Have the kernel put UDP datagrams of up to 4 KiB into memory that the endpoint shares with it, where the rights (CAP_BPF) allow it: looking there takes no system call. An eBPF program does it that stands where a socket's filter does, behind the host's firewall; what it takes counts as UdpInErrors in the kernel's statistics. (boolean; default: yes; range: 0, 1, no, yes, off, on, false, true)" },
	{ "cc",
	  "How congestion windows, of UDP and of segments, are computed: delay steers the queueing delay, aimd halves the window when round trips take unusually long, bbr follows the rate that is delivered, fixed never changes it. (string; default: delay; range: delay, aimd, bbr, fixed)" },
	{ "rtt_alpha",
	  "Weight of a new round-trip time in the smoothed one by which windows go (RFC 6298); what statistics show always has 1/8 and 1/4. (string; default: 0.125; range: above 0, at most 1)" },
	{ "rtt_beta",
	  "Weight of a new deviation in the mean deviation of round-trip times (RFC 6298). (string; default: 0.25; range: above 0, at most 1)" },
	{ "enable_rtt_congestion_control",
	  "Cut long puts, gets and reads of announced messages into segments, of which a congestion window driven by their round-trip times lets so many under way: auto over networks that drop packets (UDP), yes over every transport, no over none. (string; default: auto; range: auto, yes, no)" },
	{ "rtt_segment_size",
	  "Segment of a long one-sided operation while the window is as at the start; it grows and shrinks with the window. (size, bytes; default: 256k; range: 4k to 1g)" },
	{ "min_segment_size",
	  "Least segment; at most FI_WEFT_RTT_SEGMENT_SIZE, whose default gives way. Operations that are no longer are not cut. (size, bytes; default: 64k; range: 4k to 1g)" },
	{ "max_segment_size",
	  "Largest segment; at least FI_WEFT_RTT_SEGMENT_SIZE, whose default gives way. (size, bytes; default: 1m; range: 4k to 1g)" },
	{ "initial_cwnd",
	  "Segments to one peer that may be under way at the start, and over UDP always: its packets have a window of their own. (integer, segments; default: 4; range: 1 to 1048576)" },
	{ "max_cwnd",
	  "Most segments to one peer that may be under way, 0 for no limit; else at least FI_WEFT_INITIAL_CWND, whose default gives way. (integer, segments; default: 128; range: 0 to 1073741824)" },
	{ "rtt_probe_enable",
	  "Send probes to peers on other hosts, over UDP, that measure the path to them also while there is no traffic. (boolean; default: no; range: 0, 1, no, yes, off, on, false, true)" },
	{ "rtt_probe_interval",
	  "Time between two probes; of one peer with all_pairs, of a congested one with adaptive. (duration, s, or with a unit ns, us, ms, s, m or h; default: 0.1; range: 0.0001 to 3600)" },
	{ "rtt_probe_msg_size",
	  "Size of a probe and of its answer. No more than 64 KB of probes leave an endpoint in a second. (size, bytes; default: 64; range: 32 to 1k)" },
	{ "rtt_probe_strategy",
	  "Whom to probe: one peer after the other, all within each interval, any, or congested peers and those of whom nothing was heard more often. (string; default: round_robin; range: round_robin, all_pairs, random, adaptive)" },
	{ "rtt_probe_startup_delay",
	  "Time from the enabling of an endpoint to its first probe. (duration, s, or with a unit ns, us, ms, s, m or h; default: 0.5; range: 0 to 3600)" },
	{ "rtt_probe_use_service_worker",
	  "Send probes from the service thread (FI_WEFT_SERVICE) where there is one; else, and with no, from a goroutine of their own. (boolean; default: yes; range: 0, 1, no, yes, off, on, false, true)" },
	{ "ptp_enable",
	  "Look whether this host's clock is synchronised by PTP, which one-way delays need: auto where probes are sent, yes always, and without a PTP clock or daemon no domain opens, no never. (string; default: auto; range: auto, yes, no)" },
	{ "ptp_require_sync",
	  "Open no domain while the clock is not synchronised by PTP. (boolean; default: no; range: 0, 1, no, yes, off, on, false, true)" },
	{ "ptp_clock_device",
	  "The PTP clock, such as /dev/ptp0; empty for that of the network interface. (string; default: empty; range: an absolute path, or empty)" },
	{ "ptp_max_offset",
	  "How far a synchronised clock may be off. (integer, ns; default: 1000; range: 1 to 1000000000)" },
	{ "verbs",
	  "Reach other hosts over an RDMA device: auto if one stands on the endpoint's network interface, yes fails where there is none, no for none. Peers that are not reached so are reached over UDP. (string; default: auto; range: auto, yes, no)" },
	{ "verbs_device",
	  "The RDMA device to use; empty for the one that stands on the endpoint's network interface. (string; default: empty; range: empty or up to 64 characters without spaces and slashes)" },
	{ "verbs_eager_peers",
	  "Peers, the first ones, that may write short messages over the RDMA device into a ring in the endpoint's memory, where the application polls its queues; 0: all messages are sent. (integer, peers; default: 8; range: 0 to 8)" },
	{ "cxi",
	  "Reach other hosts over a NIC of HPE Slingshot through libcxi: auto if one stands on the endpoint's network interface and no RDMA device does, yes fails where there is none, no for none. Peers that are not reached so are reached over UDP. Tested over a software model of the NIC, not verified on hardware. (string; default: auto; range: auto, yes, no)" },
	{ "cxi_device",
	  "The NIC of Slingshot to use, such as cxi0; empty for the one that stands on the endpoint's network interface. (string; default: empty; range: empty or up to 64 characters without spaces and slashes)" },
	{ "mpi_alltoall",
	  "Have libweft-mpi carry out the all-to-all operations of MPI programs: auto for communicators whose ranks are on several hosts, yes for all, no for none. The same at all ranks. (string; default: auto; range: auto, yes, no)" },
	{ "mpi_min_size",
	  "Smallest slice, of each rank for each other, of an MPI_Alltoall that libweft-mpi takes; shorter ones are the MPI's. The other forms, whose lengths no rank knows of all, are always taken. The same at all ranks. (size, bytes; default: 4k; range: 0 to 1024g)" },
	{ "peer_timeout",
	  "Time for which a peer on another host may leave something unanswered before it is gone. (duration, ns, us, ms, s, m or h; default: 15s; range: 10ms to 1h)" },
	{ "connect_timeout",
	  "Time for a peer to answer before it is unreachable. (duration, ns, us, ms, s, m or h; default: 10s; range: 1ms to 1h)" },
	{ "peer_check_interval",
	  "Time between two looks whether the peers of an endpoint are alive. (duration, ns, us, ms, s, m or h; default: 100ms; range: 1ms to 1h)" },
	{ "shm_dir",
	  "Directory of the shared segments; a memory file system. (string; default: /dev/shm; range: an absolute path)" },
	{ "shm_across",
	  "Reach processes of other network namespaces, as other containers are, through the directory of the shared segments, if they say so, too; addresses are unique in it then. auto: yes if FI_WEFT_SHM_DIR is not the default. (string; default: auto; range: auto, yes, no)" },
	{ "direct",
	  "Call the data plane without entering the Go runtime, where the processor and the self-test allow it. (boolean; default: yes; range: 0, 1, no, yes, off, on, false, true)" },
	{ "stats",
	  "Show counters of this process to weft top and weft export, in a file of FI_WEFT_SHM_DIR. (boolean; default: yes; range: 0, 1, no, yes, off, on, false, true)" },
	{ "iface",
	  "Name of the only network interface whose addresses are offered. Empty means every interface. (string; default: empty; range: empty or up to 15 characters without spaces and slashes)" },
	{ "progress_batch",
	  "Most arrivals handled by one entry into the progress engine. (integer, arrivals; default: 64; range: 1 to 65536)" },
	{ "progress_thread",
	  "Threads that make progress without the application: auto where it asks for automatic progress, yes also where it does not say, no never, and automatic progress is refused. (string; default: auto; range: auto, yes, no)" },
	{ "progress_endpoints",
	  "Endpoints of a domain that share one progress thread; 0 for one thread in all. (integer, endpoints; default: 0; range: 0 to 65536)" },
	{ "progress_cpu",
	  "Processors that progress threads run on; -1 for any, near the device where it has a place. (string; default: -1; range: -1, or numbers and ranges from 0 to 1023 separated by commas)" },
	{ "progress_spin",
	  "Time that a progress thread looks for more work before it sleeps. It does not spin on its only processor. (duration, ns, us, ms, s, m or h; default: 20us; range: 0s to 1s)" },
	{ "progress_watch",
	  "Time between two looks of a progress thread whether an application that polls by itself still does. (duration, ns, us, ms, s, m or h; default: 1ms; range: 100us to 1s)" },
	{ "service",
	  "Thread that answers other processes of the user (endpoint names, state): auto where there are progress threads, yes always, no never. (string; default: auto; range: auto, yes, no)" },
	{ "progress_appendop_freq",
	  "Rounds of a busy progress thread between two looks at the operations that were posted for it. (integer, rounds; default: 1; range: 1 to 65536)" },
	{ "proxy_append_batch_size",
	  "Most posted operations that a progress thread takes at a look. (integer, operations; default: 16; range: 1 to 4096)" },
	{ "proxy_dump_signal",
	  "Signal on which the state of weft's threads is written to standard error; 0 for none. (integer, signal; default: 0; range: 0 to 64)" },
};

#endif
