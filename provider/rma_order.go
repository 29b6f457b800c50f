package provider

import "github.com/weft-fabric/weft/provider/internal/ordering"

// How one-sided operations keep the order that an endpoint was asked for (package ordering).

// setFast opens the data plane when the endpoint is enabled, and closes it.
func (e *hotMemory) setFast(open bool) { e.fast.Open(e.hot, open) }

// hold keeps the data plane from posting, n times, or takes that back for n below 0.
func (e *hotMemory) hold(n int) { e.fast.Hold(e.hot, n) }

// order are the endpoint's rules.
func (e *attributes) order() ordering.Rules { return ordering.Rules(e.msgOrder) }

// orderedRMA reports whether the endpoint keeps one-sided operations in order.
func (e *attributes) orderedRMA() bool { return e.order().On() }

// inTurn reports whether an operation may be posted to a peer now.
func (e *attributes) inTurn(l *link, k ordering.Kind) bool { return e.order().InTurn(&l.Order, k) }
