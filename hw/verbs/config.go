package verbs

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// Limits of a configuration.
const (
	maxRxBuffers  = 1 << 16
	maxBounce     = 1 << 16
	minBounceSize = 256
	maxBounceSize = 16 << 20
	maxDepth      = 1 << 12
	maxNameBytes  = 32
)

// Config configures an interface. The zero value of every field means its
// default.
type Config struct {
	// RxBuffers is the number of buffers of the shared receive queue, 16 to 65536, each of BounceBytes and a
	// header. Default 512.
	RxBuffers int
	// BounceCount is the number of bounce buffers over all stripes, Stripes to 65536. Default 64, but at least
	// Stripes.
	BounceCount int
	// BounceBytes is the payload of one bounce or receive buffer in bytes, 256 to 16 MiB. Default 8192.
	BounceBytes int
	// Stripes is the number of parts of the bounce pool and of completion queues for what is posted. Default 1.
	Stripes int
	// Depth is the number of operations that may be posted to one peer at a time, 16 to 4096, rounded up to a
	// power of two; of messages and of one-sided operations each. Default 128.
	Depth int
	// EagerPeers is the number of peers, the first ones, that may write short messages into memory that Progress
	// and HotTransport poll, 0 to 8: what comes so rings no bell, so Attr says nothing of hw.CapWakeup. Default 0.
	EagerPeers int
	// ConnectTimeout bounds how long a peer may be silent before it counts as unreachable. Default 10 s.
	ConnectTimeout time.Duration
	// ConnectWait has Connect wait that long for the peer's answer. Default 0: it returns at once.
	ConnectWait time.Duration
	// AwaitPeer has Connect give out no endpoint before the peer has answered: until then the error is
	// hw.ErrUnreachable, and hw.ErrNoPath when it has not answered within ConnectTimeout, or, if it was lost before,
	// within a tenth of a second: the hand-shake goes on meanwhile. No message is lost then to a network that does not
	// lead to the peer.
	AwaitPeer bool
	// PathTimeout bounds how long a path may be broken before the peer counts as gone. Default 10 s.
	PathTimeout time.Duration
	// KeepAlive is how long a connection may be idle before CheckPeers tries it. Default 1 s.
	KeepAlive time.Duration
	// Stamps has the device stamp the ends of one-sided operations, where it has a clock: hw.Completion.Late. To read
	// the clock costs an access to the device each time that completions are taken.
	Stamps bool
	// Class is the code point of differentiated services that packets carry, where they are the network's
	// (RoCE), 0 to 63. Default 0.
	Class uint8
	// Name is the address by which peers know the interface, at most 32 bytes. Default: its device address.
	Name []byte
	// Resolve turns an address given to Connect, a peer's Name, into the peer's DeviceAddress. It must not block.
	// Errors: hw.ErrNoResource and hw.ErrUnreachable (not known yet), hw.ErrNoPath (the peer has none), hw.ErrInvalid.
	// Default: they are the same.
	Resolve func(name []byte) ([]byte, error)
	// Forget says that the interface to which Resolve led is gone: another may take the name. Default: none.
	Forget func(name []byte)
	// Direct has C threads that send short messages and take messages in do so without the Go runtime (package direct),
	// where there is a trampoline; it holds for the process. The caller has tried that. Default: they enter the
	// runtime.
	Direct bool
	// Logf takes one line of text about a fault, without a newline. Default: none.
	Logf func(format string, args ...any)
}

func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	wait := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.RxBuffers, 512)
	def(&c.Stripes, 1)
	def(&c.BounceCount, max(64, c.Stripes))
	def(&c.BounceBytes, 8192)
	def(&c.Depth, 128)
	wait(&c.ConnectTimeout, 10*time.Second)
	wait(&c.PathTimeout, 10*time.Second)
	wait(&c.KeepAlive, time.Second)
	if c.Forget == nil {
		c.Forget = func([]byte) {}
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	return c
}

// check judges a configuration with defaults against its ranges and the
// device's limits.
func (c *Config) check(a ibv.DeviceAttr) error {
	for _, v := range []struct {
		what         string
		n, low, high int
	}{
		{"receive buffers", c.RxBuffers, 16, min(maxRxBuffers, a.MaxSRQWR, a.MaxCQE)},
		{"stripes", c.Stripes, 1, 1024},
		{"bounce buffers", c.BounceCount, c.Stripes, maxBounce},
		{"bounce buffer bytes", c.BounceBytes, minBounceSize, maxBounceSize},
		{"operations posted to a peer", c.Depth, 16, min(maxDepth, a.MaxQPWR, a.MaxCQE)},
		{"peers with a ring", c.EagerPeers, 0, transport.Rings},
		{"name bytes", len(c.Name), 0, maxNameBytes},
	} {
		if v.n < v.low || v.n > v.high {
			return fmt.Errorf("verbs: %d %s, not %d to %d: %w", v.n, v.what, v.low, v.high, hw.ErrInvalid)
		}
	}
	for _, d := range []time.Duration{c.ConnectTimeout, c.PathTimeout, c.KeepAlive} {
		if d < 0 {
			return fmt.Errorf("verbs: time limit %v: %w", d, hw.ErrInvalid)
		}
	}
	return nil
}

// depth is Depth as a power of two.
func (c *Config) depth() int { return 1 << bits.Len(uint(c.Depth-1)) }

// retries is how often a queue pair sends again before it gives up; more it
// cannot count (InfiniBand Architecture Specification, 3 bits).
const retries = 7

// ackTimeout is the code of the time after which a queue pair misses an
// acknowledgement, 4.096 us * 2^code, so that all its retries together take no
// more than half of the path's time limit. It is at least 8 (1 ms) and at most
// 17 (0.5 s).
func (c *Config) ackTimeout() int {
	code := 8
	for code < 17 && time.Duration(4096<<(code+1))*(retries+1) <= c.PathTimeout/2 {
		code++
	}
	return code
}
