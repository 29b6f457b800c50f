package tokens

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/token"
)

// Remote is a peer's memory region, opened by its token. Its methods may be called from
// any thread.
type Remote struct {
	ep    Endpoint    // immutable
	set   *Opened     // that it is in, nil: it is not of a token (ByKey); immutable
	refs  refs.Count  // users: lists
	addr  fi.Addr     // of the owner, immutable
	about token.Token // immutable
	keys  []deviceKey // that the owner's devices have not refused; under mu of set
}

// ByKey is a region that is known by its key in a peer's table, and not by a token: about is what a token would
// say of it, as far as it is needed. It is not closed.
func ByKey(e Endpoint, addr fi.Addr, about token.Token) *Remote {
	return &Remote{ep: e, addr: addr, about: about}
}

// Close closes the remote region. fi.EBUSY while lists use it.
func (r *Remote) Close() error {
	if err := r.refs.Close(); err != nil {
		return err
	}
	r.set.remove(r)
	r.ep.Release()
	return nil
}

// Of is the endpoint that has opened the region.
func (r *Remote) Of() Endpoint { return r.ep }

// Token is what is known of the region. Constant.
func (r *Remote) Token() *token.Token { return &r.about }

// About is what lists know of the region.
func (r *Remote) About() list.About {
	t := &r.about
	return list.About{
		Addr: r.addr, Key: t.Key, Base: t.Base, Length: t.Length, Host: t.Kind == token.Host,
		Read: t.Rights&token.Read != 0, Write: t.Rights&token.Write != 0,
	}
}

// Maps reports whether elements with memory of a device do go by WayIPC, as far as the token says. local is an address
// on this side.
func (r *Remote) Maps(local uint64) bool { return r.whyNotMapped(local) == "" }

// Acquire has the region stay open until Release. fi.EBADF: it is closed.
func (r *Remote) Acquire() error { return r.refs.Acquire() }

// Release gives up what Acquire has.
func (r *Remote) Release() { r.refs.Release() }

// Info is what is known of a remote region.
type Info struct {
	Addr   fi.Addr // of the owner, in the endpoint's address vector
	Agent  string  // what the owner calls itself
	Key    uint64  // for fi_read and the like
	Base   uint64  // the address by which operations name the first byte
	Length uint64  // bytes
	Rights uint64  // fi.RemoteRead, fi.RemoteWrite
	Kind   token.Kind
	Device [16]byte // UUID, zero where there is none
	Way    list.Way // that pieces with memory of the process itself on this side will take
	// Why says, for each way that is not taken, why not. Before the first operation to the owner it
	// goes by what the token says, and the way may turn out to be another.
	Why [list.Ways]string
}

// Info returns what is known of the region, and which way is taken. No peer is asked.
func (r *Remote) Info() Info {
	t := &r.about
	i := Info{Addr: r.addr, Agent: t.Agent, Key: t.Key, Base: t.Base, Length: t.Length, Kind: t.Kind,
		Device: t.Device}
	if t.Rights&token.Read != 0 {
		i.Rights |= fi.RemoteRead
	}
	if t.Rights&token.Write != 0 {
		i.Rights |= fi.RemoteWrite
	}
	p, up := r.ep.Path(r.addr)
	i.Why[list.WayIPC], i.Why[list.WayRDMA] = r.whyNotIPC(p, up), r.whyNotRDMA(p, up)
	i.Way = list.WayMessage
	switch on := r.ep.Config().TokenWays; {
	case i.Why[list.WayIPC] == "":
		i.Way, i.Why[list.WayMessage] = list.WayIPC, "ipc is faster"
		if i.Why[list.WayRDMA] == "" {
			i.Why[list.WayRDMA] = "ipc is faster"
		}
	case i.Why[list.WayRDMA] == "":
		i.Way, i.Why[list.WayMessage] = list.WayRDMA, "rdma is faster"
	case !on.Message:
		i.Why[list.WayMessage] = TurnedOff
	}
	return i
}
