package conn

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// TestHostileBytes sends nonsense to a listener and fills it with silent
// connections; a peer that keeps to the protocol still gets through.
func TestHostileBytes(t *testing.T) {
	p := newPassive(t, "")
	to := addrOf(p.at).String()
	good := (&cm.Message{Kind: cm.Request, Port: 9}).Append(nil)
	for i, b := range [][]byte{
		bytes.Repeat([]byte{0xff}, 100), good[:5], (&cm.Message{Kind: cm.Accept, Port: 9}).Append(nil),
		[]byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		s, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Write(b)
		_ = s.(*net.TCPConn).CloseWrite()
		_ = s.SetReadDeadline(time.Now().Add(patience))
		if n, err := s.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("bytes %d: answered", i)
		}
		_ = s.Close()
	}
	for range greetMax + 20 {
		s, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
	}
	if len(p.requests) != 0 {
		t.Error("a request for nonsense")
	}
	newEnd(t, 7, "", nil).connect(p, "", nil)
	p.request(t)
}

// TestEnds: both hosts name the ends of a connection alike, also where a link-local address has another scope at each.
func TestEnds(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	at := func(ip, zone string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 7, Zone: zone} }
	here, there := at("fe80::a", interfaces[0].Name), at("fe80::a", "4000000")
	if NameOf(here) == NameOf(there) {
		t.Fatal("the scopes are not taken for different")
	}
	b := at("fe80::b", "")
	if x, y := ends(here, b)+ends(b, here), ends(there, b)+ends(b, there); x != y {
		t.Errorf("%s and %s", x, y)
	}
	if ends(here, b) == ends(b, here) {
		t.Error("which end is the active one is not seen")
	}
}

// TestBacklog: a listener reports as many requests as are allowed to be unanswered, and goes on with each answer.
func TestBacklog(t *testing.T) {
	p := newPassive(t, "")
	if err := p.SetBacklog(1); err != nil {
		t.Fatal(err)
	}
	var ends []*end
	for i := range 3 {
		e := newEnd(t, uint16(i+1), "", nil)
		e.connect(p, "", nil)
		ends = append(ends, e)
	}
	// One waits in Accept when the backlog is reached, so two may be reported.
	requests := []*Request{p.request(t)}
	for answered := range ends {
		if len(requests) == answered {
			requests = append(requests, p.request(t))
		}
		time.Sleep(20 * time.Millisecond)
		if len(p.requests) != 0 {
			requests = append(requests, p.request(t))
		}
		if open := len(requests) - answered; open > 2 {
			t.Errorf("%d requests are open, backlog 1", open)
		}
		if !p.Reject(requests[answered], nil) {
			t.Fatalf("request %d cannot be rejected", answered)
		}
	}
	for _, e := range ends {
		e.want("failed", "", fi.ECONNREFUSED)
	}
}

// TestUnreported: a request that cannot be reported is dropped, and does not count.
func TestUnreported(t *testing.T) {
	refuses := true
	reported := make(chan *Request, 1)
	l := NewListener("", func(r *Request) error {
		if refuses {
			refuses = false
			return errors.New("no memory")
		}
		reported <- r
		return nil
	})
	at, err := l.Bind(names.New(netip.MustParseAddr("127.0.0.1"), 0), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{l.SetBacklog(1), l.Listen()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &passive{Listener: l, at: at}
	first, second := newEnd(t, 1, "", nil), newEnd(t, 2, "", nil)
	first.connect(p, "", nil)
	first.want("failed", "", fi.ECONNRESET)
	second.connect(p, "", nil)
	<-reported
	l.Close()
	l.Drop()
	second.want("failed", "", fi.ECONNREFUSED)
}

// TestNameOfListener: a listener has one name at a time, which is another's once it is given away.
func TestNameOfListener(t *testing.T) {
	l := NewListener("", func(*Request) error { return nil })
	if _, ok := l.TakeName(); ok || l.Bound() {
		t.Error("a listener has a name that it was not given")
	}
	if err := l.Listen(); !errors.Is(err, fi.EOPBADSTATE) {
		t.Errorf("listen without a name: %v", err)
	}
	host := names.New(netip.MustParseAddr("127.0.0.1"), 0)
	first, err := l.Bind(host, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Bind(host, false); err != nil {
		t.Fatal(err)
	}
	other := NewListener("", func(*Request) error { return nil })
	if _, err := other.Bind(first, false); err != nil {
		t.Errorf("a name that was given up: %v", err)
	}
	name, ok := l.TakeName()
	if !ok || l.Bound() {
		t.Error("the name is not given away")
	}
	if _, err := other.Bind(name, false); err != nil {
		t.Errorf("a name that was given away: %v", err)
	}
	if err := other.Listen(); err != nil {
		t.Fatal(err)
	}
	if _, ok := other.TakeName(); ok || other.Bound() {
		t.Error("a listener that listens gives its name away")
	}
	if err := other.Listen(); !errors.Is(err, fi.EOPBADSTATE) {
		t.Errorf("listen twice: %v", err)
	}
	if _, err := l.Bind(name, false); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("a name in use: %v", err)
	}
	for _, l := range []*Listener{l, other} {
		l.Close()
		l.Drop()
	}
}
