package udp

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/sock"
)

// TestSendRing writes records, takes pieces and rows of packets out, whose heads it
// overwrites as senders do, and compares with the stream as one slice.
func TestSendRing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		ring := sendRing{}
		size := minWindow << r.IntN(3)
		if err := ring.open(size); err != nil {
			t.Fatal(err)
		}
		begin := r.Uint64N(1 << 40)
		var stream []byte // from begin on
		at := func(offset uint64) []byte { return stream[offset-begin:] }
		acked, tail := begin, begin
		for range 100 {
			if acked == tail {
				full := leastFull + r.Uint64N(maxPacket-headRoom-leastFull)
				if r.IntN(2) == 0 {
					full = leastFull + r.Uint64N(1000)
				}
				ring.lay(tail, full, r.Uint64N(60))
			}
			if room := int(acked + ring.size - tail); room > 0 {
				b := numbered(1+r.IntN(room), r.Uint64())
				n := r.IntN(len(b) + 1)
				clear(b[n:])
				head := r.IntN(n + 1)
				ring.write(b[:head])
				for got := b[head:n]; len(got) > 0; {
					to := ring.next(1 + r.IntN(len(got)))
					got = got[copy(to, got):]
				}
				ring.pad(len(b) - n)
				tail += uint64(len(b))
				stream = append(stream, b...)
			}
			check(t, r, &ring, at, acked, tail)
			acked += r.Uint64N(tail - acked + 1)
			if r.IntN(4) == 0 {
				acked = tail
			}
		}
		ring.close()
	}
}

// check compares what ring holds, from acked to tail, with what at returns.
func check(t *testing.T, r *rand.Rand, ring *sendRing, at func(offset uint64) []byte, acked, tail uint64) {
	t.Helper()
	from := acked + r.Uint64N(tail-acked)
	n := 1 + r.IntN(int(tail-from))
	p := ring.piece(from, n)
	if left := ring.rest(from); len(p) != min(n, int(left)) || !bytes.Equal(p, at(from)[:len(p)]) {
		t.Fatalf("a piece of %d bytes for %d, and %d to the slot's end", len(p), n, left)
	}
	if b := ring.appendTo([]byte("head"), from, n); !bytes.Equal(b[4:], at(from)[:n]) {
		t.Fatalf("%d bytes from %d on are others", n, from)
	}
	if from += ring.rest(from) % ring.full; from >= tail || tail-from < ring.full {
		return
	}
	most := int((tail - from) / ring.full)
	row, each := ring.row(from, most), headRoom+int(ring.full)
	if len(row) == 0 || len(row)%each != 0 || len(row) > most*each {
		t.Fatalf("a row of %d bytes for %d slots of %d", len(row), most, each)
	}
	for ; len(row) > 0; row = row[each:] {
		copy(row, bytes.Repeat([]byte{0xff}, headRoom))
		if !bytes.Equal(row[headRoom:each], at(from)[:ring.full]) {
			t.Fatalf("the slot at %d has other bytes", from)
		}
		from += ring.full
	}
}

// TestUnfitSlots posts long messages while the path's MTU differs from what the slots
// were laid for and others keep the ring from becoming empty: they wait, but not for long.
func TestUnfitSlots(t *testing.T) {
	var deaf atomic.Bool
	c := Config{MaxPacket: 1472, MaxBcopy: longSize}
	c.Impair = func(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
		if !deaf.Load() {
			send(b, to)
		}
	}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	got := 0
	b.SetHandler(1, func(_ hw.Source, header uint64, _, p []byte) {
		if header != uint64(got) || !bytes.Equal(p, numbered(len(p), header)) {
			t.Errorf("message %d of %d bytes came as number %d", header, len(p), got)
		}
		got++
	})
	post := func(n, size int) bool {
		return bcopy(t, ep, uint64(n), nil, size, hwtest.Packed(numbered(size, uint64(n))))
	}
	arrive := func(n int) {
		eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return got == n })
	}
	eventually(t, "a message", func() bool { a.Progress(1); b.Progress(1); return post(0, longRecord) })
	arrive(1)
	eventually(t, "acknowledgement", func() bool { a.Progress(1); b.Progress(1); return ep.idleStream() })
	deaf.Store(true)
	eventually(t, "a short message", func() bool { return post(1, 10) })
	ep.s.lease.lock()
	ep.tx.mtu.TooBig(1300)
	ep.s.leave()
	begin := time.Now()
	if post(2, longRecord) {
		t.Error("a long message did not wait for the ring to become empty")
	}
	eventually(t, "a long message", func() bool { return post(2, longRecord) })
	if d := time.Since(begin); d < emptySoon {
		t.Errorf("it waited for %v", d)
	}
	deaf.Store(false)
	arrive(3)
	eventually(t, "acknowledgement", func() bool { a.Progress(1); b.Progress(1); return ep.idleStream() })
	if !post(3, longRecord) {
		t.Error("a long message waits though the ring is empty")
	}
	arrive(4)
}

// idleStream reports whether all that was posted is acknowledged.
func (c *Endpoint) idleStream() bool {
	c.s.lease.lock()
	defer c.s.leave()
	return c.tx.acked == c.tx.tail
}
