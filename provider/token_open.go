package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tokens"
)

// OpenToken opens a peer's token. The owner is inserted into the endpoint's address vector unless
// it is there; it stays there when the Remote is closed. No peer is asked: whether the
// region is still there, its use shows.
//
// With keys in address vectors the address is under the first of the endpoint's keys that the token was made with.
// Errors: fi.EINVAL for what is no token, was made with other authorisation keys, or for an owner whose
// address the address vector does not take, or whose receive context it has no bits for; fi.EOPBADSTATE for an endpoint
// that is not enabled; fi.ENOSYS for one without FI_RMA, a connected one, and a receive context; those of [AV.Insert]
// about one address, fi.EACCES for a read-only address vector.
func (e *Endpoint) OpenToken(t Token) (*Remote, error) {
	r, err := e.openToken(t)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.ErrnoOf(err), "open token: %v", err)
	}
	return r, nil
}

func (e *Endpoint) openToken(t Token) (*Remote, error) {
	switch {
	case e.base.state.Load() != stateEnabled:
		return nil, fmt.Errorf("the endpoint is not enabled: %w", fi.EOPBADSTATE)
	case e.base.conn != nil || e.base.chosen.lossy || e.base.receivesOnly() || e.base.info.Caps&fi.RMA == 0:
		return nil, fmt.Errorf("the endpoint is none of type FI_EP_RDM that reads and writes (FI_RMA): %w", fi.ENOSYS)
	}
	return e.base.opened.Open(t)
}

// commonEP is what remote regions and lists need of an endpoint in common.
type commonEP struct{ e *Endpoint }

func (c commonEP) Acquire() error { return c.e.base.refs.Acquire() }
func (c commonEP) Release()       { c.e.base.refs.Release() }
func (c commonEP) Ordered() bool  { return c.e.base.orderedRMA() }

// tokenEP is an endpoint as its remote regions have it.
type tokenEP struct{ commonEP }

func (t tokenEP) Config() *config.Config { return t.e.base.domain.cfg }
func (t tokenEP) Know(a peers.Address) (fi.Addr, error) {
	return t.e.base.bound.av.KnowContext(a.Name, a.Number)
}
func (t tokenEP) Keys() []hw.Key           { return t.e.base.auth.Keys(t.e.base.keys) }
func (t tokenEP) Devices() []tokens.Device { return t.e.base.transports.devicesOf }
func (t tokenEP) Apart() bool              { return t.e.base.chosen.apart }
func (t tokenEP) Attaches() bool {
	return t.e.base.transports.iface.Attr().Caps&rma.DirectCaps == rma.DirectCaps
}
func (t tokenEP) Maps() bool { return t.e.base.chosen.peerToPeer() }

// Path is how a peer is reached now.
func (t tokenEP) Path(addr fi.Addr) (tokens.Path, bool) {
	p := t.e.base.links.Now(addr)
	if p == nil {
		return tokens.Path{}, false
	}
	return tokens.Path{
		Attaches: p.Via.Attr.Caps&rma.DirectCaps == rma.DirectCaps, Here: p.Via.Number == 0,
		Device: p.Keys != nil, Name: p.Via.Attr.DeviceName,
	}, true
}

// addDevice has tokens name the transport's device, if it has one that reaches memory.
func (e *transportSet) addDevice(p *transport) {
	if d, ok := p.Iface.(hw.Device); ok && p.On.OneSided() {
		e.devicesOf = append(e.devicesOf, tokens.Device{Device: d, Memory: p.Memory(), Transport: p.Number})
	}
}
