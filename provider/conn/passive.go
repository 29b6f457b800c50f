package provider

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/cm"
	"github.com/weft-fabric/weft/provider/conn"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/refs"
)

// Passive is a passive endpoint (fi_passive_ep): a name at which connection
// requests arrive. Package conn listens there.
type Passive struct {
	refs   refs.Count
	fabric *Fabric
	info   *fi.Info // complete but for names, immutable
	format fi.AddrFormat
	fid    atomic.Uintptr // of C's object, in events
	listen *conn.Listener

	// mu guards what follows. It is not on the data path.
	mu   sync.Mutex
	name names.Name
	eq   *eq.Queue // does not change once the endpoint listens
}

// ConnReq is a connection request, the handle in the info of FI_CONNREQ.
type ConnReq = conn.Request

// OpenPassive opens a passive endpoint with info's source address, or a port
// of the first local address. Errors: fi.EINVAL for another type than
// fi.EPMsg, a malformed address or authorisation key, and those of the name: fi.EADDRINUSE,
// fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func (f *Fabric) OpenPassive(info *fi.Info) (*Passive, error) {
	if info == nil || info.EP != nil && info.EP.Type != fi.EPMsg && info.EP.Type != fi.EPUnspec {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open passive endpoint: not of type FI_EP_MSG")
	}
	auth, err := passiveKey(info)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open passive endpoint: %v", err)
	}
	p := &Passive{fabric: f, info: info.Clone(), format: info.AddrFormat}
	p.listen = conn.NewListener(auth, p.report)
	if p.format == fi.FormatUnspec {
		p.format = fi.Sockaddr
	}
	if p.info.EP != nil { // of requests, too
		p.info.EP.AuthKey, p.info.EP.AuthKeySize = auth.Bytes(), uint64(len(auth))
	}
	p.info.AddrFormat, p.info.Handle = p.format, nil
	p.info.NIC = nicOf(p.info.Domain) // of requests, too
	if err := f.refs.Acquire(); err != nil {
		return nil, err
	}
	if err := p.bind(info.SrcAddr); err != nil {
		f.refs.Release()
		return nil, refuse(log.EPCtrl, fi.ErrnoOf(err), "open passive endpoint: %v", err)
	}
	return p, nil
}

// bind takes the name that raw asks for.
func (p *Passive) bind(raw []byte) error {
	want := names.Name{}
	if len(raw) != 0 {
		n, err := names.Decode(p.format, raw)
		if err != nil {
			return err
		}
		want = n
	}
	domain := ""
	if p.info.Domain != nil {
		domain = p.info.Domain.Name
	}
	name := want
	if want.IsZero() || want.IsAny() {
		n, err := names.First(want, domain, p.fabric.cfg.Iface)
		if err != nil {
			return err
		}
		name = n
	}
	if want.IsZero() {
		want = name
	}
	got, err := p.listen.Bind(want, names.Fits(p.format, names.Any(names.AFInet, 0)))
	if err != nil {
		return err
	}
	p.name = name.WithPort(got.Port)
	return nil
}

// SetFID sets the address of the C object, which events name.
func (p *Passive) SetFID(fid uintptr) { p.fid.Store(fid) }

// Info is what the endpoint was opened with.
func (p *Passive) Info() *fi.Info { return p.info }

// Name is the endpoint's name in its address format.
func (p *Passive) Name() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return names.Encode(p.format, p.name)
}

// SetName binds the endpoint to another address before it listens. Errors:
// fi.EOPBADSTATE, and those of OpenPassive.
func (p *Passive) SetName(raw []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.listen.Bound() {
		return fi.EOPBADSTATE
	}
	if err := p.bind(raw); err != nil {
		return refuse(log.EPCtrl, fi.ErrnoOf(err), "name a passive endpoint: %v", err)
	}
	return nil
}

// BindEQ binds the event queue of connection requests. Errors: fi.EBADFLAGS
// unless flags is 0, fi.EINVAL when q is nil or one is bound already.
func (p *Passive) BindEQ(q *eq.Queue, flags uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case flags != 0:
		return fi.EBADFLAGS
	case q == nil || p.eq != nil:
		return fi.EINVAL
	}
	if err := q.Acquire(); err != nil {
		return err
	}
	p.eq = q
	return nil
}

// GetOpt returns an option of level FI_OPT_ENDPOINT: fi.OptCMDataSize, in
// bytes. Errors: fi.ENOPROTOOPT for others.
func (p *Passive) GetOpt(name fi.Opt) (uint64, error) {
	if name != fi.OptCMDataSize {
		return 0, fi.ENOPROTOOPT
	}
	return cm.MaxData, nil
}

// SetOpt refuses: the one option cannot be set. fi.ENOPROTOOPT.
func (p *Passive) SetOpt(fi.Opt, uint64) error { return fi.ENOPROTOOPT }

// SetBacklog sets how many requests may be unanswered, at any time. fi.EINVAL
// for less than 1.
func (p *Passive) SetBacklog(n int) error {
	if n < 1 {
		return refuse(log.EPCtrl, fi.EINVAL, "backlog of %d", n)
	}
	return refused(p.listen.SetBacklog(n))
}

// Listen begins to take connection requests. Errors: fi.EOPBADSTATE when it
// does already or the name was taken over, fi.ENOEQ, fi.EADDRINUSE.
func (p *Passive) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.listen.Bound():
		return fi.EOPBADSTATE
	case p.eq == nil:
		return refuse(log.EPCtrl, fi.ENOEQ, "listen: no event queue")
	}
	return refused(p.listen.Listen())
}

// refused logs what the system refused a passive endpoint.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return refuse(log.EPCtrl, fi.ErrnoOf(err), "%v", err)
}

// report posts the event of a request.
func (p *Passive) report(r *ConnReq) error {
	i := p.info.Clone()
	var err error
	if i.SrcAddr, err = names.Encode(p.format, r.Local()); err != nil {
		return err
	}
	if i.DestAddr, err = names.Encode(p.format, r.Peer()); err != nil {
		return err
	}
	i.Handle = r
	p.eq.Post(eq.CMEvent(fi.ConnReq, p.fid.Load(), i, r.Data()))
	return nil
}

// Reject refuses a connection request with data for the peer. Errors:
// fi.EINVAL for a request of another endpoint, one that was answered already,
// or more than FI_OPT_CM_DATA_SIZE bytes.
func (p *Passive) Reject(r *ConnReq, data []byte) error {
	switch {
	case len(data) > cm.MaxData:
		return refuse(log.EPCtrl, fi.EINVAL, "reject: %d bytes of data, at most %d", len(data), cm.MaxData)
	case r == nil || !p.listen.Reject(r, data):
		return refuse(log.EPCtrl, fi.EINVAL, "reject: not an unanswered request of this passive endpoint")
	}
	return nil
}

// Close ends the endpoint. Requests for which no endpoint was opened are
// refused.
func (p *Passive) Close() error {
	if err := p.refs.Close(); err != nil {
		return err
	}
	p.listen.Close()
	if p.eq != nil {
		p.eq.Forget(p.fid.Load())
		p.eq.Release()
	}
	p.listen.Drop()
	p.fabric.refs.Release()
	return nil
}
