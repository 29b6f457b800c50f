package hot

import "structs"

// What a call of the data plane (package dataplane) that takes in arrivals shares with the shim that makes it.

// Reader is where a call of fi_cq_read has completions put: its caller's array. What is delivered on the way goes
// there without a detour by the queue.
//
//weft:name weft_reader
type Reader struct {
	_    structs.HostLayout
	CQ   uintptr `c:"struct weft_hot_cq *"`
	Src  uintptr `c:"uint64_t *"` // where the source of the next entry goes, or NULL
	Buf  uintptr `c:"void *"`     // where the entry goes, in the queue's format
	Left uint64  `c:"size_t"`     // entries that fit
}

// Copy is a copy that the shim makes between memory of this process and of another one of this host
// (process_vm_readv(2)).
//
//weft:name weft_copy
type Copy struct {
	_      structs.HostLayout
	PID    uint32  // of the other one
	Write  uint32  // 1: to it; 0: from it
	Here   uintptr `c:"const void *"` // the pieces here
	There  uintptr `c:"const void *"` // and there
	Pieces uint64  // of either
	Len    uint64  // bytes of all
	Buf    uint64  // of a single piece: its address here, and Size bytes
	Size   uint64
	At     uint64 // its address there, and as many bytes
	SizeAt uint64
	Error  int32 // set by the shim: 0 when all is copied, else why it is not (FI_E*)
	_      uint32
}

// What a [Delivery] asks of the shim before it goes on.
//
//weft:enum weft_delivery_code
const (
	DeliveryDone        = 0 // nothing: all that is here is taken in
	DeliveryGo          = 1 // the runtime is to make progress: what comes next is not for the data plane
	DeliveryPause       = 2 // pause for a moment: more is likely to come at once
	DeliveryAckReceived = 3 // the runtime takes the ACK of source for request, whose outcome is data
	DeliveryRead        = 4 // make [Delivery].Copy, which reads the message of the RTS; its Error is the outcome
	DeliverySettle      = 5 // the runtime gives the message to the receive that it matched
	DeliveryComplete    = 6 // the runtime writes [Delivery].Entry to the queue, whose ring is full
	DeliverySendAck     = 7 // the runtime sends source the ACK of request, when there is room
	DeliveryWakePeer    = 8 // ring the doorbell of peer
	DeliverySendDone    = 9 // the runtime sends source word of the success of request, when there is room
)

// Bits of [Delivery].Todo and of [Post].Todo: what the shim does when the call has ended.
const (
	TodoWakeCQ       = 1   // of a delivery: of receives; of a post: of transmits
	TodoWakeCntr     = 2   // of receives; of a post: [Post].Cntr
	TodoTriggered    = 4   // operations that wait for a counter may be due
	TodoWakePeer     = 8   // ring the doorbell of peer
	TodoComplete     = 16  // the queue's ring is full: the runtime writes the completion
	TodoPeerLost     = 32  // the peer may have gone: the runtime finds the operations that wait for it
	TodoWakeTxCQ     = 64  // the queue of transmits
	TodoWakeReadCntr = 128 // the counter of reads
	TodoWakeTxCntr   = 256 // of a delivery: the counter of transmits

	TodoWakeWriteCntr = 512 // the counter of writes
)

// Bits of [Delivery].Flags.
const (
	MessageTagged = 1
	MessageData   = 2 // data is valid
)

// Delivery is the arrivals of one endpoint, taken in under the lease of its receive context. It is part of a Poll; the
// data plane sets it up.
//
//weft:name weft_delivery
type Delivery struct {
	_        structs.HostLayout
	EP       uintptr `c:"struct weft_hot_ep *"`
	Reader   uintptr `c:"struct weft_reader *"` // for receives, NULL: the queue
	TxReader uintptr `c:"struct weft_reader *"` // for transmits, NULL: the queue
	// 0 when it begins
	Begun    uint32 // data plane only: how far it is
	Todo     uint32 // Todo*
	Worked   uint32 // 1: something was taken in
	After    uint32 // data plane only: the message at hand is done with after the code
	Messages uint64 // delivered
	Bytes    uint64 // delivered
	Polls    uint32 // data plane only: polls of an empty ring
	Stream   uint32 // data plane only: the last operation was one that more may follow at once
	// the rings
	Ring   uint32 // the inbound ring at hand
	Rings  uint32 // data plane only: how many are left, this one included
	Budget uint32 // data plane only: how many more arrivals are taken from this ring
	// the message at hand
	Source  uint32 // number of the sender at the endpoint (hw.Source)
	ID      uint32 // its identity
	Number  uint32 // which of the sender's interfaces
	Flags   uint32 // Message*
	Peer    uint32 // with DeliveryWakePeer: number of the peer
	Addr    uint64 // of the sender: SenderAddr
	Tag     uint64
	Data    uint64
	Length  uint64 // bytes of payload
	Payload uint64 // address
	Request uint64 // the sender's, of a message that it waits for
	Bounce  uint64 // address of the bounce buffer that holds the payload, 0: none
	Recv    uint64 // address of the receive that it matched, or of the message of which the RTS was kept
	Copy    Copy   // with DeliveryRead: to the receive's buffer
	Entry   CQE    // with DeliveryComplete

	Unexpected uint32 // data plane only: unexpected messages when it began
	Wake       uint32 // data plane only: the peer that was answered sleeps
}
