package cxi

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// flooding is a receiver with little room and senders that fill it.
type flooding struct {
	t       *testing.T
	b       *matching
	senders []*matching
	sent    []int // of each sender
	ended   []int
	busy    [][floodWindow]bool // memory of messages in flight
	idle    bool                // the receiver does not take part
}

const (
	floodMost   = 20000 // bytes of a message
	floodWindow = 160   // messages of a sender in flight
)

func newFlooding(t *testing.T, c MatchConfig, senders int) *flooding {
	f := &flooding{t: t, b: newMatching(t, c, floodMost), sent: make([]int, senders), ended: make([]int, senders),
		busy: make([][floodWindow]bool, senders)}
	for k := range senders {
		x := newMatching(t, MatchConfig{Sends: floodWindow}, floodWindow*floodMost)
		x.m.OnMatch(func(e *hw.MatchEvent) {
			if !errors.Is(e.Err, hw.ErrCanceled) && e.Err != nil || int(e.Context)%senders != k {
				t.Errorf("sender %d: %+v", k, *e)
			}
			f.ended[k]++
			f.busy[k][int(e.Context)/senders%floodWindow] = false
		})
		f.senders = append(f.senders, x)
	}
	return f
}

// length is that of a sender's message n.
func (f *flooding) length(sender, n int) int {
	return []int{0, 8, 300, 5000, 18434, 192, 20000, 2048}[(n*3+sender)%8]
}

// progress has everybody make some, and senders send up to count messages each.
func (f *flooding) progress(count int) {
	for k, x := range f.senders {
		for f.sent[k] < count && !f.busy[k][f.sent[k]%floodWindow] {
			n := f.sent[k]
			at := n % floodWindow * floodMost
			fillBytes(x.b[at:at+f.length(k, n)], uint64(n*16+k))
			s := hw.MatchSend{To: f.b.self, Tagged: true, Tag: uint64(k), Data: uint64(n),
				HasData: true, Local: x.at(at, f.length(k, n)),
				Matched: n%5 == 0, Context: uint64(n*len(f.senders) + k)}
			err := x.m.PostMatched(&s)
			if errors.Is(err, hw.ErrNoResource) {
				break
			}
			if err != nil {
				f.t.Fatal(err)
			}
			f.busy[k][n%floodWindow] = true
			f.sent[k]++
		}
		x.poll()
	}
	if !f.idle {
		f.b.poll()
	}
}

// poll makes progress unless it is known that there is nothing to do, where it can.
func (x *matching) poll() {
	if p := &x.i.driver.transport; p.Len() == 0 || !p.At(0).Watch.Calm() {
		x.i.Progress(16)
	}
}

// drain receives messages of each sender, up to count, and checks them.
func (f *flooding) drain(from, count int) {
	f.t.Helper()
	want := make([]byte, floodMost)
	for n := from; n < count; n++ {
		for k, x := range f.senders {
			f.b.clear()
			r := hw.MatchReceive{From: x.self, Tagged: true, Tag: uint64(k), Local: f.b.at(0, floodMost)}
			end := time.Now().Add(30 * time.Second)
			for _, err := f.b.m.PostReceive(&r); err != nil; _, err = f.b.m.PostReceive(&r) {
				if f.progress(count); !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
					f.t.Fatalf("message %d of sender %d: %v", n, k, err)
				}
			}
			for len(f.b.events) == 0 {
				if f.progress(count); time.Now().After(end) {
					rx := &f.b.i.match.rx
					f.t.Fatalf("message %d of sender %d has not come: state %d, %d drops, %d taken over, "+
						"%d notified; sent %v, ended %v, %+v",
						n, k, rx.flow.state(), rx.flow.core.drops, rx.soft.count(),
						len(rx.flow.core.notified), f.sent, f.ended, x.i.match.tx.full)
				}
			}
			e := f.b.events[0]
			length := f.length(k, n)
			fillBytes(want[:length], uint64(n*16+k))
			if e.Err != nil || e.Data != uint64(n) || e.Wanted != uint64(length) ||
				!bytes.Equal(f.b.b[:length], want[:length]) {
				f.t.Fatalf("message %d of sender %d: %+v", n, k, e)
			}
		}
	}
	for end := time.Now().Add(30 * time.Second); ; {
		f.progress(count)
		all := true
		for k := range f.senders {
			all = all && f.ended[k] == count
		}
		if all {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("sent %v, ended %v", f.sent, f.ended)
		}
	}
}

// dropped is how many messages the receiver's NIC has refused.
func (f *flooding) dropped() (n uint64) {
	for _, x := range f.senders {
		n += x.m.(hw.MatchCounter).MatchStats().Dropped
	}
	return n
}

// stopped reports that the receiver's NIC had no room for this reason, and that software has taken messages over.
func (f *flooding) stopped(reason hw.MatchReason) bool {
	return f.b.i.match.rx.soft.count() > 0 && f.b.m.(hw.MatchCounter).MatchStats().Stopped[reason] > 0 &&
		(f.dropped() > 0 || reason == hw.MatchBySoftware)
}

// TestFlow: a receiver that has no room, for whatever reason, gets every message in order when it has, from each
// sender.
func TestFlow(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		reason         hw.MatchReason
		config         MatchConfig
		senders        int
	}{
		{"buffers", "", hw.MatchNoBuffers, MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 1},
		{"buffers, three senders", "", hw.MatchNoBuffers, MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 3},
		{"buffers, second generation", "version=2", hw.MatchNoBuffers, MatchConfig{Buffers: 2,
			BufferBytes: 40000, Receives: 8}, 2},
		{"events", "", hw.MatchNoEvents, MatchConfig{Events: 64, Receives: 8}, 2},
		{"events, second generation", "version=2", hw.MatchNoEvents, MatchConfig{Events: 64, Receives: 8}, 1},
		{"entries", "les=95", hw.MatchNoEntries, MatchConfig{Buffers: 2, Receives: 8}, 2},
		{"requests", "", hw.MatchNoRequests, MatchConfig{Mode: MatchSoftware, Requests: 2, RequestBytes: 40000,
			Receives: 8}, 3},
		{"requests, second generation, shuffled", "version=2 shuffle=1", hw.MatchNoRequests, MatchConfig{
			Mode: MatchSoftware, Requests: 2, RequestBytes: 40000, Receives: 8}, 2},
		{"events, by software", "", hw.MatchNoEvents, MatchConfig{Mode: MatchSoftware, Events: 64,
			Receives: 8}, 2},
		{"buffers, hybrid", "", hw.MatchNoBuffers, MatchConfig{Mode: MatchHybrid, Buffers: 2,
			BufferBytes: 40000, Receives: 8}, 2},
		{"unexpected, hybrid", "", hw.MatchBySoftware, MatchConfig{Mode: MatchHybrid, Unexpected: 20,
			Requests: 2, RequestBytes: 40000, Receives: 8}, 2},
		{"entries, hybrid", "les=99", hw.MatchSoftUnexpected, MatchConfig{Mode: MatchHybrid, Buffers: 2,
			Requests: 2, RequestBytes: 40000, Receives: 8}, 2},
		{"entries, hybrid, shuffled", "les=99 shuffle=1 version=2 get=0", hw.MatchSoftUnexpected, MatchConfig{
			Mode: MatchHybrid, Buffers: 2, Requests: 2, RequestBytes: 40000, Events: 64, Receives: 8}, 2},
		{"all, shuffled, data got by software", "shuffle=1 get=0", hw.MatchNoBuffers, MatchConfig{Buffers: 2,
			BufferBytes: 40000, Events: 64, Receives: 8}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				out := alone(t, "fabric=-1 "+c.settings)
				if n := strings.Count(out, saysSoftware); c.config.Mode == MatchHybrid && n != 1 {
					t.Errorf("it says %d times that software matches", n)
				}
				t.Log(out)
				return
			}
			f := newFlooding(t, c.config, c.senders)
			f.drain(0, 8) // now all have list entries for long messages
			for _, f.idle = range []bool{true, false} {
				least, most := time.Now().Add(20*time.Millisecond), time.Now().Add(20*time.Second)
				for time.Now().Before(least) || !f.idle && !f.stopped(c.reason) && time.Now().Before(most) {
					f.progress(200)
				}
			}
			soft := &f.b.i.match.rx.soft
			for end := time.Now().Add(10 * time.Second); soft.count() == 0 && time.Now().Before(end); {
				f.progress(200) // the NIC's thread may have to wait for a processor
			}
			over := soft.count()
			if f.drain(8, 200); over == 0 || soft.count() != 0 {
				t.Errorf("%d messages were taken over", over)
			}
			s, dropped := f.b.m.(hw.MatchCounter).MatchStats(), f.dropped()
			want := hw.MatchEnabled
			if c.config.Mode != MatchHardware {
				want = hw.MatchEnabledSoftware
			} else if s.Onloaded != s.Software {
				t.Errorf("%d messages taken over, %d matched", s.Onloaded, s.Software)
			}
			if s.Stopped[c.reason] == 0 || s.State != want || s.Malformed != 0 ||
				dropped == 0 && c.reason != hw.MatchBySoftware {
				t.Errorf("%d dropped; %+v", dropped, s)
			}
		})
	}
}

// TestFlowEntries has messages take list entries before their receives come, one more each time, until there are none:
// receives that are then refused get theirs.
func TestFlowEntries(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, "fabric=-1 les=95"))
		return
	}
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{Buffers: 2, Receives: 64}, 4096)
	for count := 1; count < 64; count++ {
		for k := range count {
			a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Data: uint64(k), HasData: true,
				Local: a.at(k, 8)})
		}
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); a.i.Progress(8) {
			b.i.Progress(64)
		}
		other := b.post(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 2, Local: b.at(0, 8),
			Context: 99})
		for k := range count {
			b.post(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 1, Local: b.at(0, 8),
				Context: uint64(k)})
		}
		await(a, b, count, count)
		for _, e := range b.events {
			if e.Data != e.Context || e.Tag != 1 {
				t.Fatalf("%d messages: %+v", count, e)
			}
		}
		for err := b.m.CancelReceive(other); errors.Is(err, hw.ErrNoResource); err = b.m.CancelReceive(other) {
			b.i.Progress(64)
		}
		await(a, b, count, count+1)
		a.clear()
		b.clear()
	}
	s := b.m.(hw.MatchCounter).MatchStats()
	if s.Stopped[hw.MatchBySoftware] == 0 || s.State != hw.MatchEnabled {
		t.Errorf("%+v", s)
	}
}

// TestRecall: a NIC leaves matching to software, has no room for that either and stops, all while its receiver posts
// receives. Each gets its message, in order, also one that takes many.
func TestRecall(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, "fabric=-1 les=95"))
		return
	}
	const length = 5000
	for _, multi := range []bool{false, true} {
		a := newMatching(t, MatchConfig{}, length)
		b := newMatching(t, MatchConfig{Mode: MatchHybrid, Buffers: 2, Requests: 2, RequestBytes: 40000,
			Receives: 128}, 200*length)
		count := 0
		for ; a.m.(hw.MatchCounter).MatchStats().Dropped == 0; count++ {
			if count == 100 {
				t.Fatalf("the receiver has room for %d messages", count)
			}
			a.send(hw.MatchSend{To: b.self, Tagged: !multi, Tag: 1, Data: uint64(count), HasData: true,
				Local: a.at(0, length)})
			for end := time.Now().Add(30 * time.Second); a.i.match.txOf(b.self).inFlight() > 0; a.i.Progress(8) {
				if a.m.(hw.MatchCounter).MatchStats().Dropped > 0 || time.Now().After(end) {
					break
				}
			}
		}
		for k := range count {
			r := hw.MatchReceive{From: hw.AnyAddress, Tagged: !multi, Tag: 1, Local: b.at(k*length, length),
				Context: uint64(k)}
			if multi {
				r.Multi, r.MinFree, r.Local = true, length, b.at(k*2*length, 2*length)
			}
			if multi && k >= (count+1)/2 {
				break
			}
			b.post(r)
		}
		await(a, b, count, count)
		for k, e := range b.events {
			at := e.Context
			if multi {
				at = 2*e.Context + e.Offset/length
			}
			if e.Err != nil || e.Data != uint64(k) || e.Data != at {
				t.Errorf("event %d: %+v", k, e)
			}
		}
		if s := b.m.(hw.MatchCounter).MatchStats(); s.Stopped[hw.MatchSoftUnexpected] != 1 ||
			s.State != hw.MatchEnabledSoftware || s.Malformed != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// post posts a receive when there is room for it.
func (x *matching) post(r hw.MatchReceive) hw.MatchID {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; x.i.Progress(64) {
		id, err := x.m.PostReceive(&r)
		if err == nil {
			return id
		}
		if !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
			x.t.Fatal(err)
		}
	}
}
