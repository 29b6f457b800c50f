package hw

import (
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// MatchAddress is an endpoint that receives matched messages, in its transport's own form. [Matcher.ParseMatchName]
// makes it.
type MatchAddress uint64

// AnyAddress as the sender of a receive admits all.
const AnyAddress = ^MatchAddress(0)

// MatchAttr describes what an interface matches. Constant after open.
type MatchAttr struct {
	TagMask    uint64 // bits of a tag that are matched
	MaxMessage uint64 // bytes
	MaxInject  int    // bytes of MatchSend.Inject
	MaxWrite   int    // bytes of MatchTransfer.Inject, at least MaxInject
	Receives   int    // receives and searches that may be posted at a time
	Sends      int    // messages that may be in flight
	MaxMinFree int    // MatchReceive.MinFree
	// ChoosesKeys says that the device can choose keys of regions (MatchRegion.Choose).
	ChoosesKeys bool
}

// MatchReceive is a receive that the device matches.
type MatchReceive struct {
	From   MatchAddress // AnyAddress: all
	Tagged bool         // it takes tagged messages, else those without a tag
	Tag    uint64
	Ignore uint64 // bits of the tag that match anything
	Local  Segment
	// Multi has it take messages one behind the other until less than MinFree bytes are left.
	Multi   bool
	MinFree int
	More    bool   // another call follows at once, which rings the doorbell
	Context uint64 // in its events
}

// MatchSend is a message to be matched.
type MatchSend struct {
	To     MatchAddress
	Tagged bool
	Tag    uint64
	// Data comes with the message if HasData.
	Data    uint64
	HasData bool
	// Inject is the message if Local has no bytes: it is copied before the call returns.
	Inject []byte
	Local  Segment
	// Matched has it end only when it has found its receive, else when it has arrived.
	Matched bool
	More    bool   // as in MatchReceive
	Context uint64 // in its event
}

// MatchKind says what a MatchEvent is of.
type MatchKind int

const (
	// MatchSent: a message has ended; Err says how.
	MatchSent MatchKind = iota
	// MatchReceived: a receive has a message.
	MatchReceived
	// MatchCanceled: a receive was taken back and gets no message.
	MatchCanceled
	// MatchFound: a search has found a message, which stays where it is.
	MatchFound
	// MatchMissing: a search has found none.
	MatchMissing
	// MatchExposed: peers reach a region, unless Err is set.
	MatchExposed
	// MatchWithdrawn: peers no longer do.
	MatchWithdrawn
	// MatchTransferred: a read, write or atomic operation has ended; Err says how.
	MatchTransferred
	// MatchWritten: a peer has written into a region with Notify, Length bytes at Offset, with Data, or has written
	// or changed them in one with Events.
	MatchWritten
)

// MatchEvent is what has become of something posted. It is the callee's only for the time of the call.
type MatchEvent struct {
	Kind    MatchKind
	Context uint64
	// From is the sender of a message.
	From    MatchAddress
	Tagged  bool
	Tag     uint64
	Data    uint64 // valid if HasData
	HasData bool
	Length  uint64 // bytes that the receive has room for
	Wanted  uint64 // bytes that were sent; more than Length: it was cut off
	Offset  uint64 // of a receive of many messages, and of a region: where in its memory
	Last    bool   // nothing more comes of the receive
	// Fetched is what an element was before an atomic operation, in its first bytes.
	Fetched [16]byte
	// Shared says that Context is that of several operations (MatchTransfer.Shared). Length is how many bytes this one
	// has written, where it was not in vain.
	Shared bool
	Claim  Claim // of MatchFound: the message is set aside, and this names it; 0: it is not
	// Err of a message: ErrPeerDead, ErrNoResource (the receiver has no room for it), ErrInvalid, ErrCanceled (Close).
	Err error
}

// MatchID names something posted that may be cancelled.
type MatchID uint64

// Matching is what an Iface with [CapMatching] implements. With [CapDriven], too, its transport finds no messages: it
// says hot.TransportGo as long as Progress has something to do.
type Matching interface {
	// Matcher returns what matches. It is constant, and its end is the Iface's.
	Matcher() Matcher
}

// DrivenMatching is what an Iface with [CapMatching] and [CapDriven] may implement: the data plane posts messages,
// receives and, with a [MemoryMatcher], operations on peers' memory, and takes in what has become of them, as long as
// nothing needs Progress.
type DrivenMatching interface {
	// HotMatch is what the data plane calls, and by which C rings, nil: they cannot. It is valid until Close, which
	// comes when no thread reads or uses it any more.
	HotMatch() *hot.MatchTransport
	// Alone has threads that are alone, by a word, take no locks. It is called before the transport is used. Nothing
	// uses the interface while one is alone.
	Alone(w order.Word)
}

// NetworkMatcher is what a Matcher may implement whose interface can be in several virtual networks, which have numbers
// from 0. Each address is in one of them: that of ParseMatchName in the first, unless the name says in which.
type NetworkMatcher interface {
	// InNetwork is the address of the same endpoint in another network. False: the interface is not in it.
	InNetwork(a MatchAddress, network int) (MatchAddress, bool)
	// NetworkOf is the network of an address, -1: the interface is not in it.
	NetworkOf(a MatchAddress) int
}

// Matcher posts what the device matches: the device finds the receive for each message, by tag and
// sender, and keeps those that come before their receive. Messages from one sender to one receiver are matched in the
// order in which they were posted.
//
// Posts may be made by any thread. What has become of them is said in Progress.
type Matcher interface {
	// MatchAttr says what is matched.
	MatchAttr() MatchAttr
	// MatchName is what peers give to ParseMatchName.
	MatchName() []byte
	// ParseMatchName reads the name of a peer. Errors: ErrInvalid, ErrUnreachable (of another network).
	ParseMatchName(name []byte) (MatchAddress, error)
	// AppendMatchName appends the name of a peer.
	AppendMatchName(to []byte, a MatchAddress) []byte
	// OnMatch installs the function that Progress calls, before the first post. It may post.
	OnMatch(f func(*MatchEvent))
	// PostReceive posts a receive. Its memory must stay until its last event. Errors: ErrNoResource (try again after
	// Progress), ErrInvalid.
	PostReceive(r *MatchReceive) (MatchID, error)
	// CancelReceive takes a receive back, unless it has a message: an event says which. Errors: ErrNoResource,
	// ErrInvalid (it has ended).
	CancelReceive(id MatchID) error
	// CancelContext is CancelReceive of the receive with a context that no other has. Errors: as CancelReceive's.
	CancelContext(context uint64) error
	// Search finds a message that r would get now, if there is one, and leaves it where it is. Errors: as
	// PostReceive's.
	Search(r *MatchReceive) error
	// PostMatched posts a message. Its memory must stay until its event. Errors: ErrNoResource, ErrInvalid, ErrTooLong.
	PostMatched(s *MatchSend) error
	// RingMatched rings the doorbells that More has left out.
	RingMatched()
}

// MatchState is how far flow control of a receiver is.
type MatchState uint32

const (
	MatchDisabled        MatchState = iota // it is not open yet, or its event queue has overrun
	MatchEnabled                           // the device takes messages
	MatchPendingDisable                    // it is to stop, as messages that it keeps are needed
	MatchOnload                            // messages are taken over from it, whose list entries are needed
	MatchOnloadReenable                    // the same, where buffers or room for events is needed
	MatchFlowControl                       // until senders have reported all drops
	MatchEnabledSoftware                   // the device takes messages, and software matches them
	MatchPendingSoftware                   // the device leaves matching to software, which takes over what it keeps
	MatchPendingHardware                   // the device is to begin with matching
)

// String is libfabric's name of the state.
func (s MatchState) String() string {
	return [...]string{"DISABLED", "ENABLED", "PENDING_PTLTE_DISABLE", "ONLOAD_FLOW_CONTROL",
		"ONLOAD_FLOW_CONTROL_REENABLE", "FLOW_CONTROL", "ENABLED_SOFTWARE",
		"PENDING_PTLTE_SOFTWARE_MANAGED", "PENDING_PTLTE_HARDWARE"}[s]
}

// MatchReason is why a receiver takes no messages any more, or matching has gone from the device to software.
type MatchReason int

const (
	MatchNoEvents       MatchReason = iota // no room for events
	MatchNoBuffers                         // no buffer for unexpected messages
	MatchNoEntries                         // no list entries for them
	MatchNoRequests                        // no room in request buffers
	MatchBySoftware                        // receives or claims need what the device keeps
	MatchElse                              // another reason
	MatchSoftUnexpected                    // software goes on: no list entry for an unexpected message
	MatchSoftReceive                       // software goes on: no list entry for a receive

	MatchReasons = int(MatchSoftReceive) + 1 // how many there are
)

// MatchStats are counters of a Matcher's flow control, and its state.
type MatchStats struct {
	State     MatchState           // of the receiver
	Stopped   [MatchReasons]uint64 // how often that was so, by MatchReason
	Dropped   uint64               // own messages that a receiver had no room for, and that were or will be sent again
	Onloaded  uint64               // messages that software took over from the device
	Software  uint64               // messages that found their receive in software
	Doorbells uint64               // how often a doorbell was rung for commands
	Refused   uint64               // commands that the device has refused
	Overruns  uint64               // times that events were found to have been dropped, as their queue was full
	Unknown   uint64               // events of a kind that nothing expects
	Malformed uint64               // what no peer of the protocol sends
}

// MatchCounter is what a Matcher may implement.
type MatchCounter interface {
	// MatchStats returns the counters. Any thread may call it.
	MatchStats() MatchStats
}

// Claim names a message that is set aside. None is 0.
type Claim uint64

// Claimer is what a Matcher may implement: messages are set aside when they are found, for one receive.
type Claimer interface {
	// Claim is Search, but sets aside what it finds: no receive gets it but that of ReceiveClaimed. The device may
	// stop for that: messages that come meanwhile are sent again. Errors: as Search's.
	Claim(r *MatchReceive) error
	// ReceiveClaimed receives a message that was set aside, once: its event is of r.Context. Of r, Local and Context
	// count; without Local the message is thrown away, as one that was cut off. The memory must stay until the event.
	// Errors: ErrNoResource, ErrInvalid (there is no such message, or Local is none of this device's).
	ReceiveClaimed(c Claim, r *MatchReceive) error
}
