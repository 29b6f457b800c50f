package cxi

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
)

// hostile is a peer that writes commands of its own, for an endpoint with a region, receives and messages of its own
// under way.
type hostile struct {
	*matching
	victim *matching
	memory nic.Memory
	key    uint64 // of the victim's region
}

// indices are those that an endpoint has, and some that it has not.
var indices = []uint32{proto.IndexMessages, 1, 17, 25, 116, proto.IndexControl, proto.IndexDone, 128, proto.IndexRead,
	proto.IndexRestricted, proto.IndexRestricted + 3, proto.IndexSource, 200}

// word makes match bits or the like: of each kind that the protocol has, or any.
func (h *hostile) word(r *rand.Rand) uint64 {
	id := r.Uint32()
	switch r.IntN(8) {
	case 0:
		return proto.Control(proto.ControlKind(r.UintN(4)), id)
	case 1:
		return proto.Matched(id)
	case 2:
		return proto.Rendezvous{ID: id, LAC: id >> 20, Protocol: proto.Protocol(id >> 30)}.Done()
	case 3:
		return proto.Rendezvous{ID: id, LAC: id >> 20, Protocol: proto.Protocol(id >> 30)}.Bits(proto.Message{
			Tag: r.Uint64N(4), Tagged: id&1 != 0})
	case 4:
		return proto.Message{Tag: r.Uint64N(4), Tagged: true, Data: id&1 != 0}.BitsMatched(id)
	case 5:
		at, _ := proto.NotifyOf(h.key)
		return at.MatchBits ^ 1<<r.UintN(64)
	case 6:
		return h.key
	}
	return r.Uint64()
}

// command writes one command.
func (h *hostile) command(r *rand.Rand) {
	m := h.i.match
	t := &m.tx
	to, err := m.at(h.victim.self, indices[r.IntN(len(indices))])
	if err != nil {
		h.t.Fatal(err)
	}
	c := nic.Atomic{Op: r.Uint64N(12), Type: r.Uint64N(14), Fetch: r.IntN(2) == 0}
	c.Message = nic.Message{To: to, MatchBits: h.word(r), HeaderData: r.Uint64(), UserPtr: r.Uint64()}
	c.Offset, c.Initiator, c.EQ = r.Uint64()>>r.UintN(64), m.self, t.events.number
	c.Local, c.Restricted, c.Flush = h.memory, r.IntN(4) == 0, r.IntN(4) == 0
	if r.IntN(8) == 0 { // it calls itself another
		c.Initiator = r.Uint32()
	}
	if r.IntN(3) == 0 {
		c.Offset = r.Uint64N(8192)
	}
	c.Local.Len = uint32(r.UintN(20000)) >> r.UintN(16)
	t.lock.take()
	defer t.release(false)
	if !t.q.Room(2) {
		return
	}
	switch r.IntN(6) {
	case 0:
		t.q.Get(&c.Transfer)
	case 1:
		c.Result = h.memory
		t.q.Atomic(&c)
	case 2:
		t.q.PutRendezvous(&c.Transfer, uint32(r.UintN(3000)), r.Uint32())
	case 3:
		t.q.Inline(&c.Message, nil, h.b[:1+r.IntN(nic.MaxInline)])
	default:
		t.q.Put(&c.Transfer)
	}
}

// run has a peer write n commands for an endpoint where that matches which mode says, looks at what they have done, and
// returns how many the victim has refused.
func run(t testing.TB, mode MatchMode, seed uint64, n int) (counted uint64) {
	const size = 32 << 10
	r := rand.New(rand.NewPCG(seed, 1))
	b := newMatching(t, MatchConfig{Mode: mode, Unexpected: 4}, size)
	c := newMatching(t, MatchConfig{}, size)
	x := newMatching(t, MatchConfig{}, size)
	h := &hostile{matching: x, victim: b, key: 700}
	at := x.at(0, size)
	var err error
	if h.memory, err = segmentMemory(&at, true, size); err != nil {
		t.Fatal(err)
	}
	fillBytes(x.b, seed+1)
	// The victim's memory: a region of 4 KiB, and what nobody may write, before it and behind it.
	fillBytes(b.b, seed)
	want := bytes.Clone(b.b)
	region, err := b.i.d.Register(hw.Region{Addr: b.at(8192, 4096).Addr, Len: 4096, Access: hw.LocalWrite})
	if err != nil {
		t.Fatal(err)
	}
	b.exposeAs(hw.MatchRegion{Memory: region, Key: 700, Access: hw.RemoteRead | hw.RemoteWrite, Context: 700})
	b.exposeAs(hw.MatchRegion{Memory: region, Key: 700, Access: hw.RemoteWrite, Notify: true, Context: 700})
	for k := range 4 { // of no peer: they wait for somebody else's messages
		b.receive(hw.MatchReceive{From: c.self, Tagged: true, Tag: uint64(k), Local: b.at(16384+k*1024, 1024)})
	}
	for range n {
		h.command(r)
		if r.IntN(16) == 0 {
			x.i.Progress(64)
			b.i.Progress(64)
		}
	}
	for range 20 {
		x.i.Progress(1000)
		b.i.Progress(1000)
	}
	for _, part := range [][2]int{{0, 8192}, {12288, size}} {
		if !bytes.Equal(b.b[part[0]:part[1]], want[part[0]:part[1]]) {
			t.Errorf("seed %d: memory outside the region has changed", seed)
		}
	}
	h.after(c)
	return b.m.(hw.MatchCounter).MatchStats().Malformed
}

// after has another peer send what the victim waits for, and write into its region.
func (h *hostile) after(c *matching) {
	b := h.victim
	b.clear()
	for k := range 4 {
		fillBytes(c.b[:1000], uint64(k))
		c.clear()
		for done := false; !done; {
			err := c.m.PostMatched(&hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(k), Local: c.at(0, 1000)})
			done = err == nil
			c.i.Progress(64)
			b.i.Progress(64)
			h.i.Progress(64)
		}
		for len(c.events) == 0 {
			c.i.Progress(64)
			b.i.Progress(64)
			h.i.Progress(64)
		}
		if c.events[0].Err != nil || !bytes.Equal(b.b[16384+k*1024:][:1000], c.b[:1000]) {
			h.t.Errorf("message %d: %+v", k, c.events)
		}
	}
	if err := c.transfer(hw.MatchTransfer{To: b.self, Key: 700, Local: c.at(0, 4096)}); err != nil {
		h.t.Errorf("a write: %v", err)
	}
}

// TestMatchNotices: notices of no message end nothing, and are counted.
func TestMatchNotices(t *testing.T) {
	const size = 64 << 10
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	c := newMatching(t, MatchConfig{}, size)
	a.send(hw.MatchSend{To: b.self, Tagged: true, Local: a.at(0, 1000), Matched: true})
	a.send(hw.MatchSend{To: b.self, Tagged: true, Local: a.at(0, size)})
	to, err := c.i.match.at(a.self, proto.IndexSource)
	if err != nil {
		t.Fatal(err)
	}
	x := &c.i.match.tx
	before := a.m.(hw.MatchCounter).MatchStats().Malformed
	for id := uint32(8); id < proto.UntaggedIDs; id++ { // the messages have less, and more
		for _, bits := range []uint64{proto.Matched(id), proto.Rendezvous{ID: id}.Done()} {
			x.lock.take()
			x.q.Put(&nic.Transfer{Message: nic.Message{To: to, MatchBits: bits}, Initiator: c.i.match.self,
				EQ: x.events.number})
			x.release(false)
		}
		c.i.Progress(64)
		a.i.Progress(64)
	}
	if n := a.m.(hw.MatchCounter).MatchStats().Malformed - before; len(a.events) != 0 || n != 2*(proto.UntaggedIDs-8) {
		t.Errorf("%d notices are refused: %+v", n, a.events)
	}
	for range 2 {
		b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Local: b.at(0, size)})
	}
	await(a, b, 2, 2)
}

// TestMatchHostileDrops: drops and ends of drops that a peer makes up, and control messages of no kind, do not lose or
// reorder messages of others, and are counted.
func TestMatchHostileDrops(t *testing.T) {
	words := []uint64{proto.Control(proto.ControlResume, 0), proto.Control(proto.ControlNotify, 7),
		proto.Control(proto.ControlNotify, 1<<16-1), proto.Control(2, 0), proto.Control(3, 9), ^uint64(0)}
	if counted := runLies(t, words); counted == 0 {
		t.Error("nothing is counted")
	}
}

// FuzzControl does the same with any control messages.
func FuzzControl(f *testing.F) {
	f.Add([]byte{0, 0, 7, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0xa0})
	f.Add([]byte{0, 0, 0xff, 0xff, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xe0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var words []uint64
		for ; len(b) >= 8 && len(words) < 64; b = b[8:] {
			words = append(words, binary.LittleEndian.Uint64(b))
		}
		runLies(t, words)
	})
}

// runLies has one peer send control messages with any match bits to a sender and to its receiver, which has little
// room, and returns how many the two have refused. All messages arrive, in order.
func runLies(t testing.TB, words []uint64) uint64 {
	const size, count, n = 256 << 10, 48, 5000
	a := newMatching(t, MatchConfig{}, size)
	b := newMatching(t, MatchConfig{Buffers: 2, BufferBytes: 40000, Events: 64}, size)
	c := newMatching(t, MatchConfig{}, 8)
	progress := func() {
		for _, x := range []*matching{a, b, c} {
			x.i.Progress(64)
		}
	}
	for k := range max(count, len(words)) {
		if k < len(words) {
			c.lie(a, words[k])
			c.lie(b, words[k])
		}
		for k < count {
			err := a.m.PostMatched(&hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Data: uint64(k),
				HasData: true, Local: a.at(0, n)})
			if err == nil {
				break
			}
			progress()
			if k > 8 {
				break // it is full: the rest follows when there are receives
			}
		}
	}
	sent := int(a.i.match.tx.posted)
	for k := range sent {
		b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1, Local: b.at(k*n, n)})
	}
	for end := time.Now().Add(time.Minute); len(b.events) < sent || len(a.events) < sent; progress() {
		if time.Now().After(end) {
			t.Fatalf("%d sent, %d ended, %d received; state %v", sent, len(a.events), len(b.events),
				b.m.(hw.MatchCounter).MatchStats().State)
		}
	}
	last := uint64(0)
	for k := range b.events {
		if e := &b.events[k]; e.Kind != hw.MatchReceived || e.Err != nil || k > 0 && e.Data <= last {
			t.Fatalf("message %d: %+v", k, e)
		}
		last = b.events[k].Data
	}
	return a.m.(hw.MatchCounter).MatchStats().Malformed + b.m.(hw.MatchCounter).MatchStats().Malformed
}

// lie sends a control message with any match bits.
func (x *matching) lie(to *matching, bits uint64) {
	at, err := x.i.match.at(to.self, proto.IndexControl)
	if err != nil {
		x.t.Fatal(err)
	}
	q := &x.i.match.tx
	q.lock.take()
	if q.q.Room(1) {
		q.q.Put(&nic.Transfer{Message: nic.Message{To: at, MatchBits: bits}, Initiator: x.i.match.self,
			EQ: q.events.number})
	}
	q.release(false)
}

// TestMatchHostile: what a peer makes up changes nothing outside a region, ends nothing of others, and is counted,
// whatever matches.
func TestMatchHostile(t *testing.T) {
	for name, mode := range map[string]MatchMode{"hardware": MatchHardware, "software": MatchSoftware,
		"hybrid": MatchHybrid} {
		t.Run(name, func(t *testing.T) {
			counted := uint64(0)
			for seed := range uint64(20) {
				counted += run(t, mode, seed, 400)
			}
			if counted == 0 {
				t.Error("nothing is counted")
			}
		})
	}
}

// FuzzHostile does the same with any seed.
func FuzzHostile(f *testing.F) {
	for mode := range uint8(3) {
		f.Add(mode, uint64(1), uint16(100))
	}
	f.Fuzz(func(t *testing.T, mode uint8, seed uint64, n uint16) {
		run(t, MatchMode(mode%3), seed, int(n%2000))
	})
}
