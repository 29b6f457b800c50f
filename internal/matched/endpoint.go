package matched

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/regcache"
)

// Ended is what has become of an operation, or with fi.RemoteWrite in Entry.Flags a peer's write with data. It is the
// callee's only for the time of the call.
type Ended struct {
	Completion
	Search bool // it is a search
	// Err is why the operation has failed, fi.Success else; OLen as cq.ErrorInfo has it.
	Err  fi.Errno
	OLen uint64
	// Name is the name of a sender that Source does not know, From its address.
	Name []byte
	From hw.MatchAddress
}

// Options are what an endpoint needs. All are set, but Copies may be nil.
type Options struct {
	Iface   hw.Iface // with hw.CapMatching
	Matcher hw.Matcher
	Cache   *regcache.Cache // of the device's registrations
	Copies  hw.MemoryDomain // has memory for copies of short sends and writes, nil: none are made
	// Caps are the endpoint's capabilities, Order is the order of what it posts (fi_tx_attr).
	Caps, Order uint64
	// Limit is how many operations may be under way.
	Limit int
	// Stripes is how many threads may post at once without waiting for each other, 0 means 1. Fewer are made for a
	// small Limit.
	Stripes int
	// Address finds what is at an address. Any thread. Errors: fi.EINVAL (nothing), hw.ErrInvalid and
	// hw.ErrUnreachable (nothing that can be reached). name is memory for its name, for the time of the call.
	Address func(a fi.Addr, name []byte) (hw.MatchAddress, error)
	// Source is the address of a sender, fi.AddrNotAvail if it has none; nil: no sender has. Lease.
	Source func(hw.MatchAddress) fi.Addr
	// Generation changes when what Address and Source say may; nil: it may at any time.
	Generation *atomic.Uint64
	// Anyone says that untagged (0) and tagged (1) receives take messages of all senders, whatever they name.
	Anyone [2]bool
	// Ended takes in what has become of an operation. Lease.
	Ended func(*Ended)
	// Gate is what a thread without the runtime enters to be alone, nil: several threads use the endpoint. Other
	// threads share the gate while they do (hot.Gate.Share). Cache takes no lock either where it has the same gate.
	Gate *hot.Gate
	// Await makes progress until done holds, which it calls again and again. For control operations. Errors:
	// fi.ETIMEDOUT.
	Await func(done func() bool) error
}

// Endpoint posts messages for a device to match.
type Endpoint struct {
	o    Options
	attr hw.MatchAttr
	ops  *table
	// addresses are what Address has said, senders what Source has.
	addresses, senders addressCache
	// copies are buffers of short sends and writes.
	copies copies
	// claimer is the matcher, if it sets messages aside, else nil.
	claimer hw.Claimer
	// memory is the matcher, if peers reach memory through it, else nil.
	memory hw.MemoryMatcher
	// atomics is the matcher, if it has atomic operations on that, else nil.
	atomics hw.AtomicMatcher
	regions entries
	// minMulti is how many bytes a buffer of many messages must have left to stay. Written by SetMinMulti, read by
	// posts; relaxed.
	minMulti atomic.Uint64
	// rings is 1 when a post has left the doorbell to the next one, else 0. Stored by posts, cleared by progress;
	// sequentially consistent, of a thread that is alone release.
	rings uint32
	// sharedPosted is how many operations without a place were posted, modulo 2^32, but for those that the device has
	// refused. Added to by posts before the device has one, and taken from behind it, sequentially consistent, of a
	// thread that is alone by release stores; read by posts with fi.Fence (acquire).
	sharedPosted uint32
	// sharedEnded is how many of those have ended. Stored by the lease holder (release), read by posts with fi.Fence
	// (acquire).
	sharedEnded uint32
	// fenced is 1 while an operation with fi.Fence waits for such operations. Stored by posts with fi.Fence, read by
	// posts; sequentially consistent.
	fenced uint32
	// closing has events end operations without a completion. Stored by Close, read by the lease holder.
	closing atomic.Bool
	ended   Ended    // lease
	names   []byte   // lease
	left    []uint32 // registrations of operations that Close has ended
	// discards are messages that searches have found, and that are to be thrown away. Lease.
	discards []hw.Claim
}

// DefaultMinMulti is how many bytes a buffer of many messages must have left to stay, unless the application says.
const DefaultMinMulti = 64

// Open makes an endpoint over an interface, of which it becomes the owner.
func Open(o Options) *Endpoint {
	e := &Endpoint{o: o, attr: o.Matcher.MatchAttr(), ops: newTable(o.Limit, o.Stripes, o.Gate.Word())}
	e.claimer, _ = o.Matcher.(hw.Claimer)
	e.memory, _ = o.Matcher.(hw.MemoryMatcher)
	e.atomics, _ = o.Matcher.(hw.AtomicMatcher)
	e.addresses.open()
	e.senders.open()
	e.minMulti.Store(DefaultMinMulti)
	e.copies.open(o.Copies, e.ops)
	o.Matcher.OnMatch(e.event)
	return e
}

// Close ends the endpoint. Operations under way are dropped without a completion. The caller holds the progress lease,
// and nothing is posted any more.
func (e *Endpoint) Close() error {
	e.closing.Store(true)
	err := e.o.Iface.Close()
	for n := range e.ops.places {
		if o := &e.ops.places[n]; o.word&1 != 0 && o.memory != 0 {
			e.left = append(e.left, o.memory)
		}
	}
	for _, m := range e.left { // the device is done with it only now
		e.o.Cache.PutNumber(m)
	}
	e.left = nil
	return errors.Join(err, e.copies.close())
}

// Name is the endpoint's.
func (e *Endpoint) Name() []byte { return e.o.Matcher.MatchName() }

// MinMulti is what SetMinMulti has set.
func (e *Endpoint) MinMulti() uint64 { return e.minMulti.Load() }

// SetMinMulti sets how many bytes a buffer of many messages that is posted from now on must have left to stay. Errors:
// fi.EINVAL.
func (e *Endpoint) SetMinMulti(n uint64) error {
	if err := CheckMinMulti(n, &e.attr); err != nil {
		return err
	}
	e.minMulti.Store(n)
	return nil
}

// CheckMinMulti judges what SetMinMulti is to set of an endpoint over a device. Errors: fi.EINVAL.
func CheckMinMulti(n uint64, attr *hw.MatchAttr) error {
	if n > uint64(attr.MaxMinFree) {
		log.Warnf(log.EPCtrl, "FI_OPT_MIN_MULTI_RECV of %d bytes, at most %d", n, attr.MaxMinFree)
		return fi.EINVAL
	}
	return nil
}

// Room is how many operations there is room for.
func (e *Endpoint) Room() int { return e.ops.room() }

// Progress takes in up to limit events, and reports whether there were any. Lease.
func (e *Endpoint) Progress(limit int) bool {
	if e.Left() && atomic.SwapUint32(&e.rings, 0) != 0 {
		e.o.Matcher.RingMatched()
	}
	e.discard()
	return e.o.Iface.Progress(limit) > 0
}

// Left reports whether a post has left the doorbell to the next one, and none has come. Any thread may ask.
func (e *Endpoint) Left() bool { return atomic.LoadUint32(&e.rings) != 0 }

// Busy reports whether Progress has something to do that neither the interface shows nor Matcher knows of. Lease.
func (e *Endpoint) Busy() bool { return len(e.discards) > 0 }

// HotMatch is the transport by which threads of C post and take in events, nil: they cannot.
func (e *Endpoint) HotMatch() *hot.MatchTransport {
	d, ok := e.o.Iface.(hw.DrivenMatching)
	if !ok || e.o.Generation == nil {
		return nil
	}
	transport := d.HotMatch()
	if transport != nil && e.o.Gate != nil {
		transport.Gate = e.gateAddress()
		d.Alone(e.o.Gate.Word())
	}
	return transport
}

// Stats are the device's counters. False: it counts nothing.
func (e *Endpoint) Stats() (s hw.MatchStats, ok bool) {
	c, ok := e.o.Matcher.(hw.MatchCounter)
	if ok {
		s = c.MatchStats()
	}
	return s, ok
}

// refused is the errno of an error of the device's, with a log line unless the caller is to try again.
func refused(what string, err error) error {
	if errors.Is(err, hw.ErrNoResource) {
		return fi.EAGAIN
	}
	return log.Reject(log.EPData, Errno(err), "%s: %v", what, err)
}

// Errno is what an error of a device means to an application: an errno of libfabric's that it wraps, if it does, else
// what the device's kind of error means.
func Errno(err error) fi.Errno {
	var own fi.Errno
	if errors.As(err, &own) {
		return own
	}
	for _, c := range []struct {
		is    error
		errno fi.Errno
	}{
		{hw.ErrNoResource, fi.ENORX}, {hw.ErrPeerDead, fi.ECONNRESET}, {hw.ErrUnreachable, fi.EHOSTUNREACH},
		{hw.ErrInvalid, fi.EINVAL}, {hw.ErrTooLong, fi.EMSGSIZE}, {hw.ErrCanceled, fi.ECANCELED},
		{hw.ErrPermission, fi.EACCES}, {hw.ErrKey, fi.EIO},
	} {
		if errors.Is(err, c.is) {
			return c.errno
		}
	}
	return fi.ErrnoOf(err)
}

// OpenErrno is what an error of opening a device's interface means: as Errno, but one without room is fi.ENOSPC.
func OpenErrno(err error) fi.Errno {
	if errno := Errno(err); errno != fi.ENORX {
		return errno
	}
	return fi.ENOSPC
}

// register registers memory for an operation. Errors: fi.EAGAIN, and others that are logged.
func (e *Endpoint) register(what string, o *operation, v fi.IOVec, access hw.Access) (s hw.Segment, err error) {
	m, err := e.o.Cache.Get(mem.Pointer(uint64(v.Base)), int(v.Len), access)
	if err != nil {
		return s, refused(fmt.Sprintf("%s: register %d bytes at %#x", what, v.Len, v.Base), err)
	}
	o.memory = m.Number()
	return segmentAt(uint64(v.Base), v.Len, m.Memory()), nil
}

// drop ends an operation that the device has not taken.
func (e *Endpoint) drop(context uint64) {
	p, s := e.ops.at(context)
	if p == nil {
		return
	}
	o := p.operation
	s.lease.Take()
	e.ops.revoke(p, s, context)
	s.lease.Give()
	e.release(&o)
}

// release gives back what an operation that the device has not taken was to have it read or write.
func (e *Endpoint) release(o *operation) {
	e.unregistered(o)
	if o.copied != 0 {
		e.ops.uncopy(o.copied)
	}
}

// unregistered gives back the registration of an operation.
func (e *Endpoint) unregistered(o *operation) {
	if o.memory != 0 {
		e.o.Cache.PutNumber(o.memory)
	}
}

// more notes that a post has left the doorbell to the next one.
func (e *Endpoint) more(more bool) {
	if more {
		atomic.StoreUint32(&e.rings, 1)
	}
}
