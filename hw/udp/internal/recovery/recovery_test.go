package recovery

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

func newPath(t testing.TB) *congestion.Path {
	t.Helper()
	cfg := congestion.DefaultConfig(1200)
	cfg.Algorithm = congestion.Fixed
	p, err := congestion.NewPath(cfg, rand.NewPCG(1, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const ms = congestion.Time(time.Millisecond)

// sendN sends n packets, one each millisecond from at.
func sendN(s *Sent, p *congestion.Path, at congestion.Time, n int) {
	for k := range n {
		now := at + congestion.Time(k)*ms
		s.Add(now, Packet{Offset: s.Number() * 1000, Len: 1000, Size: 1000, Flight: p.OnSend(now, 1000)})
	}
}

func ack(ranges ...wire.Range) *wire.Ack {
	a := &wire.Ack{N: len(ranges)}
	copy(a.Ranges[:], ranges)
	return a
}

func numbers(list []Packet) []uint64 {
	var n []uint64
	for _, p := range list {
		n = append(n, p.Number)
	}
	return n
}

func TestLossByThreshold(t *testing.T) {
	var s Sent
	p := newPath(t)
	sendN(&s, p, 0, 10)
	// 0 is missing; 1 to 3 have arrived: three later ones are enough.
	if err := s.OnAck(20*ms, 20*ms, ack(wire.Range{First: 1, Last: 3}), 0, p); err != nil || len(s.Acked) != 3 {
		t.Fatal(err, numbers(s.Acked))
	}
	s.Detect(20*ms, p)
	if n := numbers(s.Lost); len(n) != 1 || n[0] != 0 {
		t.Errorf("lost %v", n)
	}
	if s.Flying() != 6 || p.Inflight() != 6000 {
		t.Errorf("%d fly, %d bytes", s.Flying(), p.Inflight())
	}
}

func TestLossByTimeAfterReordering(t *testing.T) {
	var s Sent
	p := newPath(t)
	for range 10 { // all at once
		sendN(&s, p, 0, 1)
	}
	now := 20 * ms
	for _, r := range []wire.Range{{First: 1, Last: 1}, {First: 0, Last: 0}} { // 0 comes after 1
		if err := s.OnAck(now, now, ack(r), 0, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.OnAck(now, now, ack(wire.Range{First: 3, Last: 9}), 0, p); err != nil {
		t.Fatal(err)
	}
	s.Detect(now, p)
	if len(s.Lost) != 0 || s.Timer(p, 0) == 0 || !s.LossTimer() {
		t.Fatalf("lost %v at once though the path reorders; timer %v", numbers(s.Lost), s.Timer(p, 0))
	}
	at := s.Timer(p, 0)
	if at <= now || at > now+20*ms {
		t.Errorf("timer in %v", at.Sub(now))
	}
	s.Detect(at, p)
	if n := numbers(s.Lost); len(n) != 1 || n[0] != 2 {
		t.Errorf("lost %v", n)
	}
	// It arrives after all: more patience from now on.
	before := s.patience(p)
	err := s.OnAck(at, at, ack(wire.Range{First: 2, Last: 2}), 0, p)
	if err != nil || len(s.Acked) != 1 || s.Acked[0].Size != 1000 || !s.Acked[0].Late() {
		t.Fatal(err, s.Acked)
	}
	if s.patience(p) <= before {
		t.Errorf("patience %v, before %v", s.patience(p), before)
	}
}

func TestTimeout(t *testing.T) {
	var s Sent
	p := newPath(t)
	sendN(&s, p, 0, 3)
	if at := s.Timer(p, ackHold); at != 2*ms+congestion.Time(time.Second+ackHold) {
		t.Errorf("timer at %v before any sample", at)
	}
	s.Timeout(2000*ms, p)
	if len(s.Lost) != 3 || s.Flying() != 0 || p.Inflight() != 0 || s.Timer(p, 0) != 0 {
		t.Errorf("lost %v, %d fly, %d bytes", numbers(s.Lost), s.Flying(), p.Inflight())
	}
}

const ackHold = time.Millisecond

func TestHostileAcks(t *testing.T) {
	var s Sent
	p := newPath(t)
	sendN(&s, p, 0, 3)
	s.Skip()
	sendN(&s, p, 10*ms, 2)
	for name, a := range map[string]*wire.Ack{
		"never sent":  ack(wire.Range{First: 6, Last: 6}),
		"far away":    ack(wire.Range{First: 0, Last: 1 << 61}),
		"skipped":     ack(wire.Range{First: 2, Last: 5}),
		"skipped two": ack(wire.Range{First: 5, Last: 5}, wire.Range{First: 3, Last: 3}),
	} {
		c := s
		c.entries, c.back = slices.Clone(s.entries), slices.Clone(s.back)
		if err := c.OnAck(20*ms, 20*ms, a, 0, newPath(t)); !errors.Is(err, ErrAck) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A long delay does not make a round trip of nothing.
	a := ack(wire.Range{First: 5, Last: 5})
	a.Delay = time.Hour
	if err := s.OnAck(31*ms, 31*ms, a, 0, p); err != nil || p.RTT().Last() <= 0 {
		t.Errorf("%v, round trip %v", err, p.RTT().Last())
	}
}

// TestManyVoids: packets without acknowledgement push nothing out unseen.
func TestManyVoids(t *testing.T) {
	var s Sent
	p := newPath(t)
	sendN(&s, p, 0, 5)
	for range 3 * maxTable {
		s.Void()
	}
	if len(s.Forgotten) != 5 || s.Flying() != 0 {
		t.Errorf("%d forgotten, %d fly", len(s.Forgotten), s.Flying())
	}
	sendN(&s, p, 50*ms, 1)
	n := s.Number() - 1
	if err := s.OnAck(60*ms, 60*ms, ack(wire.Range{First: n - 100, Last: n}, wire.Range{First: 0, Last: 7}), 0,
		p); err != nil || len(s.Acked) != 1 {
		t.Errorf("%v, %v", err, numbers(s.Acked))
	}
}

// TestAddMany keeps packets many at a time and one by one.
func TestAddMany(t *testing.T) {
	var many, single Sent
	for n, free := 1, many.Free(); free > 0; free = many.Free() {
		n = min(n+3, free)
		p := Packet{Kind: 3, Offset: 1000 * many.Number(), Len: 1000, Size: 1040}
		p.Asked = true
		many.AddMany(7, p, n)
		for k := range n {
			p.Offset, p.Asked = 1000*single.Number(), k == n-1
			single.Add(7, p)
		}
		if many.Flying() != single.Flying() || many.Number() != single.Number() || many.Room() != single.Room() {
			t.Fatalf("%d and %d under way", many.Flying(), single.Flying())
		}
	}
	if many.Room() {
		t.Error("no more are free, but there is room")
	}
	for n := range many.Number() {
		if *many.single(n) != *single.single(n) {
			t.Fatalf("packet %d: %+v, %+v", n, *many.single(n), *single.single(n))
		}
	}
	var r Received
	r.Add(3)
	r.Add(5)
	r.AddMany(4)
	if r.Largest() != 9 || r.Check(9) != Duplicate || r.Check(4) != New || r.Check(10) != New {
		t.Errorf("up to %d", r.Largest())
	}
}

// TestAckTrains acknowledges trains, parts of them and single packets at once and one by one.
func TestAckTrains(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var trains, single Sent
		p, q := newPath(t), newPath(t)
		var have Ranges
		offset := uint64(0)
		for now := congestion.Time(1); now < 40; now++ {
			n, size := 1+r.IntN(30), uint32(1000+r.IntN(2))
			a := Packet{Offset: offset, Len: size, Size: size + 40, Reported: Reported{end: uint64(r.IntN(2))}}
			a.Flight = p.OnSendMany(now*ms, int64(a.Size), n)
			trains.AddMany(now*ms, a, n)
			a.Flight = q.OnSendMany(now*ms, int64(a.Size), n)
			for range n {
				single.Add(now*ms, a)
				a.Offset += uint64(size)
			}
			offset = a.Offset
			first := uint64(r.IntN(int(trains.Number())))
			k := ack(wire.Range{First: first, Last: first + uint64(r.IntN(int(trains.Number()-first)))})
			marked := uint32(r.IntN(2) * r.IntN(3))
			if err := trains.OnAck(now*ms+1, now*ms+1, k, marked, p); err != nil {
				t.Fatal(err)
			}
			if err := single.OnAck(now*ms+1, now*ms+1, k, marked, q); err != nil {
				t.Fatal(err)
			}
			var one, many Ranges
			for _, a := range single.Acked {
				one.Add(Span{a.Offset, a.Offset + uint64(a.Len)})
			}
			for _, a := range trains.Acked {
				span := Span{a.Offset, a.Offset + uint64(a.Len)}
				if have.Has(span) {
					t.Fatalf("%v is acknowledged twice", span)
				}
				many.Add(span)
				have.Add(span)
			}
			if !slices.Equal(one.spans, many.spans) || trains.Flying() != single.Flying() ||
				p.Inflight() != q.Inflight() ||
				trains.rackNumber != single.rackNumber || trains.reordered != single.reordered ||
				p.RTT().Last() != q.RTT().Last() {
				t.Fatalf("acknowledged %v and %v; %d and %d fly, %d and %d bytes", many.spans, one.spans,
					trains.Flying(), single.Flying(), p.Inflight(), q.Inflight())
			}
			trains.Detect(now*ms+1, p)
			single.Detect(now*ms+1, q)
			if !slices.Equal(numbers(trains.Lost), numbers(single.Lost)) {
				t.Fatalf("lost %v and %v", numbers(trains.Lost), numbers(single.Lost))
			}
		}
	}
}

func TestRoom(t *testing.T) {
	var s Sent
	p := newPath(t)
	n := 0
	for s.Room() {
		sendN(&s, p, 0, 1)
		n++
	}
	if n != maxTable-64 {
		t.Errorf("room for %d", n)
	}
}

// TestReceivedModel compares Received with a set.
func TestReceivedModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var rc Received
		seen := map[uint64]bool{}
		top := uint64(0)
		for range 2000 {
			n := uint64(max(0, int(top)+r.IntN(40)-25))
			v := rc.Check(n)
			if seen[n] && v == New {
				t.Fatalf("%d is taken twice", n)
			}
			if !seen[n] && v == Duplicate {
				t.Fatalf("%d never came", n)
			}
			if v != New {
				continue
			}
			if newest := rc.Add(n); newest != (n > top || len(seen) == 0) {
				t.Fatalf("%d newest %v, largest %d", n, newest, top)
			}
			seen[n] = true
			top = max(top, n)
			var a wire.Ack
			rc.Fill(&a)
			for k := range a.N {
				for x := a.Ranges[k].First; x <= a.Ranges[k].Last; x++ {
					if !seen[x] {
						t.Fatalf("%d is acknowledged and never came", x)
					}
				}
			}
			if a.Ranges[0].Last != top {
				t.Fatalf("largest %d, acknowledged %d", top, a.Ranges[0].Last)
			}
		}
	}
}

// TestReceivedKnown: what the peer is known to know is not notified again, but what
// came late is.
func TestReceivedKnown(t *testing.T) {
	var r Received
	notified := func(want ...wire.Range) {
		t.Helper()
		var a wire.Ack
		r.Fill(&a)
		if got := a.Ranges[:a.N]; !slices.Equal(got, want) {
			t.Errorf("says %v, want %v", got, want)
		}
	}
	for n := range uint64(40) { // 3, 13, 23 and 33 are missing
		if n%10 != 3 {
			r.Add(n)
		}
	}
	first := r.Report()
	all := []wire.Range{{First: 34, Last: 39}, {First: 24, Last: 32}, {First: 14, Last: 22}, {First: 4, Last: 12},
		{First: 0, Last: 2}}
	notified(all...)
	r.Add(41)
	r.Known(first)
	notified(wire.Range{First: 41, Last: 41})
	second := r.Report()
	r.Add(13)
	notified(wire.Range{First: 41, Last: 41}, wire.Range{First: 34, Last: 39}, wire.Range{First: 24, Last: 32},
		wire.Range{First: 4, Last: 22})
	r.Known(second) // did not report 13
	notified(wire.Range{First: 41, Last: 41}, wire.Range{First: 34, Last: 39}, wire.Range{First: 24, Last: 32},
		wire.Range{First: 4, Last: 22})
	r.Known(r.Report())
	notified(wire.Range{First: 41, Last: 41})
	if r.Check(5) != Duplicate || r.Check(3) != New {
		t.Error("what is not notified any more is forgotten")
	}
	r = Received{}
	for n := uint64(0); !r.Many(); n += 2 {
		if n > 100 {
			t.Fatal("never many")
		}
		r.Add(n)
	}
	r.Known(r.Report())
	if r.Many() {
		t.Error("many though the peer knows")
	}
}

func TestReceivedBounds(t *testing.T) {
	var r Received
	if r.Check(1<<40) != Wild {
		t.Error("a first number far away")
	}
	for n := range uint64(4 * keep) {
		r.Add(3 * n)
	}
	if r.n != keep || r.Check(1) != Old || r.Check(3*4*keep-5) != New || r.Check(3) != Old {
		t.Errorf("%d ranges", r.n)
	}
	if r.Check(3*4*keep+wildStep) != Wild {
		t.Error("a number far ahead")
	}
}

// TestRangesModel compares Ranges with a bitmap.
func TestRangesModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var s, except Ranges
		var bits, ex [200]bool
		for range 60 {
			from := r.IntN(190)
			span := Span{uint64(from), uint64(from + r.IntN(10))}
			switch r.IntN(5) {
			case 0:
				s.Remove(span)
				for i := span.From; i < span.To; i++ {
					bits[i] = false
				}
			case 1:
				except.Add(span)
				for i := span.From; i < span.To; i++ {
					ex[i] = true
				}
			case 2:
				s.AddWithout(span, &except)
				for i := span.From; i < span.To; i++ {
					bits[i] = bits[i] || !ex[i]
				}
			case 3:
				if s.Len() > 0 {
					cut := s.Cut(uint64(1 + r.IntN(5)))
					for i := cut.From; i < cut.To; i++ {
						if !bits[i] {
							t.Fatal("cut what is not there")
						}
						bits[i] = false
					}
				}
			default:
				s.Add(span)
				for i := span.From; i < span.To; i++ {
					bits[i] = true
				}
			}
			for i := range bits {
				if s.Has(Span{uint64(i), uint64(i + 1)}) != bits[i] {
					t.Fatalf("byte %d: %v", i, bits[i])
				}
			}
			for i := 1; i < s.Len(); i++ {
				if s.spans[i].From <= s.spans[i-1].To {
					t.Fatalf("spans touch: %v", s.spans)
				}
			}
		}
	}
}

// TestMTUSearch finds every size from both sides.
func TestMTUSearch(t *testing.T) {
	for _, carries := range []int{1200, 1300, 1472, 4000, 8972, 65507} {
		m := NewMTU(1200, 65507)
		sent := 0
		for range 200 {
			n := m.Next(1)
			if n == 0 {
				break
			}
			sent++
			m.Sending(n)
			if n <= carries {
				m.Arrived(n)
			} else {
				m.Lost(n)
			}
		}
		if got := m.Size(); got > carries || carries-got > enough {
			t.Errorf("path of %d: %d after %d probes", carries, got, sent)
		}
		if n := m.Next(congestion.Time(raiseAfter) * 2); carries < 65507 && n != 65507 {
			t.Errorf("path of %d: no new search later, but %d", carries, n)
		}
	}
}

func TestMTUShrinks(t *testing.T) {
	m := NewMTU(1200, 9000)
	m.Sending(m.Next(1))
	m.Arrived(9000)
	m.Timeout(9000)
	m.Timeout(9000)
	m.Timeout(5000)
	if m.Size() != 9000 {
		t.Error("a silent peer is no black hole")
	}
	m.Late(4999)
	m.Late(5000) // the peer was silent, and the path carried it
	if m.Answered() || m.Size() != 9000 {
		t.Errorf("large packets have arrived late: %d", m.Size())
	}
	for range blackHole {
		m.Timeout(5000)
	}
	m.Arrived(64)
	m.Late(4999)
	if !m.Answered() || m.Size() != 1200 {
		t.Errorf("small packets arrive, large ones do not: %d", m.Size())
	}
	if m.Late(9000); m.Size() != 1200 {
		t.Errorf("what was sent before raises the size: %d", m.Size())
	}
	if n := m.Next(1); n >= 5000 || n <= 1200 {
		t.Errorf("next probe %d", n)
	}
	m.TooBig(1400)
	if n := m.Next(1); n > 1400 {
		t.Errorf("next probe %d", n)
	}
	m.TooBig(10)
	if m.Size() != 1200 {
		t.Error("less than every host must take")
	}
}

// FuzzAck: arbitrary acknowledgements end without a fault, and never
// acknowledge more than was sent.
func FuzzAck(f *testing.F) {
	f.Add(uint64(3), uint64(4), uint64(0), uint64(1), int64(5))
	f.Fuzz(func(t *testing.T, a, b, c, d uint64, at int64) {
		var s Sent
		p := newPath(t)
		sendN(&s, p, 0, 20)
		s.Skip()
		sendN(&s, p, 30*ms, 20)
		now := 100*ms + congestion.Time(at%int64(time.Second))
		k := &wire.Ack{N: 2, Ranges: [wire.MaxRanges]wire.Range{{First: min(a, b), Last: max(a, b)},
			{First: min(c, d), Last: max(c, d)}}}
		if err := s.OnAck(now, now, k, uint32(a), p); err != nil && !errors.Is(err, ErrAck) {
			t.Error(err)
		}
		s.Detect(now, p)
		if s.Flying() < 0 || s.Flying() > 40 || p.Inflight() != int64(s.Flying())*1000 {
			t.Errorf("%d fly, %d bytes", s.Flying(), p.Inflight())
		}
	})
}

// TestArrivals: an acknowledgement that comes late makes the sender slower if its packet was late by what it says, and
// not if that arrived as soon as ever. The receiver's clock is not the sender's.
func TestArrivals(t *testing.T) {
	const later = 3 * time.Second
	for _, there := range []time.Duration{500 * time.Microsecond, 19 * time.Millisecond} {
		p, err := congestion.NewPath(congestion.DefaultConfig(1200), rand.NewPCG(1, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		var s Sent
		now := congestion.Time(time.Second)
		trip := func(there, all time.Duration) {
			sendN(&s, p, now, 1)
			a := ack(wire.Range{First: s.Number() - 1, Last: s.Number() - 1})
			a.Arrived = uint32(now.Add(there + later))
			now = now.Add(all)
			if err := s.OnAck(now, now, a, 0, p); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			trip(500*time.Microsecond, time.Millisecond)
		}
		before := p.Control().Inspect().Cuts
		for range 40 {
			trip(there, 20*time.Millisecond)
		}
		if cuts := p.Control().Inspect().Cuts - before; (cuts != 0) != (there > time.Millisecond) {
			t.Errorf("packets take %v of 20 ms: %d cuts", there, cuts)
		}
	}
}
