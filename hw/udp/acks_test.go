package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/congestion"
	"github.com/weft-fabric/weft/hw"
)

// TestSparedAcks has an acknowledgement go with every second packet of those that
// answer each other quickly, and with every one otherwise.
func TestSparedAcks(t *testing.T) {
	start := congestion.Time(time.Hour)
	soon, late := quickAsks/2, 2*quickAsks
	for name, c := range map[string]struct {
		gaps  []time.Duration // before each packet that comes
		then  time.Duration   // until one leaves
		owing func(*receiver)
		want  bool
	}{
		"the first":        {gaps: []time.Duration{0}},
		"quick":            {gaps: []time.Duration{0, soon}, want: true},
		"slow":             {gaps: []time.Duration{0, late}},
		"quick after slow": {gaps: []time.Duration{0, late, soon}, want: true},
		"slow after quick": {gaps: []time.Duration{0, soon, late}},
		"a late answer":    {gaps: []time.Duration{0, soon}, then: late},
		"two":              {gaps: []time.Duration{0, soon}, owing: func(r *receiver) { r.pending = 2 }},
		"asked for":        {gaps: []time.Duration{0, soon}, owing: func(r *receiver) { r.now = true }},
		"must be told":     {gaps: []time.Duration{0, soon}, owing: func(r *receiver) { r.tell = true }},
		"a full window":    {gaps: []time.Duration{0, soon}, owing: func(r *receiver) { r.wants = true }},
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

// TestQuickAnswers has two sides answer each other, one with long messages now and then. However many acknowledgements were
// spared, in the end both know that all has arrived.
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
