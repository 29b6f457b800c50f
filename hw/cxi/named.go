package cxi

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/hw/cxi/libcxi"
)

// ownName has peers find an interface by the name of its matched endpoint (Config.Named): an entry at the presence
// index that no random number guards has the device address, which the NIC of a peer reads without this process. And it
// asks so for the addresses of peers: an endpoint of libfabric's provider has no such index, one of weft's that takes
// no messages of weft's own no such entry.
type ownName struct {
	i      *Iface
	name   []byte // the interface's own; immutable
	memory pinned // the own address, and behind it that of a peer for each question

	mu        sync.Mutex // of control calls; taken before a queue's lock
	known     map[proto.Name]address
	questions [maxQuestions]question
}

const (
	maxQuestions = 64
	// namedBytes is the memory of an address.
	namedBytes = 32
	// namedBits are the match bits of the entry: those of the presence entry are odd.
	namedBits = 0
)

// question asks for the address of an interface.
type question struct {
	of    proto.Name // under ownName.mu, as asked
	asked bool
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
	n := &ownName{i: i, name: nameOf(i.addr), known: map[proto.Name]address{}}
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
	if a, ok := n.known[of]; ok {
		return a.appendTo(nil), nil
	}
	free := -1
	for k := range n.questions {
		q := &n.questions[k]
		if q.asked && q.of == of {
			return n.heard(k)
		}
		if !q.asked || free < 0 && q.answer.Load() != 0 { // an answer for which no one has come
			free = k
		}
	}
	if free < 0 {
		return nil, fmt.Errorf("cxi: %d addresses are asked for: %w", maxQuestions, hw.ErrNoResource)
	}
	return nil, n.ask(free, of)
}

// ask has the NIC read the address. The caller has n.mu.
func (n *ownName) ask(k int, of proto.Name) error {
	at := namedBytes * (1 + k)
	clear(n.memory.memory[at : at+namedBytes])
	q := n.i.tx[0]
	to := nic.Address{NID: of.NID, PID: of.PID, Index: indexPresence, PIDBits: n.i.d.pidBits()}
	get := nic.Transfer{Message: nic.Message{To: to, MatchBits: namedBits, UserPtr: cookieName | uint64(k)},
		Local: n.memory.at(at, addressBytes), Initiator: n.i.addr.id(), EQ: q.events.number}
	q.take()
	defer q.give()
	if !q.room() || !q.q.Get(&get) {
		return fmt.Errorf("cxi: no room to ask for an address: %w", hw.ErrNoResource)
	}
	q.posted.add(1)
	n.questions[k].answer.Store(0)
	n.questions[k].of, n.questions[k].asked = of, true
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
	code := uint32(q.answer.Load())
	switch {
	case q.answer.Load() == 0:
		return nil, fmt.Errorf("cxi: NIC %#x has not said what PID %d is: %w", q.of.NID, q.of.PID, hw.ErrUnreachable)
	case code != wire.RcOk:
		q.asked = false
		return nil, notNamed(q.of, code)
	}
	q.asked = false
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

// notNamed says why there is no address.
func notNamed(of proto.Name, code uint32) error {
	kind, why := hw.ErrNoPath, "is gone, or of libfabric's provider, which has no index for messages of weft's own"
	switch v := judge(code); {
	case code == wire.RcEntryNotFound:
		why = "is an endpoint of weft's that takes no messages of weft's own (FI_COLLECTIVE)"
	case v == lost || v == refused:
		kind, why = hw.ErrUnreachable, "has not answered"
	}
	return fmt.Errorf("cxi: PID %d of NIC %#x %s (%s): %w", of.PID, of.NID, why, codeText(code), kind)
}

// forget has the next Connect ask for the address again (Config.Forget).
func (n *ownName) forget(name []byte) {
	if of, ok := proto.ParseName(name, n.i.d.pidBits()); ok {
		n.mu.Lock()
		delete(n.known, of)
		n.mu.Unlock()
	}
}
