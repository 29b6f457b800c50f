package coll

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// exchangePeers are the peers of which an exchange keeps more than four bytes: those with bytes to exchange, and
// those to which pieces go.
type exchangePeers struct {
	slots  []int32 // by peer: of its entry, plus 1; 0: it has none
	ids    []int32 // by entry: the peer
	all    []exchangePeer
	gets   []peerGets  // by entry, as far as they are used
	locals []peerLocal // the same
}

// peerLocal is what the device of a transport knows of what is given to a peer, or got from it.
type peerLocal struct {
	use  rkey.Local
	over *Transport // nil: nothing
}

// peerGets is what an entry has beside the rest where chunks are fetched.
type peerGets struct {
	grants  pendingChunks           // that the peer has let this member get and that it does not get yet
	granted int64                   // the end of the last of them
	given   [exchange.Deepest]int64 // the ends of the last chunks that the peer was let get
	gives   int                     // of given
	said    bool                    // the peer has the word of a get that was refused
}

// exchangePeer is one.
type exchangePeer struct {
	in, out  collective.Piece // of what is given, and of what is got
	pending  pendingChunks
	region   hw.Memory // of out, into which the peer may put, or of in, which it may get; nil: it may not
	target   putTarget // of in at the peer, or of what is got from it
	refused  bool      // puts there are, or gets
	copies   *collCopy // to or from the peer, in order: whose outcome is not known to the receiver
	lastCopy *collCopy
}

// sent takes n bytes off the first chunk, which may have none.
func (p *pendingChunks) sent(n int64) {
	if p.head.Offset += n; p.head.Offset == p.ends[0] {
		copy(p.ends[:], p.ends[1:])
		p.n--
	}
}

// add takes in a chunk, which follows the last one.
func (p *pendingChunks) add(h *exchange.Chunk) {
	if p.n == 0 {
		p.head = *h
	}
	p.ends[p.n] = h.Offset + h.Length
	p.n++
}

// list puts the peer into the list of those with such chunks, if it is not there.
func (p *pendingChunks) list(peer int32, to []int32) []int32 {
	if p.in {
		return to
	}
	p.in = true
	return append(to, peer)
}

// keptPeers is how many entries an exchange has memory for at most beyond twice those that an operation needs.
const keptPeers = 256

// clear takes the entries from all peers, and has room for so many.
func (ps *exchangePeers) clear(room int) {
	for _, p := range ps.ids {
		ps.slots[p] = 0
	}
	if cap(ps.all) < room || cap(ps.all) > 2*room+keptPeers {
		ps.ids, ps.all = make([]int32, 0, room), make([]exchangePeer, 0, room)
	}
	if cap(ps.gets) > 2*room+keptPeers {
		ps.gets = nil
	}
	if cap(ps.locals) > 2*room+keptPeers {
		ps.locals = nil
	}
	ps.ids, ps.all, ps.gets, ps.locals = ps.ids[:0], ps.all[:0], ps.gets[:0], ps.locals[:0]
}

// at is a peer's entry, until there is another one more. A peer that has none gets one.
func (ps *exchangePeers) at(peer int) *exchangePeer {
	if ps.slots[peer] == 0 {
		ps.ids, ps.all = append(ps.ids, int32(peer)), append(ps.all, exchangePeer{})
		ps.slots[peer] = int32(len(ps.ids))
	}
	return &ps.all[ps.slots[peer]-1]
}

// getsOf is what an entry has beside the rest, until there is one more. A peer that has no entry gets one.
func (ps *exchangePeers) getsOf(peer int) *peerGets { return besideOf(ps, &ps.gets, peer) }

// localOf is what a device knows of an entry's, until there is one more. A peer that has no entry gets one.
func (ps *exchangePeers) localOf(peer int) *peerLocal { return besideOf(ps, &ps.locals, peer) }

// besideOf is what a list has of a peer's entry, until there is one more. The list, by entry, is made as long as that.
func besideOf[T any](ps *exchangePeers, list *[]T, peer int) *T {
	ps.at(peer)
	for len(*list) < int(ps.slots[peer]) {
		*list = append(*list, *new(T))
	}
	return &(*list)[ps.slots[peer]-1]
}

// out is what is got of a peer: a piece without bytes if it has no entry.
func (ps *exchangePeers) out(peer int) collective.Piece {
	if s := ps.slots[peer]; s != 0 {
		return ps.all[s-1].out
	}
	return collective.Piece{}
}

// in is what is given to a peer: a piece without bytes if it has no entry.
func (ps *exchangePeers) in(peer int) collective.Piece {
	if s := ps.slots[peer]; s != 0 {
		return ps.all[s-1].in
	}
	return collective.Piece{}
}

// region is the memory that a peer may put into, or get, nil: it may not.
func (ps *exchangePeers) region(peer int) hw.Memory {
	if s := ps.slots[peer]; s != 0 {
		return ps.all[s-1].region
	}
	return nil
}

// none reports whether there are no bytes for a peer, nor of it.
func (ps *exchangePeers) none(peer int) bool {
	s := ps.slots[peer]
	return s == 0 || ps.all[s-1].in.Len|ps.all[s-1].out.Len == 0
}

// layOut takes in what a member gives to each rank and gets from it.
func (x *collExchange) layOut(g *Group, of func(rank int) (in, out collective.Piece)) {
	some := 0
	for r := range g.members {
		if in, out := of(r); in.Len|out.Len != 0 {
			some++
		}
	}
	x.peers.clear(some)
	x.ownIn, x.ownOut = of(g.rank)
	for r := range g.members {
		if in, out := of(r); r != g.rank && in.Len|out.Len != 0 {
			p := x.peers.at(g.peerOf(r))
			p.in, p.out = in, out
		}
	}
}

// lengths are the bytes to send to each peer and to receive from it, as an engine takes them. The lists are the
// endpoint's, and good until the next call.
func (xs *exchanges) lengths(g *Group, x *collExchange) (out, in []int64) {
	n := len(g.members) - 1
	for i := range xs.lens {
		if cap(xs.lens[i]) < n {
			xs.lens[i] = make([]int64, n)
		}
		clear(xs.lens[i][:n])
	}
	out, in = xs.lens[0][:n], xs.lens[1][:n]
	for i, peer := range x.peers.ids {
		p := &x.peers.all[i]
		out[peer], in[peer] = int64(p.in.Len), int64(p.out.Len)
	}
	return out, in
}
