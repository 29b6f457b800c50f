package tables

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// Senders are the addresses of an endpoint's senders, in the lines by which the data plane delivers. A sender that is
// not in the address vector is a stranger there, until it may have an address. The holder of the progress lease fills
// them; any thread that changes the address vector or makes a link drops them.
type Senders struct {
	word func(line uint32) *uint64 // immutable
	// used is how many lines were ever used. Written by the lease holder, read by threads that drop; sequentially
	// consistent.
	used atomic.Uint32
	// strangers: some lines may be of strangers. Set by the lease holder after it has written such a line and before it
	// asks whether the directory has changed, taken by DropStrangers; sequentially consistent.
	strangers atomic.Bool
	// dropping serialises DropStrangers, so that one which finds no strangers returns after the one that took them has
	// dropped them. It is not on the way of a message.
	dropping sync.Mutex
}

// Directory is what the addresses of senders are found by: it differs once one of them may have become another.
type Directory struct {
	Generation uint64 // of the address vector
	Links      uint64 // that were made: they name peers, too
}

// Open says where the word of each line is.
func (s *Senders) Open(word func(line uint32) *uint64) { s.word = word }

// Has reports whether a line has the address of its sender, or that this is a stranger.
func (s *Senders) Has(line uint32) bool { return atomic.LoadUint64(s.word(line)) != hot.SenderUnknown }

// Fill gives a line the address of its sender, fi.AddrNotAvail of a stranger, as it was found by a directory. now
// returns what that has become. Either it finds here that the directory has changed, or the change comes later, and
// what is dropped after it includes the line.
func (s *Senders) Fill(line uint32, addr fi.Addr, found Directory, now func() Directory) {
	if line >= s.used.Load() {
		s.used.Store(line + 1)
	}
	word := s.word(line)
	atomic.StoreUint64(word, hot.SenderAddr(uint64(addr)))
	if addr == fi.AddrNotAvail {
		s.strangers.Store(true) // after the word: DropStrangers that takes it finds the line
	}
	if now() != found { // Drop or DropStrangers may have run before the store
		atomic.StoreUint64(word, hot.SenderUnknown)
	}
}

// Drop has the address of the sender that has it found anew. The address vector has changed already.
func (s *Senders) Drop(addr fi.Addr) {
	for line := range s.used.Load() {
		atomic.CompareAndSwapUint64(s.word(line), hot.SenderAddr(uint64(addr)), hot.SenderUnknown)
	}
}

// DropStrangers has the addresses of all strangers found anew. The directory has changed already.
func (s *Senders) DropStrangers() {
	s.dropping.Lock()
	defer s.dropping.Unlock()
	if s.strangers.Swap(false) {
		s.Drop(fi.AddrNotAvail)
	}
}
