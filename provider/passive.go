package provider

import (
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/authkey"
	"github.com/weft-fabric/weft/provider/cm"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/refs"
)

// Passive is a passive endpoint (fi_passive_ep): a name at which connection
// requests arrive. It listens on a TCP socket of that name; package cm has the
// protocol.
//
// A goroutine takes connections as long as fewer requests than the backlog are
// unanswered; more wait in the kernel. One goroutine each reads the request of
// a connection. Of those that have not said anything yet there are greetMax at
// most, for greetTime each, so strangers can neither fill the memory nor shut
// the others out.
type Passive struct {
	refs   refs.Count
	fabric *Fabric
	info   *fi.Info // complete but for names, immutable
	format fi.AddrFormat
	auth   authkey.Key // of those whose requests are heard, and of the answers; immutable

	// mu guards what follows. It is not on the data path.
	mu       sync.Mutex
	room     sync.Cond // fewer requests, or closed
	fd       int       // the socket, -1 once closed or taken over
	want     names.Name
	name     names.Name
	eq       *eq.Queue
	fid      uintptr
	backlog  int
	listener *net.TCPListener // nil: not listening
	greeting []*net.TCPConn   // that said nothing yet, oldest first
	requests map[*ConnReq]bool
	closed   bool
	over     sync.WaitGroup
}

const (
	defaultBacklog = 128
	greetMax       = 128
	greetTime      = 5 * time.Second
)

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
	p := &Passive{
		auth: auth, fabric: f, info: info.Clone(), format: info.AddrFormat, fd: -1, backlog: defaultBacklog,
		requests: map[*ConnReq]bool{},
	}
	p.room.L = &p.mu
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
		n, err := defaultName(want, domain, p.fabric.cfg.Iface)
		if err != nil {
			return err
		}
		name = n
	}
	if want.IsZero() {
		want = name
	}
	fd, got, err := bindTCP(want, names.Fits(p.format, names.Any(names.AFInet, 0)))
	if err != nil {
		return err
	}
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
	p.fd, p.want, p.name = fd, got, name.WithPort(got.Port)
	return nil
}

// SetFID sets the address of the C object, which events name.
func (p *Passive) SetFID(fid uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fid = fid
}

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
	if p.listener != nil || p.fd < 0 {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backlog = n
	p.room.Broadcast()
	if p.listener == nil {
		return nil
	}
	return p.listen()
}

func (p *Passive) listen() error {
	if err := unix.Listen(p.fd, p.backlog); err != nil {
		return refuse(log.EPCtrl, fi.ErrnoOf(err), "listen at %s: %v", p.want, err)
	}
	return nil
}

// Listen begins to take connection requests. Errors: fi.EOPBADSTATE when it
// does already or the name was taken over, fi.ENOEQ, fi.EADDRINUSE.
func (p *Passive) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.listener != nil || p.fd < 0:
		return fi.EOPBADSTATE
	case p.eq == nil:
		return refuse(log.EPCtrl, fi.ENOEQ, "listen: no event queue")
	}
	if err := p.listen(); err != nil {
		return err
	}
	l, err := listener(p.fd)
	if err != nil {
		return err
	}
	p.listener = l
	p.over.Go(p.accept)
	return nil
}

// accept takes connections until the listener is closed.
func (p *Passive) accept() {
	for p.waitRoom() {
		c, err := p.listener.AcceptTCP()
		if err == nil {
			p.greet(c)
			continue
		}
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return
		}
		log.Warnf(log.EPCtrl, "take a connection at %s: %v", p.want, err) // no descriptors, likely
		time.Sleep(100 * time.Millisecond)
	}
}

// waitRoom waits until there are fewer requests than the backlog; false: closed.
func (p *Passive) waitRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.requests) >= p.backlog {
		p.room.Wait()
	}
	return !p.closed
}

// greet has the request of a connection read.
func (p *Passive) greet(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return
	}
	if len(p.greeting) == greetMax {
		_ = p.greeting[0].Close() // its reader takes it off the list
		p.greeting = p.greeting[1:]
	}
	p.greeting = append(p.greeting, c)
	p.over.Go(func() { p.hear(c) })
}

// hear reads a connection's request and reports it.
func (p *Passive) hear(c *net.TCPConn) {
	r, err := readRequest(c, p.auth)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.greeting {
		if p.greeting[i] == c {
			p.greeting = append(p.greeting[:i:i], p.greeting[i+1:]...)
			break
		}
	}
	if err == nil && p.closed {
		err = net.ErrClosed
	}
	if err == nil {
		err = p.report(r)
	}
	if err != nil {
		if !p.closed {
			log.Infof(log.EPCtrl, "connection from %s to %s: %v", c.RemoteAddr(), p.want, err)
		}
		_ = c.Close()
	}
}

// report posts the event of a request. The caller has p.mu.
func (p *Passive) report(r *ConnReq) error {
	r.passive = p
	i := p.info.Clone()
	var err error
	if i.SrcAddr, err = names.Encode(p.format, r.local); err != nil {
		return err
	}
	if i.DestAddr, err = names.Encode(p.format, r.peer); err != nil {
		return err
	}
	i.Handle = r
	p.requests[r] = true
	p.eq.Post(eq.CMEvent(fi.ConnReq, p.fid, i, r.data))
	return nil
}

// answered takes a request off the list.
func (p *Passive) answered(r *ConnReq) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.requests, r)
	p.room.Broadcast()
}

// Reject refuses a connection request with data for the peer. Errors:
// fi.EINVAL for a request of another endpoint, one that was answered already,
// or more than FI_OPT_CM_DATA_SIZE bytes.
func (p *Passive) Reject(r *ConnReq, data []byte) error {
	switch {
	case r == nil || r.passive != p:
		return refuse(log.EPCtrl, fi.EINVAL, "reject: not a request of this passive endpoint")
	case len(data) > cm.MaxData:
		return refuse(log.EPCtrl, fi.EINVAL, "reject: %d bytes of data, at most %d", len(data), cm.MaxData)
	case !r.end(reqOpen) && !r.end(reqTaken):
		return refuse(log.EPCtrl, fi.EINVAL, "reject: the request was answered already")
	}
	_ = r.reply(cm.Message{Kind: cm.Reject, Data: data}, p.auth) // a peer that is gone needs no answer
	_ = r.conn.Close()
	r.done()
	return nil
}

// takeName gives the endpoint's address to an active one: it takes no requests
// from now on. false if it has none any more.
func (p *Passive) takeName() (names.Name, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 || p.listener != nil {
		return names.Name{}, false
	}
	_ = unix.Close(p.fd)
	p.fd = -1
	return p.want, true
}

// Close ends the endpoint. Requests for which no endpoint was opened are
// refused.
func (p *Passive) Close() error {
	if err := p.refs.Close(); err != nil {
		return err
	}
	p.mu.Lock()
	p.closed = true
	p.room.Broadcast()
	if p.listener != nil {
		_ = p.listener.Close()
	}
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
	for _, c := range p.greeting {
		_ = c.Close()
	}
	var open []*ConnReq
	for r := range p.requests {
		open = append(open, r)
	}
	p.mu.Unlock()
	p.over.Wait()
	if p.eq != nil {
		p.eq.Forget(p.fid)
		p.eq.Release()
	}
	for _, r := range open {
		if r.end(reqOpen) {
			r.drop()
		}
	}
	p.fabric.refs.Release()
	return nil
}

// send sends one message of the connection protocol.
func send(c *net.TCPConn, m cm.Message) error {
	_ = c.SetWriteDeadline(time.Now().Add(greetTime)) // it fits into any socket's buffer
	_, err := c.Write(m.Append(nil))
	if err != nil {
		return fmt.Errorf("send to %s: %w", c.RemoteAddr(), err)
	}
	return nil
}
