package lease

// Part is state of type T behind the lease that guards state of type U: what has that, which the lease's holder alone
// has, reaches the part. The zero Part has no state.
type Part[T, U any] struct {
	whole *U
	state *T
}

// PartOf puts more state behind the lease that g's state is behind. No other reference to state may be kept.
func PartOf[T, U any](g *Guarded[U], state *T) Part[T, U] { return Part[T, U]{g.state, state} }

// Of returns the part of what the lease's holder has; nil for what is behind another lease.
func (p *Part[T, U]) Of(whole *U) *T {
	if p.whole != whole {
		return nil
	}
	return p.state
}

// Alone returns the state while no other thread reaches it, as [Guarded.Alone] does.
func (p *Part[T, U]) Alone() *T { return p.state }
