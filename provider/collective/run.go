package collective

// Transport moves the bytes of steps between the ranks of a group. Both
// functions return true when the transfer has ended already; else the
// transport calls Run.Ended for it later, once. Transfers between two ranks
// are matched in the order in which each side began them.
type Transport interface {
	// Send begins to send data to a rank. It stays as it is until the transfer
	// has ended.
	Send(to int, data []byte) bool
	// Recv begins to receive into data, as many bytes as it has.
	Recv(from int, data []byte) bool
}

// Run is an operation under way. One thread at a time may use it. It may be
// used again once it has ended.
type Run struct {
	plan *Plan
	bufs [3][]byte
	fold func(dst, a, b []byte)
	next int // step
	open int // transfers that have not ended
}

// Start prepares to carry out a plan. in and out are as Call.Lengths says,
// scratch has Plan.Scratch bytes. fold stores a op b at dst, which may be
// either of them; nil for kinds that do not compute.
func (r *Run) Start(p *Plan, in, out, scratch []byte, fold func(dst, a, b []byte)) {
	*r = Run{plan: p, bufs: [3][]byte{in, out, scratch}, fold: fold}
}

// Ended says that a transfer has ended which was not when it was begun.
func (r *Run) Ended() { r.open-- }

// Open is the number of transfers that have not ended.
func (r *Run) Open() int { return r.open }

// Advance does all steps that can be done, and reports whether the operation has
// ended. To be called after Start, and when Open has become 0.
func (r *Run) Advance(t Transport) bool {
	for r.next < len(r.plan.Steps) {
		s := &r.plan.Steps[r.next]
		if s.Op >= Fence && r.open != 0 {
			return false
		}
		r.next++
		if s.Op < Fence {
			r.open++ // before the call, which may lead to Ended
		}
		switch s.Op {
		case Send:
			if t.Send(int(s.Peer), r.at(s.A)) {
				r.open--
			}
		case Recv:
			if t.Recv(int(s.Peer), r.at(s.A)) {
				r.open--
			}
		case Copy:
			copy(r.at(s.Dst), r.at(s.A))
		case Fold:
			r.fold(r.at(s.Dst), r.at(s.A), r.at(s.B))
		}
	}
	return r.open == 0
}

func (r *Run) at(g Region) []byte { return r.bufs[g.Buf][g.Off : g.Off+g.Len] }
