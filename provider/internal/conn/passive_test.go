package conn

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/names"
)

// owner counts the users of what passive endpoints belong to.
type owner struct{ users int }

func (o *owner) Acquire() error { o.users++; return nil }
func (o *owner) Release()       { o.users-- }
func (o *owner) Iface() string  { return "lo" }

// openPassiveAt opens a passive endpoint at a port of 127.0.0.1 that the kernel chooses.
func openPassiveAt(t *testing.T, o *owner) *Passive {
	t.Helper()
	at := names.New(netip.MustParseAddr("127.0.0.1"), 0)
	p, err := OpenPassive(o, &fi.Info{AddrFormat: fi.SockaddrIn, SrcAddr: at.AppendSockaddr(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPassiveCalls: what a passive endpoint refuses, and with which error.
func TestPassiveCalls(t *testing.T) {
	var o owner
	for what, info := range map[string]*fi.Info{
		"no info":           nil,
		"another type":      {EP: &fi.EPAttr{Type: fi.EPRDM}},
		"malformed address": {AddrFormat: fi.SockaddrIn, SrcAddr: []byte{1, 2, 3}},
		"size of no key":    {EP: &fi.EPAttr{Type: fi.EPMsg, AuthKeySize: 8}},
	} {
		if _, err := OpenPassive(&o, info); fi.ErrnoOf(err) != fi.EINVAL || o.users != 0 {
			t.Errorf("%s: %v, %d users", what, err, o.users)
		}
	}
	p := openPassiveAt(t, &o)
	q, err := eq.Open(&fi.EQAttr{WaitObj: fi.WaitNone}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want error
	}{
		{"listen without an event queue", p.Listen(), fi.ENOEQ},
		{"flags", p.BindEQ(q, 1), fi.EBADFLAGS},
		{"no queue", p.BindEQ(nil, 0), fi.EINVAL},
		{"queue", p.BindEQ(q, 0), nil},
		{"second queue", p.BindEQ(q, 0), fi.EINVAL},
		{"backlog", p.SetBacklog(0), fi.EINVAL},
		{"option", p.SetOpt(fi.OptCMDataSize, 1), fi.ENOPROTOOPT},
		{"reject nothing", p.Reject(nil, nil), fi.EINVAL},
		{"reject with too much", p.Reject(nil, make([]byte, cm.MaxData+1)), fi.EINVAL},
		{"listen", p.Listen(), nil},
		{"listen again", p.Listen(), fi.EOPBADSTATE},
		{"name while it listens", p.SetName(nil), fi.EOPBADSTATE},
	} {
		if !errors.Is(c.got, c.want) && !errors.Is(c.want, fi.ErrnoOf(c.got)) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if n, err := p.GetOpt(fi.OptCMDataSize); n != cm.MaxData || err != nil {
		t.Errorf("option: %d, %v", n, err)
	}
	if _, err := p.GetOpt(fi.OptMinMultiRecv); !errors.Is(err, fi.ENOPROTOOPT) {
		t.Errorf("another option: %v", err)
	}
	if _, ok := p.TakeName(); ok {
		t.Error("the name of one that listens is taken")
	}
	if err := p.Close(); err != nil || o.users != 0 {
		t.Errorf("close: %v, %d users", err, o.users)
	}
	if err := q.Close(); err != nil {
		t.Errorf("close of the queue: %v", err)
	}
}

// TestPassiveName: the endpoint has the address that it shows, until another takes it over.
func TestPassiveName(t *testing.T) {
	var o owner
	p := openPassiveAt(t, &o)
	defer p.Close()
	raw, err := p.Name()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPassive(&o, &fi.Info{AddrFormat: fi.SockaddrIn, SrcAddr: raw}); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("a second one: %v", err)
	}
	want, ok := p.TakeName()
	if !ok {
		t.Fatal("the name is not to be had")
	}
	if shown, err := names.FromSockaddr(raw); err != nil || shown.Port != want.Port {
		t.Errorf("taken %v, shown %v, %v", want, shown, err)
	}
	if _, ok := p.TakeName(); ok {
		t.Error("the name is taken twice")
	}
	if err := p.Listen(); fi.ErrnoOf(err) != fi.EOPBADSTATE {
		t.Errorf("listen without a name: %v", err)
	}
}
