package provider

import (
	"math/bits"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/info"
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
	// maxRxCtxBits is the most receive context bits of an address vector: two
	// more than weft's contexts need, for programs that count generously.
	maxRxCtxBits = 8
	// maxLines bounds an endpoint's table of peers, 64 bytes of address space each.
	maxLines = 1 << 28
)

// line returns the number of an address's line.
func (a *AV) line(addr fi.Addr) uint64 { return bits.RotateLeft64(uint64(addr), a.rxCtxBits) }

// lines returns how many lines there can be: the number of each is below it.
func (a *AV) lines() uint64 { return a.Limit() << a.rxCtxBits }

// peer returns an address without the index of a receive context, and the index.
func (a *AV) peer(addr fi.Addr) (fi.Addr, uint64) {
	keep := uint64(1)<<(64-a.rxCtxBits) - 1
	return addr & fi.Addr(keep), a.line(addr) & (1<<a.rxCtxBits - 1)
}

// target returns what a send to an address reaches, false if it is not in the
// address vector or has the index of a receive context that cannot exist.
func (a *AV) target(addr fi.Addr) (address, bool) {
	base, index := a.peer(addr)
	n, ok := a.Name(base)
	return address{n, uint8(index)}, ok && index < info.MaxCtx
}
