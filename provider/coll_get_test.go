package provider

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/wire"
)

// TestGet: slices arrive whole that their receivers get, and those above 4 KiB are got.
func TestGet(t *testing.T) { byGets.testCopies(t) }

// TestGetElse: where gets are not possible chunks go as messages.
func TestGetElse(t *testing.T) { byGets.testCopiesElse(t) }

// TestGetRelay: the ends of slices go through other members, the rest is got.
func TestGetRelay(t *testing.T) { byGets.testCopiesRelay(t) }

// TestGetTruncated: members that do not agree on a count end with FI_ETRUNC.
func TestGetTruncated(t *testing.T) { byGets.testCopiesTruncated(t) }

// TestGetMembersDie has a member leave while gets are under way.
func TestGetMembersDie(t *testing.T) { byGets.testCopiesMembersDie(t) }

// TestGetEndsFirst: an operation that has failed completes when nothing that it gets is written any more.
func TestGetEndsFirst(t *testing.T) { byGets.testCopiesEndsFirst(t) }

// refusingEndpoint refuses gets after some.
type refusingEndpoint struct {
	hw.Endpoint
	hw.OneSided
	left int
}

func (e *refusingEndpoint) GetZcopy(l []hw.Segment, at uint64, k hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	if e.left--; e.left < 0 {
		return hw.Done, hw.ErrPermission
	}
	return e.OneSided.GetZcopy(l, at, k, c)
}

// TestGetRefused: what a receiver cannot get from some byte on comes as messages, wherever it begins, and once.
func TestGetRefused(t *testing.T) {
	const slice = 3 << 20
	r := rand.New(rand.NewPCG(1, 16))
	for name, open := range byGets.circles() {
		for _, left := range []int{0, 1, 3} {
			c := open(t, 3, nil)
			groups := c.joinAll(everyRank(3))
			path, ok := groups[0].members[1].link.ready()
			if !ok {
				t.Fatal("rank 0 is not connected to rank 1")
			}
			path.Endpoint = &refusingEndpoint{path.Endpoint, path.Endpoint.(hw.OneSided), left}
			c.allToAll(r, groups, slice)
			got := byGets.bytes(c.sides[0])
			if least := uint64(slice); got < least || got > least+uint64(left)*putPiece {
				t.Errorf("%s: %d bytes are got, by %d gets of one slice", name, got, left)
			}
			if n := leasedOf(c.sides[0].ep).malformedHere + leasedOf(c.sides[1].ep).malformedHere; n != 0 {
				t.Errorf("%s: %d messages are refused", name, n)
			}
		}
	}
}

// TestGetJoining: a member that has joined begins while another one has not, which keeps what may be fetched.
func TestGetJoining(t *testing.T) {
	const slice = 100000
	r := rand.New(rand.NewPCG(1, 17))
	for name, open := range byGets.circles() {
		c := open(t, 2, nil)
		groups := c.joinAll([]int{0, 1})
		late := groups[0]
		late.gets = false
		late.state.Store(groupJoining)
		in, out := randomBytes(r, 4*slice), make([]byte, 4*slice)
		c.postAllToAll(1, groups[1], in[2*slice:], out[2*slice:], slice)
		c.until(name+": an offer and a grant", func() bool {
			h := late.members[1].ahead
			return h != nil && h.next != nil && h.next.granted
		})
		late.gets = true
		late.state.Store(groupJoined)
		c.postAllToAll(0, late, in[:2*slice], out[:2*slice], slice)
		for i := range 2 {
			if err := c.outcome(i); err != fi.Success {
				t.Fatalf("%s: rank %d: %v", name, i, err)
			}
			if other := 1 - i; !bytes.Equal(out[(2*i+other)*slice:][:slice], in[(2*other+i)*slice:][:slice]) {
				t.Errorf("%s: rank %d has the wrong data", name, i)
			}
		}
		if n := byGets.bytes(c.sides[0]); n != slice {
			t.Errorf("%s: %d of %d bytes are got", name, n, slice)
		}
	}
}

// TestGetForged: offers, grants and refusals that no member has sent are dropped and counted.
func TestGetForged(t *testing.T) {
	const slice = 100000
	c := byGets.circles()["UDP"](t, 2, nil)
	groups := c.joinAll([]int{0, 1})
	s, g := c.sides[0], groups[0]
	in, out := make([]byte, 2*slice), make([]byte, 2*slice)
	c.postAllToAll(0, g, in, out, slice)
	s.ep.Progress()
	coll, src := s.ep.coll, g.members[1].src
	o, r := g.ops[0], leasedOf(s.ep).rx
	r.acquire()
	own := wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
	self, none, ahead, kind := own, own, own, own
	self.Rank, none.Rank, ahead.Seq, kind.Kind = 0, 1<<20, 1<<30, collective.AllToAllV
	head, before := make([]byte, 64), leasedOf(s.ep).malformedHere
	first := exchange.Chunk{Total: slice, Length: 64}
	grants := []wire.CollGrant{
		{CollStep: own, Part: first}, // nothing is offered
		{CollStep: self, Part: first}, {CollStep: none, Part: first}, {CollStep: ahead, Part: first},
		{CollStep: own, Part: exchange.Chunk{Total: slice}},
	}
	for _, h := range grants {
		coll.long.onCTS(src, g.id, h.Put(head), nil)
	}
	refusals := []wire.CollRefusal{
		{CollStep: self}, {CollStep: none}, {CollStep: ahead}, {CollStep: kind},
		{CollStep: own, From: slice},
		{CollStep: own, From: wire.MaxMessage},
	}
	for _, h := range refusals {
		coll.onStep(src, g.id, h.Put(head), nil)
	}
	coll.onStep(src, g.id, (&wire.CollRefusal{CollStep: own}).Put(head), []byte("x"))
	put := wire.CollPut{CollChunk: wire.CollChunk{CollStep: own, Part: first}, Bytes: 64}
	coll.onStep(src, g.id, put.Put(head), nil) // where none is taken
	q := o.exchange.peers.at(0)
	q.target = putTarget{port: &port{}} // an offer over a transport that is not the path's: nothing is got
	bad := []exchange.Chunk{{Total: slice, Offset: 100, Length: 64}, {Total: slice, Offset: slice - 64, Length: 64}}
	for _, part := range bad {
		coll.long.onCTS(src, g.id, (&wire.CollGrant{CollStep: own, Part: part}).Put(head), nil)
	}
	if got := leasedOf(s.ep).malformedHere - before; got != uint64(len(grants)+len(refusals)+len(bad)+2) {
		t.Errorf("%d of %d messages are counted", got, len(grants)+len(refusals)+len(bad)+2)
	}
	before = leasedOf(s.ep).malformedHere
	later := own
	for later.Seq = 1; later.Seq < 1<<20; later.Seq++ { // of operations that have not begun
		h := wire.CollGrant{CollStep: later, Part: first}
		if coll.long.onCTS(src, g.id, h.Put(head), nil); g.members[1].early+earlyTarget > maxEarlyChunks {
			break
		}
	}
	coll.long.onCTS(src, g.id, (&wire.CollGrant{CollStep: later, Part: first}).Put(head), nil)
	if got := leasedOf(s.ep).malformedHere - before; got != 1 {
		t.Errorf("%d of 1 grant too many is counted", got)
	}
	if g.ops[0] != o || o.status != fi.Success || o.exchange.engine.Report().Received != 0 {
		t.Error("a forged message ended the operation, or its bytes count")
	}
	r.give()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.outcome(0); err != fi.ECANCELED {
		t.Errorf("ends with %v", err)
	}
}
