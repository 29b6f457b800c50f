package match

// AnySource as the source of a receive matches messages of every source. It is no valid source of a message.
const AnySource = ^uint32(0)

// GroupShift divides a source into its group, the bits from there on, and the rest. The
// receives of Group match messages of every source of a group. Sources of messages
// have groups below 255, and not all bits of the rest set.
const GroupShift = 24

const inGroup = 1<<GroupShift - 1

// Group is the source of receives of messages from every source of a group below 255.
func Group(group uint8) uint32 { return uint32(group)<<GroupShift | inGroup }

// MaxClasses is how many combinations of (ignored bits, source or group named or any) are matched by hash at a time.
const MaxClasses = 8

// state says where a node is.
type state uint8

const (
	stateOut        state = iota // the caller's
	stateFree                    // in the slab
	statePosted                  // a receive in the queue
	stateUnexpected              // a message in the queue
	stateClaimed                 // a message in the list of claimed messages
)

// inList is the class of a receive that is in no class but in the list of those beyond the classes.
const inList = MaxClasses

// head is what the engine needs of a node in the common case. It starts the node's first cache line.
type head struct {
	tag    uint64
	source uint32 // AnySource for a receive from any
	pos    uint32 // place in the queue's order; of two queued nodes the one further ahead is the earlier
	idx    uint32 // index of this node in the slab
	state  state
	keep   bool  // see Recv.SetKeep; false in a message
	class  uint8 // of a posted receive: its class, or inList
	_      uint8
}

// Tag returns the tag given to Post or Hold.
func (h *head) Tag() uint64 { return h.tag }

// Source returns the source given to Post or Hold; of a receive that may be AnySource.
func (h *head) Source() uint32 { return h.source }

// ID returns a number that names this node among all nodes of the engine until it is released. It is never 0.
func (h *head) ID() uint32 { return h.idx }

// link is a place in a list of nodes. What lies before the first or behind the last is unspecified: lists know their
// ends. That way a list of one touches no link, and a match stays within its node's first cache line.
type link struct {
	next, prev uint32
}

// node is the memory of a Recv or a Message: two cache lines. Its link k places it in class k's list of messages
// with one key; a receive is in one list only, by link 0.
type node struct {
	head
	words [5]uint64 // user words
	links [MaxClasses]link
}

// Recv is a receive. Its user words hold garbage until the caller sets them.
type Recv struct {
	head
	Buf     uint64 // user word: address of the buffer, …
	Len     uint64 // user word: its length in bytes
	Context uint64 // user word, which Cancel searches
	Flags   uint64 // user word
	IOV     uint64 // user word: handle of the iov, descriptors, …

	link   link   // node.links[0]
	ignore uint64 // node.links[1], of a receive that is in no class: the bits it ignores

	User [6]uint64 // user words; the only ones in the node's second cache line
}

// SetKeep chooses whether Arrive leaves the receive posted, at its place, when it hands it out. A receive that is
// kept matches until Remove. Post and Queue start with false.
func (r *Recv) SetKeep(keep bool) { r.keep = keep }

// Kept reports whether Arrive leaves the receive posted.
func (r *Recv) Kept() bool { return r.keep }

// Posted reports whether the receive is in the queue, rather than the caller's.
func (r *Recv) Posted() bool { return r.state == statePosted }

// Message is a message that arrived before its receive. Its user words hold garbage until the caller sets them.
type Message struct {
	head
	Len     uint64 // user word: length in bytes
	Data    uint64 // user word: remote CQ data
	Payload uint64 // user word: address of the bytes
	Request uint64 // user word: the sender's request
	Flags   uint64 // user word

	links [MaxClasses]link // node.links; of a claimed message see claim.go
}

// MessageBytes is about how much memory of an engine a message takes: its node, its place in the queue, and one in a
// table in which no other message has its key.
const MessageBytes = 160

// Claimed reports whether the message is claimed.
func (m *Message) Claimed() bool { return m.state == stateClaimed }
