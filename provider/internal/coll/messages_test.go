package coll

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// FuzzCollectiveMessages gives what a member may send to the handlers of an
// endpoint in the middle of operations. Whatever it is, the endpoint lives and
// its memory outside the operations' buffers stays.
func FuzzCollectiveMessages(f *testing.F) {
	f.Add(uint8(1), uint8(0), uint64(0), []byte{0, 0, 0, 0, 1, 0, 0, 3}, []byte("12345678"))
	f.Add(uint8(2), uint8(0), uint64(0), make([]byte, wire.CollLongBytes), []byte{})
	f.Add(uint8(3), uint8(1), uint64(0), make([]byte, wire.AckBytes), []byte{})
	f.Add(uint8(4), uint8(1), uint64(0), make([]byte, wire.CTSBytes), []byte{})
	f.Add(uint8(5), uint8(2), uint64(0), make([]byte, wire.WordBytes), []byte("x"))
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, wire.CollNoteBytes), []byte{})
	f.Add(uint8(0), uint8(3), uint64(5), make([]byte, wire.CollJoinBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, wire.CollChunkBytes), []byte{})
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, wire.CollWordBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, wire.CollPieceBytes), []byte("x"))
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, wire.CollRelayBytes), []byte{})
	f.Add(uint8(4), uint8(0), uint64(0), make([]byte, wire.CollTargetBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, wire.CollPutBytes), []byte{})
	f.Add(uint8(4), uint8(0), uint64(0), make([]byte, wire.CollGrantBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, wire.CollRefusalBytes), []byte{})
	m := newMesh(f, onHost(2), nil)
	groups := m.join()
	n := m.nodes[0]
	c, src := n.protocol, groups[0].members[1].src
	const long = 20000
	memory := make([]byte, 3*long)
	in, out := make([]byte, long), memory[long:2*long]
	handlers := []hw.Handler{c.joins.onJoin, c.onStep,
		c.long.onRTS, c.long.onDone, c.long.onCTS, c.long.onFrag, c.onNote}
	f.Fuzz(func(t *testing.T, id, mode uint8, header uint64, head, payload []byte) {
		for c.outstanding < 3 { // small, long and small
			count := []uint64{1, long / 8, 2}[c.outstanding]
			if err := n.sum(groups[0], in, out, count); err != nil {
				t.Fatal(err)
			}
		}
		switch mode % 4 {
		case 0:
			header = groups[0].id
		case 1:
			for header = range c.long.sends {
				break
			}
		case 2:
			for header = range c.long.pulls {
				break
			}
		}
		handlers[int(id)%len(handlers)](src, header, head, payload)
		if len(c.joins.early) > 100 {
			c.joins.early = nil
		}
		groups[0].members[1].left = false
		m.progress()
		n.ended = nil
		for i, v := range memory {
			if v != 0 && (i < long || i >= 2*long) {
				t.Fatalf("byte %d outside the buffer was written", i)
			}
		}
	})
}
