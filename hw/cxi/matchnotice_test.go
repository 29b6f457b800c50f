package cxi

import (
	"testing"

	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// TestMatchNoticeFirst: of two messages to a receiver that becomes full, one is dropped, and the notice that the other
// has found its receive comes before its acknowledgement. It ends with that, and the receiver is notified of the drop.
func TestMatchNoticeFirst(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	at, err := a.i.match.at(b.self, proto.IndexMessages)
	if err != nil {
		t.Fatal(err)
	}
	x := &a.i.match.tx
	x.lock.take()
	defer x.release(true)
	var n [2]uint32
	for k := range n {
		n[k] = x.free[len(x.free)-1]
		if err := x.post(&outgoing{to: b.self, at: at, matched: true}, []byte("hello"), uint64(k)); err != nil {
			t.Fatal(err)
		}
	}
	x.acknowledged(n[1], wire.RcPtDisabled, 0)
	var notice nic.Kept
	notice[wire.EventTargetLongMatchBitsWord] = proto.Matched(x.slots[n[0]].id)
	notice[wire.EventTargetLongEventSizeWord] |= wire.EventSizeB64 << wire.EventTargetLongEventSizeShift
	notice[wire.EventTargetLongEventTypeWord] |= wire.EventPut << wire.EventTargetLongEventTypeShift
	notice[wire.EventTargetLongReturnCodeWord] |= wire.RcOk << wire.EventTargetLongReturnCodeShift
	x.noticed(notice.Event())
	if x.slots[n[0]].kind != sentMatched || len(x.ended) != 0 {
		t.Fatalf("the message ends before its acknowledgement: %+v", x.ended)
	}
	x.acknowledged(n[0], wire.RcOk, wire.ListOverflow)
	if len(x.ended) != 1 || x.ended[0].Context != 0 || x.ended[0].Err != nil {
		t.Errorf("ended: %+v", x.ended)
	}
	if f := x.full[b.self]; f.underway != 0 || len(x.controls) != 1 {
		t.Errorf("%d messages under way, %d control messages", f.underway, len(x.controls))
	}
}
