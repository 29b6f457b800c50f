package udp

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/hw/udp/internal/xdp"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// Config configures an interface. The zero value of every field means its
// default, which [Config.withDefaults] has.
type Config struct {
	// Stripes is the number of sockets, 1 to MaxStripes. Default 1. There may
	// be fewer: see [sock.Steering].
	Stripes int
	// Window is the size in bytes of the ring of each direction of a
	// connection, a power of two, 64 KiB to MaxWindow. Default the least that is
	// 16 times MaxBcopy, and 256 KiB at least. Rings are made when they are first
	// used, and give their memory back when they were not for some time.
	Window int
	// MaxBcopy is the largest payload of AMBcopy in bytes, 1 to Window/4.
	// Default 8192. Messages of up to Window/4 are taken, so peers may differ in it.
	MaxBcopy int
	// Eager is the payload in bytes up to which a message is better sent eagerly
	// than by rendezvous, 0 to MaxBcopy: Attr.EagerAM. Default 0: nothing is said of that.
	Eager int
	// MaxPeers is the number of connections, 1 to 2^20. Default 65536.
	MaxPeers int
	// Key is the authorisation key, 1 to crypt.MaxKey bytes. Default none.
	Key []byte
	// Keys are the authorisation keys of an interface that has several, in the
	// place of Key. Default none.
	Keys []hw.Key
	// Memory is where peers' puts, gets and atomics find memory. Default: there
	// are none.
	Memory *MemoryDomain
	// PeerTimeout is how long a peer may leave something unanswered before it
	// is dead, 10 ms to 1 h. Default 15 s.
	PeerTimeout time.Duration
	// KeepAlive is how long a peer may be silent before it is asked whether it
	// is there, 1 ms to 1 h. Default 1 s; with thousands of peers it is longer.
	KeepAlive time.Duration
	// Linger is how long what was sent goes on after Close, 0 to 1 h. Default 5 s;
	// negative: not at all.
	Linger time.Duration
	// Buffer is the size of sockets' buffers in bytes, as far as the system
	// allows. Default 4 MiB.
	Buffer int
	// MaxPacket bounds datagrams in bytes of UDP payload, 1200 to 65507. Default
	// 65507: what the path takes.
	MaxPacket int
	// Congestion configures congestion windows; its Limits.Unit is ignored.
	// Default DefaultCongestion.
	Congestion *congestion.Config
	// Source is the address that datagrams come from and by which the
	// interface is known, if its socket is bound to a wildcard; a sockaddr.
	Source []byte
	// XDP is whether datagrams pass the kernel's network stack by: see package
	// xdp. Default XDPOff.
	XDP XDP
	// XDPWhere is where the program for XDP runs. Default xdp.Best.
	XDPWhere xdp.Where
	// Class is the code point of differentiated services that datagrams carry, 0 to
	// 63. Default 0.
	Class uint8
	// NoEBPF, NoCBPF and NoGSO forbid abilities of the kernel.
	NoEBPF, NoCBPF, NoGSO bool
	// NoInbox has the kernel put all datagrams into the socket's queue. Default:
	// short ones come by shared memory, where the rights allow it (CAP_BPF).
	NoInbox bool
	// Foreign takes datagrams of another protocol that shares the socket: their
	// first byte's upper half is not 0xB and their second byte is 0. What it
	// returns, if anything and no longer than b, is sent back, at a bounded rate.
	// It is called under a stripe's lease: it must be quick and must not call
	// back. Default: such datagrams count as malformed.
	Foreign func(from netip.AddrPort, b []byte) []byte
	// Logf takes one line of text about a fault, without a newline. Default:
	// none. It is called at a bounded rate.
	Logf func(format string, args ...any)

	// role and mapper are those of an interface that PortMapper.Open opens.
	role   wire.Role
	mapper *PortMapper

	// Impair stands between the interface and the network, in tests. It is
	// called under the stripe's lease.
	Impair sock.Impairment
}

// XDP says whether datagrams go past the kernel's network stack.
type XDP int

// Values of XDP.
const (
	XDPOff  XDP = iota // they do not
	XDPTry             // where it is possible; the log says why not
	XDPMust            // Open fails where it is not
)

// Limits of the configuration.
const (
	MaxStripes = 64
	MaxWindow  = wire.MaxWindow
	minWindow  = 64 << 10
)

func (c Config) withDefaults() Config {
	def(&c.Stripes, 1)
	def(&c.MaxBcopy, 8192)
	def(&c.Window, windowFor(c.MaxBcopy))
	def(&c.MaxPeers, 1<<16)
	def(&c.PeerTimeout, 15*time.Second)
	def(&c.KeepAlive, time.Second)
	def(&c.Linger, 5*time.Second)
	def(&c.Buffer, 4<<20)
	def(&c.MaxPacket, maxPacket)
	if c.Congestion == nil {
		c.Congestion = new(DefaultCongestion())
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	return c
}

// windowFor is the default window for messages of up to n bytes: with fewer than
// some ten on their way, two programs that lose their processors now and then wait
// for each other.
func windowFor(n int) int {
	window := 256 << 10
	for window/16 < n && window < MaxWindow {
		window *= 2
	}
	return window
}

// timeNoise is by how much round-trip times vary that the kernel's time stamps
// measure, without any queue: as long as a full message takes to be copied.
const timeNoise = 50 * time.Microsecond

// DefaultCongestion is the default of Config.Congestion.
func DefaultCongestion() congestion.Config {
	c := congestion.DefaultConfig(minPacket)
	c.Granularity = timeNoise
	return c
}

func def[T int | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

func (c *Config) check() error {
	for _, v := range []struct {
		name      string
		n, lo, hi int64
	}{
		{"stripes", int64(c.Stripes), 1, MaxStripes},
		{"window", int64(c.Window), minWindow, MaxWindow},
		{"largest payload", int64(c.MaxBcopy), 1, int64(c.Window / 4)},
		{"eager payload", int64(c.Eager), 0, int64(c.MaxBcopy)},
		{"peers", int64(c.MaxPeers), 1, wire.MaxConnections / 2}, // stripes that connect at once may exceed it
		{"peer timeout (ns)", int64(c.PeerTimeout), int64(10 * time.Millisecond), int64(time.Hour)},
		{"keep-alive (ns)", int64(c.KeepAlive), int64(time.Millisecond), int64(time.Hour)},
		{"linger (ns)", int64(c.Linger), -1 << 62, int64(time.Hour)},
		{"socket buffer", int64(c.Buffer), 4096, 1 << 30},
		{"largest packet", int64(c.MaxPacket), minPacket, maxPacket},
		{"class", int64(c.Class), 0, 63},
		{"key", int64(len(c.Key)), 0, crypt.MaxKey},
	} {
		if v.n < v.lo || v.n > v.hi {
			return fmt.Errorf("udp: %s of %d is not in %d to %d: %w", v.name, v.n, v.lo, v.hi, hw.ErrInvalid)
		}
	}
	if c.Window&(c.Window-1) != 0 {
		return fmt.Errorf("udp: window of %d is no power of two: %w", c.Window, hw.ErrInvalid)
	}
	if err := hw.CheckKeys(c.Keys); err != nil {
		return fmt.Errorf("udp: %w", err)
	}
	if len(c.Key) != 0 && len(c.Keys) != 0 {
		return fmt.Errorf("udp: one authorisation key and several: %w", hw.ErrInvalid)
	}
	cc := *c.Congestion
	cc.Unit = minPacket
	if err := cc.Validate(); err != nil {
		return fmt.Errorf("udp: %w: %w", err, hw.ErrInvalid)
	}
	return nil
}
