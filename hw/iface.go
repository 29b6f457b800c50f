package hw

// Stats counts what an interface saw. Read with [Iface.Stats].
type Stats struct {
	Delivered uint64 // messages given to handlers
	Malformed uint64 // messages refused because a field was out of range
	Reclaimed uint64 // slots taken back from dead producers
	PeersLost uint64 // peers found dead
}

// PeerEvent reports that a remote interface is gone: as an endpoint to it, or as a
// source of messages. A remote that was both gives two events, in any order. Each
// comes when what the remote sent before is delivered, because answers may be among
// it.
type PeerEvent struct {
	Source    Source // valid if HasSource; may be given to another remote after the call
	HasSource bool
	Closed    bool     // the source was closed in order, its process may live on
	Endpoint  Endpoint // not nil: it works no longer
	Err       error    // ErrPeerDead
}

// Iface is a communication resource with an address.
type Iface interface {
	// Attr says what the interface can do. Constant after open.
	Attr() Attr
	// Memory is the memory domain on which the interface was opened, nil if none.
	Memory() MemoryDomain
	// Address is what peers give to Connect.
	Address() []byte
	// SetHandler installs the handler of id, before the first Progress.
	SetHandler(id AMID, h Handler)
	// OnPeerEvent installs the function that CheckPeers and Progress call when
	// a peer is found gone, before the first of their calls.
	OnPeerEvent(f func(PeerEvent))
	// Connect makes an endpoint to the interface at address. It is cheap if
	// one exists already. The endpoint may still be connecting when it
	// returns: its operations give ErrNoResource until the peer answers.
	// Errors: ErrUnreachable (retry later), ErrNoResource (the peer has no
	// room for another sender, retry later), ErrNoPath (try another
	// transport), ErrPermission, ErrInvalid.
	Connect(address []byte) (Endpoint, error)
	// SourceAddress is the address of a remote interface that sent to us. The
	// caller holds the progress lease.
	SourceAddress(src Source) []byte
	// SourceReaches reports whether a Connect to address would reach the remote
	// interface that sent to us: an interface has one address by which it is
	// known, but may answer at others. The caller holds the progress lease and
	// knows that address is one that this interface can reach.
	SourceReaches(src Source, address []byte) bool
	// Progress delivers up to limit arrived messages, completes operations, and
	// returns how many messages and completions there were. With a limit of 0 it
	// delivers none, and still makes room for what is posted. The caller holds the
	// progress lease.
	Progress(limit int) int
	// Postpone, called in a handler that has kept nothing of its message, leaves the message where it is: it counts as
	// not delivered, and a later Progress gives it to its handler again, before what its sender has sent after it.
	// Room that it takes stays taken, so its sender finds none in the end. Other senders' messages go on as far as the
	// transport keeps them apart.
	Postpone()
	// SetEagerWindow opens or closes the eager window, which senders read
	// (Endpoint.EagerOpen): whether eager payloads are welcome.
	SetEagerWindow(open bool)
	// CheckPeers finds peers that are gone and calls the peer event function for
	// each. The caller holds the progress lease. It makes system calls: a few
	// times a second is enough.
	CheckPeers()
	// Stats returns the counters.
	Stats() Stats
	// Close releases everything. Peers see ErrPeerDead. Operations in progress
	// end with ErrCanceled.
	Close() error
}

// Endpoint is a path to one remote interface. All methods may be called from
// any thread. An operation that returns an error left no trace.
type Endpoint interface {
	// AMShort sends one active message; head and payload together are at most
	// MaxAMShort bytes.
	AMShort(id AMID, header uint64, head, payload []byte) error
	// AMBcopy sends one active message whose payload are n bytes that pack
	// writes: each call fills dst with those that follow what it wrote before. n
	// is at most MaxAMBcopy, head at most MaxAMHead. stripe selects the bounce pool
	// where there is one for each stripe, and the caller holds that stripe's lease;
	// other transports take any stripe that is not negative.
	// pack may have been called when the error is ErrNoResource.
	AMBcopy(id AMID, header uint64, head []byte, n int, pack func(dst []byte), stripe int) error
	// Address is the address by which the peer is known, its Iface.Address. It
	// may differ from what was given to Connect. Constant.
	Address() []byte
	// EagerOpen reports whether the peer welcomes eager payloads.
	EagerOpen() bool
	// Wake rings the peer's doorbell if it sleeps. The send operations do it themselves.
	Wake()
	// Check asks whether the peer is alive; a peer event comes if it is not.
	// ErrPeerDead if that is known already. The caller holds the progress lease.
	Check() error
	// Err is nil, or why the endpoint no longer works. Messages that the peer sent before it ended may
	// not be delivered yet, so operations that wait for the peer have not failed while Reported is false.
	Err() error
	// Reported reports whether the peer's end has been reported: the function of OnPeerEvent has returned, and
	// all that the peer sent is delivered. It follows after Err is not nil, with a CheckPeers. A post that
	// succeeded did so before that function was called.
	Reported() bool
}
