package tally

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// open returns the counters of an endpoint of two stripes, and what reads one of them by its name.
func open(t *testing.T) (Counts, func(name string) uint64) {
	t.Helper()
	block, why, err := stats.OpenEndpoint(t.TempDir(), "0", false, []byte("tally"))
	if why != nil || err != nil {
		t.Fatal(why, err)
	}
	t.Cleanup(block.Close)
	return On(block, 2), func(name string) uint64 {
		values := make([]uint64, len(stats.Table()))
		block.Values(values)
		for i, c := range stats.Table() {
			if c.Name == name {
				return values[i]
			}
		}
		t.Fatalf("no counter %q", name)
		return 0
	}
}

// expect compares counters with what they should be.
func expect(t *testing.T, value func(string) uint64, want map[string]uint64) {
	t.Helper()
	for name, n := range want {
		if got := value(name); got != n {
			t.Errorf("%s is %d, want %d", name, got, n)
		}
	}
}

// TestPosted: a post counts by its outcome, those of all stripes together.
func TestPosted(t *testing.T) {
	c, value := open(t)
	c.Posted(0, stats.StripeEager, 5, nil)
	c.Posted(1, stats.StripeEager, 7, nil)
	c.Posted(1, stats.StripeSync, 9, nil)
	c.Posted(0, stats.StripeEager, 100, fi.EAGAIN)
	c.Posted(0, stats.StripeEager, 100, fi.EINVAL)
	c.Add(1, stats.StripeNoCQ, 4)
	expect(t, value, map[string]uint64{
		"tx_eager": 2, "tx_eager_bytes": 12, "tx_sync": 1, "tx_sync_bytes": 9,
		"eagain_ring": 1, "post_errors": 1, "eagain_cq": 4,
	})
}

// TestRefused: a peer that is not up yet is distinguished from one that is out of reach, and the error comes back.
func TestRefused(t *testing.T) {
	c, value := open(t)
	for _, err := range []error{fi.EAGAIN, fi.EAGAIN, fi.EHOSTUNREACH} {
		if got := c.Refused(err); !errors.Is(got, err) {
			t.Errorf("%v comes back as %v", err, got)
		}
	}
	expect(t, value, map[string]uint64{"eagain_peer": 2, "post_errors": 1})
}

// TestOneSided: operations count by their kind, wherever they are done.
func TestOneSided(t *testing.T) {
	c, value := open(t)
	c.OneSided(0, Write, 1, 4)
	c.OneSided(0, Write, 3, 6)
	c.OneSided(1, Read, 1, 20)
	c.OneSided(1, Atomic, 1, 30)
	c.Direct(false, 1, 3)
	c.Direct(true, 1, 4)
	expect(t, value, map[string]uint64{
		"rma_writes": 5, "rma_write_bytes": 13, "rma_reads": 2, "rma_read_bytes": 24, "atomics": 1,
	})
}

// TestReceived: eager and unexpected messages count with their bytes, errors by their kind.
func TestReceived(t *testing.T) {
	c, value := open(t)
	c.Eager(8)
	c.Eager(0)
	c.Unexpected(3)
	for err, name := range map[fi.Errno]string{
		fi.ETRUNC: "errors_truncated", fi.ECONNRESET: "errors_reset", fi.EHOSTUNREACH: "errors_reset",
		fi.ECANCELED: "errors_canceled", fi.ENOMEM: "errors_memory", fi.EIO: "errors_other",
	} {
		before := value(name)
		if c.Failed(err); value(name) != before+1 {
			t.Errorf("%v does not count as %s", err, name)
		}
	}
	expect(t, value, map[string]uint64{
		"rx_eager": 2, "rx_eager_bytes": 8, "rx_unexpected": 1, "rx_unexpected_bytes": 3,
	})
}

// TestFill: C has the addresses of the block's words.
func TestFill(t *testing.T) {
	c, _ := open(t)
	var h hot.EP
	if c.Fill(&h); h.StatsThreads == 0 || h.StatsRx == 0 || h.StatsThreads == h.StatsRx {
		t.Errorf("addresses %#x and %#x", h.StatsThreads, h.StatsRx)
	}
}
