package receive

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/stats"
)

// search acts on FI_PEEK, FI_CLAIM and FI_DISCARD, as fi_tagged(3) defines
// them:
//
//	PEEK          report whether a matching message is unexpected
//	PEEK|CLAIM    and reserve it for a receive with this context
//	PEEK|DISCARD  and drop it
//	CLAIM         receive the message that was reserved with this context
//	CLAIM|DISCARD drop it
func (c *Context) search(eng *match.Engine, entry *hot.RecvEntry) {
	if st := c.stats.Load(); st != nil {
		st.Rx(stats.RxSearches, 1)
	}
	if entry.Flags&fi.Peek != 0 {
		c.peek(eng, entry)
		return
	}
	m := eng.TakeClaimed(entry.Context)
	switch {
	case m == nil:
		c.searchFailed(entry)
	case entry.Flags&fi.Discard != 0:
		c.report(m, entry)
		c.discard(eng, m)
	default:
		c.deliverUnexpected(eng, targetOf(entry), m)
	}
}

// takeInFor takes in all that has arrived, if no unexpected message fits a peek: a peek must find what was sent before
// it. The peek is the oldest entry of the post ring still, so that no receive behind it takes what it is to find.
func takeInFor(c *Context, slot *hot.RecvEntry) {
	if peeked(c, c.Engine(slot.Flags&hot.RecvTagged != 0), slot) != nil {
		return
	}
	for _, e := range c.eps {
		e.host.TakeIn()
	}
}

// peeked returns the unexpected message that fits a peek, nil if there is none.
func peeked(c *Context, eng *match.Engine, entry *hot.RecvEntry) *match.Message {
	return eng.Peek(c.sources.SourceOf(fi.Addr(entry.Src), entry.Flags), entry.Tag, entry.Ignore)
}

// peek finds an unexpected message.
func (c *Context) peek(eng *match.Engine, entry *hot.RecvEntry) {
	m := peeked(c, eng, entry)
	if m == nil {
		c.searchFailed(entry)
		return
	}
	c.report(m, entry)
	switch {
	case entry.Flags&fi.Claim != 0:
		eng.Claim(m, entry.Context)
	case entry.Flags&fi.Discard != 0:
		eng.RemoveMessage(m)
		c.discard(eng, m)
	}
	c.release(targetOf(entry))
}

// report completes a search with what is known of the message.
func (c *Context) report(m *match.Message, entry *hot.RecvEntry) {
	a := c.unexpectedAs(m)
	a.complete(entry.Context, entry.Flags&^fi.MultiRecv|fi.Completion, 0, a.length)
}

func (c *Context) searchFailed(entry *hot.RecvEntry) {
	if e := c.first(); e != nil {
		e.host.Fail(cq.Entry{
			Context: entry.Context, Flags: kindOf(entry.Flags), Tag: entry.Tag, Src: fi.AddrNotAvail,
		}, entry.Flags, cq.ErrorInfo{Err: fi.ENOMSG})
	}
	c.release(targetOf(entry))
}

// discard drops a message that is out of the queue. Its sender is notified that it
// was received.
func (c *Context) discard(eng *match.Engine, m *match.Message) {
	if a := c.unexpectedAs(m); a.awaited() {
		a.ack(fi.Success)
	}
	c.releaseUnexpected(eng, m)
}
