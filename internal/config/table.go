package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cpuset"
)

const envPrefix = "FI_WEFT_"

// Kind is the type of a variable's value.
type Kind int

// Kinds of values.
const (
	Int      Kind = iota // decimal number
	Size                 // number with an optional k, m or g suffix (powers of 1024)
	Bool                 // yes or no in the spellings that libfabric takes
	String               // text or one of several words
	Duration             // number with a unit, such as 100ms
)

// String returns the kind's name for the manual page.
func (k Kind) String() string {
	return [...]string{"integer", "size", "boolean", "string", "duration"}[k]
}

// Var declares one variable.
type Var struct {
	// Name is the name as fi_param_define takes it, in lower case: the host
	// library puts FI_WEFT_ in front and changes the case.
	Name string
	Kind Kind
	// Unit says what a number counts, empty where there is none.
	Unit string
	// Default is the text that is parsed when the variable is not set.
	Default string
	// Range says which values are accepted.
	Range string
	// Help is one line.
	Help string

	parse func(c *Config, s string) error
}

// Env returns the name of the environment variable.
func (v *Var) Env() string { return envPrefix + strings.ToUpper(v.Name) }

// Text is the line by which a host library lists the variable: help, kind, unit, default and
// range.
func (v *Var) Text() string {
	return fmt.Sprintf("%s (%s; default: %s; range: %s)", v.Help, v.kindAndUnit(), v.shownDefault(), v.Range)
}

func (v *Var) kindAndUnit() string {
	if v.Unit == "" {
		return v.Kind.String()
	}
	return v.Kind.String() + ", " + v.Unit
}

func (v *Var) shownDefault() string {
	if v.Default == "" {
		return "empty"
	}
	return v.Default
}

// Param returns the type under which fi_param_define registers the variable.
// A duration is a string there, and a size that may be a word.
func (v *Var) Param() fi.Param {
	switch {
	case v.Kind == Int:
		return fi.ParamInt
	case v.Kind == Size && v.Default != autoWord:
		return fi.ParamSizeT
	case v.Kind == Bool:
		return fi.ParamBool
	}
	return fi.ParamString
}

// Table returns a copy of the table, in the order of the manual page.
func Table() []Var { return slices.Clone(table) }

func find(name string) *Var {
	i := slices.IndexFunc(table, func(v Var) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// table declares every variable. Immutable after package initialisation.
var table = []Var{
	choiceVar("name", "weft", []string{"weft", "tcp", "tcp;ofi_rxm", "verbs", "verbs;ofi_rxm", "sockets", "shm", "efa",
		"cxi"},
		func(c *Config) *string { return &c.Name },
		"The provider's name, for programs that accept only providers of a list: fi_getinfo answers as that "+
			"provider, with its protocols and address formats. FI_WEFT_* variables and log lines keep weft's own. "+
			"See NAMES."),
	intVar("tx_stripes", "stripes", "0", 0, 1024,
		func(c *Config) *int { return &c.TxStripes },
		"Transmit stripes of an endpoint. 0 means the smaller of the number of cores and the transmit size divided "+
			"by the smallest stripe. "+
			"Endpoints of FI_PROTO_CXI have at most 8 transmit queues of the NIC, among which a peer's address "+
			"chooses: the order of messages to a peer holds within one. FI_THREAD_DOMAIN and FI_THREAD_COMPLETION "+
			"have one stripe, FI_THREAD_ENDPOINT and FI_THREAD_FID one by default."),
	sizeVar("mpsc_ring_size", "entries", "0", 0, 1<<24,
		func(c *Config) *int { return &c.MPSCRingSize },
		"Entries of a completion queue's ring, rounded up to a power of two. 0 means the size the application gives "+
			"the queue."),
	powerVar("ring_slots", "slots", "256", 16, 1<<20,
		func(c *Config) *int { return &c.RingSlots },
		"Slots of each of an endpoint's inbound rings."),
	sizeVar("bounce_size", "bytes", "8k", 256, 16<<20,
		func(c *Config) *int { return &c.BounceSize },
		"Size of a bounce buffer."),
	intVar("bounce_count", "buffers", "0", 0, 65536,
		func(c *Config) *int { return &c.BounceCount },
		"Bounce buffers of an endpoint, which its transmit stripes and progress share evenly; fewer where more would "+
			"take above 256 MiB. 0 means 64 for each, as far as 8 MiB and a 64th of the file system of "+
			"FI_WEFT_SHM_DIR hold them, and at least 16 in all."),
	sizeVar("eager_size", "bytes", "8k", 0, 16<<20,
		func(c *Config) *int { return &c.EagerSize },
		"Largest message sent through a bounce buffer; at most FI_WEFT_BOUNCE_SIZE, which also lowers the default."),
	autoSizeVar("shm_eager_size", "bytes", 0, 16<<20,
		func(c *Config) *int { return &c.SHMEagerSize },
		"Largest message that goes to a process of this host with its payload (eager), which is the size of its bounce"+
			" buffers if that is more than FI_WEFT_BOUNCE_SIZE. auto is the largest of 64k, 32k and 16k that two"+
			" copies move at least as fast as one by the kernel, measured when the first endpoint is opened, else"+
			" FI_WEFT_EAGER_SIZE; 0 means FI_WEFT_EAGER_SIZE, as does the default where that or FI_WEFT_BOUNCE_SIZE"+
			" is set."),
	sizeVar("assist_size", "bytes", "256k", 0, 1<<40,
		func(c *Config) *int { return &c.AssistSize },
		"Smallest rendezvous that the sender helps to copy while it makes progress; 0 for none."),
	sizeVar("rma_assist_size", "bytes", "1m", 0, 1<<40,
		func(c *Config) *int { return &c.RMAAssistSize },
		"Smallest read, write or list that a target on this host helps to copy while it makes progress; 0 for none."),
	sizeVar("rma_lend_size", "bytes", "32k", 0, 1<<40,
		func(c *Config) *int { return &c.RMADelegateSize },
		"Smallest read or write that is left whole to the target on this host while the application posts others; 0 "+
			"for none."),
	sizeVar("huge_region_size", "bytes", "0", 0, 1<<40,
		func(c *Config) *int { return &c.HugeRegionSize },
		"Smallest memory region for peers that is put on huge pages when it is registered, which copies it once; 0 "+
			"for none."),
	sizeVar("huge_after", "bytes", "16m", 0, 1<<40,
		func(c *Config) *int { return &c.HugeAfter },
		"Bytes that are copied between processes of this host to or from 2 MiB of memory, in pieces of 32 KiB and "+
			"more, or lists of 4 KiB and more, before it is put on a huge page; 0 for never."),
	sizeVar("inject_size", "bytes", "4096", 0, 16<<20,
		func(c *Config) *int { return &c.InjectSize },
		"Largest message that can be injected; at most FI_WEFT_BOUNCE_SIZE, which also lowers the default."),
	sizeVar("unexpected_bytes", "bytes", "64m", 64<<10, 1<<40,
		func(c *Config) *int { return &c.UnexpectedBytes },
		"Data of unexpected messages that an endpoint holds before it slows its senders down."),
	sizeVar("unexpected_memory", "bytes", "1g", 64<<10, 1<<40,
		func(c *Config) *int { return &c.UnexpectedMemory },
		"Memory that unexpected messages of an endpoint take, also those without data, before it slows its senders "+
			"down: each may then have as many on their way as it has requests, and gets -FI_EAGAIN for more until "+
			"receives are posted."),
	sizeVar("max_peers", "peers", "1024", 1, 65534, // a ring's slots name their owner in 16 bits
		func(c *Config) *int { return &c.MaxPeers },
		"Peers on this host that can be attached to an endpoint at a time."),
	sizeVar("av_size_max", "addresses", "1m", 1, 1<<26,
		func(c *Config) *int { return &c.AVSizeMax },
		"Most addresses that an address vector holds."),
	triVar("use_cma", "auto",
		func(c *Config) *Tri { return &c.UseCMA },
		"Copy large messages by cross-memory attach: auto tries it once per peer, no copies through shared buffers, "+
			"yes fails where the kernel refuses."),
	sizeVar("hmem_map_size", "bytes", "256k", 0, 1<<40,
		func(c *Config) *int { return &c.HMEMMapSize },
		"Smallest message, read or write with memory of a device that goes between processes of a host by mapping that"+
			" memory; 0 for none, which sends all through bounce buffers."),
	intVar("ipc_cache", "mappings", "1024", 0, 1<<20,
		func(c *Config) *int { return &c.IPCCache },
		"Mappings of other processes' memory of devices that are kept when nothing uses them; beyond, those go that "+
			"were used least recently. 0 keeps none."),
	sizeVar("ipc_cache_size", "bytes", "64g", 0, 1<<46,
		func(c *Config) *int { return &c.IPCCacheSize },
		"Bytes of mappings of other processes' memory of devices above which those that nothing uses go, the least "+
			"recently used first."),
	waysVar("token_ways", "auto",
		func(c *Config) *Ways { return &c.TokenWays },
		"Ways that pieces of lists of memory under tokens may take: ipc copies between processes of this host, rdma "+
			"by an RDMA device, message by the peer's process; auto for all. Operations on pieces for which none is "+
			"left are refused."),
	sizeVar("note_bytes", "bytes", "16m", 128<<10, 1<<40,
		func(c *Config) *int { return &c.NoteBytes },
		"Notifications that an endpoint holds until they are taken, beyond 16 KiB of each sender, before their "+
			"senders wait; and those of its own that wait to be sent before posts are refused for a while. Each "+
			"counts 128 bytes more than it has."),
	triVar("udp", "auto",
		func(c *Config) *Tri { return &c.UDP },
		"Reach other hosts over UDP: auto for endpoints of every interface but the loopback one, yes for those too, "+
			"no for none."),
	intVar("udp_stripes", "sockets", "1", 1, 64,
		func(c *Config) *int { return &c.UDPStripes },
		"Sockets of an endpoint over UDP, each with its own lock. Peers are dealt out to them."),
	sizeVar("udp_eager_size", "bytes", "64k", 0, 16<<20,
		func(c *Config) *int { return &c.UDPEagerSize },
		"Largest message that goes over UDP with its payload (eager); 0 means FI_WEFT_EAGER_SIZE."),
	triVar("udp_xdp", "no",
		func(c *Config) *Tri { return &c.UDPXDP },
		"Send and receive UDP datagrams past the kernel's network stack, by AF_XDP: auto where the interface and the "+
			"rights (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF) allow it, yes fails where they do not. One endpoint of a "+
			"host for each interface can; firewall rules do not apply to its datagrams."),
	boolVar("udp_inbox", "yes",
		func(c *Config) *bool { return &c.UDPInbox },
		"Have the kernel put UDP datagrams of up to 4 KiB into memory that the endpoint shares with it, where the "+
			"rights (CAP_BPF) allow it: polling there takes no system call. An eBPF program does it that stands "+
			"where a socket's filter does, behind the host's firewall; what it takes counts as UdpInErrors in the "+
			"kernel's statistics."),
	choiceVar("cc", "delay", []string{"delay", "aimd", "bbr", "fixed"},
		func(c *Config) *string { return &c.CC },
		"How congestion windows, of UDP and of segments, are computed: delay steers the queueing delay, aimd halves "+
			"the window when round trips take unusually long, bbr follows the rate that is delivered, fixed never "+
			"changes it."),
	shareVar("rtt_alpha", "0.125",
		func(c *Config) *float64 { return &c.RTTAlpha },
		"Weight of a new round-trip time in the smoothed one by which windows go (RFC 6298); what statistics show "+
			"always has 1/8 and 1/4."),
	shareVar("rtt_beta", "0.25",
		func(c *Config) *float64 { return &c.RTTBeta },
		"Weight of a new deviation in the mean deviation of round-trip times (RFC 6298)."),
	triVar("enable_rtt_congestion_control", "auto",
		func(c *Config) *Tri { return &c.RTTControl },
		"Cut long puts, gets and reads of rendezvous messages into segments, of which a congestion window driven by "+
			"their round-trip times lets so many under way: auto over networks that drop packets (UDP), yes over "+
			"every transport, no over none."),
	sizeVar("rtt_segment_size", "bytes", "256k", 4096, 1<<30,
		func(c *Config) *int { return &c.SegmentSize },
		"Segment of a long one-sided operation while the window is as at the start; it grows and shrinks with the "+
			"window."),
	sizeVar("min_segment_size", "bytes", "64k", 4096, 1<<30,
		func(c *Config) *int { return &c.MinSegment },
		"Least segment; at most FI_WEFT_RTT_SEGMENT_SIZE, whose default gives way. Operations that are no longer are "+
			"not cut."),
	sizeVar("max_segment_size", "bytes", "1m", 4096, 1<<30,
		func(c *Config) *int { return &c.MaxSegment },
		"Largest segment; at least FI_WEFT_RTT_SEGMENT_SIZE, whose default gives way."),
	intVar("initial_cwnd", "segments", "4", 1, 1<<20,
		func(c *Config) *int { return &c.InitialCwnd },
		"Segments to one peer that may be under way at the start, and over UDP always: its packets have a window of "+
			"their own."),
	intVar("max_cwnd", "segments", "128", 0, 1<<30,
		func(c *Config) *int { return &c.MaxCwnd },
		"Most segments to one peer that may be under way, 0 for no limit; else at least FI_WEFT_INITIAL_CWND, whose "+
			"default gives way."),
	boolVar("rtt_probe_enable", "no",
		func(c *Config) *bool { return &c.Probe },
		"Send probes to peers on other hosts, over UDP, that measure the path to them also while there is no traffic."),
	secondsVar("rtt_probe_interval", "0.1", 0.0001, 3600,
		func(c *Config) *time.Duration { return &c.ProbeInterval },
		"Time between two probes; of one peer with all_pairs, of a congested one with adaptive."),
	sizeVar("rtt_probe_msg_size", "bytes", "64", 32, 1024,
		func(c *Config) *int { return &c.ProbeSize },
		"Size of a probe and of its answer. No more than 64 KB of probes leave an endpoint in a second."),
	choiceVar("rtt_probe_strategy", "round_robin", []string{"round_robin", "all_pairs", "random", "adaptive"},
		func(c *Config) *string { return &c.ProbeStrategy },
		"Which peers to probe: one peer after the other, all within each interval, any, or congested peers and those "+
			"of which nothing was heard more often."),
	secondsVar("rtt_probe_startup_delay", "0.5", 0, 3600,
		func(c *Config) *time.Duration { return &c.ProbeDelay },
		"Time from the enabling of an endpoint to its first probe."),
	boolVar("rtt_probe_use_service_worker", "yes",
		func(c *Config) *bool { return &c.ProbeService },
		"Send probes from the service thread (FI_WEFT_SERVICE) where there is one; else, and with no, from a "+
			"goroutine of their own."),
	triVar("rtt_sched_enable", "auto",
		func(c *Config) *Tri { return &c.Sched },
		"Choose the order of all-to-alls of long slices while they run, by what the paths to the members "+
			"deliver: auto in groups of which a member is reached over a network that drops packets (UDP), "+
			"yes in all, no in none. Alike at all members of a group, else the join fails."),
	choiceVar("rtt_sched_policy", "adaptive", []string{"adaptive", "greedy", "threshold", "balanced"},
		func(c *Config) *string { return &c.SchedPolicy },
		"Which peer gets the next chunk: adaptive begins slow paths first and has congested ones give "+
			"way, greedy takes the least queueing delay, threshold passes over paths above "+
			"FI_WEFT_RTT_SCHED_THRESHOLD, balanced keeps to the order unless delays differ by more than it "+
			"pays for or a slow path has no time to wait."),
	durationVar("rtt_sched_threshold", "100us", 0, time.Minute,
		func(c *Config) *time.Duration { return &c.SchedThreshold },
		"Queueing delay of a path, above the least that was seen, above which it counts as congested."),
	numberOfVar("rtt_sched_variance_factor", "deviations", "2", 0, 1000,
		func(c *Config) *float64 { return &c.SchedFactor },
		"Mean deviations of the queueing delay that are added to FI_WEFT_RTT_SCHED_THRESHOLD."),
	intVar("rtt_sched_max_concurrent", "peers", "0", 0, 1<<24,
		func(c *Config) *int { return &c.SchedMost },
		"Peers that the endpoints of a host in an all-to-all send to at a time at most, all together, but one of each "+
			"endpoint at least. 0 means as many as are found to be of use."),
	intVar("rtt_sched_reorder_window", "places", "0", 0, 1<<24,
		func(c *Config) *int { return &c.SchedWindow },
		"Places of the order that a peer loses for its delay at most with the policy balanced. 0 means all."),
	millisecondsVar("rtt_sched_backoff_ms", "0.1", 0.001, 60000,
		func(c *Config) *time.Duration { return &c.SchedBackoff },
		"Without an acknowledgement for ten times as long, and 1 ms, a peer does not count as using this host's link."),
	choiceVar("alltoall_algorithm", "auto",
		[]string{"auto", "bruck", "pairwise", "step", "linear", "message", "put", "get"},
		func(c *Config) *string { return &c.AllToAll },
		"How all-to-alls are carried out: auto by the length of the slices, and those whose order follows the "+
			"network as put from 1 MiB on between members of one host, else as message; bruck and pairwise as Thakur "+
			"and others (2005) describe them, the latter with eight peers at a time, step with one, linear with "+
			"all, message in chunks whose order follows the network also for slices below 16 KiB, as far as "+
			"FI_WEFT_RTT_SCHED_ENABLE has it, put like message, but chunks of slices above 4 KiB are written "+
			"into the receiver's memory, get the same, but the receiver reads them from the sender's memory. "+
			"Of those with lengths of their own bruck is pairwise. Alike at all members of a group, else the join "+
			"fails."),
	intVar("alltoall_percent_bw", "percent", "100", 1, 100,
		func(c *Config) *int { return &c.PercentBW },
		"Share of this host's link that an all-to-all in an order that follows the network sends at most, of all "+
			"endpoints of the host, on average over some chunks."),
	choiceVar("alltoall_relay", "auto", []string{"auto", "no"},
		func(c *Config) *string { return &c.Relay },
		"Let a member of an all-to-all in an order that follows the network send the end of a slice through "+
			"others that have room, where the path itself would take longer than both of its hosts need: auto "+
			"in groups of at least four hosts, no in none. Alike at all members of a group, else the join fails."),
	sizeVar("alltoall_relay_size", "bytes", "4m", 64<<10, 1<<30,
		func(c *Config) *int { return &c.RelaySize },
		"Memory in which an endpoint keeps what it relays for others in all-to-alls, at most. Alike at all "+
			"members of a group, else the join fails."),
	triVar("ptp_enable", "auto",
		func(c *Config) *Tri { return &c.PTP },
		"Check whether this host's clock is synchronised by PTP, which one-way delays need: auto where probes are "+
			"sent, yes always, and without a PTP clock or daemon no domain opens, no never."),
	boolVar("ptp_require_sync", "no",
		func(c *Config) *bool { return &c.PTPRequire },
		"Open no domain while the clock is not synchronised by PTP."),
	deviceVar("ptp_clock_device", "",
		func(c *Config) *string { return &c.PTPDevice },
		"The PTP clock, such as /dev/ptp0; empty for that of the network interface."),
	intVar("ptp_max_offset", "ns", "1000", 1, 1_000_000_000,
		func(c *Config) *int { return &c.PTPMaxOffset },
		"How far a synchronised clock may be off."),
	triVar("verbs", "auto",
		func(c *Config) *Tri { return &c.Verbs },
		"Reach other hosts over an RDMA device: auto if one stands on the endpoint's network interface, yes fails "+
			"where there is none, no for none. Peers that are not reached so are reached over UDP."),
	wordVar("verbs_device", 64,
		func(c *Config) *string { return &c.VerbsDevice },
		"The RDMA device to use; empty for the one that stands on the endpoint's network interface."),
	intVar("verbs_eager_peers", "peers", "8", 0, 8,
		func(c *Config) *int { return &c.VerbsEagerPeers },
		"Peers, the first ones, that may write short messages over the RDMA device into a ring in the endpoint's "+
			"memory, where the application polls its queues; 0: all messages are sent."),
	nativeVar("cxi", "auto",
		func(c *Config) *Tri { return &c.CXI },
		"Reach other hosts over a NIC of HPE Slingshot through libcxi: auto if one stands on the endpoint's network "+
			"interface and no RDMA device does, yes fails where there is none, no for none. Peers that are not "+
			"reached so are reached over UDP. With native endpoints are those of the CXI protocol: fi_getinfo offers "+
			"FI_ADDR_CXI with FI_PROTO_CXI and nothing else, as it does without native to hints that ask for either; "+
			"the NIC matches messages, and peers are endpoints of the same protocol, of weft's or of libfabric's own "+
			"provider for it. Tested over a software model of the NIC, not verified on hardware."),
	wordVar("cxi_device", 64,
		func(c *Config) *string { return &c.CXIDevice },
		"The NIC of Slingshot to use, such as cxi0; empty for the one that stands on the endpoint's network "+
			"interface."),
	wordVar("cxi_telemetry", 4096,
		func(c *Config) *string { return &c.CXITelemetry },
		"Telemetry counters of the NIC, by the names of their files below device/telemetry, separated "+
			"by commas. When a domain of endpoints of the CXI protocol is closed, the log says by how much each "+
			"has risen since its first endpoint was enabled, traffic of other processes included."),
	choiceVar("cxi_match", "hardware", []string{"hardware", "software", "hybrid"},
		func(c *Config) *string { return &c.CXIMatch },
		"What matches the messages of endpoints of the CXI protocol: the NIC, which has list entries for so "+
			"many receives and unexpected messages only; software, in a time that does not depend on how many "+
			"there are; with hybrid the NIC until it has no list entry for a receive or an unexpected message, "+
			"has no buffer for one, or keeps more than FI_WEFT_CXI_HYBRID_UNEXPECTED, and software from then on, "+
			"which the log says once. Peers do not see it."),
	sizeVar("cxi_hybrid_unexpected", "messages", "4096", 1, 1<<24,
		func(c *Config) *int { return &c.CXIUnexpected },
		"Unexpected messages that the NIC keeps before software matches, with FI_WEFT_CXI_MATCH=hybrid."),
	sizeVar("cxi_oflow_buf_size", "bytes", "2m", 1<<16, 64<<20,
		func(c *Config) *int { return &c.CXIOverflow },
		"Size of each buffer of an endpoint of the CXI protocol for unexpected messages that the NIC keeps; "+
			"at least twice FI_WEFT_CXI_RDZV_THRESHOLD."),
	intVar("cxi_oflow_buf_count", "buffers", "4", 2, 64,
		func(c *Config) *int { return &c.CXIOverflows },
		"Number of these buffers."),
	sizeVar("cxi_req_buf_size", "bytes", "2m", 1<<16, 64<<20,
		func(c *Config) *int { return &c.CXIRequest },
		"Size of each buffer in which messages arrive that software matches; at least "+
			"FI_WEFT_CXI_RDZV_THRESHOLD and a packet's header, twice."),
	intVar("cxi_req_buf_count", "buffers", "4", 2, 64,
		func(c *Config) *int { return &c.CXIRequests },
		"Number of these buffers."),
	sizeVar("cxi_default_cq_size", "events", "16k", 64, 1<<20,
		func(c *Config) *int { return &c.CXIEvents },
		"Events of arrivals for which an endpoint of the CXI protocol has room; beyond them its senders wait. Where "+
			"the NIC matches there is room for 4876 at most with 1024 receives, and for 1715 with 3000 or more: the "+
			"driver reserves no more for what they may bring."),
	sizeVar("cxi_rdzv_threshold", "bytes", "18433", 193, 1<<20,
		func(c *Config) *int { return &c.CXIEager },
		"Longest message of such an endpoint that is sent at once. Of a longer one its receiver gets what "+
			"follows FI_WEFT_CXI_RDZV_EAGER_SIZE."),
	sizeVar("cxi_rdzv_eager_size", "bytes", "2048", 1, 1<<20,
		func(c *Config) *int { return &c.CXIFirst },
		"Bytes of a longer message that are sent at once, at most FI_WEFT_CXI_RDZV_THRESHOLD."),
	choiceVar("cxi_rdzv_proto", "default", []string{"default", "alt_read"},
		func(c *Config) *string { return &c.CXIRendezvous },
		"How the receiver of a longer message gets its data where its NIC does not do that by itself: in order, or "+
			"with alt_read by restricted gets, which may be faster. Peers need not have the same."),
	triVar("mpi_alltoall", "auto",
		func(c *Config) *Tri { return &c.MPIAlltoall },
		"Have libweft-mpi carry out the all-to-all operations of MPI programs: auto for communicators whose ranks "+
			"are on several hosts, from the fourth on of those that are long enough, yes for all, from the first on, "+
			"no for none. The same at all ranks."),
	sizeVar("mpi_min_size", "bytes", "32k", 0, 1<<40,
		func(c *Config) *int { return &c.MPIMinSize },
		"Smallest slice, of each rank for each other, of an MPI_Alltoall that libweft-mpi takes; shorter ones are "+
			"the MPI's. The other forms, whose lengths no rank knows of all, are long enough with any. The same at "+
			"all ranks."),
	durationVar("peer_timeout", "15s", 10*time.Millisecond, time.Hour,
		func(c *Config) *time.Duration { return &c.PeerTimeout },
		"Time for which a peer on another host may leave something unanswered before it is gone, and for which the "+
			"close of a region waits, for each allocation that it lies in, for processes of this host that have its "+
			"GPU memory mapped."),
	durationVar("connect_timeout", "10s", time.Millisecond, time.Hour,
		func(c *Config) *time.Duration { return &c.ConnectTimeout },
		"Time for a peer to answer before it is unreachable."),
	durationVar("peer_check_interval", "100ms", time.Millisecond, time.Hour,
		func(c *Config) *time.Duration { return &c.PeerCheckInterval },
		"Time between two checks whether the peers of an endpoint are alive."),
	pathVar("shm_dir", defaultSHMDir,
		func(c *Config) *string { return &c.SHMDir },
		"Directory of the shared segments; a memory file system."),
	triVar("shm_across", "auto",
		func(c *Config) *Tri { return &c.SHMAcross },
		"Reach processes of other network namespaces, as other containers are, through the directory of the shared "+
			"segments, if they say so, too; addresses are unique in it then. auto: yes if FI_WEFT_SHM_DIR is not the "+
			"default."),
	boolVar("direct", "yes",
		func(c *Config) *bool { return &c.Direct },
		"Call the data plane without entering the Go runtime, where the processor and the self-test allow it."),
	boolVar("stats", "yes",
		func(c *Config) *bool { return &c.Stats },
		"Show counters of this process to weft top and weft export, in a file of FI_WEFT_SHM_DIR."),
	wordVar("iface", 15,
		func(c *Config) *string { return &c.Iface },
		"Name of the only network interface whose addresses are offered. Empty means every interface."),
	intVar("progress_batch", "arrivals", "64", 1, 65536,
		func(c *Config) *int { return &c.ProgressBatch },
		"Most arrivals handled by one entry into the progress engine."),
	triVar("progress_thread", "auto",
		func(c *Config) *Tri { return &c.ProgressThread },
		"Threads that make progress without the application: auto where it asks for automatic progress, yes also "+
			"where it does not say, no never, and automatic progress is refused."),
	intVar("progress_endpoints", "endpoints", "0", 0, 65536,
		func(c *Config) *int { return &c.ProgressEndpoints },
		"Endpoints of a domain that share one progress thread; 0 for one thread in all."),
	cpusVar("progress_cpu", "-1",
		func(c *Config) *cpuset.Set { return &c.ProgressCPU },
		"Processors that progress threads run on; -1 for any, near the device where it has a place."),
	durationVar("progress_spin", "20us", 0, time.Second,
		func(c *Config) *time.Duration { return &c.ProgressSpin },
		"Time that a progress thread polls for more work before it sleeps. It does not spin on its only processor."),
	durationVar("progress_watch", "1ms", 100*time.Microsecond, time.Second,
		func(c *Config) *time.Duration { return &c.ProgressWatch },
		"Time between two checks of a progress thread whether an application that polls by itself still does."),
	triVar("service", "auto",
		func(c *Config) *Tri { return &c.Service },
		"Thread that answers other processes of the user (endpoint names, state): auto where there are progress "+
			"threads, yes always, no never."),
	intVar("progress_appendop_freq", "rounds", "1", 1, 65536,
		func(c *Config) *int { return &c.AppendOpFreq },
		"Rounds of a busy progress thread between two polls of the operations that were posted for it."),
	intVar("proxy_append_batch_size", "operations", "16", 1, 4096,
		func(c *Config) *int { return &c.AppendBatch },
		"Most posted operations that a progress thread takes at a poll."),
	intVar("proxy_dump_signal", "signal", "0", 0, 64,
		func(c *Config) *int { return &c.DumpSignal },
		"Signal on which the state of weft's threads is written to standard error; 0 for none."),
}
