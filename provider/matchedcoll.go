package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/members"
)

// openGroups prepares an endpoint for collective operations, if it is to have them.
func (e *MatchedEndpoint) openGroups(i hw.Iface) (err error) {
	if e.info.Caps&fi.Collective == 0 {
		return nil
	}
	a := i.Attr()
	e.coll, e.leased.Alone().groups, err = members.Open(members.Options{
		Endpoint: collMatched{collBinder{&e.binder}, e}, Iface: i, Directory: &e.peers, Config: e.domain.cfg,
		Eager: links.EagerOver(e.domain.cfg, &a)})
	return err
}

// collecting reports whether collective operations are under way, or have something to send: a sleeper wakes to do
// that, and to find members that are gone. driven says that C drives the interface. Any thread, also after Close: the
// words of tables stay where they are.
func (e *MatchedEndpoint) collecting(driven bool) bool {
	return e.coll != nil && (coll.Outstanding(e.coll) != 0 ||
		driven && atomic.LoadUint32(&e.rx.Attention)&hot.AttentionGo != 0)
}

// collMatched is a matched endpoint as its collective operations have it.
type collMatched struct {
	collBinder
	e *MatchedEndpoint
}

func (h collMatched) Stats() coll.Counters { return h.e.stats }

func (h collMatched) Complete(context uint64, completes bool, status fi.Errno) {
	coll.Complete(h.e.bound.txCQ, h.e.bound.writeCntr.Load(), h.e.stats, context, completes, status)
}

// Notify has progress start what was posted, and makes progress once.
func (h collMatched) Notify() {
	h.e.notify()
	h.e.Advance()
}

// Progress makes progress, as a call of any thread.
func (h collMatched) Progress() {
	h.e.gate.Share()
	defer h.e.gate.Unshare()
	h.e.Advance()
}

// WithLease calls f with the progress lease.
func (h collMatched) WithLease(f func(*coll.Protocol)) {
	h.e.gate.Share()
	defer h.e.gate.Unshare()
	l := h.e.leased.Wait()
	defer h.e.leased.Give()
	f(l.groups.Protocol)
	h.e.setAttention(l)
}
