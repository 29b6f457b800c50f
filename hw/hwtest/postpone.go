package hwtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/internal/hot"
)

// picky checks messages that come in the order of their headers, and postpones each some times before it takes it.
type picky struct {
	t       *testing.T
	on      *node
	times   func(n uint64) int // how often message n is postponed
	want    uint64             // the next message
	left    int                // how often that is still to be postponed, -1: it has not come yet
	refused int                // calls that ended so
}

// content is the head and the payload of message n, which has up to limit bytes.
func (p *picky) content(n uint64, limit int) (head, payload []byte) {
	return patterned(int(n%9), n), patterned(int(n*n%uint64(limit+1)), n+1)
}

// handler takes messages with payloads of up to limit bytes.
func (p *picky) handler(limit int) hw.Handler {
	p.left = -1
	return func(_ hw.Source, header uint64, head, payload []byte) {
		p.t.Helper()
		h, b := p.content(p.want, limit)
		if header != p.want || !bytes.Equal(head, h) || !bytes.Equal(payload, b) {
			p.t.Fatalf("message %d of %d and %d bytes instead of %d", header, len(head), len(payload), p.want)
		}
		if p.left < 0 {
			p.left = p.times(header)
		}
		if p.left > 0 {
			p.left--
			p.refused++
			p.on.Postpone()
			return
		}
		p.want++
		p.left = -1
	}
}

// testPostpone has messages of all kinds postponed: each is delivered once in the end, whole and in order. While one is
// postponed its sender finds no room some time, and all comes when it is taken.
func testPostpone(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep, limit := a.connect(b), min(a.Attr().MaxAMShort-8, a.Attr().MaxAMBcopy)
	stuck := false
	p := &picky{t: t, on: b, times: func(n uint64) int {
		if stuck {
			return 1 << 30
		}
		return int(n * 7 % 3)
	}}
	b.SetHandler(1, p.handler(limit))
	sent := uint64(0)
	post := func() error {
		head, payload := p.content(sent, limit)
		var err error
		if sent%3 == 0 {
			err = ep.AMBcopy(1, sent, head, len(payload), Packed(payload), 0)
		} else {
			err = ep.AMShort(1, sent, head, payload)
		}
		if err == nil {
			sent++
		}
		return err
	}
	progress := func(limit int) {
		a.Progress(0)
		before := p.want
		if n := b.Progress(limit); uint64(n) < p.want-before || n > limit {
			t.Fatalf("%d messages are said to be delivered, of %d", n, p.want-before)
		}
	}
	for sent < 3000 {
		err := post()
		if err != nil && !errors.Is(err, hw.ErrNoResource) {
			t.Fatal(err)
		}
		if err != nil || sent%5 == 0 {
			progress(4)
		}
	}
	until(t, "all messages", func() bool { progress(16); return p.want == sent })
	stuck = true
	until(t, "no room behind a message that stays", func() bool {
		progress(16)
		return errors.Is(post(), hw.ErrNoResource)
	})
	if refused := p.refused; p.want == sent {
		t.Error("a postponed message was taken")
	} else if progress(16); p.refused == refused {
		t.Error("a postponed message is not offered again")
	}
	stuck, p.left = false, 0
	until(t, "all messages at last", func() bool { progress(16); return p.want == sent })
	if got := b.Stats().Delivered; got != sent {
		t.Errorf("%d messages are counted, of %d", got, sent)
	}
}

// testPostponeDriven does so where C takes some of the messages.
func testPostponeDriven(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	way, transport := ep.(hw.DrivenEndpoint).HotPath(), b.Iface.(hw.Driven).HotTransport()
	limit := int(way.Max) - 8
	p := &picky{t: t, on: b, times: func(n uint64) int { return int(n % 4) }}
	take := p.handler(limit)
	b.SetHandler(3, take)
	sent, polls, byC := uint64(0), 0, 0
	const count = 3000
	until(t, "all messages", func() bool {
		for range 6 {
			head, payload := p.content(sent, limit)
			if sent == count || len(head)%8 != 0 {
				break
			}
			found := drive.SendHold(way, 3, sent, head, payload, int(sent%3))
			if found == hot.PathFull || found == hot.PathGo {
				break
			}
			sent++
		}
		if head, payload := p.content(sent, limit); sent < count && len(head)%8 != 0 &&
			ep.AMShort(3, sent, head, payload) == nil {
			sent++
		}
		a.Progress(0)
		if polls++; polls%4 == 0 {
			b.Progress(3)
			return p.want == count
		}
		switch m, found := drive.Next(transport); found {
		case hot.TransportArrival:
			if p.left > 0 { // the data plane has no memory either
				b.Progress(1)
				break
			}
			p.left = 0
			take(0, m.Header, m.Head, m.Payload)
			drive.Take(transport)
			byC++
		case hot.TransportGo:
			b.Progress(3)
		}
		return p.want == count
	})
	if byC == 0 || p.refused == 0 {
		t.Errorf("C has taken %d messages, and %d were postponed", byC, p.refused)
	}
	if got := b.Stats().Delivered; got != count {
		t.Errorf("%d messages are counted", got)
	}
}
