package conn

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/names"
)

// Passive is a passive endpoint (fi_passive_ep): a name at which connection
// requests arrive. Its methods may be called from any thread.
type Passive struct {
	refs   refs.Count
	owner  PassiveOwner // immutable
	info   *fi.Info     // complete but for names, immutable
	format fi.AddrFormat
	fid    atomic.Uintptr // of C's object, in events
	listen *Listener

	// mu guards what follows. It is not on the data path.
	mu   sync.Mutex
	name names.Name
	eq   *eq.Queue // does not change once the endpoint listens
}

// PassiveOwner is what passive endpoints belong to.
type PassiveOwner interface {
	Acquire() error // of a user, which Release takes back
	Release()
	// Iface is the interface that names without an address are of, "": any.
	Iface() string
}

// OpenPassive opens a passive endpoint with info's source address, or a port
// of the first local address. Errors: fi.EINVAL for another type than
// fi.EPMsg, a malformed address or authorisation key, and those of the name: fi.EADDRINUSE,
// fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func OpenPassive(owner PassiveOwner, given *fi.Info) (*Passive, error) {
	if given == nil || given.EP != nil && given.EP.Type != fi.EPMsg && given.EP.Type != fi.EPUnspec {
		return nil, log.Refuse(log.EPCtrl, fi.EINVAL, "open passive endpoint: not of type FI_EP_MSG")
	}
	auth, err := authkey.OfInfo(given)
	if err != nil {
		return nil, log.Refuse(log.EPCtrl, fi.EINVAL, "open passive endpoint: %v", err)
	}
	p := &Passive{owner: owner, info: given.Clone(), format: given.AddrFormat}
	p.listen = NewListener(auth, p.report)
	if p.format == fi.FormatUnspec {
		p.format = fi.Sockaddr
	}
	if p.info.EP != nil { // of requests, too
		p.info.EP.AuthKey, p.info.EP.AuthKeySize = auth.Bytes(), uint64(len(auth))
	}
	p.info.AddrFormat, p.info.Handle = p.format, nil
	p.info.NIC = info.NICOfDomain(p.info.Domain) // of requests, too
	if err := owner.Acquire(); err != nil {
		return nil, err
	}
	if err := p.bind(given.SrcAddr); err != nil {
		owner.Release()
		return nil, log.Refuse(log.EPCtrl, fi.ErrnoOf(err), "open passive endpoint: %v", err)
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
		n, err := names.First(want, domain, p.owner.Iface())
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

// TakeName gives the name up for an active endpoint, which has its address then; false: it listens, or has none.
func (p *Passive) TakeName() (names.Name, bool) { return p.listen.TakeName() }

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
		return log.Refuse(log.EPCtrl, fi.ErrnoOf(err), "name a passive endpoint: %v", err)
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
		return log.Refuse(log.EPCtrl, fi.EINVAL, "backlog of %d", n)
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
		return log.Refuse(log.EPCtrl, fi.ENOEQ, "listen: no event queue")
	}
	return refused(p.listen.Listen())
}

// refused logs what the system refused a passive endpoint.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return log.Refuse(log.EPCtrl, fi.ErrnoOf(err), "%v", err)
}

// report posts the event of a request.
func (p *Passive) report(r *Request) error {
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
func (p *Passive) Reject(r *Request, data []byte) error {
	switch {
	case len(data) > cm.MaxData:
		return log.Refuse(log.EPCtrl, fi.EINVAL, "reject: %d bytes of data, at most %d", len(data), cm.MaxData)
	case r == nil || !p.listen.Reject(r, data):
		return log.Refuse(log.EPCtrl, fi.EINVAL, "reject: not an unanswered request of this passive endpoint")
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
	p.owner.Release()
	return nil
}
