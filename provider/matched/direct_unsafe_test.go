package matched

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/regcache"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestDirect posts and ends operations as threads of C do, beside those of Go: what needs Go is left as it was.
func TestDirect(t *testing.T) {
	d := &device{}
	var generation atomic.Uint64
	var ended []Ended
	e := Open(Options{Iface: d, Matcher: d, Limit: 4, Cache: regcache.New(nil, regcache.Config{}),
		Address:    func(a fi.Addr, _ []byte) (hw.MatchAddress, error) { return hw.MatchAddress(a + 10), nil },
		Source:     func(a hw.MatchAddress) fi.Addr { return fi.Addr(a - 10) },
		Generation: &generation, Ended: func(n *Ended) { ended = append(ended, *n) }})
	buf := make([]byte, 300)
	send := hot.Post{Buf: uintptr(unsafe.Pointer(&buf[0])), Len: 8, Dest: 3, Header: 7, Data: 9, Context: 5,
		Kind: hot.PostTagged | hot.PostData, Flags: fi.Completion | fi.MatchComplete}
	receive := hot.Post{Dest: 3, Header: 7, Data: 1 << 60, Context: 6, Kind: hot.PostTagged}
	code := func(what string, p hot.Post, post func(*hot.Post) uintptr, want uintptr) *hot.Post {
		t.Helper()
		if got := post(&p); got != want {
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
		return &p
	}
	code("an address that is not known", send, e.DirectSend, hot.PostGo)
	if _, err := e.address(3, nil); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(p *hot.Post){
		"a fence":                     func(p *hot.Post) { p.Flags = fi.Fence },
		"a long tag":                  func(p *hot.Post) { p.Header = 1 << 48 },
		"no buffer":                   func(p *hot.Post) { p.Buf = 0 },
		"a long inject":               func(p *hot.Post) { p.Len, p.Flags = 193, fi.Inject },
		"memory without registration": func(p *hot.Post) { p.Len = 300 },
	} {
		p := send
		change(&p)
		code(what, p, e.DirectSend, hot.PostGo)
	}
	s := code("a send", send, e.DirectSend, hot.PostMatch)
	want := hot.MatchPost{Peer: 13, Tag: 7, Data: 9, Buf: send.Buf, Context: s.Match.Context, Length: 8,
		Kind: hot.MatchTagged | hot.MatchData | hot.MatchAwaited}
	if s.Match != want {
		t.Errorf("%+v, want %+v", s.Match, want)
	}
	r := code("a receive", receive, e.DirectReceive, hot.PostMatch)
	want = hot.MatchPost{Peer: 13, Tag: 7, Context: r.Match.Context, Kind: hot.MatchReceive | hot.MatchTagged}
	if r.Match != want || e.Room() != 2 {
		t.Errorf("%+v, want %+v; room for %d", r.Match, want, e.Room())
	}
	full := code("a send that finds no room", send, e.DirectSend, hot.PostMatch)
	full.Sent = hot.PathFull
	if got := e.DirectRefused(full); got != hot.PostAgain || e.Room() != 2 {
		t.Errorf("refused: %d, room for %d", got, e.Room())
	}
	var c Completion
	ev := hot.MatchEvent{Context: s.Match.Context}
	end := func(wanted bool) bool {
		w, ok := e.DirectEnd(&ev, &c)
		return ok && w == wanted
	}
	if !end(true) || c.Receive || c.Entry.Context != 5 ||
		c.Entry.Flags != fi.Send|fi.Tagged || c.Bytes != 8 || c.Flags != send.Flags ||
		c.Entry.Src != uint64(fi.AddrNotAvail) {
		t.Errorf("a send has ended: %+v", c)
	}
	if !end(false) {
		t.Errorf("it has ended twice: %+v", c)
	}
	ev = hot.MatchEvent{Context: r.Match.Context, From: 13, Tag: 7, Data: 4,
		Flags: hot.MatchReceive | hot.MatchTagged | hot.MatchData}
	if _, ok := e.DirectEnd(&ev, &c); ok {
		t.Error("a sender that is not known is reported")
	}
	e.MatchedEvent(&ev)
	if len(ended) != 1 || ended[0].Entry.Src != 3 || ended[0].Entry.Context != 6 || e.Room() != 4 {
		t.Errorf("%+v, room for %d", ended, e.Room())
	}
	r = code("a receive", receive, e.DirectReceive, hot.PostMatch)
	ev.Context = r.Match.Context
	if !end(true) || !c.Receive || c.Entry.Src != 3 || c.Entry.Data != 4 || c.Entry.Tag != 7 ||
		c.Entry.Flags != fi.Recv|fi.Tagged|fi.RemoteCQData {
		t.Errorf("a receive has ended: %+v", c)
	}
	generation.Add(1)
	code("an address of another generation", send, e.DirectSend, hot.PostGo)
}
