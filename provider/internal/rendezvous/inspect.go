package rendezvous

import "github.com/weft-fabric/weft/hw"

// Operation is what is known of a message that is being read.
type Operation struct {
	ID    uint64 // that messages about it carry
	Src   hw.Source
	Asked uint64 // bytes for which gets were posted
	Gets  int    // under way
}

// Operations are those that wait for fragments, gets or the sender's help.
func (r *Receiver) Operations() (list []Operation) {
	for id, i := range r.waiting {
		op := r.ops.At(i)
		list = append(list, Operation{ID: id, Src: op.Src, Asked: op.asked, Gets: int(op.pending)})
	}
	return list
}

// Left counts what an endpoint has under way for the receivers of its messages, and targets that are registered.
type Left struct{ Streams, Assists, Putters, Putting, Landings int }

// Left counts what is under way.
func (p *Protocol) Left() Left {
	return Left{len(p.streams), len(p.assists), len(p.putters), len(p.putting), len(p.landings)}
}
