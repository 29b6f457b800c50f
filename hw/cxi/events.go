package cxi

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/mem"
)

// pinned is memory of the backend's own that the NIC reaches.
type pinned struct {
	memory []byte
	first  uint64 // its address
	md     *libcxi.MD
	iova   uint64 // what the NIC calls first
	lac    uint32
}

// newPinned maps n bytes. Children of fork do not get them: whatever the kernel does about pinned pages on fork,
// these stay ours.
func (d *MemoryDomain) newPinned(n int, flags uint32) (p pinned, err error) {
	if p.memory, err = mem.Map(n, 0); err != nil {
		return p, fmt.Errorf("cxi: buffers: %w: %w", err, hw.ErrNoResource)
	}
	p.first = mem.Address(p.memory)
	if err = unix.Madvise(p.memory, unix.MADV_DONTFORK); err == nil {
		p.md, err = d.lni.Map(p.first, uint64(len(p.memory)), flags|libcxi.MapPin)
	}
	if err != nil {
		return pinned{}, errors.Join(registered(err, uint64(n)), mem.Unmap(p.memory))
	}
	p.iova, p.lac = p.md.IOVA(p.first), p.md.LAC()
	return p, nil
}

// at is a piece of it as the NIC sees it.
func (p *pinned) at(off, n int) nic.Memory {
	return nic.Memory{IOVA: p.iova + uint64(off), LAC: p.lac, Len: uint32(n)}
}

func (p *pinned) close() error {
	if p.md == nil {
		return nil
	}
	if err := p.md.Close(); err != nil {
		return err
	}
	err := mem.Unmap(p.memory)
	*p = pinned{}
	return err
}

// eventQueue is an event queue with its memory.
type eventQueue struct {
	nic.EventQueue
	pinned
	eq     *libcxi.EQ
	number uint32 // of eq
	said   bool   // that it has overrun
}

// open makes a queue for events of 16 bytes, or of 64 if target, of which count fit. Of these, reserved are kept for
// changes of state.
func (q *eventQueue) open(d *MemoryDomain, count int, target bool, wait *libcxi.WaitObject,
	reserved uint32) (err error) {
	each, flags := 16, uint64(libcxi.EQImmediate)
	if target {
		each, flags = 64, flags|libcxi.EQTargetLong
	}
	if q.pinned, err = d.newPinned(wire.EqStatusSize+count*each, libcxi.MapWrite); err != nil {
		return err
	}
	if q.eq, err = d.lni.NewEQ(q.md, q.first, len(q.memory), flags, wait, reserved); err != nil {
		q.eq = nil
		return limit(err)
	}
	q.number = q.eq.Number()
	q.Init(q.eq.Events(), q.eq.State(), q.eq.Bytes())
	return nil
}

func (q *eventQueue) close() error {
	if q.eq != nil {
		if err := q.eq.Close(); err != nil {
			return err
		}
		q.eq = nil
	}
	return q.pinned.close()
}

// answerTime bounds how long the own NIC may take to answer a command about a list.
const answerTime = 10 * time.Second

// await polls for an event that f takes, in this queue and in others, and passes by the rest. f reports whether it was
// the one. A command that the NIC refuses is an error at once.
func (q *eventQueue) await(what string, f func(nic.Event) bool, others ...*eventQueue) error {
	for end := time.Now().Add(answerTime); ; time.Sleep(20 * time.Microsecond) {
		for _, q := range append([]*eventQueue{q}, others...) {
			for e := q.Peek(); e.There(); e = q.Peek() {
				found, refused, code := f(e), e.Type() == wire.EventCommandFailure, e.Code()
				q.Done(e)
				q.Pause() // nothing reads the queue before Interrupts, perhaps
				if refused {
					return fmt.Errorf("%s: %w", what, errCommand(code))
				}
				if found {
					return nil
				}
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("cxi: %s: the NIC has not answered within %v: %w", what, answerTime, unix.ETIMEDOUT)
		}
	}
}

// portal is an entry of the portal table, with the queue through which its list is changed.
type portal struct {
	refused *eventQueue // gets the commands that the NIC refuses
	// others takes in events that come while the NIC's answer is awaited, nil: they are passed by.
	others func(nic.Event)
	cq     *libcxi.CQ
	q      nic.Queue
	pte    []*libcxi.PtlTE
}

// open makes the queue, of slots commands. events gets what it refuses.
func (p *portal) open(d *MemoryDomain, slots int, events *eventQueue) (err error) {
	p.refused = events
	if p.cq, err = d.lni.NewTargetQueue(slots, events.eq); err != nil {
		p.cq = nil
		return limit(err)
	}
	p.q.Init(p.cq.Ring(), p.cq.Launch(), p.cq.HalfSlots())
	return nil
}

// add makes an entry at an index in networks, whose events come to a queue, and lets it take commands.
func (p *portal) add(d *MemoryDomain, events *eventQueue, in networks, index uint32) (*libcxi.PtlTE, error) {
	t, err := p.place(d, events, libcxi.PtlTEMatching|libcxi.PtlTELong, in, index)
	if err != nil {
		return nil, err
	}
	return t, p.enable(t, events, index)
}

// place makes an entry with options, which takes no commands yet.
func (p *portal) place(d *MemoryDomain, events *eventQueue, options uint64, in networks,
	index uint32) (*libcxi.PtlTE, error) {
	t, err := in.newPtlTE(d, events.eq, options, index)
	if err != nil {
		return nil, err
	}
	p.pte = append(p.pte, t)
	return t, nil
}

// enable lets an entry take commands.
func (p *portal) enable(t *libcxi.PtlTE, events *eventQueue, index uint32) error {
	return p.set(t, events, index, p.q.Enable(t.Number()), wire.PtlteStateEnabled)
}

// manage does so where software matches.
func (p *portal) manage(t *libcxi.PtlTE, events *eventQueue, index uint32) error {
	return p.set(t, events, index, p.q.Manage(t.Number()), wire.PtlteStateSoftwareManaged)
}

// set waits until the NIC has done the command, if there was room for it, and the entry is in a state.
func (p *portal) set(t *libcxi.PtlTE, events *eventQueue, index uint32, room bool, want uint32) error {
	if !room {
		return fmt.Errorf("cxi: enable index %d: %w", index, hw.ErrNoResource)
	}
	p.q.Ring()
	state := uint32(0)
	err := events.await(fmt.Sprintf("enable index %d", index), func(e nic.Event) bool {
		state = e.State()
		found := e.Type() == wire.EventStateChange && e.PtlTE() == t.Number()
		if !found && p.others != nil && e.Type() != wire.EventCommandFailure {
			p.others(e)
		}
		return found
	}, p.refused)
	if err == nil && state != want {
		err = fmt.Errorf("cxi: index %d is in state %d: %w", index, state, unix.EIO)
	}
	return err
}

func (p *portal) close() error {
	var errs []error
	for _, t := range p.pte {
		errs = append(errs, t.Close())
	}
	p.pte = nil
	if p.cq != nil {
		errs = append(errs, p.cq.Close())
		p.cq = nil
	}
	return errors.Join(errs...)
}
