package cxi

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// MatchConfig configures what the NIC matches. The zero value of every field means its default.
type MatchConfig struct {
	// PID of the interface, 0 to 510. nil: one that is free.
	PID *uint32
	// Receives is how many receives and searches may be posted, 1 to 61440, with MatchSoftware to 1048576. Default
	// 1024.
	Receives int
	// Sends is how many messages may be in flight, 8 to 16384. Default 1024.
	Sends int
	// Events is how many events of arrivals may wait for Progress, 64 to 1048576, fewer where the NIC matches and the
	// driver does not reserve enough for what they bring (waiting). Default 16384.
	Events int
	// Buffers is the number of buffers for unexpected messages, 2 to 64, of BufferBytes each. Default 4.
	Buffers int
	// BufferBytes is the size of one, at least twice Eager and at most 64 MiB. Default 2 MiB.
	BufferBytes int
	// Eager is the longest message that is sent at once, 193 to 1 MiB. Default 18433, as libfabric's provider has it.
	Eager int
	// First is how many bytes of a longer one are, 1 to Eager. Default 2048, likewise.
	First int
	// Mode is what matches: the NIC, by default.
	Mode MatchMode
	// Requests is the number of buffers in which messages lie that software is to match, 2 to 64, of RequestBytes
	// each. Default 4.
	Requests int
	// RequestBytes is the size of one, at least 126 and twice Eager, and at most 64 MiB. Default 2 MiB.
	RequestBytes int
	// VNIs are those by which the interface reaches peers and they reach it, at most 4 that the domain Admits. Default:
	// the domain's own.
	VNIs []uint16
	// Stripes is how many transmit queues there are, by which messages to different peers go, 1 to 8: the greatest
	// power of two that this has, or fewer if the service has no more. Default 1.
	Stripes int
	// Restricted has receivers whose NIC does not get the data of long messages get it in no order, which peers are
	// free to do from lists that the interface has for that. Default: in order.
	Restricted bool
	// Unexpected is how many unexpected messages the NIC keeps, 1 to 2^31-1, before software matches, with
	// MatchHybrid. Default 4096.
	Unexpected int

	// unreserved has the event queue of arrivals be as small as it may be, so that it may overrun. For tests.
	unreserved bool
	// refusedFor is how long commands of flow control are made again where all are refused. Default refusedFor. For
	// tests.
	refusedFor time.Duration
}

// MatchMode says what matches messages.
type MatchMode int

const (
	// MatchHardware: the NIC does, with list entries for so many receives and unexpected messages only.
	MatchHardware MatchMode = iota
	// MatchSoftware: software does, in constant time.
	MatchSoftware
	// MatchHybrid: the NIC does until it has no list entry for a receive or an unexpected message, no buffer for one,
	// or keeps too many of these, and then software does.
	MatchHybrid
)

const (
	maxReceives = 60 << 10
	maxSoftware = 1 << 20 // receives, where software matches
	maxSends    = 1 << 14
	maxMatched  = 1<<32 - 1 // bytes of a message
	maxMinFree  = 1<<24 - 1
)

func (c MatchConfig) withDefaults() MatchConfig {
	def(&c.Receives, 1024)
	def(&c.Sends, 1024)
	def(&c.Events, 16384)
	def(&c.Buffers, 4)
	def(&c.BufferBytes, 2<<20)
	def(&c.Eager, 18433)
	def(&c.First, 2048)
	def(&c.Requests, 4)
	def(&c.RequestBytes, 2<<20)
	def(&c.Unexpected, 4096)
	def(&c.Stripes, 1)
	def(&c.refusedFor, refusedFor)
	return c
}

func (c *MatchConfig) check() error {
	if err := checkVNIs(c.VNIs); err != nil {
		return err
	}
	most := maxReceives
	if c.Mode == MatchSoftware {
		most = maxSoftware
	}
	if c.PID != nil && *c.PID >= libcxi.AnyPID {
		return fmt.Errorf("cxi: PID %d, not 0 to %d: %w", *c.PID, libcxi.AnyPID-1, hw.ErrInvalid)
	}
	return inRange([]ranged{
		{"as a mode", int(c.Mode), 0, int(MatchHybrid)},
		{"buffers for what software matches", c.Requests, 2, 64},
		{"bytes of one", c.RequestBytes, 2*c.Eager + 2*nic.MaxHeader, 64 << 20},
		{"unexpected messages that the NIC keeps", c.Unexpected, 1, 1<<31 - 1},
		{"transmit queues", c.Stripes, 1, maxStripes},
		{"receives", c.Receives, 1, most},
		{"messages in flight", c.Sends, 8, maxSends},
		{"events of arrivals", c.Events, 64, maxEvents},
		{"bytes of an eager message", c.Eager, nic.MaxInline + 1, 1 << 20},
		{"buffers for unexpected messages", c.Buffers, 2, 64},
		{"bytes of one", c.BufferBytes, 2 * c.Eager, 64 << 20},
		{"first bytes of a long message", c.First, 1, c.Eager},
	})
}

// matcher has the NIC match messages, over the wire of libfabric's CXI provider. It implements hw.Matcher.
//
// Receives are entries of the list at index 0. What comes before its receive lands in buffers of the list behind it:
// the NIC says so once when it lands, and once when a receive takes it, in either order (unexpected.go). Messages of
// more than Eager bytes are rendezvous (rendezvous.go).
type matcher struct {
	i       *Iface
	cfg     MatchConfig // immutable, as what follows to on
	pidBits uint32
	self    uint32 // match id
	on      func(*hw.MatchEvent)
	tx      matchTx    // the first stripe
	txs     []*matchTx // all, a power of two
	shared  txShared
	rx      matchRx

	stripeShift uint8  // of txOf
	turn        uint32 // lease: the queue whose events are taken in next, 0: of receives, else of a stripe
}

// openMatcher makes the queues and lists, if the configuration asks for them.
func (i *Iface) openMatcher() error {
	if i.cfg.Match == nil {
		return nil
	}
	m := &matcher{i: i, cfg: *i.cfg.Match, pidBits: i.d.pidBits(), self: i.addr.id(),
		on: func(*hw.MatchEvent) {}}
	m.tx.m, m.rx.m = m, m
	i.match = m
	if m.cfg.Mode != MatchHardware && !libcxi.Manages() {
		return fmt.Errorf("cxi: matching by software: libcxi has no cxil_pte_transition_sm: %w",
			hw.ErrInvalid)
	}
	if err := m.openStripes(); err != nil {
		return err
	}
	return m.rx.open()
}

func (m *matcher) close() error {
	// The lists first, so that nothing lands in memory that is given back.
	errs := []error{m.rx.closeLists()}
	if m.rx.flow.part() {
		m.drain()
	}
	errs = append(errs, m.rx.close(), m.closeRestricted())
	for _, t := range m.txs {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

// Matcher is what matches, nil without Config.Match.
func (i *Iface) Matcher() hw.Matcher {
	if i.match == nil {
		return nil
	}
	return i.match
}

// MatchAttr says what is matched.
func (m *matcher) MatchAttr() hw.MatchAttr { return m.cfg.MatchAttr() }

// MatchName is what peers give to ParseMatchName.
func (m *matcher) MatchName() []byte {
	return proto.Name{NID: m.i.addr.nid, PID: m.i.addr.pid}.AppendTo(nil)
}

// ParseMatchName reads the name of a peer.
func (m *matcher) ParseMatchName(b []byte) (hw.MatchAddress, error) {
	n, ok := proto.ParseName(b, m.pidBits)
	switch {
	case !ok:
		return 0, fmt.Errorf("cxi: endpoint name % x: %w", b, hw.ErrInvalid)
	case n.VNI == 0:
		n.VNI = m.i.networks[0].vni
	case m.i.networks.number(n.VNI) < 0:
		return 0, fmt.Errorf("cxi: endpoint of VNI %d, this one is not: %w", n.VNI, hw.ErrUnreachable)
	}
	return hw.MatchAddress(n.Word()), nil
}

// AppendMatchName appends the name of a peer.
func (m *matcher) AppendMatchName(to []byte, a hw.MatchAddress) []byte {
	n, _ := proto.NameOf(uint64(a), m.pidBits)
	n.VNI = 0
	return n.AppendTo(to)
}

// OnMatch installs the function that Progress calls.
func (m *matcher) OnMatch(f func(*hw.MatchEvent)) { m.on = f }

// at is an index of a peer. Errors: hw.ErrInvalid.
func (m *matcher) at(a hw.MatchAddress, index uint32) (nic.Address, error) {
	to, ok := m.find(a, index)
	if !ok {
		return to, fmt.Errorf("cxi: endpoint %#x: %w", uint64(a), hw.ErrInvalid)
	}
	return to, nil
}

// find is the same without an error's text.
func (m *matcher) find(a hw.MatchAddress, index uint32) (to nic.Address, ok bool) {
	ok = m.locate(&to, a, index)
	return to, ok
}

// locate is find that stores the address where it is to be: one that is returned is copied several times.
func (m *matcher) locate(to *nic.Address, a hw.MatchAddress, index uint32) bool {
	n, ok := proto.NameOf(uint64(a), m.pidBits)
	to.NID, to.PID, to.Index, to.PIDBits = n.NID, n.PID, index, m.pidBits
	l := m.i.networks
	k := l.number(n.VNI)
	if k < 0 || !ok {
		return false
	}
	to.Profile = l[k].lcid
	return true
}

// sentBy is the sender of what an event is of.
func (m *matcher) sentBy(e nic.Event) hw.MatchAddress {
	return hw.MatchAddress(proto.FromMatchID(e.Initiator(), m.pidBits, e.VNI()).Word())
}

// progress takes in what has come and ended, calls f of OnMatch up to about limit times, and returns how often. Lease.
func (m *matcher) progress(limit int) int {
	if m.unrung() {
		m.RingMatched()
	}
	n := m.progressTx()
	n += m.rx.progress(limit - n)
	m.overran()
	m.rx.flow.refusedAll()
	return n
}

// progressTx says what has ended of all stripes, and returns how much. Lease.
func (m *matcher) progressTx() (n int) {
	m.shared.ended.Store(false)
	for _, t := range m.txs {
		n += t.progress()
	}
	return n
}

// pending reports whether progress would find something.
func (m *matcher) pending() bool {
	if m.rx.events.Waiting() || m.rx.flow.events.Waiting() || m.rx.soft.local.Load() || m.shared.ended.Load() {
		return true
	}
	for _, t := range m.txs {
		if t.events.Waiting() {
			return true
		}
	}
	return m.unrung()
}

// awaitsControls reports whether a stripe has something to be sent by and by.
func (m *matcher) awaitsControls() bool { return m.shared.controls.Load() != 0 }

// awaits reports whether progress has something to do without an event.
func (m *matcher) awaits() bool {
	return m.rx.later.Load() || m.rx.retries.Load() || m.awaitsControls()
}

// interrupts has the event queues raise the wait object, or not.
func (m *matcher) interrupts(on bool) {
	for _, t := range m.txs {
		t.events.Interrupts(on)
	}
	m.rx.events.Interrupts(on)
	m.rx.flow.events.Interrupts(on)
}

// unrung reports whether commands may stand in a queue without a doorbell.
func (m *matcher) unrung() bool {
	for _, t := range m.txs {
		if t.unrung.isSet() {
			return true
		}
	}
	return m.rx.unrung.isSet()
}

// RingMatched rings the doorbells that More has left out.
func (m *matcher) RingMatched() {
	for _, t := range m.txs {
		t.unrung.take()
		t.lock.take()
		t.ring()
		t.release(false)
	}
	m.rx.unrung.take()
	m.rx.lock.take()
	m.rx.portal.q.Ring()
	m.rx.lock.give()
}

// drain waits until nothing is in flight or to be sent by and by, but not for long. The caller is Close.
func (m *matcher) drain() {
	for end := time.Now().Add(closeWait); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		inFlight := 0
		for _, t := range m.txs {
			t.poll()
			inFlight += t.inFlight()
		}
		if inFlight == 0 && !m.awaitsControls() {
			return
		}
	}
}

// cancel ends all messages in flight, and all receives.
func (m *matcher) cancel(err error) {
	for _, t := range m.txs {
		t.fail(err)
	}
	m.progressTx()
	m.rx.cancel(err)
}

// sendError is what the answer to a message means to its sender.
func sendError(code uint32) error {
	if code == wire.RcOk {
		return nil
	}
	kind := hw.ErrPeerDead
	switch judge(code) {
	case refused:
		kind = hw.ErrNoResource
	case broken:
		kind = hw.ErrInvalid
	}
	return fmt.Errorf("cxi: message: %s: %w", codeText(code), kind)
}
