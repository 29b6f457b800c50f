package hot

import "structs"

// Reader is where a call of fi_cq_read has completions put (struct weft_reader).
type Reader struct {
	_    structs.HostLayout
	CQ   uintptr
	Buf  uintptr
	Src  uintptr
	Left uint64
}

// What a [Delivery] asks of the shim before it goes on (enum weft_delivery_code).
const (
	DeliveryDone     = 0
	DeliveryGo       = 1
	DeliveryOneSided = 2
	DeliveryAck      = 3
	DeliveryRead     = 4
	DeliverySettle   = 5
	DeliveryComplete = 6
)

// Bits of [Delivery].Todo.
const (
	TodoWakeCQ    = 1
	TodoWakeCntr  = 2
	TodoTriggered = 4
)

// Bits of [Delivery].Flags.
const (
	MessageTagged = 1
	MessageData   = 2
)

// Delivery is what takes in the arrivals of one endpoint (struct weft_delivery).
type Delivery struct {
	_        structs.HostLayout
	EP       uintptr
	Reader   uintptr
	Begun    uint32
	Ring     uint32
	Rings    uint32
	Budget   uint32
	Todo     uint32
	Worked   uint32
	Finish   uint32
	Read     uint32
	Messages uint64
	Bytes    uint64
	Payload  uint64
	Length   uint64
	Tag      uint64
	Data     uint64
	Request  uint64
	Addr     uint64
	Bounce   uint64
	Recv     uint64
	Buf      uint64
	Source   uint32
	ID       uint32
	Flags    uint32
	Held     uint32
	Entry    CQE
}
