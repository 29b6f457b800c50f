package provider

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/token"
)

// Remote is a peer's memory region, opened by its token. Its methods may be called from
// any thread.
type Remote struct {
	ep    *Endpoint
	refs  refs.Count  // users: lists
	addr  fi.Addr     // of the owner, immutable
	about token.Token // immutable
	// byKey: not from a token, but what is known of a region with a key in the peer's table (rma_mapped.go).
	// Immutable.
	byKey bool
	keys  []tokenKey // that the owner's devices have not refused; under mu of openedTokens
}

// OpenToken opens a peer's token. The owner is inserted into the endpoint's address vector unless
// it is there; it stays there when the Remote is closed. No peer is asked: whether the
// region is still there, its use shows.
//
// Errors: fi.EINVAL for what is no token, was made with another authorisation key, or for an owner whose
// address the address vector does not take; fi.EOPBADSTATE for an endpoint that is not enabled; fi.ENOSYS
// for an endpoint without FI_RMA, a connected one, and in a domain with authorisation keys in
// address vectors; those of [AV.Insert] about one address, fi.EACCES for a read-only address vector.
func (e *Endpoint) OpenToken(t Token) (*Remote, error) {
	r, err := e.openToken(t)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.ErrnoOf(err), "open token: %v", err)
	}
	return r, nil
}

func (e *Endpoint) openToken(packed Token) (*Remote, error) {
	switch {
	case e.state.Load() != stateEnabled:
		return nil, fmt.Errorf("the endpoint is not enabled: %w", fi.EOPBADSTATE)
	case e.conn != nil || e.lossy || e.info.Caps&fi.RMA == 0:
		return nil, fmt.Errorf("the endpoint is none of type FI_EP_RDM with FI_RMA: %w", fi.ENOSYS)
	case e.domain.Keyed():
		return nil, fmt.Errorf("the domain's authorisation keys are in address vectors: %w", fi.ENOSYS)
	}
	t, err := token.Parse(packed, e.auth.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	keys, err := e.keysIn(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	addr, err := e.av.Know(t.Owner)
	if err != nil {
		return nil, fmt.Errorf("its owner: %w", err)
	}
	if err := e.refs.Acquire(); err != nil {
		return nil, err
	}
	r := &Remote{ep: e, addr: addr, about: *t, keys: keys}
	e.opened.add(r)
	return r, nil
}

// Close closes the remote region. fi.EBUSY while lists use it.
func (r *Remote) Close() error {
	if err := r.refs.Close(); err != nil {
		return err
	}
	r.ep.opened.remove(r)
	r.ep.refs.Release()
	return nil
}

// RemoteInfo is what is known of a remote region.
type RemoteInfo struct {
	Addr   fi.Addr // of the owner, in the endpoint's address vector
	Agent  string  // what the owner calls itself
	Key    uint64  // for fi_read and the like
	Base   uint64  // the address by which operations name the first byte
	Length uint64  // bytes
	Rights uint64  // fi.RemoteRead, fi.RemoteWrite
	Kind   token.Kind
	Device [16]byte // UUID, zero where there is none
	Way    Way      // that pieces with memory of the process itself on this side will take
	// Why says, for each way that is not taken, why not. Before the first operation to the owner it
	// goes by what the token says, and the way may turn out to be another.
	Why [ways]string
}

// Info returns what is known of the region, and which way is taken. No peer is asked.
func (r *Remote) Info() RemoteInfo {
	t := &r.about
	i := RemoteInfo{Addr: r.addr, Agent: t.Agent, Key: t.Key, Base: t.Base, Length: t.Length, Kind: t.Kind,
		Device: t.Device}
	if t.Rights&token.Read != 0 {
		i.Rights |= fi.RemoteRead
	}
	if t.Rights&token.Write != 0 {
		i.Rights |= fi.RemoteWrite
	}
	p := r.ep.pathNow(r.addr)
	i.Why[WayIPC], i.Why[WayRDMA] = r.whyNotIPC(p), r.whyNotRDMA(p)
	i.Way = WayMessage
	switch on := r.ep.domain.cfg.TokenWays; {
	case i.Why[WayIPC] == "":
		i.Way, i.Why[WayMessage] = WayIPC, "ipc is faster"
		if i.Why[WayRDMA] == "" {
			i.Why[WayRDMA] = "ipc is faster"
		}
	case i.Why[WayRDMA] == "":
		i.Way, i.Why[WayMessage] = WayRDMA, "rdma is faster"
	case !on.Message:
		i.Why[WayMessage] = turnedOff
	}
	return i
}

const turnedOff = "turned off by FI_WEFT_TOKEN_WAYS"

// pathNow is the path to an address if there is one already.
func (e *Endpoint) pathNow(addr fi.Addr) *path {
	line := e.peers.At(e.av.Line(addr))
	if line == nil {
		return nil
	}
	n := atomic.LoadUint32(&line.Link)
	if n == 0 {
		return nil
	}
	l := e.linkAt(n - 1)
	if l == nil || !l.Hold() {
		return nil
	}
	defer l.Release()
	p, _ := l.ready()
	return p
}

// whyNotIPC says why pieces do not go by WayIPC, "" if they do. p may be nil.
func (r *Remote) whyNotIPC(p *path) string {
	switch {
	case !r.ep.domain.cfg.TokenWays.IPC:
		return turnedOff
	case r.about.Kind != token.Host:
		return r.whyNotMapped(0)
	case r.ep.orderedRMA():
		return "the endpoint keeps one-sided operations in order"
	case r.ep.apart:
		return "the endpoint shares no memory with peers"
	case p != nil && p.port.attr.Caps&rma.DirectCaps == rma.DirectCaps:
		return ""
	case p != nil && p.port.number == 0:
		return "the kernel does not let this process reach the peer's memory"
	case p != nil:
		return "the peer is reached over " + p.port.attr.DeviceName
	}
	there, here, why := r.process()
	switch {
	case why != "":
		return why
	case there.NetNS != here.NetNS && !r.ep.domain.cfg.Across():
		return "the owner is in another network namespace"
	case r.ep.iface.Attr().Caps&rma.DirectCaps != rma.DirectCaps:
		return "cross-memory attach is turned off or refused by the kernel"
	}
	return ""
}

// whyNotRDMA says why pieces do not go by WayRDMA, "" if they do. p may be nil.
func (r *Remote) whyNotRDMA(p *path) string {
	switch {
	case !r.ep.domain.cfg.TokenWays.RDMA:
		return turnedOff
	case r.about.Kind != token.Host && len(r.about.Rails()) == 0:
		return "the memory there is " + r.about.Kind.String() + " memory, which is registered with no RDMA device"
	case r.ep.orderedRMA():
		return "the endpoint keeps one-sided operations in order"
	case p == nil && !r.ep.anyDevice():
		return "the endpoint has no RDMA device"
	case p == nil && !r.leads():
		return "nothing has gone to the owner yet: whether it has an RDMA device is not known"
	case p == nil:
		return ""
	case p.Keys == nil:
		return "no RDMA device leads to the owner"
	}
	return ""
}

// anyDevice reports whether the endpoint has an RDMA device that reads and writes memory of peers.
func (e *portSet) anyDevice() bool {
	for _, p := range e.ports {
		if p.oneSided() {
			return true
		}
	}
	return false
}
