package coll

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/exchange"
)

// Engine is that of the oldest operation under way whose order an engine chooses, nil: there is none.
func (c *Protocol) Engine() *exchange.Engine {
	if len(c.ordered.list) == 0 {
		return nil
	}
	return c.ordered.list[0].exchange.engine
}

// UseRelays has pieces of slices go through other members also where that is not faster. To be called before the first
// operation.
func (c *Groups) UseRelays() { c.always = true }

// RelayPlaces is how many places for pieces of other members are in use.
func (c *Groups) RelayPlaces() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		return 0
	}
	return c.cfg.RelaySize/relayPiece - c.store.Free()
}

// Outstanding is how many operations of an endpoint have not ended. Any thread.
func Outstanding(c *Groups) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outstanding
}

// Idle says what is kept of joins and operations, nil: nothing.
func (c *Protocol) Idle() error {
	l := &c.long
	if len(l.sends)+len(l.pulls)+len(l.reads)+len(l.streams)+len(c.blocked)+len(c.joins.early)+len(c.joins.list) != 0 {
		return fmt.Errorf("%d sends, %d pulls, %d reads, %d streams, %d blocked, %d early, %d joining",
			len(l.sends), len(l.pulls), len(l.reads), len(l.streams), len(c.blocked), len(c.joins.early),
			len(c.joins.list))
	}
	left := Outstanding(c.Groups)
	if left+len(c.ordered.list) != 0 {
		return fmt.Errorf("%d operations, of which an engine orders %d", left, len(c.ordered.list))
	}
	for _, g := range c.groups {
		if g == nil {
			continue
		}
		for i := range g.members {
			if m := &g.members[i]; m.ahead != nil || m.queue != nil {
				return fmt.Errorf("messages of rank %d of group %d", i, g.id)
			}
		}
		if len(g.runs.under)+len(g.runs.doomed) != 0 {
			return fmt.Errorf("%d operations of group %d, and %d doomed", len(g.runs.under), g.id, len(g.runs.doomed))
		}
	}
	return nil
}
