package dataplane

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
)

// TestSendArrives sends messages of all lengths, with and without data, and compares what is received.
func TestSendArrives(t *testing.T) {
	l := newLoop(t)
	l.grow()
	buf := l.bytes(bounceBytes)
	for n := range bounceBytes + 1 {
		kind := uint32(hot.PostTagged)
		if n%3 == 0 {
			kind |= hot.PostData
		}
		payload := l.bytes(n)
		for i := range payload {
			payload[i] = byte(n + i)
		}
		l.post(hot.RecvEntry{Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: bounceBytes, Src: uint64(fi.AddrUnspec),
			Tag: uint64(n), Context: uint64(n)})
		p := l.message(payload, kind, uint64(n), uint64(n))
		p.Data = 99
		if code := send(&p); code != hot.PostDone {
			t.Fatalf("%d bytes: code %d", n, code)
		}
		l.deliver()
		sent, ok := l.completed()
		if !ok || sent.Context != uint64(n) || sent.Flags != fi.Send|fi.Tagged {
			t.Fatalf("%d bytes: transmit completed with %+v, %v", n, sent, ok)
		}
		got, ok := l.pop()
		if !ok || got.Len != uint64(n) || got.Tag != uint64(n) || !bytes.Equal(buf[:n], payload) {
			t.Fatalf("%d bytes: received %+v, %v", n, got, ok)
		}
		if data := got.Flags&fi.RemoteCQData != 0; data != (n%3 == 0) || data && got.Data != 99 {
			t.Fatalf("%d bytes: data %d, flags %#x", n, got.Data, got.Flags)
		}
	}
	if l.thread(stats.ThreadInline)+l.thread(stats.ThreadBounce) != bounceBytes+1 {
		t.Errorf("%d inline and %d bounced messages are counted", l.thread(stats.ThreadInline),
			l.thread(stats.ThreadBounce))
	}
}

// TestSendNeedsRoom fills what a message needs, one thing at a time: the post is refused and leaves no trace.
func TestSendNeedsRoom(t *testing.T) {
	small, long := make([]byte, 8), make([]byte, 600)
	t.Run("ring", func(t *testing.T) {
		l := newLoop(t)
		n := l.fill(small, hot.PostInject)
		if n != 1<<ringLog2 {
			t.Errorf("%d messages in a ring of %d slots", n, 1<<ringLog2)
		}
		if l.thread(stats.ThreadNoRing) != 1 {
			t.Error("not counted")
		}
	})
	t.Run("queue", func(t *testing.T) {
		l := newLoop(t)
		if n := l.fill(small, 0); n != 16 {
			t.Errorf("%d messages complete in a ring of 16 slots", n)
		}
		if tail := *(*uint64)(pointer(l.ep.Inbound[0].Ring.Tail)); tail != 16 {
			t.Errorf("%d messages are out, 16 completed", tail)
		}
	})
	t.Run("bounce buffers", func(t *testing.T) {
		l := newLoop(t)
		now := uint32(1000)
		for n := range bounceCount + 1 {
			p := l.message(long, 0, 0, 0)
			code := send(&p)
			if n < bounceCount {
				if code != hot.PostDone {
					t.Fatalf("message %d: code %d", n, code)
				}
				continue
			}
			if code != hot.PostTime {
				t.Fatalf("without a buffer: code %d", code)
			}
			for _, step := range []struct {
				now  uint32
				code uintptr
			}{{now, hot.PostAgain}, {now + hot.StarvedMillis - 1, hot.PostAgain}, {now + hot.StarvedMillis,
				hot.PostGo}} {
				p.Now = step.now
				if code := send(&p); code != step.code {
					t.Errorf("after %d ms: code %d, want %d", step.now-now, code, step.code)
				}
			}
		}
		if l.stripe.Lease != 0 {
			t.Error("the stripe is leased still")
		}
	})
	t.Run("stripe", func(t *testing.T) {
		l := newLoop(t)
		l.stripe.Lease = 1
		p := l.message(long, 0, 0, 0)
		if code := send(&p); code != hot.PostAgain || l.thread(stats.ThreadNoStripe) != 1 {
			t.Errorf("code %d", code)
		}
	})
}

// fill posts until one is refused, and returns how many were not.
func (l *loop) fill(payload []byte, kind uint32) int {
	for n := range 1 << (ringLog2 + 1) {
		p := l.message(payload, kind, 0, 0)
		if code := send(&p); code != hot.PostDone {
			if code != hot.PostAgain {
				l.t.Fatalf("code %d", code)
			}
			return n
		}
	}
	return -1
}

// TestSendIsTheRuntimes lists what the data plane does not post.
func TestSendIsTheRuntimes(t *testing.T) {
	cases := map[string]func(l *loop, p *hot.Post){
		"no such address":       func(_ *loop, p *hot.Post) { p.Dest = 99 },
		"no ring":               func(l *loop, _ *hot.Post) { l.peer.Slots = 0 },
		"closed":                func(l *loop, _ *hot.Post) { l.state[0] |= hot.RxGone },
		"announce":              func(l *loop, _ *hot.Post) { l.state[0] = 0 },
		"not enabled":           func(l *loop, _ *hot.Post) { l.ep.Flags &^= hot.EPFast },
		"a flag":                func(_ *loop, p *hot.Post) { p.Flags |= fi.DeliveryComplete },
		"no buffer":             func(_ *loop, p *hot.Post) { p.Buf = 0 },
		"too long":              func(_ *loop, p *hot.Post) { p.Len = bounceBytes + 1 },
		"too long to inject":    func(_ *loop, p *hot.Post) { p.Len, p.Kind = 513, hot.PostInject },
		"too long by the flag":  func(_ *loop, p *hot.Post) { p.Len, p.Flags = 513, fi.Inject },
		"length beyond any sum": func(_ *loop, p *hot.Post) { p.Len, p.Kind = ^uint64(0), hot.PostData },
	}
	for name, change := range cases {
		l := newLoop(t)
		p := l.message(make([]byte, 600), 0, 0, 0)
		change(l, &p)
		if code := send(&p); code != hot.PostGo {
			t.Errorf("%s: code %d", name, code)
		}
		if code := sendHere(&p, l.ep); code != hot.PostGo {
			t.Errorf("%s, by a goroutine: code %d", name, code)
		}
		if tail := *(*uint64)(pointer(l.ep.Inbound[0].Ring.Tail)); tail != 0 || p.Todo != 0 {
			t.Errorf("%s: something happened: tail %d, todo %#x", name, tail, p.Todo)
		}
	}
}

// TestSendHere sends messages as a goroutine does, until there is no room for the completion of one, which is refused,
// or no bounce buffer: that one is the runtime's, and leaves no trace.
func TestSendHere(t *testing.T) {
	l := newLoop(t)
	thread := new(hot.Thread)
	if !EnrollGo(thread) {
		t.Fatal("no line is left")
	}
	defer DischargeGo(thread)
	post := func(payload []byte, context uint64) uintptr {
		p := l.message(payload, 0, 7, context)
		p.EP, p.Self = 0, address(thread)
		return SendHere(l.ep, &p)
	}
	for n := range bounceCount {
		if code := post(make([]byte, 600), uint64(n)); code != hot.PostDone {
			t.Fatalf("message %d: code %d", n, code)
		}
		if e, ok := l.completed(); !ok || e.Context != uint64(n) {
			t.Fatalf("message %d completed with %+v", n, e)
		}
	}
	if code := post(make([]byte, 600), 0); code != hot.PostGo || l.stripe.Lease != 0 || l.stripe.Starved != 0 {
		t.Errorf("without a bounce buffer: code %d, lease %d, starved %d", code, l.stripe.Lease, l.stripe.Starved)
	}
	sent := 0
	for ; post(make([]byte, 8), 0) == hot.PostDone; sent++ {
		if sent > 16 {
			t.Fatal("more completions than the queue has room for")
		}
	}
	if code := post(make([]byte, 8), 0); code != hot.PostAgain || sent != 16 {
		t.Errorf("%d sent; code %d", sent, code)
	}
	if line := (*hot.EpochReader)(pointer(thread.Line)); line.Posting&1 != 0 {
		t.Error("the goroutine is an epoch reader still")
	}
}

// TestSendWakes rings the doorbell of a peer that sleeps, and of no other.
func TestSendWakes(t *testing.T) {
	for _, c := range []struct{ state, armed, todo uint32 }{
		{hot.RxOpen, 1, 0}, {hot.RxOpen | hot.RxWaitable, 0, 0}, {hot.RxOpen | hot.RxWaitable, 1, hot.TodoWakePeer},
	} {
		l := newLoop(t)
		*l.state = [2]uint32{c.state, c.armed}
		p := l.message([]byte{1}, 0, 0, 0)
		if code := send(&p); code != hot.PostDone || p.Todo != c.todo || c.todo != 0 && p.Peer != 5 {
			t.Errorf("state %#x, armed %d: code %d, todo %#x of peer %d", c.state, c.armed, code, p.Todo, p.Peer)
		}
	}
}

// TestSendPath goes through what a backend's own function says.
func TestSendPath(t *testing.T) {
	for _, c := range []struct {
		sent uint32
		code uintptr
	}{{hot.PathSent, hot.PostDone}, {hot.PathCorked, hot.PostDone}, {hot.PathFull, hot.PostAgain}, {hot.PathGo,
		hot.PostGo}} {
		l := newLoop(t)
		path := l.path(64)
		p := l.message(make([]byte, 8), 0, 0, 3)
		if code := send(&p); code != hot.PostPath || p.Path != path {
			t.Fatalf("code %d", code)
		}
		p.Sent = c.sent
		if code := send(&p); code != c.code {
			t.Errorf("the path says %d: code %d, want %d", c.sent, code, c.code)
		}
		if _, ok := l.completed(); ok != (c.code == hot.PostDone) {
			t.Errorf("the path says %d: completed %v", c.sent, ok)
		}
		if corked := l.tx.Corked; corked != 0 != (c.sent == hot.PathCorked) {
			t.Errorf("the path says %d: corked %d", c.sent, corked)
		}
		p = l.message(make([]byte, 65), 0, 0, 0)
		if code := send(&p); code != hot.PostGo {
			t.Errorf("longer than the path takes: code %d", code)
		}
	}
}

// TestWriteArrives writes at random places and compares the region with a model.
func TestWriteArrives(t *testing.T) {
	l := newLoop(t)
	l.grow()
	rng := rand.New(rand.NewPCG(1, 2))
	model := make([]byte, regionLen)
	writes := uint64(0)
	for n := range 2000 {
		length := rng.IntN(bounceBytes + 1)
		offset := rng.IntN(regionLen - length + 1)
		payload := l.bytes(length)
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		p := l.message(payload, 0, uint64(offset), uint64(n))
		p.Key = regionKey
		if n%4 == 0 {
			p.Kind, p.Data = hot.PostData, uint64(n)
		}
		if code := write(&p); code != hot.PostDone {
			t.Fatalf("write %d of %d bytes: code %d", n, length, code)
		}
		writes++
		copy(model[offset:], payload)
		l.serve()
		if !bytes.Equal(l.region, model) {
			t.Fatalf("write %d of %d bytes at %d: the region differs", n, length, offset)
		}
		if e, ok := l.completed(); !ok || e.Context != uint64(n) || e.Flags != fi.RMA|fi.Write {
			t.Fatalf("write %d completed with %+v, %v", n, e, ok)
		}
		if e, ok := l.pop(); ok != (n%4 == 0) || ok &&
			(e.Data != uint64(n) || e.Len != uint64(length) || e.Src != senderAddr) {
			t.Fatalf("write %d: the target has %+v, %v", n, e, ok)
		}
	}
	if l.write.Value != writes {
		t.Errorf("%d writes are counted, want %d", l.write.Value, writes)
	}
}

// TestWriteIsRefused posts nothing that the region does not allow, and serves nothing of it either.
func TestWriteIsRefused(t *testing.T) {
	for name, change := range map[string]func(l *loop, p *hot.Post){
		"key":    func(_ *loop, p *hot.Post) { p.Key++ },
		"range":  func(_ *loop, p *hot.Post) { p.Header = regionLen - 7 },
		"wraps":  func(_ *loop, p *hot.Post) { p.Header = ^uint64(0) - 3 },
		"rights": func(l *loop, _ *hot.Post) { l.key.Access = hot.KeyRead },
		"closed": func(l *loop, _ *hot.Post) { l.key.State++ },
	} {
		l := newLoop(t)
		p := l.message(make([]byte, 8), 0, 0, 0)
		p.Key = regionKey
		change(l, &p)
		if code := write(&p); code != hot.PostGo {
			t.Errorf("%s: code %d", name, code)
		}
	}
	for what, change := range map[string]func(l *loop){ // the target checks it again
		"a region that is gone":        func(l *loop) { l.served.State = hot.RegionGone },
		"a region of the runtime's":    func(l *loop) { l.served.Access &^= hot.KeyDirect },
		"a region that is read":        func(l *loop) { l.served.Access = hot.KeyRead | hot.KeyDirect },
		"a region that is shorter":     func(l *loop) { l.served.Len = 7 },
		"an endpoint that counts them": func(l *loop) { l.ep.Regions = 0 },
	} {
		l := newLoop(t)
		p := l.message([]byte("12345678"), 0, 0, 0)
		p.Key = regionKey
		if code := write(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
		change(l)
		if codes := l.serve(); codes[len(codes)-1] != hot.DeliveryGo || l.region[0] != 0 {
			t.Errorf("a write to %s: codes %v, memory %q", what, codes, l.region[:8])
		}
	}
}

// TestAtomicFetches posts fetching operations and takes their answers in.
func TestAtomicFetches(t *testing.T) {
	l := newLoop(t)
	operand, result := l.bytes(8), l.bytes(8)
	binary.LittleEndian.PutUint64(operand, 3)
	for n := range uint64(1000) {
		p := l.atomic(hot.AtomicFetch, fi.OpSum, fi.Uint64, 16, operand, nil, result)
		p.Context = n
		if code := postAtomic(&p); code != hot.PostDone {
			t.Fatalf("%d: code %d", n, code)
		}
		l.serve()
		l.serve()
		if got := binary.LittleEndian.Uint64(result); got != 3*n {
			t.Fatalf("%d: fetched %d, want %d", n, got, 3*n)
		}
		if e, ok := l.completed(); !ok || e.Context != n || e.Flags != fi.Atomic|fi.Read {
			t.Fatalf("%d: completed with %+v, %v", n, e, ok)
		}
	}
	if l.read.Value != 1000 {
		t.Errorf("%d operations are counted", l.read.Value)
	}
	for n := range fetches + 1 { // as many as wait for answers, and one
		p := l.atomic(hot.AtomicFetch, fi.OpRead, fi.Uint64, 16, nil, nil, result)
		want := uintptr(hot.PostDone)
		if n == fetches {
			want = hot.PostAgain
		}
		if code := postAtomic(&p); code != want {
			t.Errorf("operation %d of %d: code %d", n, fetches, code)
		}
	}
}

// TestAtomicArrays posts operations on arrays of every datatype, in slots and through bounce buffers, and compares
// memory, results and answers with what package atomics makes of the same job.
func TestAtomicArrays(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for d := fi.Int8; d <= fi.BFloat16; d++ {
		for op := fi.OpMin; op <= fi.OpDiff; op++ {
			for _, kind := range []uint32{hot.AtomicPlain, hot.AtomicFetch, hot.AtomicCompare} {
				if atomics.Valid(atomics.Kind(kind), d, op) {
					atomicArray(t, rng, kind, op, d)
				}
			}
		}
	}
}

func atomicArray(t *testing.T, rng *rand.Rand, kind uint32, op fi.Op, d fi.Datatype) {
	t.Helper()
	l := newLoop(t)
	count := 1 + rng.IntN(bounceBytes/2/d.Size())
	if rng.IntN(2) == 0 {
		count = 1 + rng.IntN(3)
	}
	n := count * d.Size()
	random := func() []byte {
		b := l.bytes(n)
		for i := range b {
			b[i] = [...]byte{0, 1, 0xff, 0x80, byte(rng.Uint32())}[rng.IntN(5)]
		}
		return b
	}
	operand, compare, result := random(), random(), l.bytes(n)
	target := l.region[64:][:n]
	copy(target, random())
	want, before := l.bytes(n), bytes.Clone(target)
	copy(want, target)
	p := l.atomic(kind, op, d, 64, operand, nil, nil)
	p.Len = uint64(count)
	job := atomics.Job{Op: op, Datatype: d, Count: count, Target: pointer(at(want)), Operand: pointer(at(operand))}
	if op == fi.OpRead {
		p.Buf, job.Operand = 0, nil
	}
	switch kind {
	case hot.AtomicCompare:
		p.Compare, job.Compare = at(compare), pointer(at(compare))
		fallthrough
	case hot.AtomicFetch:
		p.Result = at(result)
	default:
		before = make([]byte, n)
	}
	if !atomics.Apply(&job) {
		t.Fatalf("datatype %d, operation %d: no such job", d, op)
	}
	if code := postAtomic(&p); code != hot.PostDone {
		t.Fatalf("kind %d, operation %d on %d of datatype %d: code %d", kind, op, count, d, code)
	}
	l.serve()
	l.serve()
	if !bytes.Equal(target, want) || !bytes.Equal(result, before) {
		t.Fatalf("kind %d, operation %d on %d of datatype %d: memory %x, want %x; result %x, was %x",
			kind, op, count, d, target, want, result, before)
	}
	if _, ok := l.completed(); !ok {
		t.Fatalf("kind %d, operation %d on %d of datatype %d: not completed", kind, op, count, d)
	}
}

// TestAtomicsOfTheRuntime posts operations that are not the data plane's: nothing has happened to them.
func TestAtomicsOfTheRuntime(t *testing.T) {
	for name, change := range map[string]func(p *hot.Post){
		"none":        func(p *hot.Post) { p.Len = 0 },
		"too many":    func(p *hot.Post) { p.Len = bounceBytes/8 + 1 },
		"countless":   func(p *hot.Post) { p.Len = 1 << 61 },
		"operation":   func(p *hot.Post) { p.Op = uint32(fi.OpBOr) },
		"datatype":    func(p *hot.Post) { p.Datatype = 99 },
		"negative":    func(p *hot.Post) { p.Datatype = 1 << 31 },
		"long double": func(p *hot.Post) { p.Datatype = uint32(fi.LongDouble) },
		"kind":        func(p *hot.Post) { p.Atomic = 3 },
		"far":         func(p *hot.Post) { p.Header = regionLen - 8 },
		"injected":    func(p *hot.Post) { p.Kind, p.Len = hot.PostInject, 512/8+1 },
	} {
		l := newLoop(t)
		p := l.atomic(hot.AtomicPlain, fi.OpSum, fi.Double, 0, l.bytes(2*bounceBytes), nil, nil)
		p.Len = 2
		change(&p)
		elements := p.Len
		if code := postAtomic(&p); code != hot.PostGo || p.Len != elements {
			t.Errorf("%s: code %d, %d elements left", name, code, p.Len)
		}
		if codes := l.serve(); codes[0] != hot.DeliveryGo {
			t.Errorf("%s: sent", name)
		}
	}
}

// TestCopyIsClaimed copies under a claim, which is given back, and not before a message that was posted earlier.
func TestCopyIsClaimed(t *testing.T) {
	l := newLoop(t)
	l.peer.PID, l.ep.CopyMax, l.ep.CopiedMax = 1, 1<<20, ^uint64(0)
	buf := l.bytes(64)
	p := l.message(buf, hot.PostRead, 8, 4)
	p.Key = regionKey
	code := postCopy(&p)
	if code != hot.PostCopy || p.Copy.At != l.key.Addr+8 || p.Copy.PID != 1 || p.Copy.Write != 0 {
		t.Fatalf("code %d, copy %+v", code, p.Copy)
	}
	c := (*hot.Claim)(pointer(p.Claim))
	if c.Word == 0 {
		t.Error("there is no claim while the copy is made")
	}
	if code := postCopy(&p); code != hot.PostDone || c.Word != 0 {
		t.Errorf("code %d, claim %#x", code, c.Word)
	}
	if e, ok := l.completed(); !ok || e.Context != 4 || e.Flags != fi.RMA|fi.Read {
		t.Errorf("completed with %+v, %v", e, ok)
	}
	w := l.message(buf[:8], 0, 0, 0)
	w.Key = regionKey
	if code := write(&w); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	q := l.message(l.bytes(bounceBytes+1), hot.PostRead, 8, 4)
	q.Key = regionKey
	if code := postCopy(&q); code != hot.PostGo {
		t.Errorf("a copy before an earlier write: code %d", code)
	}
	l.serve()
	if code := postCopy(&q); code != hot.PostCopy {
		t.Errorf("after it: code %d", code)
	}
	q.Copy.Error = int32(fi.EFAULT)
	if code := postCopy(&q); code != hot.PostGo || l.peer.PID == 0 {
		t.Errorf("a copy that failed: code %d, process %d", code, l.peer.PID)
	}
	q.Step = 0
	postCopy(&q)
	q.Copy.Error = int32(fi.EPERM)
	if code := postCopy(&q); code != hot.PostGo || l.peer.PID != 0 {
		t.Errorf("a copy that is not allowed: code %d, process %d", code, l.peer.PID)
	}
}

// TestNothingOvertakesAWrite posts reads and long writes behind a write that is not taken in: they go as messages, in
// the order of the posts.
func TestNothingOvertakesAWrite(t *testing.T) {
	for _, n := range []int{1, 8, hot.SlotBody - 8, hot.SlotBody - 7, bounceBytes} {
		l := newLoop(t)
		l.peer.PID, l.ep.CopyMax, l.ep.CopiedMax = 1, 1<<20, ^uint64(0)
		first, second, got := l.bytes(8), l.bytes(n), l.bytes(n)
		copy(first, "earlier1")
		for i := range second {
			second[i] = byte(i + 1)
		}
		post := func(b []byte, kind uint32, context uint64) {
			t.Helper()
			p := l.message(b, kind, 8, context)
			p.Key = regionKey
			if code := rma(&p); code != hot.PostDone {
				t.Fatalf("%d bytes, post %d: code %d", n, context, code)
			}
		}
		post(first, 0, 1)
		post(got, hot.PostRead, 2)
		w := l.message(second, 0, 8, 3)
		w.Key = regionKey
		if code := asMessage(&w, l.ep, l.peer, l.peer.Slots); code != hot.PostDone {
			t.Fatalf("a write of %d bytes: code %d", n, code)
		}
		for l.ep.Inbound[0].Head != *(*uint64)(pointer(l.peer.Tail)) {
			l.serve()
		}
		want := make([]byte, n)
		copy(want, "earlier1")
		if !bytes.Equal(got, want) || !bytes.Equal(l.region[8:][:n], second) {
			t.Errorf("%d bytes: read %q, left %q", n, got, l.region[8:][:n])
		}
		flags := map[uint64]uint64{}
		for e, ok := l.completed(); ok; e, ok = l.completed() {
			flags[e.Context] = e.Flags
		}
		if !maps.Equal(flags, map[uint64]uint64{1: fi.RMA | fi.Write, 2: fi.RMA | fi.Read, 3: fi.RMA | fi.Write}) {
			t.Errorf("%d bytes: completions with flags %#x", n, flags)
		}
	}
}

// TestCopyWithData makes the notice of a write with data that is copied: the target's completion comes after the copy,
// and where the ring has no room nothing is posted, or the runtime posts all of it again.
func TestCopyWithData(t *testing.T) {
	begin := func() (*loop, *hot.Post) {
		l := newLoop(t)
		l.grow()
		l.peer.PID, l.ep.CopyMax, l.ep.CopiedMax = 1, 1<<20, ^uint64(0)
		p := l.message(l.bytes(hot.CopyMinWrite), hot.PostData, 8, 4)
		p.Key, p.Data, p.Flags = regionKey, 99, fi.RemoteCQData
		return l, &p
	}
	fill := func(l *loop) {
		for n := 0; ; n++ {
			p := l.message(nil, 0, 0, 0)
			p.Kind = hot.PostInject
			if code := send(&p); code == hot.PostAgain {
				return
			}
		}
	}
	l, p := begin()
	if code := rma(p); code != hot.PostCopy || p.Copy.Write != 1 || p.Copy.Len != hot.CopyMinWrite {
		t.Fatalf("code %d, copy %+v", code, p.Copy)
	}
	if codes := l.serve(); codes[0] != hot.DeliveryGo {
		t.Error("the target has word before the copy is made")
	}
	if code := rma(p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	if e, ok := l.completed(); !ok || e.Context != 4 || e.Flags != fi.RMA|fi.Write {
		t.Errorf("completed with %+v, %v", e, ok)
	}
	l.serve()
	const flags = fi.RMA | fi.RemoteWrite | fi.RemoteCQData
	if e, ok := l.pop(); !ok || e.Data != 99 || e.Len != hot.CopyMinWrite || e.Flags != flags {
		t.Errorf("the target has %+v, %v", e, ok)
	}
	l, p = begin()
	fill(l)
	if code := rma(p); code != hot.PostAgain {
		t.Errorf("without room: code %d", code)
	}
	l, p = begin()
	if code := rma(p); code != hot.PostCopy {
		t.Fatalf("code %d", code)
	}
	fill(l)
	if code := rma(p); code != hot.PostGo {
		t.Errorf("with room no more: code %d", code)
	}
	if _, ok := l.completed(); ok {
		t.Error("it is completed before the runtime posts it")
	}
}
