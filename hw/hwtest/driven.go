package hwtest

import (
	"bytes"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/internal/hot"
)

// testDriven sends and receives as C does, mixed with Go's own: every message
// comes once and in order, whichever thread sends and whichever takes it.
func testDriven(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	way := ep.(hw.DrivenEndpoint).HotPath()
	transport := b.Iface.(hw.Driven).HotTransport()
	if longest := int(way.Max); longest < 8 {
		t.Fatalf("C may send %d bytes", longest)
	}
	content := func(n int) []byte { return patterned(n%(int(way.Max)-7), uint64(n)) }
	head := func(n int) []byte { return patterned(n%2*8, uint64(n)) }
	const count = 2000
	inC, sent, taken, byC := 0, 0, 0, 0
	var want int
	check := func(id hw.AMID, header uint64, h, payload []byte) {
		if id != 3 || header != uint64(want) || !bytes.Equal(h, head(want)) || !bytes.Equal(payload, content(want)) {
			t.Fatalf("message %d is id %d, header %d, %x, %x", want, id, header, h, payload)
		}
		want++
	}
	b.SetHandler(3, func(_ hw.Source, header uint64, h, payload []byte) { check(3, header, h, payload) })
	for end := time.Now().Add(Deadline); want < count; {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages, %d sent", want, count, sent)
		}
		for range 12 { // in a row, so that messages may be corked
			if sent == count {
				break
			}
			if sent%5 == 4 {
				if ep.AMShort(3, uint64(sent), head(sent), content(sent)) == nil {
					sent++
				}
				continue
			}
			switch found := drive.SendHold(way, 3, uint64(sent), head(sent), content(sent), sent%3); found {
			case hot.PathSent, hot.PathCorked:
				sent++
				inC++
			case hot.PathFull, hot.PathGo:
				a.Progress(0)
			default:
				t.Fatalf("send says %d", found)
			}
		}
		a.Progress(0)
		if taken++; taken%11 == 0 {
			b.Progress(3)
			continue
		}
		m, found := drive.Next(transport)
		switch found {
		case hot.TransportArrival:
			if again, found := drive.Next(transport); found != hot.TransportArrival || again.Header != m.Header {
				t.Fatalf("the next poll finds %d, message %d instead of %d", found, again.Header, m.Header)
			}
			check(m.ID, m.Header, m.Head, m.Payload)
			if drive.Take(transport) {
				if _, found := drive.Next(transport); found == hot.TransportEmpty {
					t.Fatalf("nothing is at hand behind message %d, which was said to be", m.Header)
				}
			}
			byC++
		case hot.TransportGo:
			b.Progress(3)
		}
	}
	if inC < count/4 || byC < count/4 {
		t.Errorf("C has sent %d messages of %d and taken %d", inC, count, byC)
	}
	if got := b.Stats().Delivered; got != count {
		t.Errorf("%d messages are counted", got)
	}
}

// testDrivenStops: C does not send what Go would refuse or hold back.
func testDrivenStops(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	way := ep.(hw.DrivenEndpoint).HotPath()
	send := func() int { return drive.Send(way, 3, 0, nil, []byte{1}) }
	retry(t, b, func() error {
		if send() != hot.PathSent {
			return hw.ErrNoResource
		}
		return nil
	})
	b.SetEagerWindow(false)
	until(t, "the closed window", func() bool { a.Progress(0); b.Progress(8); return send() == hot.PathGo })
	b.SetEagerWindow(true)
	until(t, "the open window", func() bool { a.Progress(0); b.Progress(8); return send() == hot.PathSent })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end", func() bool { a.Progress(0); a.CheckPeers(); return send() == hot.PathGo })
}
