package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// TestPathLostUnderPut loses the path while nothing knows whether a put was performed: one that is
// idempotent is performed again, another one ends with the peer.
func TestPathLostUnderPut(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		t.Run(fmt.Sprint("idempotent ", idempotent), func(t *testing.T) {
			a, b := open(t, Config{}), open(t, Config{})
			defer func() { _ = errors.Join(a.Close(), b.Close()) }()
			there, err := a.Connect(b.Address())
			if err != nil {
				t.Fatal(err)
			}
			const n = 4096
			target, source := allocated(t, b, n, hw.RemoteWrite), allocated(t, a, n, 0)
			key, err := a.Memory().UnpackKey(target.PackKey(nil))
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.Repeat([]byte("weft"), n/4)
			copy(bytesOf(source), want)
			ended := false
			c := hw.Completion{Func: func(*hw.Completion) { ended = true }, Idempotent: idempotent}
			c.Expect(1)
			e, segment := there.(*Endpoint), []hw.Segment{{Addr: source.Region().Addr, Len: n, Memory: source}}
			end := time.Now().Add(time.Minute)
			for {
				if _, err := e.PutZcopy(segment, 0, key, &c); err == nil {
					break
				} else if !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
					t.Fatal(err)
				}
				a.Progress(16)
				b.Progress(16)
			}
			q := e.mem.started()
			gen := q.Gen
			e.memoryBroken(q, q.Head.Load(), fmt.Errorf("the test says so: %w", hw.ErrPeerDead))
			clear(bytesOf(target)) // whatever the first has done
			for !ended && time.Now().Before(end) {
				for _, i := range []*Iface{a, b} {
					i.Progress(16)
					i.CheckPeers()
				}
			}
			put := bytes.Equal(bytesOf(target), want)
			switch {
			case !ended:
				t.Error("the put does not end")
			case idempotent && (c.Err() != nil || e.Err() != nil || !put || q.Gen == gen):
				t.Errorf("put %v (%v), peer %v, queue pair %d after %d", put, c.Err(), e.Err(), q.Gen, gen)
			case !idempotent && (!errors.Is(c.Err(), hw.ErrPeerDead) || !errors.Is(e.Err(), hw.ErrPeerDead) || put ||
				!errors.Is(e.Err(), hw.ErrPathLost)):
				t.Errorf("put again %v (%v), peer %v", put, c.Err(), e.Err())
			}
		})
	}
}

// allocated is registered memory of an interface's domain.
func allocated(t *testing.T, i *Iface, n int, access hw.Access) hw.Memory {
	t.Helper()
	m, err := i.Memory().Alloc(hw.Region{Len: n, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func bytesOf(m hw.Memory) []byte {
	r := m.Region()
	return unsafe.Slice((*byte)(r.Addr), r.Len)
}
