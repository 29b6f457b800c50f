package verbs

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/mem"
)

// What a peer does in its ring does not keep others' messages from coming.

// ringPeer is a second peer of a ringBench, with a ring of its own, into which nothing that it sends is written but by
// the test.
type ringPeer struct {
	*Endpoint
	memory []byte
}

// join has a second peer come, with index 1, whose first message is delivered.
func (b *ringBench) join(t *testing.T) *ringPeer {
	memory, err := mapPinned(transport.RingBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(memory) })
	p := &ringPeer{nullEndpoint(64), memory}
	p.i, p.index = b.Iface, 1
	p.c = b.rx.transport.NewPeer(p.msg.SendQueue)
	p.c.Blocked.Store(0)
	p.c.Index.Store(1)
	b.rx.transport.SetPeer(1, p.c)
	b.rx.transport.GiveRing(1, p.c, memory)
	p.msg.UseRing(transport.Ring{Addr: mem.Address(memory), RKey: 78})
	drive.Send(p.HotPath(), 1, 0, nil, nil) // the first is sent
	b.arrive(0, p.msg.packetAt(0))
	return p
}

// write writes the message at a position into the ring.
func (p *ringPeer) write(pos uint64) {
	op := p.msg.op(pos)
	from := p.msg.slot(pos)[:op.SGE[0].Len]
	for k := 0; k < len(from); k += 8 {
		store(p.memory[op.RemoteAddr-mem.Address(p.memory):], from, k)
	}
}

// TestRingPostponed: a ring whose message is postponed holds up no other.
func TestRingPostponed(t *testing.T) {
	const rings, messages = 2, 5
	b := newRingBench(t)
	other := b.join(t)
	for n := range uint64(messages) {
		drive.Send(b.e.HotPath(), 1, n, nil, nil)
		drive.Send(other.HotPath(), 2, n, nil, nil)
		b.carry(t, nil)
		other.write(n + 1)
	}
	stuck, postponed, got := true, 0, 0
	b.SetHandler(2, func(hw.Source, uint64, []byte, []byte) {
		if stuck {
			postponed++
			b.Postpone()
			return
		}
		got++
	})
	for range 3 {
		b.Progress(64)
	}
	if len(b.got) != 1+messages || got != 0 || postponed == 0 || postponed > 3*rings {
		t.Errorf("%v came beside a ring whose message was postponed %d times", b.got, postponed)
	}
	stuck = false
	if b.Progress(64) != messages || got != messages {
		t.Errorf("then %d of %d came", got, messages)
	}
}

// TestRingMalformed: a peer that has its ring full of what is none of its messages takes turns with the others.
func TestRingMalformed(t *testing.T) {
	const messages, turns = 5, 4
	for name, progress := range ringProgress {
		t.Run(name, func(t *testing.T) {
			b := newRingBench(t)
			other := b.join(t)
			drive.Send(b.e.HotPath(), 1, 0, nil, nil)
			b.carry(t, nil)
			b.Progress(8)
			b.e.c.Index.Store(5) // which is no peer's
			drive.Send(b.e.HotPath(), 1, 0, nil, nil)
			wrong := b.e.msg.slot(1)[:b.e.msg.op(1).SGE[0].Len]
			for n := range uint64(messages) {
				drive.Send(other.HotPath(), 1, n, nil, nil)
				other.write(n + 1)
			}
			b.got = nil
			for range turns * messages {
				for k := 0; k < transport.RingBytes; k += transport.RingSlotBytes {
					copy(b.rings.memory[k:], wrong)
				}
				progress(b)
			}
			if n := b.Stats().Malformed; len(b.got) != messages || n < messages {
				t.Errorf("%d of %d messages came beside %d malformed ones", len(b.got), messages, n)
			}
		})
	}
}
