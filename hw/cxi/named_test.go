package cxi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
)

// newNamed is a station with a matched endpoint, by whose name peers reach it; pid 0: any.
func newNamed(t *testing.T, pid uint32, isNamed bool) *station {
	t.Helper()
	var match MatchConfig
	if pid != 0 {
		match.PID = &pid
	}
	s := &station{Iface: open(t, Config{RxBuffers: 4, RxBytes: 4096, BounceBytes: 256, KeepAlive: time.Hour,
		ConnectWait: time.Microsecond, Named: isNamed, Match: match.forTest()})}
	s.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) { s.got = append(s.got, header) })
	s.OnPeerEvent(func(hw.PeerEvent) { s.gone++ })
	return s
}

// TestNamed: interfaces reach each other by the names of their matched endpoints, and no other's; a new interface in
// the place of one that has closed is reached, too.
func TestNamed(t *testing.T) {
	a, b := newNamed(t, 0, true), newNamed(t, 0, true)
	name := b.Matcher().MatchName()
	if string(b.Address()) != string(name) {
		t.Fatalf("address % x, name % x", b.Address(), name)
	}
	say(t, reach(t, a, b, a, b), 7, b, a, b)
	say(t, reach(t, b, a, a, b), 8, a, a, b)
	if !b.SourceReaches(0, a.Address()) || b.SourceReaches(0, b.Address()) {
		t.Error("the source of a's message is not a")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of b is not reported", func() bool { return a.gone == 2 }, a)
	n, _ := proto.ParseName(name, b.d.pidBits())
	c := newNamed(t, n.PID, true)
	say(t, reach(t, a, c, a, c), 9, c, a, c)
}

// TestNotNamed: an endpoint without messages of weft's own, one of libfabric's provider, and names of nothing are
// refused, with the reason. A PID of nothing, or of what is not enabled yet, is not: it may come.
func TestNotNamed(t *testing.T) {
	a, quiet := newNamed(t, 0, true), newNamed(t, 0, false)
	d := domain(t)
	var of [2]networks // as of an endpoint that is not enabled, and of one of libfabric's provider
	for k := range of {
		if err := of[k].open(d, []uint16{a.addr.vni}, uint32(0x1f0+k)); err != nil {
			t.Fatal(err)
		}
	}
	var events eventQueue
	var table portal
	err := events.open(d, 64, true, nil, 0)
	if err == nil {
		err = table.open(d, 64, &events)
	}
	if err == nil {
		_, err = table.add(d, &events, of[1], proto.IndexControl)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(table.close(), events.close(), of[0].close(d), of[1].close(d)); err != nil {
			t.Error(err)
		}
	}()
	name := func(pid uint32) []byte { return proto.Name{NID: a.addr.nid, PID: pid}.AppendTo(nil) }
	for _, c := range []struct {
		what string
		name []byte
		kind error
		says string
	}{
		{"no messages", quiet.Matcher().MatchName(), hw.ErrNoPath, "FI_COLLECTIVE"},
		{"no index", name(0x1f1), hw.ErrNoPath, "libfabric's provider"},
		{"not enabled", name(0x1f0), hw.ErrUnreachable, fmt.Sprintf("PID 496 of NIC %#x is not there", a.addr.nid)},
		{"no PID", name(300), hw.ErrUnreachable, "is not there"},
		{"a VNI", proto.Name{NID: a.addr.nid, PID: 1, VNI: 10}.AppendTo(nil), hw.ErrInvalid, "name"},
		{"no name", []byte("short"), hw.ErrInvalid, "name"},
	} {
		var err, asked error
		wait := 10 * time.Second
		if errors.Is(c.kind, hw.ErrUnreachable) {
			wait = 3 * refusedTime
		}
		for end := time.Now().Add(wait); time.Now().Before(end); a.Progress(4) {
			if _, err = a.Connect(c.name); !errors.Is(err, hw.ErrUnreachable) {
				break
			}
			if strings.Contains(err.Error(), c.says) {
				asked = err
			}
		}
		if errors.Is(c.kind, hw.ErrUnreachable) && errors.Is(err, c.kind) && !errors.Is(err, hw.ErrNoPath) {
			err = asked
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// TestNamedFor: an interface is called by its own matched endpoint's name only, and has one.
func TestNamedFor(t *testing.T) {
	a := newNamed(t, 0, true)
	other := a.addr
	other.pid++
	if !a.named.greets(a.addr, a.name) || a.named.greets(other, a.name) || a.named.greets(a.addr, nil) {
		t.Error("a peer may call itself by another's name")
	}
	if _, err := domain(t).Open(Config{Named: true}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("named without a matched endpoint: %v", err)
	}
}

// TestNamedMany: more addresses are asked for at once than there are questions, and all are answered.
func TestNamedMany(t *testing.T) {
	a, b := newNamed(t, 0, true), newNamed(t, 0, true)
	absent := map[uint32]bool{}
	for end := time.Now().Add(10 * time.Second); len(absent) < 2*maxQuestions; a.Progress(4) {
		for pid := range uint32(2 * maxQuestions) {
			pid += 300 // of nothing
			if absent[pid] {
				continue
			}
			_, err := a.Connect(proto.Name{NID: a.addr.nid, PID: pid}.AppendTo(nil))
			if !errors.Is(err, hw.ErrUnreachable) && !errors.Is(err, hw.ErrNoResource) {
				t.Fatal(err)
			}
			if strings.Contains(err.Error(), "is not there") {
				absent[pid] = true
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d answers", len(absent))
		}
	}
	say(t, reach(t, a, b, a, b), 7, b, a, b)
}

// kill ends a station without a word, as when its process is killed.
func kill(t *testing.T, s *station) {
	t.Helper()
	s.closed.Store(true)
	if err := s.release(); err != nil {
		t.Fatal(err)
	}
}

// TestNamedSuccessor: an interface that has the name of one that was killed, and has greeted, is what the name leads to
// from then on, and its connection is not given up for what was known before.
func TestNamedSuccessor(t *testing.T) {
	for n := range 20 {
		a, b := newNamed(t, 0, true), newNamed(t, 0, true)
		say(t, reach(t, a, b, a, b), 1, b, a, b)
		say(t, reach(t, b, a, a, b), 2, a, a, b)
		pid, before := b.addr.pid, a.ids.Load().find(b.addr.id())
		kill(t, b)
		c := newNamed(t, pid, true)
		if err := reach(t, c, a, c).AMShort(1, 3, nil, nil); err != nil {
			t.Fatal(err)
		}
		for a.ids.Load().find(c.addr.id()) == before {
			c.Progress(4)
			a.Progress(1)
		}
		if n%2 == 0 { // also when the end of the one before has been reported
			until(t, "the end of the one before is not reported", before.Reported, c, a)
		}
		now := a.ids.Load().find(c.addr.id())
		if _, err := a.endpointTo(b.addr, c.Address()); !errors.Is(err, hw.ErrUnreachable) || now.Err() != nil {
			t.Fatalf("an address that was resolved before: %v, %v", err, now.Err())
		}
		ep := reach(t, a, c, a, c)
		if ep != hw.Endpoint(now) {
			t.Fatalf("the name leads to another endpoint than that of its greeting: %v", now.Err())
		}
		say(t, ep, 4, c, a, c)
		if c.gone != 0 {
			t.Error("the connection was given up")
		}
		if err := errors.Join(a.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamedStale: an answer that no one has fetched before the interface was another's leads to that nevertheless.
func TestNamedStale(t *testing.T) {
	a, b := newNamed(t, 0, true), newNamed(t, 0, true)
	if _, err := a.Connect(b.Address()); !errors.Is(err, hw.ErrUnreachable) {
		t.Fatal(err)
	}
	until(t, "no answer", func() bool { return !a.named.asks() }, a)
	a.named.forget(b.Address())
	if at, err := a.named.resolve(b.Address()); err == nil {
		t.Errorf("an answer from before the end of an interface is taken: % x", at)
	}
	until(t, "no answer", func() bool { return !a.named.asks() }, a)
	pid := b.addr.pid
	kill(t, b)
	c := newNamed(t, pid, true)
	say(t, reach(t, a, c, a, c), 1, c, a, c)
}

// TestNamedSoon: a peer that is being enabled when it is asked for is reached.
func TestNamedSoon(t *testing.T) {
	a, b := newNamed(t, 0, true), newNamed(t, 0, true)
	name, pid := b.Address(), b.addr.pid
	kill(t, b)
	for range 2 { // asked, and refused
		if _, err := a.Connect(name); !errors.Is(err, hw.ErrUnreachable) || errors.Is(err, hw.ErrNoPath) {
			t.Fatal(err)
		}
		until(t, "no answer", func() bool { return !a.named.asks() }, a)
	}
	b = newNamed(t, pid, true)
	until(t, "not reached", func() bool { _, err := a.Connect(name); return err == nil }, a, b)
}

// TestNamedUnanswered: questions that the NIC does not answer any more do not keep peers from being reached, and where
// there are no others that ends as with peers that are silent.
func TestNamedUnanswered(t *testing.T) {
	a, b := newNamed(t, 0, true), newNamed(t, 0, true)
	n := a.named
	of, _ := proto.ParseName(b.Address(), b.d.pidBits())
	ask := func(k int) {
		n.questions[k].of, n.questions[k].asked, n.questions[k].at = of, true, time.Now().Add(-time.Hour)
	}
	ask(0)
	for range 3 {
		if _, err := a.Connect(b.Address()); !errors.Is(err, hw.ErrUnreachable) || n.questions[1].asked {
			t.Fatalf("asked again, and no command was refused: %v", err)
		}
	}
	a.tx[0].refusedAt = time.Now().Add(-time.Hour / 2)
	say(t, reach(t, a, b, a, b), 1, b, a, b)
	for k := range n.questions {
		ask(k)
	}
	if _, err := a.Connect(proto.Name{NID: of.NID, PID: of.PID + 1}.AppendTo(nil)); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("without a question: %v", err)
	}
}

// TestNamedClose: an interface that closes waits for the NIC, which may be at the memory of what was asked for, and
// asks no more.
func TestNamedClose(t *testing.T) {
	a := newNamed(t, 0, true)
	name := func(n uint32) []byte { return proto.Name{NID: a.addr.nid, PID: 300 + n}.AppendTo(nil) }
	for n := range uint32(maxQuestions) {
		if _, err := a.Connect(name(n)); !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil || a.named.asks() {
		t.Errorf("closed with questions that are not answered: %v", err)
	}
	if _, err := a.Connect(name(0)); !errors.Is(err, errClosed) {
		t.Errorf("Connect after Close: %v", err)
	}
}
