package members

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/names"
)

// device is an interface whose peers the test makes.
type device struct {
	hw.Iface
	to  *path0
	err error // of Connect, nil: to
	on  func(hw.PeerEvent)
}

// path0 is an endpoint of a device.
type path0 struct {
	hw.Endpoint
	err            error
	reported, full bool
	sent           int
	confirms       error // what Confirm answers
}

func (d *device) Address() []byte                  { return []byte{1, 0, 0, 0, 0, 0, 0, 0} }
func (d *device) Attr() hw.Attr                    { return hw.Attr{MaxAMShort: 100, MaxAMBcopy: 1000} }
func (d *device) SetHandler(hw.AMID, hw.Handler)   {}
func (d *device) OnPeerEvent(f func(hw.PeerEvent)) { d.on = f }
func (d *device) SourceAddress(hw.Source) []byte   { return nil }
func (d *device) Connect([]byte) (hw.Endpoint, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.to, nil
}

func (p *path0) Err() error     { return p.err }
func (p *path0) Reported() bool { return p.reported }
func (p *path0) Confirm() error { return p.confirms }
func (p *path0) AMShort(hw.AMID, uint64, []byte, []byte) error {
	if p.full {
		return hw.ErrNoResource
	}
	p.sent++
	return nil
}

func openGroups(t *testing.T, d *device) *Groups {
	t.Helper()
	_, g, err := Open(Options{Iface: d, Directory: &Directory{}, Config: config.Default(), Eager: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// connects tries until the answer is another than to try again, or for a while.
func connects(p *peer) error { return connectsFor(p, 50*time.Millisecond) }

func connectsFor(p *peer, most time.Duration) (err error) {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err = p.Connect(); !errors.Is(err, fi.EAGAIN) {
			break
		}
	}
	return err
}

// TestConnect: a peer is connected to when it answers. One that is gone is asked for anew, for the time that one that
// was never there is.
func TestConnect(t *testing.T) {
	first := &path0{}
	d := &device{to: first, err: hw.ErrUnreachable}
	g := openGroups(t, d)
	g.o.Config.ConnectTimeout = 100 * time.Millisecond
	p := g.peers.use(names.Name{Family: names.AFWord, IP: [16]byte{2}}, []byte("p"))
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Fatalf("a peer that has not answered: %v", err)
	}
	d.err = nil
	if err := connects(p); err != nil {
		t.Fatal(err)
	}
	if path, ok := p.Ready(); !ok || path.Transport() != hw.Endpoint(first) {
		t.Fatal("it is not connected")
	}
	first.err, d.err = hw.ErrPeerDead, hw.ErrUnreachable
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("the last messages of a peer that is gone may come: %v", err)
	}
	first.reported = true
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("a peer that is gone may come again: %v", err)
	}
	if err := connectsFor(p, 10*time.Second); !errors.Is(err, fi.EHOSTUNREACH) {
		t.Errorf("a peer that does not: %v", err)
	}
	if p != g.peers.use(p.name, p.raw) {
		t.Fatal("another peer, while a group uses it")
	}
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("a group joins with a peer that was gone: %v", err)
	}
	d.to, d.err = &path0{}, nil
	if err := connects(p); err != nil {
		t.Errorf("it is back: %v", err)
	}
	d.to.err, d.to.reported, d.err = hw.ErrPeerDead, true, fmt.Errorf("%w: %w", hw.ErrNoPath, hw.ErrPeerDead)
	if err := connects(p); !errors.Is(err, fi.EHOSTUNREACH) {
		t.Errorf("one that has no messages has its address: %v", err)
	}
}

// TestConnectDoubted: a group that joins with a peer which is connected does so with the endpoint that has its
// address: nothing goes to the peer before it is known to be that, and one that was killed meanwhile is like one that
// was never there.
func TestConnectDoubted(t *testing.T) {
	first := &path0{}
	d := &device{to: first}
	g := openGroups(t, d)
	g.o.Config.ConnectTimeout = 20 * time.Millisecond
	use := func() *peer { return g.peers.use(names.Name{Family: names.AFWord, IP: [16]byte{2}}, []byte("p")) }
	p := use()
	if err := connects(p); err != nil {
		t.Fatalf("not connected: %v", err)
	}
	first.confirms = hw.ErrNoResource
	use()
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("not confirmed yet: %v", err)
	}
	first.confirms = nil
	if err := connects(p); err != nil {
		t.Errorf("confirmed: %v", err)
	}
	first.confirms = hw.ErrPeerDead
	if err := connects(p); err != nil {
		t.Errorf("confirmed, and then used: %v", err)
	}
	use()
	if err := connects(p); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("its end is not reported: %v", err)
	}
	first.err, first.reported, d.err = hw.ErrPeerDead, true, hw.ErrUnreachable
	if err := connectsFor(p, 10*time.Second); !errors.Is(err, fi.EHOSTUNREACH) {
		t.Errorf("it was killed: %v", err)
	}
	d.to, d.err = &path0{}, nil
	use()
	if err := connects(p); err != nil {
		t.Errorf("another has its address: %v", err)
	}
}

// networks is a device whose addresses have the number of their network above their names.
type networks struct{ hw.Matcher }

func (networks) ParseMatchName(b []byte) (hw.MatchAddress, error) { return hw.MatchAddress(b[0]), nil }
func (networks) AppendMatchName(to []byte, a hw.MatchAddress) []byte {
	return append(to, byte(a), 0, 0, 0, 0, 0, 0, 0)
}
func (networks) InNetwork(a hw.MatchAddress, n int) (hw.MatchAddress, bool) {
	return a | hw.MatchAddress(n)<<8, n >= 0
}
func (networks) NetworkOf(a hw.MatchAddress) int { return int(a >> 8) }

// TestAnotherNetwork: a member that is not in the endpoint's first network is refused, with an errno of its own.
func TestAnotherNetwork(t *testing.T) {
	g := openGroups(t, &device{to: &path0{}})
	v, err := av.Open(&fi.AVAttr{}, av.Options{Format: names.Matched, Capacity: 8, Limit: 8, Keys: 2,
		Reach: func(names.Name) error { return nil }, Closed: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	var member [2]fi.Addr
	for k := range member {
		key, err := v.InsertAuthKey([]byte{byte(k + 1)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		member[k] = key
		in := av.Insertion{Flags: fi.AuthKey, Addrs: member[k : k+1]}
		if n, err := v.Insert([]byte{2, 0, 0, 0, 0, 0, 0, 0}, 1, &in); n != 1 || err != nil {
			t.Fatalf("%d inserted, %v", n, err)
		}
	}
	*g.o.Directory = Directory{Matcher: networks{}}
	if err := g.o.Directory.HoldKeys(true, v); err != nil {
		t.Fatal(err)
	}
	defer g.o.Directory.DropKeys()
	thread := anyThread{peers: g.peers}
	if n, p, err := thread.Member(member[0]); err != nil || p == nil || n.IP[0] != 2 {
		t.Errorf("of the first network: %v, %v, %v", n, p, err)
	}
	if _, _, err := thread.Member(member[1]); fi.ErrnoOf(err) != fi.EOPNOTSUPP {
		t.Errorf("of the second: %v", err)
	}
}

// TestWaits: what waits for room goes when there is, but not to a peer or a source that is gone.
func TestWaits(t *testing.T) {
	d := &device{to: &path0{full: true}}
	g := openGroups(t, d)
	p := g.peers.use(names.Name{Family: names.AFWord, IP: [16]byte{2}}, []byte("p"))
	wait := func() {
		g.Send(p, 1, 0, nil)
		g.Answer(7, 1, 0, nil)
		g.Answer(8, 1, 0, nil)
	}
	wait()
	if g.out.Len() != 3 || !g.Busy() {
		t.Fatalf("%d messages wait", g.out.Len())
	}
	d.on(hw.PeerEvent{Source: 7, HasSource: true})
	if g.out.Len() != 2 {
		t.Errorf("%d messages wait when a source is gone", g.out.Len())
	}
	d.on(hw.PeerEvent{Endpoint: d.to})
	if g.out.Len() != 1 {
		t.Errorf("%d messages wait when a peer is gone", g.out.Len())
	}
	if d.to.full = false; d.to.sent != 0 {
		t.Fatal("sent without room")
	}
	if g.Pump(); d.to.sent != 1 || g.Busy() {
		t.Errorf("%d messages are sent, not that for the source that is there", d.to.sent)
	}
}

// TestPeers: a peer is the same for all groups that use it, and gone when none does.
func TestPeers(t *testing.T) {
	g := &Groups{}
	l := &peerList{g: g, of: map[names.Name]*peer{}}
	g.peers = l
	a, b := names.Name{Family: names.AFWord, IP: [16]byte{1}}, names.Name{Family: names.AFWord, IP: [16]byte{2}}
	first, second, again := l.use(a, nil), l.use(b, nil), l.use(a, nil)
	if first != again || first == second || first.Number() == second.Number() || len(l.all()) != 2 {
		t.Fatalf("%+v", l.all())
	}
	first.Release()
	if l.use(a, nil) != first {
		t.Error("a peer that a group uses is another's")
	}
	first.Release()
	again.Release()
	if list := l.all(); len(list) != 1 || list[0] != second {
		t.Errorf("%d peers are left", len(list))
	}
	if next := l.use(a, nil); next == first || next.Number() == first.Number() {
		t.Error("a peer that no group has used is there")
	}
}
