package av

import (
	"math/bits"

	"github.com/weft-fabric/weft/fi"
)

// An address vector may be opened with receive context bits. The application
// then puts the index of a receive context into that many of the highest bits
// of an fi.Addr (fi_rx_addr), and sends there reach that context of a scalable
// endpoint. Index 0 is also what an ordinary endpoint is.
//
// Endpoints have a line in their tables for each context of each address: the
// fi.Addr, rotated so that the index comes last, is the line's number. So the C
// path finds a context as fast as an endpoint.

const (
	// MaxRxCtxBits is the most receive context bits of an address vector: two
	// more than weft's contexts need, for programs that count generously.
	MaxRxCtxBits = 8
	// MaxLines bounds an endpoint's table of peers, 64 bytes of address space each.
	MaxLines = 1 << 28
)

// Line returns the number of an address's line.
func (a *AV) Line(addr fi.Addr) uint64 { return bits.RotateLeft64(uint64(addr), a.rxCtxBits) }

// Lines returns how many lines there can be: the number of each is below it.
func (a *AV) Lines() uint64 { return a.Limit() << a.rxCtxBits }

// Peer returns an address without the index of a receive context, and the index.
func (a *AV) Peer(addr fi.Addr) (fi.Addr, uint64) {
	keep := uint64(1)<<(64-a.rxCtxBits) - 1
	return addr & fi.Addr(keep), a.Line(addr) & (1<<a.rxCtxBits - 1)
}

// RxCtxBits returns how many of the highest bits of an fi.Addr name a receive context.
func (a *AV) RxCtxBits() int { return a.rxCtxBits }
