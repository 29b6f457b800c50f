package weft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/names"
)

// Config says how an endpoint is opened.
type Config struct {
	// Addr is the address to bind. The zero value is the host's first interface that is up and a free port; port 0 is
	// any free port.
	Addr netip.AddrPort
	// InFlight is the most operations that may be posted and not yet completed, and completions that may be unread:
	// 1 to 1,048,576; 0 means 4,096.
	InFlight int
}

// Limits of Config.InFlight.
const (
	defaultInFlight = 4096
	maxInFlight     = 1 << 20
)

// Peer is an endpoint as another endpoint knows it. It is comparable, and means something only to the endpoint that
// returned it.
type Peer struct {
	n uint64 // its index in the address vector, plus 1
}

// AnyPeer is the zero Peer: in a [Match], any sender; in a [Message] or [Completion], one whose address the endpoint
// was never given.
var AnyPeer = Peer{}

// Endpoint sends and receives. Any goroutine may call its methods.
type Endpoint struct {
	fabric *provider.Fabric
	domain *provider.Domain
	av     *provider.AV
	queue  *cq.Queue
	ep     *provider.Endpoint
	addr   netip.AddrPort

	// users counts calls that use the objects above; Close adds closedUsers. Changed by every call, seq_cst.
	users    atomic.Int64
	closing  chan struct{} // closed by Close before it waits for users
	idle     chan struct{} // closed, once, by the last user after Close has begun
	idleOnce sync.Once
	closed   chan struct{} // closed when the objects are
	err      error         // of closing the objects; written before closed is closed

	requests table
	ended    fifo
	parking  parking

	mu      sync.Mutex // guards what follows
	keys    uint64     // keys of regions that were requested
	regions map[*Region]struct{}
	remotes map[*Remote]struct{}
}

// closedUsers marks Endpoint.users of an endpoint that is being closed.
const closedUsers = -1 << 40

// Open opens an endpoint. The error wraps a [fi.Errno]: EINVAL for a Config out of range, ENODATA or EADDRNOTAVAIL
// for an address that the host does not have, EADDRINUSE for a port that is taken.
func Open(c Config) (*Endpoint, error) {
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	if c.InFlight < 1 || c.InFlight > maxInFlight {
		return nil, fmt.Errorf("weft: InFlight %d, not 1 to %d: %w", c.InFlight, maxInFlight, fi.EINVAL)
	}
	e := &Endpoint{
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
		closed:  make(chan struct{}),
		regions: map[*Region]struct{}{},
		remotes: map[*Remote]struct{}{},
	}
	e.requests.most = c.InFlight
	e.ended.ready = make(chan struct{}, 1)
	if err := e.open(c); err != nil {
		return nil, fmt.Errorf("weft: open: %w", errors.Join(err, e.closeObjects()))
	}
	return e, nil
}

func (e *Endpoint) open(c Config) error {
	node, service, flags := "", "", fi.Source
	if c.Addr.Addr().IsValid() {
		node, service = c.Addr.Addr().String(), strconv.Itoa(int(c.Addr.Port()))
	} else if c.Addr.Port() != 0 {
		service = strconv.Itoa(int(c.Addr.Port()))
	} else {
		flags = 0
	}
	infos, err := provider.GetInfo(fi.Version(1, 20), node, service, flags, &fi.Info{
		Caps:   fi.Tagged | fi.RMA | fi.Source | fi.DirectedRecv,
		EP:     &fi.EPAttr{Type: fi.EPRDM},
		Tx:     &fi.TxAttr{MsgOrder: fi.OrderSAS},
		Rx:     &fi.RxAttr{MsgOrder: fi.OrderSAS},
		Domain: &fi.DomainAttr{Threading: fi.ThreadSafe, MRMode: fi.MRProvKey},
	})
	if err != nil {
		return err
	}
	info := infos[0]
	if e.fabric, err = provider.OpenFabric(info.Fabric); err != nil {
		return err
	}
	if e.domain, err = e.fabric.OpenDomain(info); err != nil {
		return err
	}
	if e.av, err = e.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable}); err != nil {
		return err
	}
	queue := &fi.CQAttr{Format: fi.CQFormatTagged, Size: uint64(c.InFlight), WaitObj: fi.WaitFD}
	if e.queue, err = e.domain.OpenCQ(queue, nil); err != nil {
		return err
	}
	if e.ep, err = e.domain.OpenEndpoint(info); err != nil {
		return err
	}
	if err = e.ep.BindAV(e.av, 0); err != nil {
		return err
	}
	if err = e.ep.BindCQ(e.queue, fi.Transmit|fi.Recv); err != nil {
		return err
	}
	if err = e.ep.Enable(); err != nil {
		return err
	}
	return e.identify()
}

// identify finds the endpoint's address and what its goroutines are parked on.
func (e *Endpoint) identify() error {
	raw, err := e.ep.Name()
	if err != nil {
		return err
	}
	name, err := names.FromSockaddr(raw)
	if err != nil {
		return err
	}
	e.addr = netip.AddrPortFrom(name.Addr(), name.Port)
	fd, err := unix.FcntlInt(uintptr(e.queue.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("copy the queue's descriptor: %w", err)
	}
	// The runtime's poller takes only descriptors that do not block.
	if err = syscall.SetNonblock(fd, true); err != nil {
		return errors.Join(fmt.Errorf("descriptor %d: %w", fd, err), unix.Close(fd))
	}
	return e.parking.init(os.NewFile(uintptr(fd), "weft completion queue"))
}

// Addr returns the endpoint's address, which peers pass to [Endpoint.Peer].
func (e *Endpoint) Addr() netip.AddrPort { return e.addr }

// Peer returns the peer with an address. The same address gives the same Peer. The address need not be in use yet.
// The error wraps EINVAL for an address that is none, or one of a family that the endpoint has not.
func (e *Endpoint) Peer(addr netip.AddrPort) (Peer, error) {
	if err := e.enter(); err != nil {
		return Peer{}, err
	}
	defer e.leave()
	if !addr.IsValid() {
		return Peer{}, fmt.Errorf("weft: peer %v: %w", addr, fi.EINVAL)
	}
	name := names.New(addr.Addr(), addr.Port())
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.av.Find(name)
	if at == fi.AddrNotAvail {
		var got [1]fi.Addr
		if _, err := e.av.Insert(name.AppendSockaddr(nil), 1, &provider.Insertion{Addrs: got[:]}); err != nil {
			return Peer{}, fmt.Errorf("weft: peer %v: %w", addr, err)
		}
		if at = got[0]; at == fi.AddrNotAvail {
			return Peer{}, fmt.Errorf("weft: peer %v: %w", addr, fi.EINVAL)
		}
	}
	return Peer{uint64(at) + 1}, nil
}

// RemovePeer forgets a peer: operations that name it fail with EINVAL, until its index is given to another peer. It is
// called when nothing to or from the peer is in flight.
func (e *Endpoint) RemovePeer(p Peer) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.av.Remove([]fi.Addr{p.addr()}, 0); err != nil {
		return fmt.Errorf("weft: remove peer: %w", err)
	}
	return nil
}

// addr is the peer's index for package provider; of AnyPeer, the one that means any.
func (p Peer) addr() fi.Addr { return fi.Addr(p.n - 1) }

// enter begins a call that uses the endpoint's objects.
func (e *Endpoint) enter() error {
	if e.users.Add(1) > 0 {
		return nil
	}
	e.leave()
	return errClosed
}

// leave ends what enter began.
func (e *Endpoint) leave() {
	if e.users.Add(-1) == closedUsers {
		e.idleOnce.Do(func() { close(e.idle) }) // calls that are refused come by here as well
	}
}

// Close ends everything in flight, wakes what waits, closes the endpoint's regions and remotes, and gives back what the
// endpoint has. No memory of an operation or a region is in use any more when it returns. A second Close gives
// [net.ErrClosed].
func (e *Endpoint) Close() error {
	for n := e.users.Load(); ; n = e.users.Load() {
		if n < 0 {
			<-e.closed
			return errClosed
		}
		// The call is a user itself until its own leave, so that idle is closed once.
		if e.users.CompareAndSwap(n, n+1+closedUsers) {
			break
		}
	}
	close(e.closing)
	e.parking.interrupt()
	e.leave()
	<-e.idle
	e.err = e.closeObjects()
	close(e.closed)
	return e.err
}

// closeObjects closes what open has opened, users first.
func (e *Endpoint) closeObjects() error {
	var errs []error
	for r := range e.remotes {
		errs = append(errs, r.remote.Close())
	}
	for r := range e.regions {
		errs = append(errs, r.release())
	}
	if e.ep != nil {
		errs = append(errs, e.ep.Close())
	}
	if e.parking.file != nil {
		errs = append(errs, e.parking.file.Close())
	}
	if e.queue != nil {
		errs = append(errs, e.queue.Close())
	}
	if e.av != nil {
		errs = append(errs, e.av.Close())
	}
	if e.domain != nil {
		errs = append(errs, e.domain.Close())
	}
	if e.fabric != nil {
		errs = append(errs, e.fabric.Close())
	}
	return errors.Join(errs...)
}
