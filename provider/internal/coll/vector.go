package coll

import (
	"math/bits"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// AllToAllVArgs describes an all-to-all in which each two members exchange as much as
// they have for each other. The arrays have an entry for each member, in the order of
// the group's set, and are the caller's again when the call returns.
type AllToAllVArgs struct {
	// Buf is what is given: the Counts[r] elements from number Displs[r] on go to
	// rank r, which must expect as many of this member; 0 is a number, too.
	Buf            uintptr
	Counts, Displs []uint64

	// Result is what is got: what rank r gives goes where element ResultDispls[r]
	// is. The parts must not overlap, nor Buf.
	Result                     uintptr
	ResultCounts, ResultDispls []uint64

	// InPlace has what Result holds be given, and replaced: Buf, Counts and Displs
	// are not used.
	InPlace bool

	Elem    uint64 // bytes of an element, 1 and more
	Group   fi.Addr
	Flags   uint64
	Context uint64
	Descs   [2]uint64 // of Buf and Result, which are not in device memory

	// Arrived, if not nil, counts the other members of which all bytes are in Result, each once and not before they
	// are there; one that gives nothing counts when the operation is posted. Those of which bytes are
	// missing when it ends with an error count as errors. It stays open until all have been counted. Its
	// readers make progress of the domain's endpoints.
	Arrived *cq.Counter

	kept *keptMemory // of a request, nil: it is none
}

// AllToAllV posts an all-to-all of parts of different lengths, as provider.Endpoint.AllToAllV says.
func (c *Groups) AllToAllV(a *AllToAllVArgs) error {
	if err := c.checkVector(a); err != nil {
		return err
	}
	if err := c.postVector(a); err != nil {
		return err
	}
	c.host.Notify()
	return nil
}

// checkVector checks what does not depend on the group.
func (c *Groups) checkVector(a *AllToAllVArgs) error {
	if !c.host.Enabled() {
		return fi.EOPBADSTATE
	}
	if err := c.checkForm(a.Descs, a.Flags); err != nil {
		return err
	}
	if a.Elem == 0 {
		return log.Reject(log.EPData, fi.EINVAL, "alltoallv: elements of 0 bytes")
	}
	if a.Arrived != nil {
		return c.checkArrivals(a.Arrived)
	}
	return nil
}

// postVector checks the arrays, and leaves the operation to progress. Errors as of
// AllToAllV.
func (c *Groups) postVector(a *AllToAllVArgs) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.ready(a.Group)
	if err != nil {
		return err
	}
	l, err := c.layOut(g, a)
	if err != nil {
		return err
	}
	if g.ways.scheduled {
		return c.postOrderedVector(g, a, l)
	}
	p := collective.BuildAllToAllV(fixedOrders[g.c.cfg.AllToAll], g.rank, l.in, l.out)
	o, err := c.take(p)
	if err != nil {
		return err
	}
	o.run.Start(p, viewOf(a.Buf, l.inEnd), viewOf(a.Result, l.outEnd), o.scratch, nil)
	o.startArrivals(a.Arrived, g.rank, l.out)
	c.enqueue(g, o, collective.AllToAllV, a.Flags, a.Context)
	return nil
}

// layout is where the parts of an alltoallv lie. in is nil in place.
type layout struct {
	in, out       []collective.Piece
	inEnd, outEnd uint64 // of the last of them, bytes
}

// layOut checks the arrays. Errors as of AllToAllV. The caller has c.mu.
func (c *Groups) layOut(g *Group, a *AllToAllVArgs) (l layout, err error) {
	if !a.InPlace {
		if l.in, l.inEnd, err = c.pieces(g, "to give", a.Buf, a.Counts, a.Displs, a.Elem); err != nil {
			return l, err
		}
	}
	if l.out, l.outEnd, err = c.pieces(g, "to get", a.Result, a.ResultCounts, a.ResultDispls, a.Elem); err != nil {
		return l, err
	}
	if !a.InPlace && l.in[g.rank].Len != l.out[g.rank].Len {
		return l, log.Reject(log.EPData, fi.EINVAL, "alltoallv: %d bytes for this member itself to give and %d to get",
			l.in[g.rank].Len, l.out[g.rank].Len)
	}
	return l, nil
}

// postOrderedVector leaves the operation to an engine.
func (c *Groups) postOrderedVector(g *Group, a *AllToAllVArgs, l layout) error {
	x, err := g.exchanger()
	if err != nil {
		return err
	}
	aside := uint64(0)
	if a.InPlace {
		l.in, l.inEnd, aside = l.out, 0, l.outEnd
	}
	x.layOut(g, func(r int) (in, out collective.Piece) { return l.in[r], l.out[r] })
	o, err := c.take(&collective.Plan{Scratch: aside})
	if err != nil {
		g.engines.put(x)
		return err
	}
	x.given, x.got, x.inPlace = viewOf(a.Buf, l.inEnd), viewOf(a.Result, l.outEnd), aside != 0
	o.exchange = x
	if !g.ways.gets || !x.inPlace { // else what is given is in scratch memory
		o.keep(a.kept)
	}
	o.startArrivals(a.Arrived, g.rank, l.out)
	c.enqueue(g, o, collective.AllToAllV, a.Flags, a.Context)
	return nil
}

// pieces turns counts and displacements into pieces of the buffer at base, and says
// where the last of them ends.
func (c *Groups) pieces(
	g *Group, what string, base uintptr, counts, displs []uint64, elem uint64,
) (list []collective.Piece, end uint64, err error) {
	if len(counts) != len(g.members) || len(displs) != len(g.members) {
		return nil, 0, log.Reject(log.EPData, fi.EINVAL,
			"alltoallv: %d counts and %d displacements %s among %d members",
			len(counts), len(displs), what, len(g.members))
	}
	list = make([]collective.Piece, len(counts))
	total := uint64(0)
	for i, n := range counts {
		if n == 0 {
			continue // its displacement means nothing
		}
		overLen, length := bits.Mul64(n, elem)
		overOff, offset := bits.Mul64(displs[i], elem)
		if overLen|overOff != 0 || length > wire.MaxMessage || offset > wire.MaxMessage ||
			total+length > wire.MaxMessage {
			return nil, 0, log.Reject(log.EPData, fi.EMSGSIZE,
				"alltoallv: %d elements of %d bytes at %d %s for rank %d, at most %d bytes",
				n, elem, displs[i], what, i, uint64(wire.MaxMessage))
		}
		list[i] = collective.Piece{Off: offset, Len: length}
		total += length
		end = max(end, offset+length)
	}
	if end != 0 && (base == 0 || uint64(base)+end < uint64(base)) {
		return nil, 0, log.Reject(log.EPData, fi.EINVAL, "alltoallv: no buffer of %d bytes %s at %#x", end, what, base)
	}
	return list, end, nil
}
