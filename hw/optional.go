package hw

import (
	"time"

	"github.com/weft-fabric/weft/internal/hot"
)

// PeerMemory is what endpoints implement with CapPeerMemory: they reach all
// memory of the peer's process by its own addresses, without registration, as
// debuggers do. The kernel decides whether they may, and may change its mind.
type PeerMemory interface {
	// ReadPeer reads len(remote) segments of the peer's memory into local ones
	// and returns the bytes read, which are fewer than asked only with an
	// error. It blocks the caller for the copy. Errors: ErrPermission,
	// ErrPeerDead, ErrInvalid.
	ReadPeer(local []Segment, remote []RemoteSegment) (int, error)
	// WritePeer writes local segments into the peer's memory; the rest is as
	// for ReadPeer.
	WritePeer(local []Segment, remote []RemoteSegment) (int, error)
	// SharedWords are four words of memory that this endpoint and the peer
	// both reach; the peer knows them as the SourceWords of this sender. They
	// are 0 at first, may only be accessed atomically, and the peer may write
	// anything there.
	SharedWords() *[4]uint64
}

// SourceWords is the other side of PeerMemory.SharedWords, implemented by the
// Iface.
type SourceWords interface {
	// SourceWords are the words shared with the endpoint that src sends from,
	// nil when src is gone.
	SourceWords(src Source) *[4]uint64
}

// NoticeWords is the number of words of a notice.
const NoticeWords = hot.NoticeWords

// Notice are words that an interface says to all of its peers on this host. They are 0 at first, and may only be
// accessed atomically. Each is a value of its own: a reader may see old and new ones side by side.
type Notice [NoticeWords]uint64

// Noticeboard is what an Iface of a transport within a host implements.
type Noticeboard interface {
	// OwnNotice is that of this interface, which alone writes it. It is valid until Close.
	OwnNotice() *Notice
}

// NoticeReader is what its endpoints implement.
type NoticeReader interface {
	// PeerNotice is that of the peer, which may have written anything. It reads as 0 once the peer is found gone, and
	// is not to be used after the endpoint's end.
	PeerNotice() *Notice
}

// KeyDirectory is what endpoints implement with CapNamedKeys: remote keys are
// found by the name of their region, without the help of the peer's process.
type KeyDirectory interface {
	// FindKey returns the key of the region that the peer registered under
	// name. ErrKey: there is none, or it is one that the directory has no room
	// for, so only the peer itself can say. It is ErrKey for one of a device, too.
	FindKey(name uint64) (RemoteKey, error)
	// OfDevice reports whether the peer has a region of that name with memory of a device (Region.Device).
	OfDevice(name uint64) bool
}

// Instance names an interface of this host.
type Instance struct {
	PID    int    // of the process in this one's pid namespace, 0: it has none there
	NetNS  uint64 // network namespace of the process, an inode
	Cookie uint64 // random, or as the interface was opened with
}

// Instanced is what the endpoints of a transport within a host implement.
type Instanced interface {
	// Instance is the peer's.
	Instance() Instance
}

// Direct is what an Iface with [CapDirectRing] implements: it fills the tables
// of plain words with which the data plane sends and polls for messages on its own.
type Direct interface {
	// FillPeer writes ep, an endpoint of this Iface, into line; slots come
	// last, with release. The line stays usable until Close of the Iface, even
	// after the peer is gone: what is sent then is lost.
	FillPeer(ep Endpoint, line *hot.Peer) error
	// FillEP writes the inbound rings' views and the addresses of rx_state and
	// of the number of rings in use, and from then on keeps their heads, until
	// Close.
	FillEP(ep *hot.EP)
	// FillStripe writes the bounce buffers of stripe i into s, and from then on
	// shares s.BounceNext with the thread that leases s, until Close.
	FillStripe(i int, s *hot.Stripe) error
	// FillSource writes what the data plane needs to deliver src's messages into
	// line, and clears the line when src is gone, until Close. False: this
	// source's messages must be given to Progress. The caller holds the
	// progress lease.
	FillSource(src Source, line *hot.Source) bool
	// PutPending reports whether ep has yet to take in what line.Put names: a
	// write or atomic that the data plane posted.
	PutPending(ep Endpoint, line *hot.Peer) bool
	// SendPending reports whether ep has yet to take in a message that was sent to
	// it, by this Iface or by another that shares its way.
	SendPending(ep Endpoint) bool
	// Revoke has peers fetch nothing any more of the memory of messages that have been sent: what they are copying
	// meanwhile counts as not copied. The caller may use that memory again, and sends nothing any more.
	Revoke()
	// WakePeer is Wake of the endpoint whose line has this number in Peer.
	WakePeer(peer uint32)
}

// Driven is what an Iface with [CapDriven] implements: the data plane polls for
// messages at it, as long as nothing needs Progress. What C finds and cannot deal
// with stays where it is for the next Progress.
type Driven interface {
	// HotTransport is what C calls under the progress lease. It is valid until Close,
	// which comes after C has been stopped.
	HotTransport() *hot.Transport
	// Written reports whether something has come that rings no bell (Silent in HotTransport). The caller holds
	// the progress lease.
	Written() bool
}

// DrivenEndpoint is the same for sending short messages.
type DrivenEndpoint interface {
	// HotPath is what C sends with. It stays valid after the peer is gone, until
	// nothing leads to the endpoint any more and threads that were posting then
	// have ended ([hot.Grace]); what is sent meanwhile is refused.
	HotPath() *hot.Path
}

// Answerer is what an Iface implements whose connections carry messages both ways.
type Answerer interface {
	// Answer returns the endpoint of the connection that a source's messages come over, nil if that is gone. What
	// is sent over it reaches the very interface that has sent, and never another that has its address by now. The
	// caller holds the progress lease.
	Answer(src Source) Endpoint
}

// Confirmer is what an Endpoint implements whose peer's address may be another interface's by now, without
// its own end having been noticed.
type Confirmer interface {
	// Confirm checks that the peer is alive and is the one that was connected. nil: it is. Errors: ErrNoResource (ask
	// again after Progress), ErrPeerDead (a peer event comes). Any thread may call it.
	Confirm() error
}

// Waiter is what an Iface with [CapWakeup] implements, so that a thread can
// sleep until a message arrives:
//
//	Arm → Pending is false → poll DoorbellFD → Disarm → Progress
type Waiter interface {
	// EnableWait makes the doorbell. Senders read Arm only after it: a message
	// that was sent before its return may ring no bell, but Pending reports it.
	EnableWait() error
	// DoorbellFD becomes readable when a message arrives between Arm and
	// Disarm. It is -1 before EnableWait, and closed by Close.
	DoorbellFD() int
	// Arm asks for the bell. Callers read Pending after it.
	Arm()
	// Pending reports whether Progress would find something. Any thread may ask.
	Pending() bool
	// Disarm takes the wish back and empties the doorbell.
	Disarm()
}

// Attentive is what a [Waiter] may implement that has work which rings no bell.
type Attentive interface {
	// Attention reports whether there is some: a sleeper then calls Progress each millisecond. Any thread may ask.
	Attention() bool
}

// PathInfo is what a transport measures of the path to a peer: one consistent
// snapshot.
type PathInfo struct {
	RTT     time.Duration // smoothed round-trip time (RFC 6298), 0: no sample yet
	RTTVar  time.Duration // its mean deviation
	Min     time.Duration // least of all samples
	Max     time.Duration // greatest
	Samples uint64        // round-trip times taken in
	Lost    uint64        // packets found lost
	Window  int64         // congestion window with the last sample, bytes
	Age     time.Duration // since the last sample or loss, 0: there was none
}

// Trains is what an Endpoint implements that sends long operations as trains of
// packets.
type Trains interface {
	// Train is how many bytes of a get, or of a put, go in one train; 0: that is
	// not known yet, or there are none. Operations that are a multiple leave no
	// short train at their end. It changes with the path's MTU, and any thread may
	// call it.
	Train(get bool) uint64
}

// PathReporter is what an Endpoint implements whose transport measures the path
// to the peer.
type PathReporter interface {
	// Path returns what is measured. False: nothing yet. It takes no lock; any
	// thread may call it.
	Path() (PathInfo, bool)
}

// Streamer is what an Endpoint implements whose messages to a peer go in one stream, as congestion control lets them.
type Streamer interface {
	// Unsent returns how many bytes of messages have been posted and not been sent once. False: another thread is at
	// the stream. It does not wait; any thread may call it.
	Unsent() (int64, bool)
}

// Publisher is an interface whose peers read and write registered memory by
// themselves.
type Publisher interface {
	// Withdraw ends that, for all regions of its memory domain, also for those that
	// are registered later. When it returns, no peer is at one. Control path.
	Withdraw()
}
