package provider

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/stats"
)

// list prepares a list, until the test ends.
func (s *side) list(pieces []Piece) *List {
	s.t.Helper()
	l, err := s.ep.NewList(pieces)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := l.Close(); err != nil && fi.ErrnoOf(err) != fi.EBADF {
			s.t.Errorf("close list: %v", err)
		}
	})
	return l
}

// counts reads a counter of the side.
func (s *side) counts(name string) uint64 {
	s.t.Helper()
	values := make([]uint64, len(stats.Table()))
	if err := s.ep.Counters(values); err != nil {
		s.t.Fatal(err)
	}
	return values[slices.IndexFunc(stats.Table(), func(c stats.Counter) bool { return c.Name == name })]
}

// listPaths runs a test over every way that a host without devices has.
func listPaths(t *testing.T, f func(t *testing.T, x, y *side, way Way)) {
	listPathsWith(t, rmaHints, f)
}

func listPathsWith(t *testing.T, hints func() *fi.Info, f func(t *testing.T, x, y *side, way Way)) {
	forEachPathWith(t, hints, func(t *testing.T, b *bench) {
		way := WayIPC
		if b.domain.cfg.UseCMA == config.No {
			way = WayMessage
		}
		f(t, b.side(t), b.side(t), way)
	})
	t.Run("turned off", func(t *testing.T) {
		b := newBench(t, func(c *config.Config) { c.TokenWays = config.Ways{RDMA: true, Message: true} }, hints())
		f(t, b.side(t), b.side(t), WayMessage)
	})
	t.Run("udp", func(t *testing.T) {
		sides := overUDPWith(t, 2, hints(), nil)
		f(t, sides[0], sides[1], WayMessage)
	})
	t.Run("flows", func(t *testing.T) {
		sides := overUDPWith(t, 2, hints(), flowsEverywhere)
		f(t, sides[0], sides[1], WayMessage)
	})
	t.Run("flows in memory", func(t *testing.T) {
		b := newBench(t, flowsEverywhere, hints())
		f(t, b.side(t), b.side(t), WayIPC)
	})
}
