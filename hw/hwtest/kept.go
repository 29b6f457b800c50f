package hwtest

import (
	"bytes"
	"errors"
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

// testZcopy sends messages from the caller's memory, cut at random.
func testZcopy(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b).(interface {
		hw.Endpoint
		hw.AMZcopier
	})
	limit, pieces := a.Attr().MaxAMZcopy, a.Attr().MaxIOV
	memory := patterned(limit, 3)
	whole := a.local(memory)
	for n, size := range sizes(limit) {
		var list []hw.Segment
		for at := 0; at < size; {
			k := (size - at + 1) / 2
			if len(list)+1 == pieces {
				k = size - at
			}
			s := segmentOf(memory[at : at+k])
			s.Memory = whole.Memory
			list = append(list, s)
			at += k
		}
		err := finish(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			return ep.AMZcopy(6, uint64(n), []byte("head"), list, c)
		})
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		b.receive(1)[0].check(t, 6, uint64(n), []byte("head"), memory[:size])
	}
	var c hw.Completion
	c.Expect(1)
	long := make([]byte, limit+1)
	for name, f := range map[string]func() error{
		"too long":      func() error { _, err := ep.AMZcopy(6, 0, nil, []hw.Segment{a.local(long)}, &c); return err },
		"long head":     func() error { _, err := ep.AMZcopy(6, 0, make([]byte, a.Attr().MaxAMHead+1), nil, &c); return err },
		"an unknown id": func() error { _, err := ep.AMZcopy(hw.MaxAM, 0, nil, nil, &c); return err },
	} {
		if err := f(); !errors.Is(err, hw.ErrTooLong) && !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
