package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// apart makes two sides with one address of this host, and with segments of
// shared memory that the other cannot see.
func apart(t *testing.T, change func(*config.Config)) (x, y *side) {
	for _, s := range []**side{&x, &y} {
		b := newBench(t, func(c *config.Config) {
			c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No
			if change != nil {
				change(c)
			}
		}, rmaHints())
		*s = b.side(t)
	}
	x.know(y)
	y.know(x)
	return x, y
}

// pathTo returns the link and the path over which a side has reached another.
func (s *side) pathTo(to *side) (*link, *path) {
	s.t.Helper()
	l, err := s.ep.base.linkOf(s.addr[to])
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Release()
	p, ok := l.Ready()
	if !ok {
		s.t.Fatal("the link is not up")
	}
	return l, p
}

// transport returns the transport over which a side has reached another.
func (s *side) transport(to *side) *transport {
	s.t.Helper()
	_, p := s.pathTo(to)
	return p.Via
}

// TestApart has processes of one host that share no memory reach each other as
// if they were on two.
func TestApart(t *testing.T) {
	x, y := apart(t, nil)
	for _, n := range []int{8, 4096, 1 << 20} {
		oneMessage(t, x, y, n)
		oneMessage(t, y, x, n)
	}
	for _, s := range [][2]*side{{x, y}, {y, x}} {
		if p := s[0].transport(s[1]); p.Network == nil {
			t.Errorf("%s is reached over %s", s[1].ep.base.name, p.Attr.DeviceName)
		}
	}
}

// TestApartNobody has the connect timeout end the attempts to reach a peer that
// is at none of the transports.
func TestApartNobody(t *testing.T) {
	x, y := apart(t, func(c *config.Config) { c.ConnectTimeout = 50 * time.Millisecond })
	y.close()
	a := SendArgs{IOV: iovOf([]byte("weft")), Dest: x.addr[y]}
	err := error(fi.EAGAIN)
	for end := time.Now().Add(time.Minute); errors.Is(err, fi.EAGAIN) && time.Now().Before(end); {
		x.ep.Progress()
		err = x.ep.Send(&a)
	}
	if !errors.Is(err, fi.EHOSTUNREACH) {
		t.Errorf("send to nothing: %v", err)
	}
}

// lateSegment is an interface whose peer makes its segment after one has polled
// for it, and before it answers over the network.
type lateSegment struct {
	hw.Iface
	other *transport
	tried bool
}

func (i *lateSegment) Connect(address []byte) (hw.Endpoint, error) {
	if i.tried {
		return i.Iface.Connect(address)
	}
	_, err := i.other.Connect(address)
	i.tried = err == nil
	return nil, hw.ErrUnreachable
}

// TestLateSegment has two processes that share memory use it though the one saw
// the other on the network first, and not poll there any more.
func TestLateSegment(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No },
		rmaHints())
	x, y := b.pair(t)
	late := &lateSegment{Iface: x.ep.base.links.Transports()[0].Iface, other: x.ep.base.links.Transports()[1]}
	x.ep.base.links.Transports()[0].Iface = late
	oneMessage(t, x, y, 8)
	if p := x.transport(y); p.Network != nil || !late.tried {
		t.Errorf("reached over %s", p.Attr.DeviceName)
	}
}
