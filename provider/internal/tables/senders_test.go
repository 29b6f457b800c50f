package tables

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestSenders: lines have the addresses that were found, unless the directory has changed since, and lose those that
// are dropped: one, or all strangers'.
func TestSenders(t *testing.T) {
	var words [4]uint64
	var s Senders
	s.Open(func(line uint32) *uint64 { return &words[line] })
	now := Directory{Generation: 1}
	fill := func(line uint32, addr fi.Addr, found Directory) {
		s.Fill(line, addr, found, func() Directory { return now })
	}
	is := func(what string, want ...uint64) {
		t.Helper()
		for line, w := range want {
			if words[line] != w || s.Has(uint32(line)) != (w != hot.SenderUnknown) {
				t.Errorf("%s: line %d has %d, not %d", what, line, words[line], w)
			}
		}
	}
	first, second := hot.SenderAddr(0), hot.SenderAddr(7)
	fill(0, 0, now)
	fill(1, fi.AddrNotAvail, now)
	fill(3, 7, now)
	is("filled", first, hot.SenderStranger, hot.SenderUnknown, second)
	s.DropStrangers()
	is("without strangers", first, hot.SenderUnknown, hot.SenderUnknown, second)
	fill(2, fi.AddrNotAvail, now)
	s.Drop(7)
	is("without an address", first, hot.SenderUnknown, hot.SenderStranger, hot.SenderUnknown)
	found := now
	now.Links++
	fill(1, fi.AddrNotAvail, found)
	fill(3, 7, found)
	is("found before a change", first, hot.SenderUnknown, hot.SenderStranger, hot.SenderUnknown)
	s.DropStrangers()
	is("without the last stranger", first, hot.SenderUnknown, hot.SenderUnknown, hot.SenderUnknown)
}
