package hwtest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/race"
)

// sizes are 0, 1 and the neighbourhoods of powers of two, and of limit.
func sizes(limit int) []int {
	s := []int{0, limit - 1, limit}
	for n := 1; n <= limit; n *= 2 {
		for _, v := range []int{n - 1, n, n + 1} {
			if v <= limit {
				s = append(s, v)
			}
		}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

func testSizes(t *testing.T, open Factory) {
	each := 1
	if race.Enabled { // one thread sends and takes in
		each = 5
	}
	a, b := newNode(t, open), newNode(t, open)
	for name, to := range map[string]*node{"another": b, "itself": a} {
		ep, attr := a.connect(to), a.Attr()
		if attr.EagerAM < 0 || attr.EagerAM > attr.MaxAMBcopy {
			t.Errorf("messages of up to %d bytes do well at once, those of up to %d can be", attr.EagerAM,
				attr.MaxAMBcopy)
		}
		for head := 0; head <= attr.MaxAMShort; head += each {
			for n := range attr.MaxAMShort - head + 1 {
				h, p := patterned(head, 1), patterned(n, uint64(n))
				retry(t, to, func() error { return ep.AMShort(3, uint64(n)<<40|1, h, p) })
				to.receive(1)[0].check(t, 3, uint64(n)<<40|1, h, p)
			}
		}
		for head := 0; head <= attr.MaxAMHead; head += each {
			for _, n := range sizes(attr.MaxAMBcopy) {
				h, p := patterned(head, 2), patterned(n, uint64(n))
				retry(t, to, func() error {
					at := 0
					err := ep.AMBcopy(hw.MaxAM-1, ^uint64(n), h, n, func(d []byte) {
						if len(d) > n-at {
							t.Fatalf("%s: pack got %d of %d bytes", name, len(d), n-at)
						}
						at += copy(d, p[at:])
					}, 0)
					if err == nil && at != n {
						t.Errorf("%s: pack wrote %d of %d bytes", name, at, n)
					}
					return err
				})
				to.receive(1)[0].check(t, hw.MaxAM-1, ^uint64(n), h, p)
			}
		}
	}
}

func testTooLong(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep, attr := a.connect(b), a.Attr()
	never := func([]byte) { t.Error("pack was called") }
	for _, err := range []error{
		ep.AMShort(1, 0, nil, make([]byte, attr.MaxAMShort+1)),
		ep.AMShort(1, 0, make([]byte, 1), make([]byte, attr.MaxAMShort)),
		ep.AMBcopy(1, 0, nil, attr.MaxAMBcopy+1, never, 0),
		ep.AMBcopy(1, 0, make([]byte, attr.MaxAMHead+1), 1, never, 0),
	} {
		if !errors.Is(err, hw.ErrTooLong) {
			t.Errorf("too long: %v", err)
		}
	}
	for _, err := range []error{
		ep.AMShort(hw.MaxAM, 0, nil, nil),
		ep.AMBcopy(hw.MaxAM, 0, nil, 1, never, 0),
		ep.AMBcopy(1, 0, nil, -1, never, 0),
		ep.AMBcopy(1, 0, nil, 1, never, -1),
	} {
		if !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("invalid: %v", err)
		}
	}
	if n := b.Progress(16); n != 0 || len(b.got) != 0 {
		t.Errorf("%d messages arrived", len(b.got))
	}
}

// Packed returns a pack callback that writes b.
func Packed(b []byte) func([]byte) {
	return func(d []byte) { b = b[copy(d, b):] }
}

func send(ep hw.Endpoint, bcopy bool, id hw.AMID, header uint64, payload []byte) error {
	if bcopy {
		return ep.AMBcopy(id, header, nil, len(payload), Packed(payload), 0)
	}
	return ep.AMShort(id, header, nil, payload)
}

func testOrder(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	next := uint64(0)
	b.SetHandler(1, func(_ hw.Source, header uint64, _, p []byte) {
		if header != next || binary.LittleEndian.Uint64(p) != next {
			t.Fatalf("message %d (payload %d) came as number %d", header, binary.LittleEndian.Uint64(p), next)
		}
		next++
	})
	const count = 20000
	payload := make([]byte, 8)
	for n := range uint64(count) {
		binary.LittleEndian.PutUint64(payload, n)
		retry(t, b, func() error { return send(ep, n%3 == 0, 1, n, payload) })
	}
	until(t, "all messages", func() bool { b.Progress(64); return next == count })
}

// fill sends until there are no resources and returns how many it sent.
func fill(t *testing.T, ep hw.Endpoint, bcopy bool, from uint64) uint64 {
	t.Helper()
	for n := from; n < from+1<<22; n++ {
		err := send(ep, bcopy, 1, n, []byte{byte(n)})
		if errors.Is(err, hw.ErrNoResource) {
			return n - from
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the ring is never full")
	return 0
}

func testFull(t *testing.T, open Factory, bcopy bool) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	for range 3 {
		n := fill(t, ep, bcopy, 0)
		if n == 0 && a.networked() {
			until(t, "room", func() bool { n = fill(t, ep, bcopy, 0); return n > 0 })
		}
		if n == 0 {
			t.Fatal("no room at all")
		}
		// A network's acknowledgements may make room at any time.
		if again := fill(t, ep, bcopy, n); a.networked() {
			n += again
		} else if again != 0 {
			t.Fatalf("%d more messages after it was full", again)
		}
		more := uint64(0)
		if a.networked() {
			until(t, "room", func() bool { b.Progress(1); more = fill(t, ep, bcopy, n); return more > 0 })
		} else {
			if got := b.Progress(1); got != 1 {
				t.Fatalf("progress of 1 delivered %d", got)
			}
			if more = fill(t, ep, bcopy, n); more != 1 {
				t.Fatalf("%d messages fit after one was delivered", more)
			}
		}
		for k, m := range b.receive(int(n + more)) {
			m.check(t, 1, uint64(k), nil, []byte{byte(k)})
		}
		if b.Progress(100) != 0 {
			t.Fatal("a message came twice")
		}
	}
}

// testFullUndelivered: progress that delivers nothing makes room for what is posted, although messages wait.
func testFullUndelivered(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep, back := a.connect(b), b.connect(a)
	waiting := 0
	for waiting < 20 && send(back, false, 2, uint64(waiting), nil) == nil { // as many as there is room for
		waiting++
	}
	sent := uint64(0)
	for round := range 3 {
		from := sent
		until(t, "room", func() bool {
			b.Progress(64)
			a.Progress(0)
			sent += fill(t, ep, false, sent)
			return sent > from
		})
		if len(a.got) != 0 {
			t.Fatalf("round %d: progress of 0 delivered %d messages", round, len(a.got))
		}
	}
	until(t, "all messages", func() bool { b.Progress(64); a.Progress(0); return len(b.got) == int(sent) })
	for k, m := range b.got {
		m.check(t, 1, uint64(k), nil, []byte{byte(k)})
	}
	for k, m := range a.receive(waiting) {
		m.check(t, 2, uint64(k), nil, nil)
	}
}

func testFullShort(t *testing.T, open Factory) { testFull(t, open, false) }
func testFullBcopy(t *testing.T, open Factory) { testFull(t, open, true) }

func testManyEndpoints(t *testing.T, open Factory) {
	const count = 60
	hub := newNode(t, open)
	seen := map[hw.Source]int{}
	for n := range count {
		leaf := newNode(t, open)
		there, back := leaf.connect(hub), hub.connect(leaf)
		retry(t, hub, func() error { return there.AMShort(1, uint64(n), nil, []byte{byte(n)}) })
		m := hub.receive(1)[0]
		m.check(t, 1, uint64(n), nil, []byte{byte(n)})
		if old, twice := seen[m.src]; twice {
			t.Fatalf("sources %d and %d have the same number", old, n)
		}
		seen[m.src] = n
		if got := hub.SourceAddress(m.src); string(got) != string(leaf.Address()) {
			t.Fatalf("source address %x, want %x", got, leaf.Address())
		}
		retry(t, leaf, func() error { return back.AMShort(2, uint64(n), nil, nil) })
		leaf.receive(1)[0].check(t, 2, uint64(n), nil, nil)
	}
}

func testThreads(t *testing.T, open Factory) {
	const threads, count = 4, 4000
	b := newNode(t, open)
	next := map[hw.Source]uint64{}
	total := 0
	limit := uint64(b.Attr().MaxAMBcopy + 1)
	b.SetHandler(1, func(src hw.Source, header uint64, _, p []byte) {
		if header != next[src] || len(p) != int(header%limit%200) {
			t.Fatalf("source %d: message %d of %d bytes came as number %d", src, header, len(p), next[src])
		}
		for _, c := range p {
			if c != byte(header) {
				t.Fatalf("source %d: message %d is damaged", src, header)
			}
		}
		next[src]++
		total++
	})
	var wg sync.WaitGroup
	for range threads {
		a := newNode(t, open)
		ep, attr := a.connect(b), a.Attr()
		wg.Go(func() {
			for n := uint64(0); n < count && !t.Failed(); {
				p := slices.Repeat([]byte{byte(n)}, int(n%limit%200))
				err := send(ep, len(p) > attr.MaxAMShort, 1, n, p)
				if err == nil {
					n++
					continue
				}
				runtime.Gosched()
				if !errors.Is(err, hw.ErrNoResource) {
					t.Error(err)
					return
				}
			}
		})
	}
	defer wg.Wait()
	until(t, "all messages", func() bool { b.Progress(64); return total == threads*count || t.Failed() })
}

func testSendInHandler(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	there, back := a.connect(b), b.connect(a)
	b.SetHandler(1, func(_ hw.Source, header uint64, _, p []byte) {
		if err := back.AMShort(2, header+1, nil, p); err != nil {
			t.Error(err)
		}
	})
	for n := range uint64(1000) {
		retry(t, b, func() error { return there.AMShort(1, n, nil, []byte("echo")) })
		until(t, "echo", func() bool { b.Progress(1); a.Progress(1); return len(a.got) == 1 })
		a.receive(1)[0].check(t, 2, n+1, nil, []byte("echo"))
	}
}

func testEagerWindow(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	for _, want := range []bool{true, false, true} {
		b.SetEagerWindow(want)
		until(t, "window", func() bool { return ep.EagerOpen() == want })
	}
}

// testRandom runs random programs on three interfaces and compares with a
// model: for each pair a queue of messages in flight.
func testRandom(t *testing.T, open Factory) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const count = 3
	var nodes [count]*node
	var eps [count][count]hw.Endpoint
	for n := range nodes {
		nodes[n] = newNode(t, open)
	}
	attr := nodes[0].Attr()
	index := map[string]int{}
	for n, a := range nodes {
		index[string(a.Address())] = n
		for k, b := range nodes {
			eps[n][k] = a.connect(b)
		}
	}
	var flight [count][count][]message
	receive := func(k, limit int) {
		nodes[k].Progress(limit)
		for _, m := range nodes[k].got {
			n := index[string(nodes[k].SourceAddress(m.src))]
			if len(flight[n][k]) == 0 {
				t.Fatalf("%d got a message from %d that was not sent", k, n)
			}
			w := flight[n][k][0]
			flight[n][k] = flight[n][k][1:]
			m.check(t, w.id, w.header, w.head, w.payload)
		}
		nodes[k].got = nil
	}
	for range 20000 {
		n, k := r.IntN(count), r.IntN(count)
		m := message{id: hw.AMID(r.IntN(hw.MaxAM)), header: r.Uint64()}
		var err error
		switch r.IntN(4) {
		case 0, 1:
			m.head = patterned(r.IntN(attr.MaxAMShort+1), m.header)
			m.payload = patterned(r.IntN(attr.MaxAMShort-len(m.head)+1), m.header)
			err = eps[n][k].AMShort(m.id, m.header, m.head, m.payload)
		case 2:
			m.head = patterned(r.IntN(attr.MaxAMHead+1), m.header)
			m.payload = patterned(r.IntN(attr.MaxAMBcopy+1), m.header)
			err = eps[n][k].AMBcopy(m.id, m.header, m.head, len(m.payload), Packed(m.payload), 0)
		case 3:
			receive(k, 1+r.IntN(20))
			continue
		}
		if err == nil {
			flight[n][k] = append(flight[n][k], m)
		} else if !errors.Is(err, hw.ErrNoResource) {
			t.Fatal(err)
		}
	}
	for k := range nodes {
		until(t, "the rest", func() bool {
			receive(k, 100)
			return len(flight[0][k])+len(flight[1][k])+len(flight[2][k]) == 0
		})
		if s := nodes[k].Stats(); s.Malformed != 0 || s.Reclaimed != 0 {
			t.Errorf("stats %+v", s)
		}
	}
}

func testNoAllocation(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	count := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { count++ })
	head, data := make([]byte, 8), make([]byte, min(500, a.Attr().MaxAMBcopy))
	pack := func(d []byte) { copy(d, data) }
	networked := a.networked()
	allocs := testing.AllocsPerRun(1000, func() {
		before := count
		err1 := ep.AMShort(1, 0, head, head)
		for n := 0; networked && errors.Is(err1, hw.ErrNoResource) && n < 1e6; n++ {
			a.Progress(8)
			err1 = ep.AMShort(1, 0, head, head)
		}
		err2 := ep.AMBcopy(1, 0, head, len(data), pack, 0)
		for n := 0; networked && errors.Is(err2, hw.ErrNoResource) && n < 1e6; n++ {
			a.Progress(8)
			err2 = ep.AMBcopy(1, 0, head, len(data), pack, 0)
		}
		got := b.Progress(8)
		for n := 0; networked && got < 2 && n < 1e6; n++ {
			a.Progress(8)
			got += b.Progress(8)
		}
		if err1 != nil || err2 != nil || got != 2 || count != before+2 || b.Progress(8) != 0 {
			t.Fatal(err1, err2, got, count)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for two messages", allocs)
	}
}
