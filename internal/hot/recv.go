package hot

import "structs"

// Posted receives, receive contexts, and senders as they see them.

// Bits of [RecvEntry].Flags beyond libfabric's.
const (
	RecvTagged uint64 = 1 << 63
	RecvIOV    uint64 = 1 << 62 // Buf is the address of Len iovecs, owned by the entry
	RecvCancel uint64 = 1 << 61 // Context names the receive to cancel
	RecvWork   uint64 = 1 << 60 // Context is a number of deferred work
	RecvDevice uint64 = 1 << 56 // Buf is, or holds, memory of a device: the runtime's
)

// RecvNoBuffer are the flags of searches that take no message's bytes: they ignore buffers, with their lengths and
// descriptors (fi_tagged(3)).
const RecvNoBuffer uint64 = 1<<19 | 1<<58 // fi.Peek, fi.Discard

// RecvEntry is a posted receive on its way to the matcher, one cache line.
//
//weft:name weft_recv_entry
type RecvEntry struct {
	_       structs.HostLayout
	Seq     uint64 `c:"_Atomic"`
	Flags   uint64 // fi flags of the call | Recv*
	Buf     uint64 // or address of an iov copy with RecvIOV
	Len     uint64 // or iov count
	Src     uint64 // fi_addr_t, FI_ADDR_UNSPEC for any
	Tag     uint64
	Ignore  uint64
	Context uint64
}

// Bits of [Rx].Attention.
const (
	AttentionGo         = 1 // work of Go's: pending sends, timers, transports that only Go polls
	AttentionTransports = 2 // the endpoints' transports ([Transport]) are polled
)

// RxExclusive is a bit of [Rx].Flags: FI_THREAD_DOMAIN or COMPLETION, so no lease and no compare-and-swap inside the
// process.
//
//weft:name WEFT_EXCLUSIVE
const RxExclusive = 1

// RxExact is a bit of [Rx].Flags: FI_EXACT_DIRECTED_RECV, so receives from any source are checked by Go.
const RxExact = 2

// States of a progress thread's bell (package proxy), which [Rx].Bell names.
const (
	BellAwake  = 0 // the thread polls by itself
	BellAsleep = 1 // a thread that has work for it wakes it
)

// Rx is a receive context: what one progress lease protects.
//
//weft:name weft_hot_rx
type Rx struct {
	_ structs.HostLayout
	// line 0: immutable after enable
	Posts     Ring    // ring of [RecvEntry]; producers: any thread, consumer: lease holder
	Handle    uint64  // Go's
	Flags     uint32  // RxExclusive
	Selective uint32  // receives complete only with FI_COMPLETION
	OpFlags   uint64  // rx_attr op_flags, for calls without flags
	Bell      uintptr `c:"_Atomic(_Atomic uint32_t *)"` // of the thread's bell, or Asleep, or NULL. Go: release, last
	_         uint32
	Rest      uint32 // ms between two runs of the timers while polls need nothing of the runtime
	// line 1
	Lease uint32 `c:"_Atomic"` // 0 free, 1 taken: CAS acquire, store release
	_     [60]byte
	// line 2: written by the lease holder
	PostsHead uint64 `c:"_Atomic"` // data plane and provider
	// 1: a search or cancel was posted (posts set this) or unexpected messages are kept: the post ring has work
	WantPosts uint32 `c:"_Atomic"`
	Attention uint32 `c:"_Atomic"` // Attention*: progress has work that no ring shows
	Turn      uint32 // data plane only: inbound ring at which the next delivery begins
	// data plane only: when the timers ran last, ms; the lease holder stores, pollers load; relaxed
	Timers   uint32  `c:"_Atomic"`
	Receiver uintptr `c:"uintptr_t"` // Go's dataplane.Receiver; immutable while the context is open, 0: none
	Asleep   uint32  `c:"_Atomic"`   // BellAsleep: threads may sleep on its queues. These store, posts swap; seq_cst
	_        [28]byte
}

// What the receiver knows of the address of a sender, in [Source].Addr, [TransportSource].Addr and [Delivery].Addr:
// an fi_addr_t by [SenderAddr], or one of these.
const (
	SenderUnknown  = 0 // ask Go
	SenderStranger = 1 // it is not in the address vector: SenderAddr of FI_ADDR_NOTAVAIL

	senderFirst = 2 // of the address 0
)

// SenderAddr is what stands for a sender whose address is addr.
func SenderAddr(addr uint64) uint64 { return addr + senderFirst }

// AddrOfSender is the address for which s stands, FI_ADDR_NOTAVAIL of a stranger.
func AddrOfSender(s uint64) uint64 { return s - senderFirst }

// Source is a sender, by its attach index, as the receiver sees it: what is needed to deliver its messages without
// the provider. Written and read under the progress lease, except that Addr is zeroed by a thread that changes the
// address vector, or makes a link: of the address that is removed, and of strangers, which may have one now.
//
//weft:name weft_hot_source
type Source struct {
	_            structs.HostLayout
	Addr         uint64  `c:"_Atomic"`         // SenderAddr, Sender*
	Bounce       uintptr `c:"unsigned char *"` // the sender's bounce buffers, NULL: ask Go
	BounceCount  uint32
	BounceStride uint32
	BounceBytes  uint32
	Context      uint32 // not 0: number of the sender's context of a scalable endpoint, to which addr does not lead
	ID           uint32 // by which matching knows the sender
	_            uint32
	Back         uintptr `c:"struct weft_hot_peer *"` // where answers to such a context or stranger go, NULL: ask Go
	_            [16]byte
}

// TransportSource is a sender behind a transport to other hosts, as [Source].
//
//weft:name weft_hot_transport_source
type TransportSource struct {
	_       structs.HostLayout
	Addr    uint64 `c:"_Atomic"`
	ID      uint32
	Context uint32
	Source  uint32 // number of the sender at the endpoint, which has several transports
	_       [3]uint32
}
