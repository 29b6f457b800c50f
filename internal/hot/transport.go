package hot

import "structs"

// Transports to other hosts.

// Whether a message may be corked, to go in one packet with those that come behind it.
const (
	HoldNever = 0
	HoldInRow = 1 // if several were sent in a row since the transport was polled
	HoldMore  = 2 // the next one is at hand (FI_MORE)
)

// TransportMessage is a message, arrived or to be sent. The bytes of one that has arrived do not change any more.
//
//weft:name weft_transport_message
type TransportMessage struct {
	_         structs.HostLayout
	Header    uint64
	Head      uintptr `c:"const unsigned char *"` // of an arrival: the payload comes behind it
	Payload   uintptr `c:"const unsigned char *"`
	Length    uint32  // of the payload, bytes
	Source    uint32  // of an arrival: the transport's number for the sender (hw.Source)
	HeadBytes uint16
	ID        uint8
	Hold      uint8 // of one to be sent: Hold*
	_         [4]byte
}

// What [Transport].Next finds.
const (
	TransportEmpty   = 0
	TransportArrival = 1
	TransportGo      = 2 // something that Go must deal with
)

// Transport is an interface to other hosts that the data plane polls and takes messages from, made by a backend. Its
// functions belong to the progress lease, Flush also to epoch readers ([EpochReader]).
//
//weft:name weft_hot_transport
type Transport struct {
	_ structs.HostLayout
	// Transport*; the same message until it is taken
	Next uintptr `c:"int (*next)(struct weft_hot_transport *transport, struct weft_transport_message *m)"`
	// the message that next found last is done with; whether another one is at hand
	Take uintptr `c:"bool (*take)(struct weft_hot_transport *transport)"`
	// sends what is corked; next does, too
	Flush uintptr `c:"void (*flush)(struct weft_hot_transport *transport)"`
	// as next, of senders only whose messages ring no bell
	Peek uintptr `c:"int (*peek)(struct weft_hot_transport *transport, struct weft_transport_message *m)"`
	// messages so far; stored by the lease holder, relaxed
	Taken uint64 `c:"_Atomic"`
	// how many such senders there are: polls never pass the transport by. By the backend; sequentially consistent
	Silent uint32 `c:"_Atomic"`
	_      uint32
}

// What [Path].Send says.
const (
	PathSent   = 0
	PathFull   = 1 // nothing happened; there is room later, after progress
	PathGo     = 2 // nothing happened; only Go can send now
	PathCorked = 3 // it goes with what is sent behind it, or when the transport is flushed
)

// Path is the way to a peer over such an interface. Any epoch reader ([EpochReader]) may send.
//
//weft:name weft_hot_path
type Path struct {
	_    structs.HostLayout
	Send uintptr `c:"int (*send)(struct weft_hot_path *path, const struct weft_transport_message *m)"`
	Max  uint32  // bytes of head and payload; immutable
	_    uint32
}
