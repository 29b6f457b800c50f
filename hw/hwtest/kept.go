package hwtest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// testKeep keeps messages longer than their handlers run, while others come, and
// has them released by other threads.
func testKeep(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	retainer := b.Iface.(hw.Retainer)
	if _, ok := retainer.Keep(); ok {
		t.Error("Keep outside of a handler")
	}
	type kept struct {
		k             hw.Kept
		header        uint64
		head, payload []byte
	}
	var list []kept
	refused, came := 0, 0
	b.SetHandler(5, func(_ hw.Source, header uint64, head, payload []byte) {
		came++
		k, ok := retainer.Keep()
		if !ok {
			refused++
			return
		}
		if _, again := retainer.Keep(); again {
			t.Error("a message is kept twice")
		}
		list = append(list, kept{k, header, head, payload})
	})
	sent := uint64(0)
	content := func(n uint64) []byte { return patterned(int(n%90)+1, n) }
	for round := range 6 {
		for range 40 {
			retry(t, b, func() error { return ep.AMShort(5, sent, []byte{byte(sent)}, content(sent)) })
			sent++
		}
		until(t, "messages", func() bool { b.Progress(8); return came == int(sent) })
		for _, m := range list {
			if !bytes.Equal(m.head, []byte{byte(m.header)}) || !bytes.Equal(m.payload, content(m.header)) {
				t.Fatalf("round %d: message %d has changed while it was kept", round, m.header)
			}
		}
		var all sync.WaitGroup
		for half := range 2 {
			all.Go(func() {
				for n := half; n < len(list); n += 2 {
					retainer.Release(list[n].k)
				}
			})
		}
		all.Wait()
		if len(list) == 0 {
			t.Fatal("nothing is kept")
		}
		list = list[:0]
	}
	t.Logf("%d of %d were to be copied", refused, came)
}
