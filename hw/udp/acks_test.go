package udp

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// TestSparedAcks has an acknowledgement go with every second packet of those that
// go on answering each other quickly, and with every one otherwise.
func TestSparedAcks(t *testing.T) {
	start := congestion.Time(time.Hour)
	soon, late := quickAsks/2, 2*quickAsks
	quick := append([]time.Duration{late}, slices.Repeat([]time.Duration{soon}, quickRow)...)
	for name, c := range map[string]struct {
		gaps  []time.Duration // before each packet that comes
		then  time.Duration   // until one leaves
		owing func(*receiver)
		want  bool
	}{
		"the first":        {gaps: []time.Duration{late}},
		"few":              {gaps: quick[1:]},
		"many":             {gaps: quick, want: true},
		"slow":             {gaps: append(slices.Clone(quick), late)},
		"few after":        {gaps: slices.Concat(quick, []time.Duration{late}, quick[2:])},
		"many after":       {gaps: slices.Concat(quick, quick), want: true},
		"a late answer":    {gaps: quick, then: late},
		"two":              {gaps: quick, owing: func(r *receiver) { r.pending = 2 }},
		"asked for":        {gaps: quick, owing: func(r *receiver) { r.now = true }},
		"must be notified": {gaps: quick, owing: func(r *receiver) { r.creditDue = true }},
		"a full window":    {gaps: quick, owing: func(r *receiver) { r.wants = true }},
	} {
		var r receiver
		now := start
		for _, gap := range c.gaps {
			now = now.Add(gap)
			r.pending = 0
			r.asks(now)
		}
		if c.owing != nil {
			c.owing(&r)
		}
		if got := r.spares(now.Add(c.then)); got != c.want {
			t.Errorf("%s: spared is %v", name, got)
		}
	}
}

// TestQuickAnswers has two sides answer each other, one with long messages now and then. However many acknowledgements
// were spared, in the end both know that all has arrived.
func TestQuickAnswers(t *testing.T) {
	c := Config{MaxPacket: 1472}
	a, b := open(t, false, c), open(t, false, c)
	there := pair(t, a, b).(*Endpoint)
	back := pair(t, b, a).(*Endpoint)
	var asked, answered int
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { asked++ })
	a.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { answered++ })
	for n := 1; n <= 501; n++ {
		if err := there.AMShort(1, 0, nil, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "question", func() bool { b.Progress(1); return asked == n })
		long := n % 2 * 8000 // a train
		eventually(t, "room", func() bool {
			return bcopy(t, back, 0, nil, 8+long, func(dst []byte) { clear(dst) })
		})
		eventually(t, "answer", func() bool { a.Progress(1); return answered == n })
	}
	for _, c := range []*Endpoint{there, back} {
		eventually(t, "acknowledgement", func() bool {
			a.Progress(1)
			b.Progress(1)
			c.s.lease.lock()
			defer c.s.leave()
			return c.tx.acked == c.tx.tail && c.tx.sent.Flying() == 0
		})
	}
}

// TestAckByPing has an acknowledgement that goes with a ping, because many ranges are to be
// notified, not spared when packets come quickly.
func TestAckByPing(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	c := pair(t, a, b).(*Endpoint)
	eventually(t, "silence", func() bool {
		a.Progress(1)
		b.Progress(1)
		c.s.lease.lock()
		defer c.s.leave()
		return c.tx.sent.Flying() == 0 && c.rx.seen.Any()
	})
	c.s.lease.lock()
	defer c.s.leave()
	r, now := &c.rx, a.now()
	for n := r.seen.Next(); !r.seen.Many(); n += 2 {
		r.seen.Add(n + 1)
	}
	r.pending, r.quick, r.askedAt = 1, quickRow, now
	if !r.spares(now) {
		t.Fatal("nothing to spare")
	}
	c.rx.acknowledge(now)
	if r.pending != 0 || c.tx.sent.Flying() != 1 {
		t.Errorf("%d packets are not acknowledged, %d under way", r.pending, c.tx.sent.Flying())
	}
}

// TestArrived: an acknowledgement says when the packet with the largest number came, by whatever knows it.
func TestArrived(t *testing.T) {
	for name, c := range map[string]Config{"socket": {NoInbox: true}, "inbox": {}} {
		t.Run(name, func(t *testing.T) { arrived(t, open(t, false, c), open(t, false, c)) })
	}
}

// arrived has one message go from a to b.
func arrived(t *testing.T, a, b *Iface) {
	there := pair(t, a, b).(*Endpoint)
	back := pair(t, b, a).(*Endpoint)
	came := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { came++ })
	now := b.now()
	eventually(t, "a poll", func() bool { // no arrival is before the poll before it, whatever the wall clock's reading
		b.Progress(1)
		back.s.lease.lock()
		defer back.s.leave()
		return back.s.emptyAt >= now
	})
	before := uint32(now)
	if err := there.AMShort(1, 0, nil, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a message", func() bool { a.Progress(1); b.Progress(1); return came == 1 })
	r := &back.rx
	if r.makeAck(b.now()) == 0 {
		t.Fatal("nothing to acknowledge")
	}
	got := back.s.frame.ack.Arrived
	after, most := int32(got-before), int32(uint32(b.now())-before)
	if got != uint32(r.largestAt) || after < 0 || after > most {
		t.Errorf("arrived at %d, kept %d, after %d ns of %d", got, uint32(r.largestAt), after, most)
	}
}
