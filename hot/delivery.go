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
	Buf  uintptr `c:"void *"`     // where the next entry goes, in the queue's format
	Src  uintptr `c:"uint64_t *"` // where its source goes, or NULL
	Left uint64  `c:"size_t"`     // entries that fit
}

// What a [Delivery] asks of the shim before it goes on.
//
//weft:enum weft_delivery_code
const (
	DeliveryDone     = 0 // nothing: all that is here is taken in
	DeliveryGo       = 1 // the runtime is to make progress: what comes next is not for the data plane
	DeliveryOneSided = 2 // serve the one-sided operations at the head of the ring
	DeliveryAck      = 3 // take the acknowledgement at the head of the ring
	DeliveryRead     = 4 // read the announced message; then say so in [Delivery].Read
	DeliverySettle   = 5 // the runtime gives the message to the receive that it matched
	DeliveryComplete = 6 // the runtime writes [Delivery].Entry to the queue, whose ring is full
)

// Bits of [Delivery].Todo: what the shim does when the delivery has ended.
const (
	TodoWakeCQ    = 1
	TodoWakeCntr  = 2
	TodoTriggered = 4
)

// Bits of [Delivery].Flags.
const (
	MessageTagged = 1
	MessageData   = 2 // data is valid
)

// Delivery is the arrivals of one endpoint, taken in under the lease of its receive context. The shim sets EP, Reader
// and, to 0, Begun to Bytes and Addr but for what is the data plane's, and calls again after each code but
// DeliveryDone and DeliveryGo.
//
//weft:name weft_delivery
type Delivery struct {
	_        structs.HostLayout
	EP       uintptr `c:"struct weft_hot_ep *"`
	Reader   uintptr `c:"struct weft_reader *"` // for receives, NULL: the queue
	Begun    uint32  // data plane only: how far it is
	Ring     uint32  // the inbound ring at hand
	Rings    uint32  // data plane only: how many are left, this one included
	Budget   uint32  // data plane only: how many more arrivals are taken from this ring
	Todo     uint32  // Todo*
	Worked   uint32  // 1: something was taken in
	Finish   uint32  // data plane only: the message at hand is done with after the code
	Read     uint32  // with DeliveryRead: 1 when the message is in the receive's buffer
	Messages uint64  // delivered
	Bytes    uint64  // delivered
	// the message at hand
	Payload uint64 // address; with DeliveryRead in the sender's process
	Length  uint64 // bytes
	Tag     uint64
	Data    uint64
	Request uint64 // with DeliveryRead: the sender's
	Addr    uint64 // of the sender, plus one
	Bounce  uint64 // address of the bounce buffer that holds the payload, 0: none
	Recv    uint64 // address of the receive that it matched
	Buf     uint64 // with DeliveryRead: where it goes
	Source  uint32 // number of the sender
	ID      uint32 // its identity
	Flags   uint32 // Message*
	Held    uint32 // data plane only: messages held when it began
	Entry   CQE    // with DeliveryComplete
}
