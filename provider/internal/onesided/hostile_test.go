package onesided

import (
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// words are numbers that a hostile initiator puts into its messages: keys, places and lengths that are right, or
// nearly, flags, and ends of the ranges of numbers.
var words = []uint64{
	0, 1, 2, 3, 4, 5, 7, 8, 16, 63, 64, 100, 200, 201, 300, 1 << 16, wire.MaxMessage, wire.MaxMessage + 1,
	1 << 32, 1<<32 - 1, 1 << 63, 1<<63 - 1, ^uint64(0), ^uint64(0) - 7, wire.WriteAck,
	wire.WriteAck | wire.WriteElements,
	wire.WriteAck | wire.WriteData, wire.WriteAck | wire.WriteData | wire.WriteRest, wire.WriteLast,
}

// junk has an initiator send a message of chance.
func (h *host) junk() {
	all := []hw.AMID{wire.AMWrite, wire.AMRead, wire.AMNotify, wire.AMAtomic, wire.AMShare}
	word := func() uint64 { return words[h.r.IntN(len(words))] }
	var head []byte
	for range []int{3, 4, 5, h.r.IntN(7)}[h.r.IntN(4)] {
		head = binary.LittleEndian.AppendUint64(head, word())
	}
	if len(head) >= 24 && h.r.IntN(2) == 0 {
		binary.LittleEndian.PutUint64(head[8:], 1<<40) // of no request
	}
	var payload []byte
	for range h.r.IntN(9) {
		payload = binary.LittleEndian.AppendUint64(payload, word())
	}
	payload = payload[:len(payload)-min(len(payload), h.r.IntN(2))]
	h.on[all[h.r.IntN(len(all))]](hw.Source(h.r.IntN(sources)), word(), head, payload)
}

// TestHostile sends messages of chance: none changes memory without the right to be written, or beside regions, none
// of them leaves a gate entered, and operations of others go on.
func TestHostile(t *testing.T) {
	bad := 0
	for seed := range seeds(150) {
		h := newModel(t, seed)
		h.dead, h.full = true, 4
		others := h.find(5)
		h.allow(others, 0) // as long as junk comes
		for range 400 {
			if h.junk(); h.r.IntN(4) == 0 {
				h.target.Reply()
			}
		}
		for _, m := range h.regions { // what junk has written is in regions that may be written
			at := 0
			for _, p := range m.parts {
				for i := range p {
					if m.m.Rights&fi.RemoteWrite == 0 && p[i] != m.plain[at] {
						t.Fatalf("seed %d: region %d has changed", seed, m.key)
					}
					m.plain[at] = p[i]
					at++
				}
			}
		}
		h.check() // nothing beside them has changed
		for n := 0; h.target.Replying() && n < 10_000; n++ {
			h.target.Reply()
		}
		for src := range hw.Source(sources) {
			h.target.SourceLost(src)
		}
		if bad += h.bad; h.target.Left() != (TargetLeft{}) || h.pool.Used() != 0 {
			t.Fatalf("seed %d: left %+v", seed, h.target.Left())
		}
		h.bad = 0
		h.allow(others, rightsOfAll)
		for _, m := range h.regions {
			m.closed = m.closed || h.table.Find(m.key) != m.m
			if m.counter != nil {
				m.expected = m.counter.Read()
			}
		}
		if h.writes.Load() != nil {
			h.wantWrites, h.wantReads = h.writes.Load().Read(), h.reads.Load().Read()
		}
		h.delivered = nil
		for range 30 {
			h.step()
		}
		h.complete()
	}
	if bad == 0 {
		t.Error("no message is refused")
	}
}

// TestReplies: what initiators that do not take their answers cost is bounded, in replies and in elements of them.
func TestReplies(t *testing.T) {
	h := newHost(t, 1)
	h.region(1, rightsOfAll, false, 64)
	h.full = 1
	elements := make([]wire.Element, wire.MaxElements)
	for i := range elements {
		elements[i] = wire.Element{Key: 1, Len: 1, Ends: wire.EndsShared}
	}
	op := &operation{status: fi.ENOMEM, units: wire.MaxElements}
	h.ops[5] = op
	r := wire.Read{Request: 6, Length: wire.MaxElements, Elements: true}
	for range maxKept / wire.MaxElements {
		h.on[wire.AMRead](0, wire.MaxElements, r.Put(make([]byte, 64)), put(elements))
	}
	r.Request = 5
	h.on[wire.AMRead](0, wire.MaxElements, r.Put(make([]byte, 64)), put(elements))
	if op.got != fi.ENOMEM || op.units != 0 {
		t.Errorf("one more element: %v, %d units", op.got, op.units)
	}
	one := wire.Read{Key: 1, Request: 6, Length: 1, Ends: wire.EndsOperation}
	for h.target.Left().Replies < maxReplies {
		h.on[wire.AMRead](0, 0, one.Put(make([]byte, 64)), nil)
	}
	for i, send := range []func(){
		func() { h.on[wire.AMRead](0, 0, one.Put(make([]byte, 64)), nil) },
		func() {
			a := wire.Atomic{Key: 1, Request: 5, Op: fi.OpRead, Datatype: fi.Uint64, Kind: 1, Count: 1}
			h.on[wire.AMAtomic](0, 0, a.Put(make([]byte, 64)), nil)
		},
	} {
		*op, one.Request = operation{units: 8, place: wire.NoPlace}, 5
		if i == 0 {
			op.units, op.place = 1, 0
		}
		if send(); op.got != fi.ENOMEM || op.units != 0 || h.target.Left().Replies != maxReplies {
			t.Errorf("request %d: %v, %d units, left %+v", i, op.got, op.units, h.target.Left())
		}
	}
	if h.target.DropReplies(0); h.target.Left() != (TargetLeft{}) || h.pool.Used() != 0 {
		t.Errorf("left %+v", h.target.Left())
	}
}

// TestAllocations: operations allocate nothing.
func TestAllocations(t *testing.T) {
	h := newHost(t, 1)
	h.region(1, rightsOfAll, false, 64)
	w := wire.Write{Key: 1, Request: 9, Flags: wire.WriteAck}
	a := wire.Atomic{Key: 1, Request: 9, Op: fi.OpSum, Datatype: fi.Uint64, Count: 1}
	write, sum, b := w.Put(make([]byte, 64)), a.Put(make([]byte, 64)), make([]byte, 8)
	onWrite, onAtomic := h.on[wire.AMWrite], h.on[wire.AMAtomic]
	if n := testing.AllocsPerRun(100, func() {
		onWrite(0, 0, write, b)
		onAtomic(0, 0, sum, b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
