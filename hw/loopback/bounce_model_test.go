package loopback

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// A model of the bounce buffers of a stripe, run in every order of its steps under
// x86's store buffers: the sender, whose thread holds the stripe's lease, a
// receiver that returns buffers, and the sender's progress, which takes back
// those of a peer that died.

// bounceRules are mutants.
type bounceRules struct {
	returnFirst bool // the receiver returns the buffer before it has read it
	markFirst   bool // the sender marks the buffer before it says for which
	peerFirst   bool // the sweep searches for which it is before it checks whether it is marked
	noSweep     bool // nothing takes back the buffers of the dead
	noPoll      bool // the sender does not check whether the buffer is free
}

// bounceTo is where the sender's messages go, one after the other, through the
// one buffer.
var bounceTo = []uint64{alivePeer, deadPeer, alivePeer, alivePeer}

const (
	alivePeer = 1
	deadPeer  = 2
	owner     = 3 // what the buffer is marked with, the same at both peers
)

func bounceProgram(rules bounceRules) *interleave.Program {
	const state, peer, body, ring = interleave.Word(0), interleave.Word(1), interleave.Word(2), interleave.Word(3)
	p := &interleave.Program{Names: []string{"state", "peer", "body", "ring0", "ring1", "ring2", "ring3"}, TSO: true}
	sender := func(t *interleave.T) {
		for i, to := range bounceTo {
			for {
				t.At(uint64(i))
				if rules.noPoll || t.Load(state) == 0 {
					break
				}
				t.Pause()
			}
			if rules.markFirst {
				t.Store(state, owner)
				t.Store(peer, to)
			} else {
				t.Store(peer, to)
			}
			t.Store(body, uint64(i)+1)
			if !rules.markFirst {
				t.Store(state, owner)
			}
			if to == alivePeer {
				t.Store(ring+interleave.Word(i), 1) // publish
			}
		}
	}
	receiver := func(t *interleave.T) {
		for i, to := range bounceTo {
			if to != alivePeer {
				continue
			}
			t.At(uint64(i))
			t.Await(func(m interleave.Memory) bool { return m.Load(ring+interleave.Word(i)) == 1 })
			if rules.returnFirst {
				t.Store(state, 0)
			}
			got := t.Load(body)
			t.Check(got == uint64(i)+1, "message %d is that of %d", i, got-1)
			if !rules.returnFirst {
				t.Store(state, 0)
			}
		}
	}
	sweep := func(t *interleave.T) {
		for {
			t.At(1)
			to := uint64(0)
			if rules.peerFirst {
				to = t.Load(peer)
			}
			s := t.Load(state)
			if s == 0 && t.Ended(0, 1) {
				return
			}
			if !rules.peerFirst {
				to = t.Load(peer)
			}
			if s != 0 && to == deadPeer {
				t.CAS(state, s, 0)
			}
			t.Pause()
		}
	}
	if rules.noSweep {
		sweep = func(*interleave.T) {}
	}
	p.Threads = []interleave.Thread{{Name: "sender", Body: sender}, {Name: "receiver", Body: receiver},
		{Name: "sweep", Body: sweep}}
	p.Final = func(m interleave.Memory, _ []bool) error {
		if m.Load(state) != 0 {
			return errors.New("a buffer is lost")
		}
		return nil
	}
	return p
}

func TestModelBounce(t *testing.T) {
	interleave.Check(t, bounceProgram, map[string]bounceRules{
		"returned before it was read":   {returnFirst: true},
		"marked too early":              {markFirst: true},
		"read in the wrong order":       {peerFirst: true},
		"dead peers keep their buffers": {noSweep: true},
		"used while in use":             {noPoll: true},
	})
}
