package rma

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Memory that is copied to or from again and again comes to huge pages by its owner (package pages).

// countRemote counts a one-sided operation that the posting thread does, and what the data plane has done
// since the last.
func (in *Initiator) countRemote(a *Operation, l *Link, p *Path, total uint64) {
	extra := atomic.SwapUint64(&in.hot.Copied, 0)
	in.accesses.Total(total + extra)
	in.accesses.Own(a.IOV, extra)
	for _, r := range a.Remote {
		if at, often := in.accesses.Copied(l.Index+1, r.Key, r.Addr, r.Len, extra); often {
			NotifyAccessed(p, r.Key, at)
		}
		extra = 0
	}
}

// NotifyAccessed notifies a peer that an address of its region is used often. If there is no room it is later again.
func NotifyAccessed(p *Path, key, at uint64) {
	d := directScratches.Get().(*directScratch)
	_ = p.AMShort(wire.AMAccessed, at, wire.PutWord(d.head[:], key), nil)
	directScratches.Put(d)
}
