package loopback

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/mpsc"
)

// Endpoint is the path to one peer's segment, until that segment's end; a
// restarted peer is another endpoint. It implements hw.Endpoint.
type Endpoint struct {
	iface   *Iface
	seg     *segment  // the peer's
	ring    mpsc.Ring // the peer's inbound ring for our attach entry
	rxState *uint32   // the peer's; armed is the word after it
	armed   *uint32
	bell    bellAddr
	owner   uint32 // our attach index at the peer plus one
	key     uint8  // number of the own authorisation key under which the entry is, 0: none
	pid     uint32 // the peer's process id in our pid namespace, 0: it has none here
	number  uint32 // index in Iface.endpoints
	// exclusive: one thread at a time writes to ring, and no other sender does.
	exclusive bool

	dead atomic.Bool // written by CheckPeers, then stays; read by any thread
	// reported is set when the peer's end has been reported, and stays. Written by CheckPeers, read by any
	// thread; sequentially consistent.
	reported atomic.Bool
	// users counts operations of Go under way (begin, end). Added to by their threads, read by CheckPeers;
	// sequentially consistent.
	users atomic.Int32
	grace *hot.Grace // of the data plane's epoch readers, once dead. Progress lease
	kept  bool       // its memory could not be replaced. Progress lease
	lives bool       // it is dead here because its peer refuses it, and has not left yet. Progress lease
	// claimHint is the claim that was free last. Written and read by any thread, relaxed: it only saves a search.
	claimHint atomic.Uint32
	// noCMA: the kernel refuses cross-memory attach. Written by Connect, ReadPeer and WritePeer, read by any thread.
	noCMA atomic.Bool
}

// Connect returns the endpoint to the interface at address, and makes it if
// there is none. Besides what package hw names, errors of the kernel (EMFILE,
// ENOMEM) come through.
func (i *Iface) Connect(address []byte) (hw.Endpoint, error) {
	name, err := parseTarget(address)
	if err != nil {
		return nil, err
	}
	if !i.usable() {
		return nil, errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed.Load() {
		return nil, errClosed
	}
	if e := i.peers[name]; e != nil && !e.lost() {
		return e, nil
	}
	e, err := i.attach(name)
	if err != nil {
		return nil, err
	}
	i.peers[name] = e
	return e, nil
}

// attach maps the peer's segment and takes an entry in its attach table. It
// returns the endpoint that there is if the peer is known by another address.
func (i *Iface) attach(to target) (*Endpoint, error) {
	seg, err := openPeer(&i.host, to.sockaddr)
	if err != nil {
		return nil, err
	}
	own := target{seg.id.name, to.key}
	if e := i.peers[own]; e != nil && !e.lost() && e.seg.id.cookie == seg.id.cookie {
		seg.mem.retire(&peerRanges)
		return e, nil
	}
	secret, err := i.authorised(seg, to.key)
	if err != nil {
		seg.mem.retire(&peerRanges)
		return nil, err
	}
	index, ok := claimAttach(seg, &i.seg.id, secret)
	if !ok {
		seg.mem.retire(&peerRanges)
		return nil, fmt.Errorf("loopback: all %d attach entries of %s are taken: %w",
			seg.geo.attachCount, seg.path, hw.ErrNoResource)
	}
	e := &Endpoint{
		iface: i, seg: seg, ring: seg.ring(ringOf(index)), exclusive: i.cfg.Exclusive && ownsRing(index),
		rxState: seg.rxState(), armed: seg.armed(), bell: i.bellDir.address(seg.path),
		owner: index + 1, key: to.key, pid: i.host.pidOf(seg.id.owner),
	}
	e.noCMA.Store(e.pid == 0)
	seg.useRing(ringOf(index)) // before the first message
	i.addEndpoint(e)
	i.peers[own] = e
	return e, nil
}

// claimAttach takes the first free entry of a peer's attach table for the interface id.
// The claim writes the own pid with the state in one step, so the owner of the table
// recognises and frees an entry whose claimer was killed before it was ready. secret
// is the authorisation key that both have, nil: none.
func claimAttach(seg *segment, id *identity, secret []byte) (index uint32, ok bool) {
	claim := uint64(hot.AttachClaimed) | uint64(id.owner.pid)<<32
	for n := range seg.geo.attachCount {
		a := seg.attach(n)
		word := attachWord(a)
		if atomic.LoadUint64(word) != hot.AttachFree || !atomic.CompareAndSwapUint64(word, hot.AttachFree, claim) {
			continue
		}
		a.StartTime, a.Cookie = id.owner.start, id.cookie
		a.NameBytes, a.Name, a.Number = uint32(id.name.n), id.name.raw, uint32(id.name.number)
		a.Flags, a.Auth = 0, senderProof(secret, seg.id.cookie, id.cookie)
		if seg.id.netns == id.netns {
			a.Flags = uint32(id.all) // in one network namespace both name the same host by an address
		}
		atomic.StoreUint32(&a.State, hot.AttachReady) // ↔ admit
		return n, true
	}
	return 0, false
}

// addEndpoint gives e a number. Readers load the slice and see a prefix; the
// element behind it is written before the longer slice is stored. A number that
// is used again goes into a copy.
func (i *Iface) addEndpoint(e *Endpoint) {
	list := *i.endpoints.Load()
	if n := len(i.numbers); n != 0 {
		e.number, i.numbers = i.numbers[n-1], i.numbers[:n-1]
		list = slices.Clone(list)
		list[e.number] = e
	} else {
		e.number = uint32(len(list))
		list = append(list, e)
	}
	i.endpoints.Store(&list)
}

// lost reports whether the peer is dead, has closed its interface, or drops what comes from here.
func (e *Endpoint) lost() bool {
	return e.dead.Load() || atomic.LoadUint32(e.rxState)&hot.RxGone != 0 || e.refused()
}

// refused reports whether the peer drops all that comes from here. Acquire ↔ source.refuse, after which the peer
// touches none of our buffers.
func (e *Endpoint) refused() bool {
	return atomic.LoadUint32(&e.seg.attach(e.owner-1).State) == hot.AttachRefused
}

// revoked reports whether the peer has its memory back that it offered with its messages.
func (e *Endpoint) revoked() bool {
	return e.lost() || atomic.LoadUint32(e.rxState)&hot.RxRevoked != 0
}

// leave marks the own entry at the peer: no message follows.
func (e *Endpoint) leave() {
	if !e.dead.Load() || e.lives {
		atomic.StoreUint32(&e.seg.attach(e.owner-1).State, hot.AttachLeaving)
	}
}

// release unmaps the peer's segment, at Close.
func (e *Endpoint) release() {
	e.dead.Store(true)
	e.ring, e.rxState, e.armed = mpsc.Ring{}, new(uint32), new(uint32)
	e.seg.mem.unmap()
}

// Address is the address by which the peer is known.
func (e *Endpoint) Address() []byte { return target{e.seg.id.name, e.key}.bytes() }

// EagerOpen reports whether the peer welcomes eager payloads.
func (e *Endpoint) EagerOpen() bool {
	return !e.dead.Load() && atomic.LoadUint32(e.rxState)&(hot.RxOpen|hot.RxGone) == hot.RxOpen
}

// Err is nil or ErrPeerDead.
func (e *Endpoint) Err() error {
	if e.lost() {
		return hw.ErrPeerDead
	}
	return nil
}

// Confirm is Check: a segment is never another interface's.
func (e *Endpoint) Confirm() error { return e.Check() }

// Reported reports whether the peer's end has been reported.
func (e *Endpoint) Reported() bool { return e.reported.Load() }

// Check asks the kernel whether the peer's process runs. CheckPeers reports it
// if not.
func (e *Endpoint) Check() error {
	if e.lost() || !e.iface.host.alive(e.seg.id.owner) {
		return hw.ErrPeerDead
	}
	return nil
}
