package rma

import "github.com/weft-fabric/weft/provider/internal/claim"

// What is under way, for tests.

// Words are those that are shared with the target.
func (r *Rounds) Words() *claim.Words { return r.words }

// Waiting is how many operations wait for the targets that do a share of them.
func (in *Initiator) Waiting() int { return int(in.shares.waiting.Load()) }

// Needs are the counts of their targets that they wait for. The caller uses the endpoint alone.
func (in *Initiator) Needs() (all []uint32) {
	for _, op := range in.shares.ops {
		all = append(all, op.needs)
	}
	return all
}

// Requests is how many requests wait for room or answers, and answers for how many of them the last one waits. The
// caller holds the progress lease.
func (pr *Protocol) Requests() (all, answers int) { return len(pr.waiting), pr.unanswered }

// Transfers is how many requests are in segments. The caller holds the progress lease.
func (pr *Protocol) Transfers() int { return len(pr.transfers) }

// Flowing reports whether flows wait for room or time. The caller holds the progress lease.
func (pr *Protocol) Flowing() bool { return pr.flows.Busy() }

// ByDevice reports whether an operation would go by the device of a path, else why not, and what becomes of one that
// may go by the device alone.
func (in *Initiator) ByDevice(a *Operation, l *Link, p *Path, total uint64) (goes bool, why, alone error) {
	op, why := in.newDeviceOp(a, l, p, total)
	if op != nil {
		op.drop()
		return true, nil, nil
	}
	return false, why, notByDevice(p, a, why)
}
