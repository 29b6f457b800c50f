package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/sock"
)

// network stands between interfaces and loses, doubles, reorders and damages
// datagrams.
type network struct {
	loss, double, reorder, damage float64

	mu   sync.Mutex
	r    *rand.Rand
	kept []keptPacket
	seen uint64 // datagrams
}

type keptPacket struct {
	b  []byte
	to sock.Addr
	at uint64 // seen when it goes
}

func newNetwork(seed uint64) *network { return &network{r: rand.New(rand.NewPCG(seed, 1))} }

// impair is a sock.Impairment.
func (n *network) impair(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen++
	kept := n.kept[:0]
	for _, h := range n.kept {
		if h.at > n.seen {
			kept = append(kept, h)
		} else {
			send(h.b, &h.to)
		}
	}
	n.kept = kept
	if n.r.Float64() < n.loss {
		return
	}
	if n.r.Float64() < n.damage {
		b = bytes.Clone(b)
		b[n.r.IntN(len(b))] ^= 1 << n.r.IntN(8)
	}
	if n.r.Float64() < n.double {
		n.kept = append(n.kept, keptPacket{bytes.Clone(b), *to, n.seen + uint64(n.r.IntN(50))})
	}
	if n.r.Float64() < n.reorder {
		n.kept = append(n.kept, keptPacket{bytes.Clone(b), *to, n.seen + 1 + uint64(n.r.IntN(10))})
		return
	}
	send(b, to)
}

// pair makes two interfaces and an endpoint from a to b.
func pair(t testing.TB, a, b *Iface) hw.Endpoint {
	t.Helper()
	var ep hw.Endpoint
	eventually(t, "connection", func() bool {
		var err error
		if ep, err = a.Connect(b.Address()); err != nil && !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
		b.Progress(0)
		return err == nil
	})
	return ep
}

// bcopy sends message 1 if there is room, and reports whether there was.
func bcopy(t testing.TB, ep hw.Endpoint, header uint64, head []byte, n int, pack func(dst []byte)) bool {
	t.Helper()
	err := ep.AMBcopy(1, header, head, n, pack, 0)
	if err != nil && !errors.Is(err, hw.ErrNoResource) {
		t.Fatal(err)
	}
	return err == nil
}

// eventually calls step until it returns true, for a minute at most.
func eventually(t testing.TB, what string, step func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !step(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// stream sends count messages of changing sizes from a to b and checks that
// they come once, in order and whole.
func stream(t *testing.T, a, b *Iface, count int) {
	t.Helper()
	ep := pair(t, a, b)
	limit := a.Attr().MaxAMBcopy
	body, want := make([]byte, limit), make([]byte, limit)
	size := func(n uint64) int {
		if n%50 == 0 {
			return int(n*7919) % limit
		}
		return int(n % 100)
	}
	fill := func(d []byte, n uint64) {
		for k := range d {
			d[k] = byte(n + uint64(k)*3)
		}
	}
	next := uint64(0)
	b.SetHandler(1, func(_ hw.Source, header uint64, head, p []byte) {
		w := want[:size(next)]
		fill(w, next)
		if header != next || binary.LittleEndian.Uint64(head) != ^next || !bytes.Equal(p, w) {
			t.Errorf("message %d of %d bytes came as number %d", header, len(p), next)
		}
		next++
	})
	var head [8]byte
	sent := uint64(0)
	begin := time.Now()
	eventually(t, "all messages", func() bool {
		for range 64 {
			if sent == uint64(count) {
				break
			}
			binary.LittleEndian.PutUint64(head[:], ^sent)
			p := body[:size(sent)]
			fill(p, sent)
			if !bcopy(t, ep, sent, head[:], len(p), hwtest.Packed(p)) {
				break
			}
			sent++
		}
		a.Progress(16)
		b.Progress(256)
		return next == uint64(count) || t.Failed()
	})
	t.Logf("%d messages in %v", count, time.Since(begin).Round(time.Millisecond))
	for range 100 {
		b.Progress(16)
	}
	if next != uint64(count) {
		t.Errorf("%d messages of %d came", next, count)
	}
}

func TestImpaired(t *testing.T) {
	count := 50000
	if testing.Short() {
		count = 5000
	}
	for name, n := range map[string]*network{
		"clean":        {},
		"loss 1 %":     {loss: 0.01},
		"loss 10 %":    {loss: 0.10},
		"double":       {double: 0.1},
		"reorder":      {reorder: 0.05},
		"all of these": {loss: 0.03, double: 0.05, reorder: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			n.r = rand.New(rand.NewPCG(1, 2))
			c := Config{Impair: n.impair, MaxPacket: 1472}
			stream(t, open(t, false, c), open(t, false, c), count)
		})
	}
	t.Run("damaged", func(t *testing.T) {
		// Without a key it is UDP's checksum that finds damage.
		n := newNetwork(3)
		n.damage, n.loss = 0.02, 0.01
		c := Config{Impair: n.impair, MaxPacket: 1472, Key: []byte("key")}
		a, b := open(t, false, c), open(t, false, c)
		stream(t, a, b, count)
		if a.Stats().Malformed+b.Stats().Malformed == 0 {
			t.Error("no damage was seen")
		}
	})
}

// TestMillion is 10^6 messages over a bad network.
func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	n := newNetwork(7)
	n.loss, n.double, n.reorder = 0.01, 0.01, 0.05
	c := Config{Impair: n.impair, MaxPacket: 8972, Window: 1 << 20}
	stream(t, open(t, false, c), open(t, false, c), 1000000)
}

// TestImpairedOneSided puts and gets over a bad network.
func TestImpairedOneSided(t *testing.T) {
	n := newNetwork(9)
	n.loss, n.double, n.reorder = 0.03, 0.03, 0.05
	c := Config{Impair: n.impair, MaxPacket: 1472}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	const size = 1 << 20
	mine, theirs := make([]byte, size), make([]byte, size)
	m, err := b.Memory().Register(regionOf(theirs))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, err := a.Memory().UnpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	for round := range uint64(4) {
		for k := range mine {
			mine[k] = byte(uint64(k)*round + uint64(k)>>8)
		}
		want := bytes.Clone(mine)
		run(t, a, b, func(done *hw.Completion) (hw.Status, error) {
			return ep.PutZcopy([]hw.Segment{segment(mine[:1000]), segment(mine[1000:])}, 0, key, done)
		})
		run(t, a, b, func(done *hw.Completion) (hw.Status, error) { return ep.Flush(hw.FlushRemote, done) })
		if !bytes.Equal(theirs, want) {
			t.Fatal("wrong bytes were put")
		}
		clear(mine)
		run(t, a, b, func(done *hw.Completion) (hw.Status, error) {
			return ep.GetZcopy([]hw.Segment{segment(mine[:77777]), segment(mine[77777:])}, 0, key, done)
		})
		if !bytes.Equal(mine, want) {
			t.Fatal("wrong bytes were got")
		}
	}
}

// run runs an operation to its end.
func run(t testing.TB, a, b *Iface, start func(done *hw.Completion) (hw.Status, error)) {
	t.Helper()
	var c hw.Completion
	ended := false
	c.Func = func(*hw.Completion) { ended = true }
	c.Expect(1)
	eventually(t, "start", func() bool {
		status, err := start(&c)
		if errors.Is(err, hw.ErrNoResource) {
			a.Progress(1)
			b.Progress(1)
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		ended = ended || status == hw.Done
		return true
	})
	eventually(t, "end", func() bool {
		if !ended {
			a.Progress(16)
			b.Progress(16)
		}
		return ended
	})
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
}
