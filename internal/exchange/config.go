package exchange

import (
	"fmt"
	"time"
)

// Config is what an engine needs to know.
type Config struct {
	// Peers is how many members this one exchanges with, itself not counted:
	// 1 to 2^24. They are numbered in shifted order: peer 0 is the next rank, and the
	// last peer is the rank before.
	Peers int

	// Policy orders the peers.
	Policy Policy

	// Chunk is the most bytes of a chunk, 1 to 2^30.
	Chunk int64

	// Short is the longest slice that goes in one chunk, at once and without an
	// answer, in bytes: 0 to Chunk. Slices without bytes do so in any case. Alike at
	// all members.
	Short int64

	// Most is how many peers are sent to at a time at most by all members of this host, 0: as many as are found to
	// be of use. One of each member, peers that wait longest, and those of short slices, come on top.
	Most int

	// Threshold is the queueing delay above which a path counts as congested, and
	// Factor how many mean deviations come on top: 0 and more.
	Threshold time.Duration
	Factor    float64

	// Window is how many places of the order a peer may lose for its delay under
	// [Balanced], 0: all.
	Window int

	// Backoff is the least time after which an idle link is seen to be idle when no
	// acknowledgement comes: above 0, at most a minute.
	Backoff time.Duration

	// Percent is the share of the own link that is used at most, on average over some chunks: 1 to 100. Members of a
	// host that send at the same time have equal parts of it.
	Percent int

	// Piece is the bytes of a piece that goes through a relay, above Short, alike at all
	// members. Store is where this member keeps pieces for others; nil: none go through relays.
	Piece int64
	Store *Store

	// Seen is asked at the start of an operation for the queueing delay of the path to a peer that gets chunks, and its
	// mean deviation, if these are known from elsewhere and younger than the operation before. nil: they never are.
	Seen func(peer int) (queue, dev time.Duration, ok bool)

	// Always has every slice that is long enough go through relays, whatever the paths are like: for
	// tests.
	Always bool
}

// DefaultConfig returns the configuration of an engine with so many peers: the
// adaptive policy, chunks of 64 KiB, 100 us.
func DefaultConfig(peers int) Config {
	return Config{
		Peers: peers, Policy: Adaptive, Chunk: 64 << 10,
		Threshold: 100 * time.Microsecond, Factor: 2, Backoff: 100 * time.Microsecond, Percent: 100,
	}
}

// Validate returns an error with the value if one is out of range.
func (c *Config) Validate() error {
	switch {
	case c.Peers < 1 || c.Peers > 1<<24:
		return fmt.Errorf("%d peers are not between 1 and %d", c.Peers, 1<<24)
	case c.Policy >= policies:
		return fmt.Errorf("policy %d is none of %v", c.Policy, policyNames)
	case c.Chunk < 1 || c.Chunk > 1<<30:
		return fmt.Errorf("chunks of %d bytes are not between 1 and %d", c.Chunk, 1<<30)
	case c.Short < 0 || c.Short > c.Chunk:
		return fmt.Errorf("short slices of %d bytes are not between 0 and a chunk's %d", c.Short, c.Chunk)
	case c.Most < 0 || c.Window < 0:
		return fmt.Errorf("%d peers at a time, or a window of %d, is below 0", c.Most, c.Window)
	case c.Threshold < 0 || !(c.Factor >= 0):
		return fmt.Errorf("threshold %v or factor %v is below 0", c.Threshold, c.Factor)
	case c.Store != nil && (c.Piece < 1 || c.Piece <= c.Short || c.Piece > 1<<30 || c.Piece != c.Store.piece):
		return fmt.Errorf("pieces of %d bytes are not those of the store, or not above %d", c.Piece, c.Short)
	case c.Percent < 1 || c.Percent > 100:
		return fmt.Errorf("%d percent of the link are not between 1 and 100", c.Percent)
	case c.Backoff <= 0 || c.Backoff > time.Minute:
		return fmt.Errorf("backoff of %v is not between 0 and a minute", c.Backoff)
	}
	return nil
}
