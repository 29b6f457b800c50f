package provider

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/tokens"
)

// refusing is a transport that leads to no peer.
type refusing struct {
	hw.Iface
	err error
}

func (r refusing) Connect([]byte) (hw.Endpoint, error) { return nil, r.err }

// Errors of a device's Connect.
var (
	errHasClosed = fmt.Errorf("has closed: %w: %w: %w", hw.ErrPeerDead, hw.ErrNoPath, hw.ErrUnreachable)
	errIsLost    = fmt.Errorf("is lost: %w: %w: %w", hw.ErrPathLost, hw.ErrPeerDead, hw.ErrNoPath)
)

// TestConnectFirst: an error of a transport's Connect has the next one tried unless the peer may still answer there.
// The last one's counts, with what others know of the peer's end.
func TestConnectFirst(t *testing.T) {
	x, y := apart(t, nil)
	x.send(SendArgs{IOV: iovOf([]byte("weft")), Dest: x.addr[y]}, y)
	l, _ := x.pathTo(y)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range []struct {
		first error
		next  bool // is tried
		ended bool
	}{
		{hw.ErrUnreachable, false, false},
		{fmt.Errorf("%w: %w", hw.ErrUnreachable, hw.ErrPeerDead), false, true},
		{hw.ErrNoPath, true, false},
		{fmt.Errorf("%w: %w", hw.ErrUnreachable, hw.ErrNoPath), true, false},
		{hw.ErrNoResource, true, false},
		{hw.ErrPermission, true, false},
		{hw.ErrInvalid, true, false},
		{errHasClosed, true, true},
		{errIsLost, true, false},
	} {
		first, silent := &transport{Iface: refusing{err: c.first}}, &transport{Iface: refusing{err: hw.ErrUnreachable}}
		_, p, err := x.ep.connectFirst(l, []*transport{first, silent})
		if tried := p == silent; tried != c.next || peers.Ended(err) != c.ended ||
			tried && (!errors.Is(err, hw.ErrUnreachable) || errors.Is(err, hw.ErrNoPath)) {
			t.Errorf("%v: the next is tried: %v, %v", c.first, tried, err)
		}
		ep, p, err := x.ep.connectFirst(l, []*transport{first, x.ep.transports[1]})
		if reached := p == x.ep.transports[1] && ep != nil && err == nil; reached != c.next {
			t.Errorf("%v: the next reaches the peer: %v, %v", c.first, reached, err)
		}
	}
}

// TestErrnoPathLostClosed: a device knows that a peer to which it had lost the path has closed, and UDP does not.
func TestErrnoPathLostClosed(t *testing.T) {
	x, y := apart(t, func(c *config.Config) { c.ConnectTimeout = 10 * time.Second })
	oneMessage(t, x, y, 8)
	l, p := x.pathTo(y)
	y.close()
	x.notices(p)
	own := x.ep.transports
	device := &transport{Iface: refusing{own[1].Iface, errIsLost}}
	x.ep.transports = slices.Insert(slices.Clone(own), 1, device)
	defer func() { x.ep.transports = own }()
	l.mu.Lock()
	l.attempts.Reset()
	l.path.Store(newPath(peers.Gone{PathLost: true}, p.transport))
	l.mu.Unlock()
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); x.ep.Progress() {
		if err := posts["send"](x, x.addr[y], make([]byte, 8)); !errors.Is(err, fi.EAGAIN) {
			t.Fatalf("while it may be there: %v", err)
		}
	}
	device.Iface = refusing{own[1].Iface, errHasClosed}
	begin := time.Now()
	x.wantPosts(x.addr[y], fi.ECONNRESET)
	if took := time.Since(begin); took > x.domain.cfg.ConnectTimeout/2 {
		t.Errorf("given up after %v", took)
	}
}

// TestDevicesForgotten: an endpoint whose transports are closed, as fi_enable has failed behind them, names no devices
// of theirs in tokens when it is enabled again.
func TestDevicesForgotten(t *testing.T) {
	s := &transportSet{devicesOf: make([]tokens.Device, 1)}
	if s.closeTransports(); len(s.devicesOf) != 0 {
		t.Errorf("%d devices are left", len(s.devicesOf))
	}
}
