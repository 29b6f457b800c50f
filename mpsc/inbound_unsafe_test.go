package mpsc

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// inboundOf is the consumer's end of an empty ring off the Go heap, at a position, which all senders have passed.
func inboundOf(t *testing.T, log2 uint32, pos uint64) (*hot.Inbound, *Ring) {
	r, _ := fileRing(t, log2, hot.SlotBytes)
	for n := range r.Slots() {
		at := pos + n
		setWord(r, at, r.seq(at))
	}
	setTail(r, pos)
	in := &hot.Inbound{Ring: r.Hot()}
	SetHead(in, pos)
	return in, r
}

// TestInbound: the consumer's end says of each position what the ring says, through several laps of rings of all small
// sizes, from any position on, and passes it as the ring's own functions do.
func TestInbound(t *testing.T) {
	for log2 := uint32(0); log2 <= 4; log2++ {
		for _, begin := range []uint64{0, 1, 7, 1<<40 + 5} {
			in, r := inboundOf(t, log2, begin)
			for pos := begin; pos < begin+3*r.Slots()+1; pos++ {
				check := func(what string, owner uint32) {
					t.Helper()
					slot, by := Next(in)
					want, wantBy := r.Head(pos)
					same := slot == want && by == wantBy && by == owner
					if !same || Arrived(in) != r.Ready(pos) || in.Head != pos {
						t.Fatalf("%d slots, %s at %d: slot %p of %d for %p of %d, head %d",
							r.Slots(), what, pos, slot, by, want, wantBy, in.Head)
					}
				}
				check("empty", 0)
				slot, at, ok := r.Claim(5, pos%2 == 0)
				if !ok || at != pos {
					t.Fatalf("%d slots: claimed %d, %v", r.Slots(), at, ok)
				}
				check("taken", 0)
				r.Publish(slot, 5, pos)
				check("ready", 5)
				Pass(in)
				if !r.Released(pos) || !r.Free(pos+r.Slots()) {
					t.Fatalf("%d slots: the slot of %d is not given back", r.Slots(), pos)
				}
			}
			was := *in
			SetHead(in, in.Head)
			if *in != was {
				t.Errorf("%d slots: passing leads to %+v, SetHead to %+v", r.Slots(), was, *in)
			}
		}
	}
}

// TestInboundHostile: whatever word a peer writes, only a ready one of this lap is a message.
func TestInboundHostile(t *testing.T) {
	in, r := inboundOf(t, 2, 9)
	for _, lap := range []uint64{0, 1, 2, 3, 4, 1<<46 - 1} {
		for state := range uint64(4) {
			for _, owner := range []uint64{0, 1, hot.SeqOwnerMask} {
				setWord(r, 9, lap<<hot.SeqLapShift|owner<<hot.SeqOwnerShift|state)
				want := lap == 9>>2 && state == hot.SlotReady
				slot, by := Next(in)
				if Arrived(in) != want || (slot != nil) != want || want && uint64(by) != owner {
					t.Errorf("lap %d, owner %d, state %d: slot %p of %d", lap, owner, state, slot, by)
				}
			}
		}
	}
}

// TestInboundBeside: threads without the lease that ask while the consumer goes on find messages only in the ring, and
// see one that stays there.
func TestInboundBeside(t *testing.T) {
	const messages = 20000
	in, r := inboundOf(t, 1, 0)
	var over atomic.Bool
	done := make(chan uint64)
	go func() {
		seen := uint64(0)
		for !over.Load() {
			if Arrived(in) {
				seen++
			}
			at := uintptr(atomic.LoadUint64(&in.At))
			if at < uintptr(r.slots) || at >= uintptr(r.slots)+2*hot.SlotBytes {
				t.Errorf("the next slot is at %#x", at)
				break
			}
		}
		done <- seen
	}()
	for pos := range uint64(messages) {
		slot, _, ok := r.Claim(1, true)
		if !ok {
			t.Fatal("full")
		}
		r.Publish(slot, 1, pos)
		if !Arrived(in) {
			t.Fatalf("message %d is not seen", pos)
		}
		Pass(in)
	}
	over.Store(true)
	<-done
	if Arrived(in) || in.Head != messages || uintptr(in.At) != uintptr(unsafe.Pointer(r.word(messages))) {
		t.Errorf("%+v behind the last", *in)
	}
}
