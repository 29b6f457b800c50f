package verbs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
)

// together is a packet of several messages.
func together(messages ...[]byte) (packet []byte) {
	for n, m := range messages {
		packet = append(packet, make([]byte, -len(packet)&7)...)
		at := len(packet)
		packet = append(packet, m...)
		if n < len(messages)-1 {
			packet[at+2] |= transport.MoreFollows
		}
	}
	return packet
}

// packetAt is what the operation at a position sends, nil if it goes with a later one.
func (q *queue) packetAt(pos uint64) []byte {
	op := q.op(pos)
	if op.Opcode != ibv.OpSend {
		return nil
	}
	at := op.SGE[0].Addr - q.first
	return q.slots[at:][:op.SGE[0].Len]
}

// parseMessage reads the header of the message that b starts with, and returns what comes behind the message.
func parseMessage(b []byte) (m transport.Header, rest []byte, ok bool) {
	m, next, ok := transport.Parse(b)
	if ok && next != 0 {
		rest = b[next:]
	}
	return m, rest, ok
}

// messagesIn are the headers of a packet's messages.
func messagesIn(t *testing.T, packet []byte) (list []transport.Header) {
	for packet != nil {
		m, rest, ok := parseMessage(packet)
		if !ok {
			t.Fatalf("malformed: %x", packet)
		}
		list, packet = append(list, m), rest
	}
	return list
}

// joinBench is a bench whose queue joins messages.
func joinBench(t *testing.T) *bench {
	b := newBench(t)
	b.e.msg.JoinBytes = joinBytes
	return b
}

// TestPathHolds: messages in a row are kept and go together, at the latest when something
// polls, or when one comes that may not be kept.
func TestPathHolds(t *testing.T) {
	// empty ones behind four of up to 8 bytes
	const filling = (joinBytes - 4*(transport.HeaderBytes+8)) / transport.HeaderBytes
	for name, c := range map[string]struct {
		release func(b *bench)
		more    int // messages that this sends itself
	}{
		"poll":    {func(b *bench) { drive.Next(b.HotTransport()) }, 0},
		"Go":      {func(b *bench) { b.Progress(1) }, 0},
		"flush":   {func(b *bench) { drive.Flush(b.HotTransport()) }, 0},
		"never":   {func(b *bench) { drive.Send(b.e.HotPath(), 1, 99, nil, nil) }, 1},
		"from Go": {func(b *bench) { _ = b.e.AMShort(1, 99, nil, nil) }, 1},
		"full": {func(b *bench) {
			for n := range filling {
				drive.SendHold(b.e.HotPath(), 1, uint64(n), nil, nil, hot.HoldInRow)
			}
		}, filling},
	} {
		t.Run(name, func(t *testing.T) {
			b := joinBench(t)
			q := &b.e.msg
			before := null.Taken()
			for n := range transport.Row {
				if got := drive.SendHold(b.e.HotPath(), 1, uint64(n), nil, nil, hot.HoldInRow); got != hot.PathSent {
					t.Fatalf("message %d: %d", n, got)
				}
			}
			for n := range 4 {
				if got := drive.SendHold(b.e.HotPath(), 1, uint64(n), nil, []byte("abc"),
					hot.HoldInRow); got != hot.PathCorked {
					t.Fatalf("message %d in a row: %d", transport.Row+n, got)
				}
			}
			if n := null.Taken() - before; n != transport.Row {
				t.Fatalf("%d of %d are posted", n, transport.Row)
			}
			c.release(b)
			if n := null.Taken() - before; n != transport.Row+1 || q.Posted != q.Tail.Load() {
				t.Fatalf("then %d, %s", n, q.state())
			}
			list := messagesIn(t, q.packetAt(q.Posted-1))
			if len(list) != 4+c.more {
				t.Fatalf("%d messages in the packet", len(list))
			}
			for n, m := range list {
				if m.Seq != uint32(transport.Row+n+1) || n < 4 && m.Value != uint64(n) {
					t.Errorf("message %d: %+v", n, m)
				}
			}
		})
	}
}

// TestPathFills: no packet goes with room for another such message, and none is left with few.
func TestPathFills(t *testing.T) {
	for _, size := range []int{0, 1, 8, 9, 40, maxShort} {
		b := joinBench(t)
		q := &b.e.msg
		fit := min(joinBytes/((transport.HeaderBytes+size+7)&^7), transport.JoinMax)
		for n := range uint64(3 * fit) {
			want := hot.PathCorked
			if int(n)%fit == fit-1 {
				want = hot.PathSent
			}
			if got := drive.SendHold(b.e.HotPath(), 1, n, nil, make([]byte, size), hot.HoldMore); got != want {
				t.Fatalf("message %d of %d bytes: %d", n, size, got)
			}
		}
		for k := 1; k <= 3; k++ {
			if list := messagesIn(t, q.packetAt(uint64(k*fit-1))); len(list) != fit {
				t.Errorf("%d messages of %d bytes in a packet, %d fit", len(list), size, fit)
			}
		}
	}
}

// TestPathHoldsMore: a message that another one is a rendezvous behind is kept at once.
func TestPathHoldsMore(t *testing.T) {
	b := joinBench(t)
	for _, hold := range []int{hot.HoldMore, hot.HoldMore, hot.HoldInRow} {
		drive.SendHold(b.e.HotPath(), 1, 0, nil, nil, hold)
	}
	if list := messagesIn(t, b.e.msg.packetAt(2)); len(list) != 3 {
		t.Errorf("%d messages in the packet", len(list))
	}
}

// TestPathHoldsOnePeer: what is kept for a peer goes when something is kept for another.
func TestPathHoldsOnePeer(t *testing.T) {
	b := joinBench(t)
	other := nullEndpoint(64)
	other.i, other.msg.JoinBytes, other.msg.ID = b.Iface, joinBytes, queueID(classMessage, 1)
	other.c = b.rx.transport.NewPeer(other.msg.SendQueue)
	other.c.Blocked.Store(0)
	b.rx.transport.SetPeer(1, other.c)
	drive.SendHold(b.e.HotPath(), 1, 0, nil, nil, hot.HoldMore)
	if got := drive.SendHold(other.HotPath(), 1, 0, nil, nil, hot.HoldMore); got != hot.PathCorked ||
		b.e.msg.Posted != 1 || other.msg.Posted != 0 {
		t.Fatalf("%d: %d and %d are posted", got, b.e.msg.Posted, other.msg.Posted)
	}
	b.rx.transport.SetPeer(1, nil)
	drive.Flush(b.HotTransport()) // of a peer that is gone: nothing
	if other.msg.Posted != 0 {
		t.Errorf("posted to a peer that is gone")
	}
}

// TestTransportTogether: C and Go deliver the messages of a packet one by one, in order, Go what C
// leaves of it.
func TestTransportTogether(t *testing.T) {
	for inC := range 5 {
		b := joinBench(t)
		b.e.c.LastSeq = 1
		b.arrive(1, together(plain(1, 99), plain(2, 0), plain(3, 1), plain(4, 2), plain(5, 3)))
		if inC > 0 { // C leaves the first, which came before, and so the rest
			b.e.c.LastSeq = 0
		}
		var got []uint64
		for range inC {
			m, found := drive.Next(b.HotTransport())
			if found != hot.TransportArrival {
				t.Fatalf("%d in C: %d", inC, found)
			}
			got = append(got, m.Header)
			if more := drive.Take(b.HotTransport()); more != (len(got) < 5) {
				t.Errorf("behind message %d of 5 another one is at hand: %v", len(got), more)
			}
		}
		n := b.Progress(64)
		all := append(got, b.got...)
		want := []uint64{99, 0, 1, 2, 3}
		if inC == 0 {
			want = want[1:]
		}
		if !slices.Equal(all, want) || n != len(want)-inC || b.e.c.LastSeq != 5 {
			t.Errorf("%d in C: %v, of which %d in Go, last %d", inC, all, n, b.e.c.LastSeq)
		}
		b.arrive(1, plain(6, 7))
		if m, found := drive.Next(b.HotTransport()); found != hot.TransportArrival || m.Header != 7 {
			t.Errorf("%d in C, then %d %+v", inC, found, m)
		}
	}
}

// TestTransportTogetherMalformed: what comes before a message that is none is delivered.
func TestTransportTogetherMalformed(t *testing.T) {
	good := together(plain(1, 0), plain(2, 1), plain(3, 2))
	damaged := bytes.Clone(good)
	damaged[2*32+3]++ // the third one's magic
	for name, packet := range map[string][]byte{"cut": good[:2*32+9], "magic": damaged,
		"nothing follows": good[:2*32]} {
		b := joinBench(t)
		b.arrive(1, packet)
		b.Progress(8)
		want := 2
		if name == "nothing follows" {
			want = 1
		}
		if len(b.got) != want || b.rx.malformed.Load() != 1 {
			t.Errorf("%s: %d delivered, %d malformed", name, len(b.got), b.rx.malformed.Load())
		}
	}
}

// TestPart: when a queue pair breaks every message is again what it was.
func TestPart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	joined := 0
	for round := range 300 {
		b := joinBench(t)
		q := &b.e.msg
		start := r.Uint64N(200)
		q.Tail.Store(start)
		q.Head.Store(start)
		q.Posted = start
		var want [][]byte
		for len(want) < 40 {
			payload := make([]byte, r.IntN(maxShort-2))
			for k := range payload {
				payload[k] = byte(r.Uint32())
			}
			pos := start + uint64(len(want))
			m := transport.Header{ID: 1, Head: 2, Seq: uint32(pos + 1), Length: uint32(len(payload)), Value: r.Uint64()}
			if got := drive.SendHold(b.e.HotPath(), 1, m.Value, []byte("he"), payload,
				hot.HoldMore); got != hot.PathCorked && got != hot.PathSent {
				t.Fatal(got)
			}
			sent := make([]byte, transport.HeaderBytes)
			m.Put(sent)
			want = append(want, append(append(sent, "he"...), payload...))
		}
		joined += int(q.Posted - start)
		q.stop()
		q.Part()
		for n, w := range want {
			pos := start + uint64(n)
			if got := q.packetAt(pos); !bytes.Equal(got, w) || q.place(pos).Joined != 0 || &got[0] != &q.slot(pos)[0] {
				t.Fatalf("round %d: message %d is %x, was %x", round, n, got, w)
			}
		}
	}
	if joined < 300*transport.JoinMax {
		t.Errorf("only %d were posted before", joined)
	}
}

// TestJoinedFails: an operation that fails leaves all of its messages to be sent again.
func TestJoinedFails(t *testing.T) {
	if err := ibv.Load(ibv.DefaultLibrary); err != nil {
		t.Skipf("what a failure is called stands in the library: %v", err)
	}
	b := joinBench(t)
	q := &b.e.msg
	for n := range uint64(6) {
		hold := hot.HoldMore
		if n == 0 {
			hold = hot.HoldNever
		}
		drive.SendHold(b.e.HotPath(), 1, n, nil, nil, hold)
	}
	drive.Flush(b.HotTransport())
	e := b.e
	list := []*Endpoint{e}
	b.peers.Store(&list)
	e.lease.phase = draining // as if it was known: breaking needs a device
	b.ended(&ibv.Done{ID: queueID(classMessage, 0) | 5, Status: ibv.StatusFlush})
	if q.Head.Load() != 1 {
		t.Errorf("%d have ended", q.Head.Load())
	}
}

// sentPackets is how many packets the machine's devices have sent, or false where they do not count
// them.
func sentPackets() (n uint64, ok bool) {
	files, _ := filepath.Glob("/sys/class/infiniband/*/ports/*/hw_counters/sent_pkts")
	for _, f := range files {
		b, err := os.ReadFile(f)
		k, bad := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
		if err != nil || bad != nil {
			return 0, false
		}
		n += k
	}
	return n, len(files) > 0
}

// TestTogether has a row of messages go over the device, in as few packets as they fit in.
func TestTogether(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	defer a.Close()
	defer b.Close()
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	const fit = joinBytes / (transport.HeaderBytes + 8)
	const packets, messages = transport.Row + 3, transport.Row + 3*fit
	var got []uint64
	b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) { got = append(got, header) })
	e := ep.(*Endpoint)
	first, kept := e.msg.End(), 0
	before, counts := sentPackets()
	for n := range uint64(messages) {
		switch found := drive.SendHold(e.HotPath(), 1, n, nil, make([]byte, 8), hot.HoldInRow); found {
		case hot.PathCorked:
			kept++
		case hot.PathSent:
		default:
			t.Fatalf("message %d: %d", n, found)
		}
	}
	sent := 0
	for pos := first; pos < first+messages; pos++ {
		if e.msg.packetAt(pos) != nil {
			sent++
		}
	}
	if sent != packets || kept != 3*(fit-1) {
		t.Errorf("%d messages, of which %d were kept, went in %d packets instead of %d", messages, kept, sent, packets)
	}
	for end := time.Now().Add(time.Minute); len(got) < messages && time.Now().Before(end); {
		a.Progress(16)
		b.Progress(16)
	}
	for n, header := range got {
		if header != uint64(n) {
			t.Fatalf("message %d comes as number %d", header, n)
		}
	}
	after, _ := sentPackets()
	if len(got) != messages || counts && after-before >= messages { // acknowledgements included
		t.Errorf("%d messages of %d came, the device has sent %d packets", len(got), messages, after-before)
	}
}

// TestJoinThreads holds, sends and flushes from threads while what is posted ends: every message is
// in one packet, in order. It ran for some 0.5 s.
func TestJoinThreads(t *testing.T) {
	b := joinBench(t)
	e, q := b.e, &b.e.msg
	const count = 20000
	var requester, others sync.WaitGroup
	var seq uint32
	stop := make(chan struct{})
	over := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	poll := func() { // as retireUntil, but it reads what was posted
		if !q.Run.CompareAndSwap(transport.QueueIdle, transport.QueueBusy) {
			return
		}
		for pos := q.Head.Load(); pos < q.Posted; pos++ {
			if p := q.packetAt(pos); p != nil {
				for _, m := range messagesIn(t, p) {
					if seq++; m.Seq != seq {
						t.Errorf("position %d after %d", m.Seq, seq-1)
						seq = m.Seq
					}
				}
			}
		}
		q.Head.Store(q.Posted)
		q.Run.Store(transport.QueueIdle)
		q.Post()
	}
	others.Go(func() {
		for !over() {
			poll()
		}
	})
	others.Go(func() {
		for !over() {
			drive.Flush(b.HotTransport())
			time.Sleep(time.Microsecond)
		}
	})
	requester.Go(func() {
		r := rand.New(rand.NewPCG(3, 4))
		for n := 0; n < count; {
			switch drive.SendHold(e.HotPath(), 1, uint64(n), nil, make([]byte, r.IntN(60)), r.IntN(3)) {
			case hot.PathSent, hot.PathCorked:
				n++
			}
		}
	})
	requester.Go(func() {
		for n := 0; n < count; {
			if err := e.AMShort(1, 0, nil, nil); err == nil {
				n++
			} else if !errors.Is(err, hw.ErrNoResource) {
				t.Error(err)
				return
			}
		}
	})
	requester.Wait()
	close(stop)
	others.Wait()
	drive.Flush(b.HotTransport())
	poll()
	if seq != 2*count {
		t.Errorf("%d messages of %d", seq, 2*count)
	}
}
