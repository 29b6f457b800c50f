package cxi

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// ownName has peers find an interface by the name of its matched endpoint (Config.Named): an entry at the presence
// index that no random number guards has the device address, which the NIC of a peer reads without this process. And it
// asks so for the addresses of peers: an endpoint of libfabric's provider has no such index, one of weft's that takes
// no messages of weft's own no such entry. Where there is none, the index of control messages, which endpoints of both
// have once they are enabled, shows whether there is one that refuses, or nothing yet.
type ownName struct {
	i      *Iface
	name   []byte // the interface's own; immutable
	memory pinned // the own address, and behind it that of a peer for each question

	mu        sync.Mutex // of control calls and greetings; taken after Iface.mu and before a queue's lock
	known     map[proto.Name]address
	refused   map[proto.Name]time.Time // when peers refused first, of those that are asked again
	questions [maxQuestions]question
}

const (
	maxQuestions = 64
	// namedBytes is the memory of an address.
	namedBytes = 32
	// namedBits are the match bits of the entry: those of the presence entry are odd.
	namedBits = 0
	// refusedTime is how long a peer is asked again that refuses: it may be closing, and another come in its place.
	refusedTime = 200 * time.Millisecond
)

// question asks for the address of an interface.
type question struct {
	of    proto.Name // under ownName.mu, as what follows to at
	asked bool
	// lacks is the NIC's code for the address, wire.RcOk: that is asked for. Else it is asked whether there is an
	// endpoint.
	lacks uint32
	// stale says that the answer is of no use: the name may be another interface's since, or none comes.
	stale bool
	at    time.Time // when it was asked
	// answer is answered with the NIC's code, 0 until that has come. Stored by the thread that takes in the event, read
	// by that which asks again; sequentially consistent.
	answer atomic.Uint64
}

const answered = 1 << 32

// openNamed has peers find the interface by its name, if the configuration asks for that.
func (i *Iface) openNamed() (err error) {
	if !i.cfg.Named {
		return nil
	}
	n := &ownName{i: i, name: nameOf(i.addr), known: map[proto.Name]address{},
		refused: map[proto.Name]time.Time{}}
	const size = namedBytes * (1 + maxQuestions)
	if n.memory, err = i.d.newPinned(size, libcxi.MapRead|libcxi.MapWrite); err != nil {
		return err
	}
	copy(n.memory.memory, i.addr.appendTo(nil))
	i.cfg.Name, i.cfg.Resolve, i.cfg.Forget, i.cfg.AwaitPeer = n.name, n.resolve, n.forget, true
	i.named = n
	return nil
}

// nameOf is the name of the matched endpoint of an interface.
func nameOf(a address) []byte { return proto.Name{NID: a.nid, PID: a.pid}.AppendTo(nil) }

func (n *ownName) close() error {
	if n == nil {
		return nil
	}
	return n.memory.close()
}

// entry is what the NICs of peers read. n may be nil: there is none.
func (n *ownName) entry(list *libcxi.PtlTE, id uint16) (e nic.Entry, ok bool) {
	if n == nil {
		return e, false
	}
	return nic.Entry{PtlTE: list.Number(), ID: id, Memory: n.memory.at(0, 0), Length: addressBytes,
		MatchBits: namedBits, MatchID: nic.AnyID(), Get: true, Silent: true, NoLink: true}, true
}

// greets reports whether an interface may call itself by a name. n may be nil: by any.
func (n *ownName) greets(a address, name []byte) bool {
	return n == nil || bytes.Equal(name, nameOf(a))
}

// resolve finds the address of the interface of a matched endpoint, whose name has no VNI (Config.Resolve).
func (n *ownName) resolve(name []byte) ([]byte, error) {
	of, ok := proto.ParseName(name, n.i.d.pidBits())
	if !ok || of.VNI != 0 {
		return nil, fmt.Errorf("cxi: endpoint name % x: %w", name, hw.ErrInvalid)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.i.closed.Load() {
		return nil, errClosed
	}
	if a, ok := n.known[of]; ok {
		return a.appendTo(nil), nil
	}
	free := -1
	for k := range n.questions {
		q := &n.questions[k]
		q.stale = q.stale || n.unanswered(q)
		if q.asked && q.of == of && !q.stale {
			return n.heard(k)
		}
		if !q.asked || free < 0 && q.answer.Load() != 0 { // an answer for which no one has come
			free = k
		}
	}
	if free < 0 {
		return nil, fmt.Errorf("cxi: %d addresses are asked for: %w", maxQuestions, hw.ErrUnreachable)
	}
	return nil, n.ask(free, of, wire.RcOk)
}

// unanswered reports whether no answer to a question comes: the NIC has refused a command since. As it may be at the
// memory, that is used again only if one comes nevertheless. The caller has n.mu.
func (n *ownName) unanswered(q *question) bool {
	now := time.Now()
	if !q.asked || q.answer.Load() != 0 || now.Sub(q.at) < n.i.cfg.PathTimeout {
		return false
	}
	t := n.i.tx[0]
	t.take()
	defer t.give()
	return t.overdue(now) && !q.at.After(t.refusedAt)
}

// ask has the NIC read the address, or, where that lacks for the reason that a code is, find out whether there is an
// endpoint. The caller has n.mu.
func (n *ownName) ask(k int, of proto.Name, lacks uint32) error {
	at := namedBytes * (1 + k)
	clear(n.memory.memory[at : at+namedBytes])
	q := n.i.tx[0]
	to := nic.Address{NID: of.NID, PID: of.PID, Index: indexPresence, PIDBits: n.i.d.pidBits()}
	c := nic.Transfer{Message: nic.Message{To: to, MatchBits: namedBits, UserPtr: cookieName | uint64(k)},
		Initiator: n.i.addr.id(), EQ: q.events.number}
	post := q.q.Get
	if lacks != wire.RcOk {
		c.To.Index, c.MatchBits = proto.IndexControl, proto.RoomBits
		post = q.q.Put
	} else {
		c.Local = n.memory.at(at, addressBytes)
	}
	q.take()
	defer q.give()
	if !q.room() || !post(&c) {
		return fmt.Errorf("cxi: no room to ask for an address: %w", hw.ErrUnreachable)
	}
	q.posted.add(1)
	asked := &n.questions[k]
	asked.answer.Store(0)
	asked.of, asked.asked, asked.lacks, asked.stale, asked.at = of, true, lacks, false, time.Now()
	return unsaid(of)
}

// unsaid says that the answer to a question is not there.
func unsaid(of proto.Name) error {
	return fmt.Errorf("cxi: NIC %#x has not said what PID %d is: %w", of.NID, of.PID, hw.ErrUnreachable)
}

// answered takes in the answer to a question. The caller has the lock of the first queue.
func (n *ownName) answered(k uint64, code uint32) {
	if n != nil && k < maxQuestions {
		n.questions[k].answer.Store(answered | uint64(code))
	}
}

// heard is the answer to a question, which another one may take the place of then. The caller has n.mu.
func (n *ownName) heard(k int) ([]byte, error) {
	q := &n.questions[k]
	answer := q.answer.Load()
	if answer == 0 {
		return nil, unsaid(q.of)
	}
	q.asked = false
	code := uint32(answer)
	switch {
	case q.lacks != wire.RcOk:
		return nil, n.notNamed(q, code)
	case code == wire.RcEntryNotFound || judge(code) == absent:
		return nil, n.ask(k, q.of, code)
	case code != wire.RcOk:
		return nil, fmt.Errorf("cxi: PID %d of NIC %#x has not answered (%s): %w", q.of.PID, q.of.NID, codeText(code),
			hw.ErrUnreachable)
	}
	at := namedBytes * (1 + k)
	a, err := parseAddress(n.memory.memory[at : at+addressBytes])
	switch {
	case err != nil:
		return nil, fmt.Errorf("PID %d of NIC %#x: %w: %w", q.of.PID, q.of.NID, err, hw.ErrNoPath)
	case a.nid != q.of.NID || a.pid != q.of.PID:
		return nil, fmt.Errorf("cxi: PID %d of NIC %#x says that it is %s: %w", q.of.PID, q.of.NID, &a, hw.ErrNoPath)
	}
	n.known[q.of] = a
	return a.appendTo(nil), nil
}

// notNamed says why there is no address: code is the answer whether there is an endpoint. The caller has n.mu.
func (n *ownName) notNamed(q *question, code uint32) error {
	kind, why := hw.ErrNoPath, "is of libfabric's provider, which has no index for messages of weft's own"
	switch {
	case code != wire.RcOk && code != wire.RcEntryNotFound:
		delete(n.refused, q.of) // what has refused is gone
		kind, why = hw.ErrUnreachable, "is not there"
	case q.lacks == wire.RcEntryNotFound:
		why = "is an endpoint of weft's that takes no messages of weft's own (FI_COLLECTIVE)"
	}
	return fmt.Errorf("cxi: PID %d of NIC %#x %s (%s): %w", q.of.PID, q.of.NID, why, codeText(q.lacks), kind)
}

// forget has the next Connect ask for the address again (Config.Forget).
func (n *ownName) forget(name []byte) {
	if of, ok := proto.ParseName(name, n.i.d.pidBits()); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.known, of)
		n.drop(of)
	}
}

// learn takes in what an interface says of itself: what was known of its name is of one before. n may be nil.
func (n *ownName) learn(a address) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		of := proto.Name{NID: a.nid, PID: a.pid}
		n.known[of] = a
		n.drop(of)
	}
}

// drop has answers about a name that are on their way, or that no one has fetched, be of no use. The caller has n.mu.
func (n *ownName) drop(of proto.Name) {
	for k := range n.questions {
		if q := &n.questions[k]; q.of == of {
			q.stale = true
		}
	}
}

// says reports whether an address is what is known of its name: it is not if a peer has greeted since it was resolved.
// n may be nil: it is.
func (n *ownName) says(a address) bool {
	if n == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[proto.Name{NID: a.nid, PID: a.pid}] == a
}

// again is the outcome of a Connect: a refusal is not one for refusedTime. n may be nil: it is as given.
func (n *ownName) again(name []byte, err error) error {
	if n == nil || errors.Is(err, hw.ErrUnreachable) {
		return err
	}
	of, ok := proto.ParseName(name, n.i.d.pidBits())
	if !ok {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	since, again := n.refused[of]
	past := time.Since(since)
	switch {
	case !errors.Is(err, hw.ErrNoPath) || again && past >= refusedTime && past < 10*refusedTime:
		delete(n.refused, of)
		return err
	case !again || past >= refusedTime: // or it was asked before, for another use
		n.refused[of] = time.Now()
	}
	return fmt.Errorf("%s: %w", err.Error(), hw.ErrUnreachable)
}

// drain waits until the NIC has answered what was asked, but not for long: it may be at the memory. The interface is
// closed: nothing is asked any more. n may be nil.
func (n *ownName) drain() {
	for end := time.Now().Add(closeWait); n.asks() && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		n.i.tx[0].tryPoll()
	}
}

// asks reports whether an answer is on its way. n may be nil.
func (n *ownName) asks() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for k := range n.questions {
		if q := &n.questions[k]; q.asked && q.answer.Load() == 0 {
			return true
		}
	}
	return false
}
