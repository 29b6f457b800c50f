package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Memory that is copied to or from again and again comes to huge pages by its owner (package pages).

// countPieces counts elements of a list that the posting thread copies, of all that it has, total bytes, and what the
// data plane has done since the last operation.
func (e *peering) countPieces(sel pieces.Selection, total uint64, l *link, p *path) {
	extra := atomic.SwapUint64(&e.hot.Copied, 0)
	e.accesses.Total(total + extra)
	e.accesses.Pieces(sel.Len(), total, extra, func(piece pages.Piece) {
		el := sel.At(piece.N)
		if !el.Direct {
			return
		}
		if at, often := e.accesses.CopiedPiece(piece, 0, 0, el.Local, el.Len); often {
			pages.Background.Ask(at, 1)
		}
		if at, often := e.accesses.CopiedPiece(piece, l.Index+1, el.Key, el.Remote, el.Len); often {
			rma.NotifyAccessed(&p.Path, el.Key, at)
		}
	})
}

// copying reports whether this side itself has copied n bytes since the last call.
func (e *leasedEP) copying(n uint64) bool {
	return e.ep.base.accesses.Copying(n, atomic.LoadUint64(&e.ep.base.hot.Copied))
}

// onAccessed puts memory on huge pages that an initiator copies to or from often: what the region has
// of the place of an address.
func (e *leasedEP) onAccessed(src hw.Source, addr uint64, head, payload []byte) {
	key, ok := wire.ParseWord(head)
	if !ok || e.ep.base.links.Transports().Words(src) == nil {
		e.malformed(src, "address %#x, which is said to be used often", addr)
		return
	}
	m, offset, err := e.access(src, key, addr, 1, 0)
	if err != nil {
		return // closed meanwhile
	}
	defer m.Gate.Leave()
	if !e.ep.base.accesses.On() || m.OnDevice() {
		return
	}
	first := offset - min(offset, addr%pages.Size)
	n := min(offset-first+pages.Size-addr%pages.Size, m.Length-first)
	for _, v := range vector.Window(e.regionIOV[:0], m.Memory.Parts, first, n) {
		pages.Background.Ask(uint64(v.Base), v.Len)
	}
}
