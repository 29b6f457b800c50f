package provider

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/hw"
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
			_, path := c.sides[0].pathTo(&c.sides[1].side)
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
