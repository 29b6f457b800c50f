package hw

// Cap is a set of abilities of an interface.
type Cap uint32

// Abilities of an interface.
const (
	CapAMShort    Cap = 1 << iota // Endpoint.AMShort
	CapAMBcopy                    // Endpoint.AMBcopy
	CapOrdered                    // messages to one peer arrive in the order in which they were posted
	CapSameHost                   // peers are on this host
	CapPutZcopy                   // OneSided.PutZcopy
	CapGetZcopy                   // OneSided.GetZcopy
	CapFlush                      // endpoints and the Iface implement Flusher
	CapPeerMemory                 // endpoints implement PeerMemory
	CapNamedKeys                  // endpoints implement KeyDirectory
	CapDirectRing                 // peers' inbound rings can be written by the CPU: the Iface implements Direct
	CapWakeup                     // the Iface implements Waiter
	// the peer's process has no part in one-sided operations: they end without its Progress
	CapOneSidedFree
	// the network drops what it has no room for, and the interface sends it again: senders do well to hold back
	CapDrops
	// C can take messages from the Iface and send short ones: it implements Driven, and endpoints DrivenEndpoint
	CapDriven
	// one-sided operations are performed in order with each other and with messages
	CapOneSidedOrdered
	// the device is software: a one-sided operation takes processor time of the posting thread
	CapSoftware
	CapPieces // endpoints implement PieceMover
	// the device finds the receives of messages by their tags: the Iface implements Matching
	CapMatching
	// a put that has completed is in the peer's memory, without a flush
	CapPutPlaced
)

// Attr describes an interface. All limits are in bytes; 0 says that there is
// no such operation.
type Attr struct {
	Caps       Cap
	MaxAMShort int // head and payload together
	MaxAMHead  int // head of AMBcopy
	MaxAMBcopy int // payload, head not counted
	// payload of AMBcopy up to which a message is sent sooner than as a rendezvous; 0: that is the caller's to know
	EagerAM     int
	MaxPutZcopy uint64  // sum of the segments
	MaxGetZcopy uint64  // sum of the segments
	MaxIOV      int     // local segments of a zcopy operation
	MaxPeerIOV  int     // segments on either side of one PeerMemory operation
	Bandwidth   float64 // bytes per second, estimated
	Latency     float64 // seconds, estimated
	Overhead    float64 // seconds of CPU for each message, estimated
	DeviceName  string
	NUMANode    int // -1: unknown or any
	Priority    int // higher is preferred among transports that reach the same peer
}
