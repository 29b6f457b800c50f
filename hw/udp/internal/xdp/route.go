package xdp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/sock"
)

// way is how frames get to a peer. What the resolver writes later is atomic; the
// rest is immutable.
type way struct {
	template
	most int    // largest payload in bytes; 0: the kernel has to send
	hop  []byte // the owner of the hardware address: the peer, or a router
	why  string // there is none, empty if there is

	// stale is set under routes.mu when the kernel is to be asked anew, and read by
	// the owners of Ports.
	stale atomic.Bool
	// confirm is set by Tick, and cleared by the Port that has the kernel send one
	// datagram, so that the kernel goes on checking whether the neighbour is there.
	confirm atomic.Bool
}

// confirmEvery is how often the kernel gets a datagram to a peer, and is asked
// again about peers that it has no way to: a neighbour that is replaced without
// a word is found as soon as with the kernel's own datagrams.
const confirmEvery = time.Second

// validNeighbour are the states in which a neighbour's address may be used.
const validNeighbour = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT

// groups are what the kernel reports: RTMGRP_LINK, _NEIGH, _IPV4_IFADDR, _IPV4_ROUTE,
// _IPV6_IFADDR, _IPV6_ROUTE.
const groups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) |
	1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)

// routes knows the ways to peers.
type routes struct {
	iface   int            // immutable, like the four that follow
	mac     [6]byte        // the interface's
	from    netip.AddrPort // our address
	class   uint8          // the code point that datagrams carry
	payload int            // the largest that a frame has room for

	// mu guards the rest. It is taken when a peer is new or its way has changed,
	// and by Tick; no other datagram meets it.
	mu      sync.Mutex
	known   map[sock.Addr]*way
	mtu     int // of the interface
	asks    talker
	news    talker
	renewed time.Duration // when Tick had ways confirmed
}

// maxWays bounds the peers that are kept in mind; more have all asked for again.
const maxWays = 1 << 17

// open makes the sockets. Errors are of the kernel.
func (r *routes) open() error {
	r.known = map[sock.Addr]*way{}
	if err := r.asks.open(0); err != nil {
		return err
	}
	if err := r.news.open(groups); err != nil {
		r.asks.close()
		return err
	}
	return nil
}

func (r *routes) close() {
	r.asks.close()
	r.news.close()
}

// find returns the way to a peer.
func (r *routes) find(to *sock.Addr) *way {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.known[*to]
	if w != nil && !w.stale.Load() {
		return w
	}
	if len(r.known) >= maxWays {
		r.forget()
	}
	w = &way{}
	if err := r.resolve(w, to.AddrPort()); err != nil {
		w.why, w.most = err.Error(), 0
	}
	r.known[*to] = w
	return w
}

// resolve asks the kernel for the way to a peer. The error says why there is none.
func (r *routes) resolve(w *way, to netip.AddrPort) error {
	ip := to.Addr().WithZone("")
	if ip.Is4() != r.from.Addr().Is4() {
		return fmt.Errorf("%s is of another family", ip)
	}
	w.hop = ip.AsSlice()
	answer, err := r.asks.ask(r.routeRequest(w.hop))
	if err != nil {
		return fmt.Errorf("route to %s: %w", ip, err)
	}
	path, err := parseRoute(answer)
	switch {
	case err != nil:
		return fmt.Errorf("route to %s: %w", ip, err)
	case path.kind != unix.RTN_UNICAST || path.wrapped:
		return fmt.Errorf("route to %s is none over an Ethernet", ip)
	case path.iface != r.iface:
		return fmt.Errorf("route to %s is over interface %d", ip, path.iface)
	case path.gateway != nil:
		w.hop = bytes.Clone(path.gateway)
	}
	if answer, err = r.asks.ask(r.neighbourRequest(w.hop)); err != nil {
		return fmt.Errorf("hardware address of %s: %w", ip, err)
	}
	n, err := parseNeighbour(answer)
	switch {
	case err != nil:
		return fmt.Errorf("hardware address of %s: %w", ip, err)
	case n.state&validNeighbour == 0 || len(n.mac) != 6:
		return fmt.Errorf("hardware address of %s is not known", ip)
	}
	w.template = newTemplate(r.mac, [6]byte(n.mac), netip.AddrPortFrom(r.from.Addr().WithZone(""), r.from.Port()),
		netip.AddrPortFrom(ip, to.Port()), r.class)
	w.most = min(r.payload, r.interfaceMTU()-(w.size-sizeEthernet))
	return nil
}

// interfaceMTU asks for it if it may have changed.
func (r *routes) interfaceMTU() int {
	if r.mtu == 0 {
		body := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(body[4:], uint32(r.iface))
		if answer, err := r.asks.ask(newRequest(unix.RTM_GETLINK, body)); err == nil {
			r.mtu, _ = parseMTU(answer)
		}
	}
	return r.mtu
}

// routeRequest asks for the route of datagrams from our address to ip.
func (r *routes) routeRequest(ip []byte) *request {
	bits := uint8(8 * len(ip))
	from := r.from.Addr().AsSlice()
	q := newRequest(unix.RTM_GETROUTE, []byte{family(ip), bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	q.attribute(unix.RTA_DST, ip)
	q.attribute(unix.RTA_SRC, from)
	if a, _ := netip.AddrFromSlice(ip); a.IsLinkLocalUnicast() {
		q.attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(r.iface)))
	}
	return q
}

func (r *routes) neighbourRequest(ip []byte) *request {
	body := make([]byte, unix.SizeofNdMsg)
	body[0] = family(ip)
	binary.NativeEndian.PutUint32(body[4:], uint32(r.iface))
	q := newRequest(unix.RTM_GETNEIGH, body)
	q.attribute(unix.NDA_DST, ip)
	return q
}

// tick takes in what the kernel has reported, and has ways confirmed.
func (r *routes) tick(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := false
	if !r.news.events(func(kind uint16, body []byte) {
		switch kind {
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			n, err := parseNeighbour(body)
			if err != nil {
				all = true
				return
			}
			r.changed(&n, kind == unix.RTM_DELNEIGH)
		default:
			all = true
		}
	}) {
		all = true
	}
	if all {
		r.forget()
		return
	}
	if now-r.renewed < confirmEvery {
		return
	}
	r.renewed = now
	for _, w := range r.known {
		if w.most > 0 {
			w.confirm.Store(true)
		} else {
			w.stale.Store(true)
		}
	}
}

// changed has the ways over a neighbour asked for anew, if that may be another now.
func (r *routes) changed(n *neighbour, gone bool) {
	if n.iface != r.iface {
		return
	}
	same := !gone && n.state&validNeighbour != 0
	for _, w := range r.known {
		if bytes.Equal(w.hop, n.ip) && !(same && w.most > 0 && bytes.Equal(w.headers[:6], n.mac)) {
			w.stale.Store(true)
		}
	}
}

// forget has all asked for anew.
func (r *routes) forget() {
	for _, w := range r.known {
		w.stale.Store(true)
	}
	clear(r.known)
	r.mtu = 0
}
