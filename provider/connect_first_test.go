package provider

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/tokens"
)

// refusing is a transport that leads to no peer.
type refusing struct {
	hw.Iface
	err error
}

func (r *refusing) Connect([]byte) (hw.Endpoint, error) { return nil, r.err }

// Close has no effect: Iface is another transport's.
func (r *refusing) Close() error { return nil }

// Errors of a device's Connect.
var (
	errHasClosed = fmt.Errorf("has closed: %w: %w: %w", hw.ErrPeerDead, hw.ErrNoPath, hw.ErrUnreachable)
	errIsLost    = fmt.Errorf("is lost: %w: %w: %w", hw.ErrPathLost, hw.ErrPeerDead, hw.ErrNoPath)
)

// TestErrnoPathLostClosed: a device knows that a peer to which it had lost the path has closed, and UDP does not.
func TestErrnoPathLostClosed(t *testing.T) {
	x, y := apart(t, func(c *config.Config) { c.ConnectTimeout = 10 * time.Second })
	oneMessage(t, x, y, 8)
	l, p := x.pathTo(y)
	y.close()
	x.notices(p)
	device := &refusing{x.ep.base.links.Transports()[1].Iface, errIsLost}
	x.ep.base.links.Add(device, rkey.Device{})
	list := x.ep.base.links.Transports()
	list[1], list[2] = list[2], list[1]
	defer func() { list[1], list[2] = list[2], list[1] }()
	l.Set(links.NewPath(peers.Gone{PathLost: true}, p.Via))
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); x.ep.Progress() {
		if err := posts["send"](x, x.addr[y], make([]byte, 8)); !errors.Is(err, fi.EAGAIN) {
			t.Fatalf("while it may be there: %v", err)
		}
	}
	device.err = errHasClosed
	begin := time.Now()
	x.wantPosts(x.addr[y], fi.ECONNRESET)
	if took := time.Since(begin); took > x.domain.cfg.ConnectTimeout/2 {
		t.Errorf("given up after %v", took)
	}
}

// TestDevicesForgotten: an endpoint whose transports are closed, as fi_enable has failed behind them, names no devices
// of theirs in tokens when it is enabled again.
func TestDevicesForgotten(t *testing.T) {
	s := &peering{transports: transportSet{devicesOf: make([]tokens.Device, 1)}}
	if s.closeTransports(); len(s.transports.devicesOf) != 0 {
		t.Errorf("%d devices are left", len(s.transports.devicesOf))
	}
}
