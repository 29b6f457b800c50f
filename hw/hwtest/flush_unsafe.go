package hwtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// Tests of flushes and fences.

// testFlush: after a remote flush the peer's interface has every message.
func testFlush(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	for range 20 {
		sent := 0
		for sent < 10 && ep.AMShort(1, uint64(sent), nil, nil) == nil {
			sent++
		}
		fence := func(*hw.Completion) (hw.Status, error) { return hw.Done, ep.(hw.Flusher).Fence() }
		if err := end(t, a, b, fence); err != nil { // it may find no room behind the messages
			t.Fatal(err)
		}
		flushed(t, a, b, ep, hw.FlushRemote)
		f := a.Iface.(hw.Flusher)
		if err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			return f.Flush(hw.FlushRemote, c)
		}); err != nil {
			t.Fatal(err)
		}
		for n, m := range b.receive(sent) {
			m.check(t, 1, uint64(n), nil, nil)
		}
	}
	b.Close()
	until(t, "peer event", func() bool { a.CheckPeers(); a.Progress(1); return len(a.gone) > 0 })
	for _, scope := range []hw.FlushScope{hw.FlushLocal, hw.FlushRemote, hw.FlushMemory} {
		if err := end(t, a, a, func(c *hw.Completion) (hw.Status, error) {
			return ep.(hw.Flusher).Flush(scope, c)
		}); !errors.Is(err, hw.ErrPeerDead) {
			t.Errorf("flush %d to a dead peer: %v", scope, err)
		}
	}
}

// testFlushPut: when a flush ends that was begun behind puts which have not ended, the peer's memory has them, whether
// it is of the endpoint or of the interface, and whether messages were sent, too.
func testFlushPut(t *testing.T, open Factory) {
	const count, size, rounds = 8, 3000, 10
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	mine, remote := make([]byte, count*size), target(t, count*size)
	local, key := a.local(mine), a.key(b.register(remote, 0, all))
	for _, of := range []struct {
		name string
		f    hw.Flusher
	}{{"endpoint", ep.(hw.Flusher)}, {"interface", a.Iface.(hw.Flusher)}} {
		for _, scope := range []hw.FlushScope{hw.FlushRemote, hw.FlushMemory} {
			for round := range rounds {
				what := fmt.Sprintf("%s, scope %d, round %d", of.name, scope, round)
				pattern(mine, uint64(round)+uint64(scope)<<8)
				left, sent := 0, 0
				for k := range count {
					begin(t, a, b, &left, func(c *hw.Completion) (hw.Status, error) {
						s := hw.Segment{Addr: unsafe.Add(local.Addr, k*size), Len: size, Memory: local.Memory}
						return ep.(hw.OneSided).PutZcopy([]hw.Segment{s}, uint64(k*size), key, c)
					})
					if round%2 != 0 && ep.AMShort(1, uint64(sent), nil, nil) == nil {
						sent++
					}
				}
				if err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
					return of.f.Flush(scope, c)
				}); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if !bytes.Equal(remote, mine) {
					t.Fatalf("%s: a flush behind puts has ended, and they are not there", what)
				}
				until(t, "ends of the puts", func() bool { a.Progress(16); b.Progress(16); return left == 0 })
				b.receive(sent)
			}
		}
	}
}

// begin starts an operation, which left counts until it has ended.
func begin(t *testing.T, a, b *node, left *int, start func(c *hw.Completion) (hw.Status, error)) {
	t.Helper()
	c := &hw.Completion{Func: func(c *hw.Completion) {
		if *left--; c.Err() != nil {
			t.Error(c.Err())
		}
	}}
	c.Expect(1)
	*left++
	switch status, err := posted(t, a, b, c, start); {
	case err != nil:
		t.Fatal(err)
	case status == hw.Done:
		*left--
	}
}
