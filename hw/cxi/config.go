package cxi

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Limits of a configuration.
const (
	maxRxBuffers  = 4096
	maxRxBytes    = 16 << 20
	maxBounce     = 1 << 16
	minBounceSize = 256
	maxBounceSize = 1 << 20
	maxDepth      = 1 << 12
	maxQueues     = 64
	maxEvents     = 1 << 20
	maxNameBytes  = 32
)

// Config configures an interface. The zero value of every field means its
// default.
type Config struct {
	// RxBuffers is the number of buffers for messages, 4 to 4096, of RxBytes each. Default 16.
	RxBuffers int
	// RxBytes is the size of one, at least four times the longest message and at most 16 MiB. Default 256 KiB, but at
	// least that.
	RxBytes int
	// RxEvents is how many messages may wait for Progress, 64 to 1048576. Default 4096.
	RxEvents int
	// BounceCount is the number of bounce buffers over all stripes, Stripes to 65536. Default 64, but at least
	// Stripes.
	BounceCount int
	// BounceBytes is the payload of one bounce buffer in bytes, 256 bytes to 1 MiB. Default 8192.
	BounceBytes int
	// Stripes is the number of parts of the bounce pool. Default 1.
	Stripes int
	// Queues is the number of transmit queues, 1 to 64, over which peers are spread. Default min(Stripes, 4).
	Queues int
	// Depth is the number of messages that may be on their way to one peer at a time, 16 to 4096, rounded up to a
	// power of two. Default 128.
	Depth int
	// Posted is the number of messages and one-sided operations that may be on their way over one queue, 32 to 65536.
	// Default 1024.
	Posted int
	// ConnectWait has Connect wait that long for the peer's NIC to answer. Default 0: it returns at once.
	ConnectWait time.Duration
	// AwaitPeer has Connect give out no endpoint before the peer's NIC has answered: until then the error is
	// hw.ErrUnreachable, and hw.ErrNoPath when there is no such peer.
	AwaitPeer bool
	// PathTimeout bounds how long a path may be broken before the peer counts as gone. Default 10 s.
	PathTimeout time.Duration
	// KeepAlive is how long a peer may be silent before CheckPeers asks its NIC. Default 1 s.
	KeepAlive time.Duration
	// Name is the address by which peers know the interface, at most 32 bytes. Default: its device address.
	Name []byte
	// Resolve turns an address given to Connect, a peer's Name, into the peer's DeviceAddress. It must not block.
	// Errors: hw.ErrNoResource and hw.ErrUnreachable (not known yet), hw.ErrNoPath (the peer has none), hw.ErrInvalid.
	// Default: they are the same.
	Resolve func(name []byte) ([]byte, error)
	// Named has Connect take the names of matched endpoints, without a VNI, and peers reach the interface by its own,
	// with Match. Name, Resolve, Forget and AwaitPeer are its then. Default: their names lead nowhere.
	Named bool
	// Forget says that the interface to which Resolve led is gone: another may take the name. Default: ignored.
	Forget func(name []byte)
	// Direct has C threads send short messages and take messages in without the Go runtime (hw.CapDriven), where
	// package direct has a trampoline. The caller has tried that. Default: they do not.
	Direct bool
	// Match has the NIC match messages (hw.CapMatching), as an endpoint of libfabric's CXI provider does. With Direct C
	// finds by itself when there is nothing to do, and takes no message in. Default: it does not.
	Match *MatchConfig
	// Logf takes one line of text about a fault, without a newline. Default: dropped.
	Logf func(format string, args ...any)
}

// longest is the most bytes of one message.
func (c *Config) longest() int { return nic.MaxInline + c.BounceBytes }

// def stores a default.
func def[T int | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

func (c Config) withDefaults() Config {
	def(&c.Stripes, 1)
	def(&c.Queues, min(c.Stripes, 4))
	def(&c.BounceCount, max(64, c.Stripes))
	def(&c.BounceBytes, 8192)
	def(&c.RxBuffers, 16)
	def(&c.RxBytes, max(256<<10, 4*c.longest()))
	def(&c.RxEvents, 4096)
	def(&c.Depth, 128)
	def(&c.Posted, 1024)
	if c.PathTimeout == 0 {
		c.PathTimeout = 10 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = time.Second
	}
	if c.Forget == nil {
		c.Forget = func([]byte) {}
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.Match != nil {
		match := c.Match.withDefaults()
		c.Match = &match
	}
	return c
}

// check judges a configuration with defaults against its ranges.
func (c *Config) check() error {
	err := inRange([]ranged{
		{"stripes", c.Stripes, 1, 1024},
		{"queues", c.Queues, 1, maxQueues},
		{"bounce buffers", c.BounceCount, c.Stripes, maxBounce},
		{"bounce buffer bytes", c.BounceBytes, minBounceSize, maxBounceSize},
		{"receive buffers", c.RxBuffers, 4, maxRxBuffers},
		{"receive buffer bytes", c.RxBytes, 4 * c.longest(), maxRxBytes},
		{"receive events", c.RxEvents, 64, maxEvents},
		{"messages on their way to a peer", c.Depth, 16, maxDepth},
		{"operations on their way over a queue", c.Posted, 32, 1 << 16},
		{"name bytes", len(c.Name), 0, maxNameBytes},
	})
	if err != nil {
		return err
	}
	if c.Match != nil {
		if err := c.Match.check(); err != nil {
			return err
		}
	} else if c.Named {
		return fmt.Errorf("cxi: named by a matched endpoint, and none is asked for: %w", hw.ErrInvalid)
	}
	for _, d := range []time.Duration{c.PathTimeout, c.KeepAlive, c.ConnectWait} {
		if d < 0 {
			return fmt.Errorf("cxi: time limit %v: %w", d, hw.ErrInvalid)
		}
	}
	return nil
}

// ranged is a field with its range: what it is a number of.
type ranged struct {
	what         string
	n, low, high int
}

// inRange judges fields. Errors wrap hw.ErrInvalid.
func inRange(list []ranged) error {
	for _, v := range list {
		if v.n < v.low || v.n > v.high {
			return fmt.Errorf("cxi: %d %s, not %d to %d: %w", v.n, v.what, v.low, v.high, hw.ErrInvalid)
		}
	}
	return nil
}

// pid is the PID to be taken.
func (c *Config) pid() uint32 {
	if c.Match == nil || c.Match.PID == nil {
		return libcxi.AnyPID
	}
	return *c.Match.PID
}

// depth is Depth as a power of two.
func (c *Config) depth() int { return 1 << bits.Len(uint(c.Depth-1)) }
