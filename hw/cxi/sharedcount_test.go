package cxi

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// TestSharedSum: whatever becomes of commands without a place, that events are dropped, one is refused or all fail, how
// many are under way is how many have not ended, in this epoch or before, and each ends once.
func TestSharedSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	x := &matchTx{m: &matcher{}, stripe: 3}
	posted, answered, known := 0, 0, []uint64{}
	for step := range 20000 {
		var what string
		switch n := random.IntN(400); {
		case n < 200:
			what = "a post"
			kind, context := uint32(random.IntN(sharedKinds)), uint64(random.IntN(hw.SharedContexts))
			x.postedShared(kind, context)
			known = append(known, x.sharedCookie(kind, context))
			posted++
		case n < 370 && len(known) > 0:
			what = "an answer, which may be of one that has ended otherwise"
			at := random.IntN(len(known))
			k := nic.Kept{known[at]}
			if _, ok := x.sharedEnd(k.Event()); ok {
				answered++
			}
			known = append(known[:at], known[at+1:]...)
		case n < 385:
			what = "a refusal"
			op := []uint64{wire.OpPut, wire.OpAtomic}[random.IntN(2)]
			x.refusedShared(op<<wire.CommandOpcodeShift|wire.CmdTypeInline<<wire.CommandTypeShift, unix.EIO)
		case n < 392:
			what = "dropped events"
			x.shared.doubt()
		case n < 398:
			what = "the end of what is doubtful"
			x.abandonShared(&x.shared.doubtful, unix.EIO)
		default:
			what = "a failure"
			x.failShared(unix.EIO)
			known = known[:0]
			if x.shared.all != 0 {
				t.Fatalf("step %d: %d are under way behind a failure", step, x.shared.all)
			}
		}
		s := &x.shared
		if sum := s.posted.sum() + s.doubtful.sum(); s.all != sum || int(sum) != posted-answered-len(x.ended) {
			t.Fatalf("step %d, %s: %d are under way, of which %d are counted; %d posted, %d answered, %d failed", step,
				what, s.all, sum, posted, answered, len(x.ended))
		}
	}
	if answered < 1000 || len(x.ended) < 100 || posted < 1000 {
		t.Errorf("%d posted, %d answered, %d failed", posted, answered, len(x.ended))
	}
	for _, e := range x.ended {
		if !e.Shared || e.Context >= hw.SharedContexts || e.Err == nil {
			t.Fatalf("%+v", e)
		}
	}
}
