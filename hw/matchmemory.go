package hw

// MatchRegion is memory that peers of a MemoryMatcher read and write by a key.
type MatchRegion struct {
	// Memory is the whole of it, of the interface's device. With RemoteWrite it is registered with LocalWrite. nil:
	// it has no bytes.
	Memory Memory
	Key    uint64 // no other region's with the same Notify; at most MaxKey, or with Notify that of a region with Choose
	Access Access // RemoteRead, RemoteWrite or both
	// Choose has the device choose the key: Expose stores it. No region has had it lately.
	Choose bool
	// Data is with Choose: there will be a region with Notify and the same key, while this one is exposed.
	Data bool
	// Events has an event MatchWritten say of each write or atomic operation that it has been performed. Peers must
	// know (MatchTransfer.Events) unless the device chooses the key.
	Events bool
	// Notify has it take writes with data and nothing else (MatchTransfer.HasData): an event MatchWritten says of
	// each that it is there. Access is RemoteWrite then.
	Notify bool
	// Context is in its events.
	Context uint64
}

// MatchTransfer is a read or write of a region.
type MatchTransfer struct {
	To     MatchAddress
	Key    uint64
	Offset uint64  // in the region, bytes
	Get    bool    // it is a read, else a write
	Local  Segment // may have no bytes
	// Inject is what is written if Local has no bytes: it is copied before the call returns. At most
	// MatchAttr.MaxWrite bytes.
	Inject []byte
	// Data comes with a write if HasData: the region is one with Notify.
	Data    uint64
	HasData bool
	// Events says that the region may be one with Events.
	Events bool
	// Ordered has a write be performed after the writes before it that were posted for the same peer, where the
	// device does not do so anyway.
	Ordered bool
	// Delivered has a write end only when the peer's processors see it.
	Delivered bool
	More      bool   // another call follows at once, which rings the doorbell
	Context   uint64 // in its event
	// Shared says that Context is no operation's own: it is below SharedContexts, others are posted with it before this
	// has ended, and the device keeps nothing of the operation where it can. With it: a write, or an atomic operation
	// that fetches nothing.
	Shared bool
}

// SharedContexts is how many contexts may be those of several operations (MatchTransfer.Shared).
const SharedContexts = 2

// MemoryMatcher is what a Matcher may implement: its interface's peers reach memory by keys that the owner chooses, or
// the device (MatchAttr.ChoosesKeys).
//
// Any thread may call it. What has become of a call is said in Progress.
type MemoryMatcher interface {
	// MaxKey is the greatest key that the owner chooses.
	MaxKey() uint64
	// KeyValid reports whether a peer's region can have a key, and with data whether it can take writes with data.
	KeyValid(key uint64, data bool) bool
	// Expose lets peers reach a region. An event MatchExposed says that they do, or that the device has no room for
	// it (ErrNoResource). Errors: ErrNoResource (try again after Progress), ErrInvalid (the rights, or the key: a
	// region has it, or none with Choose has).
	Expose(r *MatchRegion) (MatchID, error)
	// Withdraw ends that. An event MatchWithdrawn says that no peer is at the memory, which must stay until then; if
	// its Err is set the region is exposed still.
	// Errors: ErrNoResource (try again after Progress), ErrInvalid (it is not exposed).
	Withdraw(id MatchID) error
	// PostTransfer posts a read or write. It ends with an event MatchTransferred, a write when the peer's memory
	// has it. Its memory must stay until then. Errors of the event: ErrKey (there is no such region, it does not
	// have the right, or the range is not in it), ErrPeerDead, ErrInvalid, ErrCanceled (Close). Errors:
	// ErrNoResource (try again after Progress), ErrInvalid, ErrTooLong.
	PostTransfer(t *MatchTransfer) error
	// SharedUnderway reports whether an operation with a shared context may not have ended that was posted for a peer.
	SharedUnderway(to MatchAddress) bool
}
