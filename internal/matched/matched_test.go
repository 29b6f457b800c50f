package matched

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/race"
)

// device is a matcher that keeps what is posted, and says what the test has it say.
type device struct {
	hw.Iface
	on       func(*hw.MatchEvent)
	sends    []hw.MatchSend
	receives []hw.MatchReceive
	searches []hw.MatchReceive
	canceled []uint64 // contexts
	rings    int
	err      error
	closing  []hw.MatchEvent // said by Close
}

func (d *device) MatchAttr() hw.MatchAttr {
	return hw.MatchAttr{TagMask: 1<<48 - 1, MaxMessage: 1 << 20, MaxInject: 192, MaxMinFree: 1<<24 - 1}
}
func (d *device) MatchName() []byte                              { return []byte("name") }
func (d *device) ParseMatchName([]byte) (hw.MatchAddress, error) { return 0, nil }
func (d *device) AppendMatchName(to []byte, a hw.MatchAddress) []byte {
	return append(to, byte(a))
}
func (d *device) OnMatch(f func(*hw.MatchEvent)) { d.on = f }
func (d *device) RingMatched()                   { d.rings++ }
func (d *device) Progress(int) int               { return 0 }

func (d *device) PostReceive(r *hw.MatchReceive) (hw.MatchID, error) {
	d.receives = append(d.receives, *r)
	return hw.MatchID(100 + len(d.receives)), d.err
}

func (d *device) Search(r *hw.MatchReceive) error {
	d.searches = append(d.searches, *r)
	return d.err
}

func (d *device) PostMatched(s *hw.MatchSend) error {
	d.sends = append(d.sends, *s)
	return d.err
}

func (d *device) CancelReceive(hw.MatchID) error { return d.err }

func (d *device) CancelContext(context uint64) error {
	d.canceled = append(d.canceled, context)
	return d.err
}

func (d *device) Close() error {
	for k := range d.closing {
		d.on(&d.closing[k])
	}
	return nil
}

// opened is an endpoint of four operations on a device, and what has ended.
func opened() (*Endpoint, *device, *[]Ended) {
	d := &device{}
	e, list := openOn(d, d)
	return e, d, list
}

// openOn is the same on any.
func openOn(i hw.Iface, m hw.Matcher) (*Endpoint, *[]Ended) {
	list := new([]Ended)
	return Open(Options{
		Iface: i, Matcher: m, Limit: 4, Caps: fi.RMA | fi.Read | fi.Write | fi.Atomic,
		Address: func(a fi.Addr, _ []byte) (hw.MatchAddress, error) {
			if a > 3 {
				return 0, fi.EINVAL
			}
			return hw.MatchAddress(a + 10), nil
		},
		Source: func(a hw.MatchAddress) fi.Addr {
			if a > 13 {
				return fi.AddrNotAvail
			}
			return fi.Addr(a - 10)
		},
		Ended: func(e *Ended) { *list = append(*list, *e) },
		Await: func(done func() bool) error {
			for range 10 {
				if done() {
					return nil
				}
				i.Progress(1)
			}
			return fi.ETIMEDOUT
		},
	}), list
}

// TestRefused holds what calls refuse, after which nothing is under way.
func TestRefused(t *testing.T) {
	e, d, _ := opened()
	two := []fi.IOVec{{Base: 1, Len: 1}, {Base: 2, Len: 1}}
	for k, c := range []struct {
		err  error
		want error
	}{
		{e.Send(&Send{IOV: two}), fi.EINVAL},
		{e.Send(&Send{IOV: []fi.IOVec{{Len: 8}}}), fi.EINVAL},
		{e.Send(&Send{Dest: 4}), fi.EINVAL},
		{e.Send(&Send{Flags: fi.Peek}), fi.EBADFLAGS},
		{e.Send(&Send{Tagged: true, Tag: 1 << 48}), fi.EINVAL},
		{e.Send(&Send{Inject: true, IOV: []fi.IOVec{{Base: 1, Len: 193}}}), fi.EINVAL},
		{e.Send(&Send{IOV: []fi.IOVec{{Base: 1, Len: 1<<20 + 1}}}), fi.EMSGSIZE},
		{e.Receive(&Receive{IOV: two}), fi.EINVAL},
		{e.Receive(&Receive{Src: 4}), fi.EINVAL},
		{e.Receive(&Receive{Flags: fi.Peek | fi.Claim}), fi.EOPNOTSUPP},
		{e.Receive(&Receive{Flags: fi.Fence}), fi.EBADFLAGS},
		{e.Receive(&Receive{Tagged: true, Tag: 1 << 48}), fi.EINVAL},
		{e.Receive(&Receive{Tagged: true, Flags: fi.MultiRecv}), fi.EINVAL},
		{e.Receive(&Receive{Flags: fi.MultiRecv, IOV: []fi.IOVec{{Base: 1, Len: 63}}}), fi.ETOOSMALL},
		{e.SetMinMulti(1 << 24), fi.EINVAL},
		{e.Cancel(7), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("case %d: %v, want %v", k, c.err, c.want)
		}
	}
	if len(d.sends)+len(d.receives)+len(d.canceled) != 0 || e.Room() != 4 {
		t.Errorf("%d sends and %d receives reached the device, room for %d", len(d.sends), len(d.receives), e.Room())
	}
	for _, c := range []struct{ device, want error }{
		{hw.ErrNoResource, fi.EAGAIN}, {hw.ErrInvalid, fi.EINVAL}, {hw.ErrTooLong, fi.EMSGSIZE},
		{hw.ErrUnreachable, fi.EHOSTUNREACH},
	} {
		d.err = c.device
		if err := e.Send(&Send{}); !errors.Is(err, c.want) || e.Room() != 4 {
			t.Errorf("the device says %v: %v, room for %d", c.device, err, e.Room())
		}
	}
}

// TestErrno: an errno that an error wraps is the application's, whatever kind of the device's it wraps beside that.
func TestErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fi.Errno
	}{
		{hw.ErrNoResource, fi.ENORX}, {fi.EADDRINUSE, fi.EADDRINUSE},
		{fmt.Errorf("%w: %w", hw.ErrNoResource, fi.EADDRINUSE), fi.EADDRINUSE},
		{fmt.Errorf("%w: %w", fi.EINVAL, hw.ErrPermission), fi.EINVAL},
		{fmt.Errorf("%w: %w", unix.EKEYREVOKED, hw.ErrPermission), fi.EACCES},
	} {
		if got := Errno(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// TestRoom posts as much as there may be, and more when something has ended.
func TestRoom(t *testing.T) {
	e, d, ended := opened()
	for range 4 {
		if err := e.Send(&Send{Context: 5, Flags: fi.More}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Receive(&Receive{Src: fi.AddrUnspec}); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("a fifth operation: %v", err)
	}
	if e.Progress(1); d.rings != 1 {
		t.Errorf("the doorbell of FI_MORE was rung %d times", d.rings)
	}
	ev := hw.MatchEvent{Kind: hw.MatchSent, Context: d.sends[1].Context, Last: true}
	d.on(&ev)
	d.on(&ev) // of an operation that has ended
	if len(*ended) != 1 || (*ended)[0].Entry.Context != 5 || (*ended)[0].Receive || e.Room() != 1 {
		t.Errorf("%+v, room for %d", *ended, e.Room())
	}
}

// TestEnds has receives and searches end in every way.
func TestEnds(t *testing.T) {
	e, d, ended := opened()
	last := func() Ended {
		t.Helper()
		if len(*ended) == 0 {
			t.Fatal("nothing has ended")
		}
		n := (*ended)[len(*ended)-1]
		*ended = nil
		return n
	}
	r := Receive{Src: 2, Tagged: true, Tag: 0xf00000000000077, Ignore: 0xffff << 48, Context: 9}
	if err := e.Receive(&r); err != nil {
		t.Fatal(err)
	}
	if p := d.receives[0]; p.From != 12 || p.Tag != 0x77 || p.Ignore != 0 || !p.Tagged {
		t.Errorf("posted %+v", p)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchReceived, Context: d.receives[0].Context, From: 14, Tag: 0x77, Data: 3,
		HasData: true, Wanted: 8, Last: true})
	if n := last(); n.Err != fi.ETRUNC || n.OLen != 8 || n.Entry.Data != 3 ||
		n.Entry.Src != uint64(fi.AddrNotAvail) ||
		string(n.Name) != "\x0e" || n.Entry.Flags != fi.Recv|fi.Tagged|fi.RemoteCQData {
		t.Errorf("a longer message: %+v", n)
	}

	r = Receive{Src: fi.AddrUnspec, Context: 10}
	for range 2 {
		if err := e.Receive(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Cancel(10); err != nil || len(d.canceled) != 1 || d.canceled[0] != d.receives[1].Context {
		t.Errorf("cancel: %v, of %v, not the older one", err, d.canceled)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchCanceled, Context: d.receives[1].Context, Last: true, Err: hw.ErrCanceled})
	if n := last(); n.Err != fi.ECANCELED || n.Entry.Context != 10 {
		t.Errorf("a canceled receive: %+v", n)
	}

	for kind, want := range map[hw.MatchKind]fi.Errno{hw.MatchFound: fi.Success, hw.MatchMissing: fi.ENOMSG} {
		d.searches = nil
		if err := e.Receive(&Receive{Src: fi.AddrUnspec, Flags: fi.Peek, Context: 11}); err != nil {
			t.Fatal(err)
		}
		d.on(&hw.MatchEvent{Kind: kind, Context: d.searches[0].Context, From: 11, Wanted: 77, Last: true})
		found := kind == hw.MatchFound
		if n := last(); n.Err != want || !n.Search || n.Entry.Context != 11 ||
			found && (n.Entry.Len != 77 || n.Entry.Src != 1) {
			t.Errorf("a search that ends with %v: %+v", kind, n)
		}
	}

	d.closing = []hw.MatchEvent{{Kind: hw.MatchCanceled, Context: d.receives[2].Context, Last: true,
		Err: hw.ErrCanceled}}
	if err := e.Close(); err != nil || len(*ended) != 0 {
		t.Errorf("closing: %v, %+v has ended", err, *ended)
	}
}

// mute is a device that ends at once what is posted, and keeps nothing.
type mute struct {
	device
	ev hw.MatchEvent
}

func (d *mute) end(kind hw.MatchKind, context uint64) {
	d.ev = hw.MatchEvent{Kind: kind, Context: context, Last: true}
	d.on(&d.ev)
}

func (d *mute) PostReceive(r *hw.MatchReceive) (hw.MatchID, error) {
	d.end(hw.MatchReceived, r.Context)
	return 1, nil
}

func (d *mute) PostMatched(s *hw.MatchSend) error {
	d.end(hw.MatchSent, s.Context)
	return nil
}

// TestAllocations: posts and their events allocate nothing.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools lose what they keep")
	}
	d := &mute{}
	ended := 0
	e := Open(Options{Iface: d, Matcher: d, Limit: 4,
		Address: func(_ fi.Addr, name []byte) (hw.MatchAddress, error) {
			return d.ParseMatchName(append(name, "12345678"...))
		},
		Source: func(hw.MatchAddress) fi.Addr { return 1 },
		Ended:  func(*Ended) { ended++ }})
	if n := testing.AllocsPerRun(100, func() {
		if e.Send(&Send{Context: 1}) != nil || e.Receive(&Receive{Context: 2, Src: 1}) != nil {
			t.Fatal("refused")
		}
	}); n != 0 || ended != 202 {
		t.Errorf("%v allocations, %d ends", n, ended)
	}
}
