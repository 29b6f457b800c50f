package main

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
)

// counter answers a counter of the endpoint, by the name that weft's provider has for it.
func (s *side) counter(name string) error {
	c, ok := s.m.(hw.MatchCounter)
	if !ok {
		return fmt.Errorf("no counters")
	}
	stats := c.MatchStats()
	n, ok := map[string]uint64{
		"matched_dropped":         stats.Dropped,
		"matched_no_events":       stats.Stopped[hw.MatchNoEvents],
		"matched_no_buffers":      stats.Stopped[hw.MatchNoBuffers],
		"matched_no_entries":      stats.Stopped[hw.MatchNoEntries],
		"matched_no_requests":     stats.Stopped[hw.MatchNoRequests],
		"matched_by_software":     stats.Stopped[hw.MatchBySoftware],
		"matched_soft_unexpected": stats.Stopped[hw.MatchSoftUnexpected],
		"matched_soft_receive":    stats.Stopped[hw.MatchSoftReceive],
	}[name]
	if !ok {
		return fmt.Errorf("no counter %q", name)
	}
	fmt.Println("ok", n)
	return nil
}
