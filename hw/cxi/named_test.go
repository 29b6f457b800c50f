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

// TestNotNamed: an endpoint without messages of weft's own, one of libfabric's provider, a PID of nothing, and names of
// nothing are refused, with the reason.
func TestNotNamed(t *testing.T) {
	a, quiet := newNamed(t, 0, true), newNamed(t, 0, false)
	foreign, err := domain(t).lni.NewDomain(a.addr.vni, 0x1ff)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	name := func(pid uint32) []byte { return proto.Name{NID: a.addr.nid, PID: pid}.AppendTo(nil) }
	for _, c := range []struct {
		what string
		name []byte
		kind error
		says string
	}{
		{"no messages", quiet.Matcher().MatchName(), hw.ErrNoPath, "FI_COLLECTIVE"},
		{"no index", name(foreign.PID()), hw.ErrNoPath, fmt.Sprintf("PID %d of NIC %#x", foreign.PID(), a.addr.nid)},
		{"no PID", name(300), hw.ErrNoPath, "libfabric's provider"},
		{"a VNI", proto.Name{NID: a.addr.nid, PID: 1, VNI: 10}.AppendTo(nil), hw.ErrInvalid, "name"},
		{"no name", []byte("short"), hw.ErrInvalid, "name"},
	} {
		var err error
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); a.Progress(4) {
			if _, err = a.Connect(c.name); !errors.Is(err, hw.ErrUnreachable) {
				break
			}
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
	refused := map[uint32]bool{}
	for end := time.Now().Add(10 * time.Second); len(refused) < 2*maxQuestions; a.Progress(4) {
		for pid := range uint32(2 * maxQuestions) {
			pid += 300 // of nothing
			if refused[pid] {
				continue
			}
			_, err := a.Connect(proto.Name{NID: a.addr.nid, PID: pid}.AppendTo(nil))
			switch {
			case errors.Is(err, hw.ErrNoPath):
				refused[pid] = true
			case !errors.Is(err, hw.ErrUnreachable) && !errors.Is(err, hw.ErrNoResource):
				t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d answers", len(refused))
		}
	}
	say(t, reach(t, a, b, a, b), 7, b, a, b)
}
