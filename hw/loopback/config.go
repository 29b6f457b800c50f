package loopback

import (
	"fmt"
	"net/netip"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// CMA says whether Get may use cross-memory attach (process_vm_readv).
type CMA int

const (
	// CMAAuto tries it, and remembers for each peer when the kernel refuses.
	CMAAuto CMA = iota
	// CMAYes promises that it works: as CMAAuto, but a refusal is logged.
	CMAYes
	// CMANo never tries: ReadPeer and WritePeer are refused.
	CMANo
)

// Limits of a segment. They keep every product and sum of header fields far
// from overflow, so that the checks of foreign headers are plain comparisons.
const (
	MaxRingLog2    = 20                    // slots, as a power of two
	MaxAttach      = hot.SeqOwnerMask - 1  // entries; owner numbers are one more and have 16 bits
	MaxBounceCount = 1 << 16               // buffers
	MaxBounceBytes = 16 << 20              // payload bytes of one buffer
	MaxKeys        = 1 << 20               // published regions
	maxSegment     = uint64(1)<<41 + 1<<28 // bytes
)

// Config configures an interface. The zero value of every field means its
// default, which [Config.withDefaults] has.
type Config struct {
	// Dir is the directory of the segments, in a memory file system. Default /dev/shm.
	Dir string
	// Across says that interfaces of other network namespaces are reached that have Dir, too, and reach this one. All
	// in Dir have different addresses then. Default: they are as if on another host.
	Across bool
	// Here reports whether an address is one of this network namespace. It is asked by Connect. Default: each is.
	Here func(netip.Addr) bool
	// Any are the families at all of whose addresses, with the port of the interface's own, peers find the
	// interface: those of the wildcard that its socket is bound to. Default none.
	Any Families
	// RingLog2 is the number of slots of each inbound ring as a power of two, 1 to MaxRingLog2. Default 8.
	RingLog2 int
	// AttachCount is the number of senders that can be attached at a time, 1 to MaxAttach. Default 1024.
	AttachCount int
	// BounceCount is the number of bounce buffers over all stripes, Stripes to MaxBounceCount. Default 64, but at
	// least Stripes.
	BounceCount int
	// BounceBytes is the payload of one bounce buffer in bytes, 1 to MaxBounceBytes, rounded up to whole cache
	// lines. Default 8192.
	BounceBytes int
	// Eager is how many bytes of payload a message may have that is sent eagerly rather than by rendezvous, 0 to
	// BounceBytes: Attr.EagerAM. Default 0: nothing is said of that.
	Eager int
	// Stripes is the number of parts of the bounce pool. Default 1.
	Stripes int
	// KeyCount is the number of regions that can be published, a power of two up to MaxKeys, or 0: peers find none.
	KeyCount int
	// Memory is where the regions are registered that the interface publishes. Default: none.
	Memory *MemoryDomain
	// Cookie names the interface to its peers (hw.Instance). Default 0: a random number.
	Cookie uint64
	// Key is the authorisation key: interfaces with different ones do not reach each other. Default none.
	Key []byte
	// Keys are the authorisation keys of an interface that has several, in the place of Key. Default none.
	Keys []hw.Key
	// Exclusive says that one thread at a time sends, progress included, whatever the endpoint.
	Exclusive bool
	// UseCMA says whether Get may use cross-memory attach.
	UseCMA CMA
	// Logf takes one line of text about a fault, without a newline. Default: none. It is called from
	// Progress, Connect, CheckPeers and Close, at a bounded rate.
	Logf func(format string, args ...any)
}

func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if c.Dir == "" {
		c.Dir = "/dev/shm"
	}
	def(&c.RingLog2, 8)
	def(&c.AttachCount, 1024)
	def(&c.Stripes, 1)
	def(&c.BounceCount, max(64, c.Stripes))
	def(&c.BounceBytes, 8192)
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	return c
}

func (c Config) check() error {
	for _, v := range []struct {
		name      string
		n, lo, hi int
	}{
		{"ring size (log2)", c.RingLog2, 1, MaxRingLog2},
		{"attach count", c.AttachCount, 1, MaxAttach},
		{"stripes", c.Stripes, 1, MaxBounceCount},
		{"bounce count", c.BounceCount, c.Stripes, MaxBounceCount},
		{"bounce bytes", c.BounceBytes, 1, MaxBounceBytes},
		{"eager bytes", c.Eager, 0, c.BounceBytes},
		{"families", int(c.Any), 0, int(allFamilies)},
		{"keys", c.KeyCount, 0, MaxKeys},
	} {
		if v.n < v.lo || v.n > v.hi {
			return fmt.Errorf("loopback: %s %d is not in %d to %d: %w", v.name, v.n, v.lo, v.hi, hw.ErrInvalid)
		}
	}
	if err := hw.CheckKeys(c.Keys); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if len(c.Key) != 0 && len(c.Keys) != 0 {
		return fmt.Errorf("loopback: one authorisation key and several: %w", hw.ErrInvalid)
	}
	if c.KeyCount&(c.KeyCount-1) != 0 {
		return fmt.Errorf("loopback: %d keys, not a power of two: %w", c.KeyCount, hw.ErrInvalid)
	}
	return nil
}
