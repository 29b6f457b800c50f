package provider

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestCompleteWithoutBuffers: short messages for which no bounce buffer has been free for long complete when they are
// copied; those of fi.TransmitComplete, which are to need nothing of their sender, when the copy is read.
func TestCompleteWithoutBuffers(t *testing.T) {
	const length, copied, late = 900, 1 << 20, 1<<20 + 1 // the last two are contexts
	x, y := newBench(t, nil, rmaHints()).pair(t)
	oneMessage(t, x, y, 8)
	payload := bytes.Repeat([]byte{0x5a}, length)
	send := func(context, flags uint64) error {
		return x.ep.Send(&SendArgs{
			IOV: iovOf(payload), Dest: x.addr[y], Context: context, Flags: flags | fi.Inject | fi.Completion,
		})
	}
	sent := 0
	for err := error(nil); err == nil; sent++ {
		if err = send(uint64(sent), 0); err != nil && !errors.Is(err, fi.EAGAIN) {
			t.Fatal(err)
		}
	}
	sent--
	time.Sleep(2 * hot.StarvedMillis * time.Millisecond)
	for context, flags := range map[uint64]uint64{copied: 0, late: fi.TransmitComplete} {
		if err := send(context, flags); err != nil {
			t.Fatal(err)
		}
	}
	if done := contexts(x); len(done) != sent+1 || !done[copied] {
		t.Errorf("%d of %d messages are complete, the last copied: %v", len(done), sent, done[copied])
	}
	for range sent + 2 {
		got := make([]byte, length)
		y.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec}, x)
		y.completion(x)
		if !bytes.Equal(got, payload) {
			t.Fatal("a message is wrong")
		}
	}
	if e, bad, ok := settle(t, x, y); !ok || e.Context != late {
		t.Errorf("the last completed with %+v, %+v", e, bad)
	}
}

// contexts takes what has completed at a side, without progress.
func contexts(s *side) map[uint64]bool {
	done := make(map[uint64]bool)
	var e [1]cq.Entry
	for {
		if n, _ := s.cq.Read(e[:]); n != 1 {
			return done
		}
		done[e[0].Context] = true
	}
}
