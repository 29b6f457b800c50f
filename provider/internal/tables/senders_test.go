package tables

import (
	"sync"
	"sync/atomic"
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

// TestSendersStrangerDropped: a stranger is dropped by the first change of the directory after it was found, though
// strangers are dropped at any step of its filling.
func TestSendersStrangerDropped(t *testing.T) {
	for _, at := range []string{"before the line is written", "after it is written"} {
		var word uint64
		var s Senders
		now, drops := Directory{}, true
		drop := func(here string) {
			if drops && at == here {
				drops = false
				s.DropStrangers() // of a change before the directory was read
			}
		}
		s.Open(func(uint32) *uint64 { drop("before the line is written"); return &word })
		s.Fill(0, fi.AddrNotAvail, now, func() Directory { drop("after it is written"); return now })
		if drops {
			t.Errorf("%s: nothing was dropped", at)
		}
		now.Generation++
		if s.DropStrangers(); word != hot.SenderUnknown {
			t.Errorf("strangers dropped %s: a later change leaves the line at %d", at, word)
		}
	}
}

// TestSendersThreads: threads change the directory beside fills. A line that a holder of the lease reads is of no older
// directory than that of a change which had ended.
func TestSendersThreads(t *testing.T) {
	const changes, changers = 2000, 3
	var words [8]uint64
	var s Senders
	s.Open(func(line uint32) *uint64 { return &words[line] })
	var generation, ended atomic.Uint64
	now := func() Directory { return Directory{Generation: generation.Load()} }
	var running sync.WaitGroup
	for range changers {
		running.Go(func() {
			for range changes {
				g := generation.Add(1)
				s.DropStrangers()
				for old := ended.Load(); old < g && !ended.CompareAndSwap(old, g); old = ended.Load() {
				}
			}
		})
	}
	var found [len(words)]uint64 // the generation of each line
	for line := uint32(0); ended.Load() < changes*changers; line = (line + 1) % uint32(len(words)) {
		if !s.Has(line) {
			seen := now()
			found[line] = seen.Generation
			s.Fill(line, fi.AddrNotAvail, seen, now)
		}
		if e := ended.Load(); s.Has(line) && found[line] < e {
			t.Errorf("line %d is of generation %d, and change %d has ended", line, found[line], e)
			break
		}
	}
	running.Wait()
}
