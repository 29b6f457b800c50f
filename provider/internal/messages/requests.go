package messages

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/stripe"
)

// request is a message that waits for its receiver's acknowledgement.
type request = dataplane.Request

// Bits of its flags that only this package knows.
const (
	exposed  uint64 = dataplane.RequestMore << iota // the receiver may get the payload
	asked                                           // deferred work for which a completion is asked, by fi.Completion
	reported                                        // its success is reported already
)

// requests are those of an endpoint, of the data plane and of this package.
type requests struct {
	*dataplane.Requests                             // nil before the endpoint is enabled
	inject              mem.Buffers                 // one for each request
	links               mem.Growing[dataplane.Link] // by numbers of links; grown with the table of links locked
	// copies counts messages that are complete and whose receivers have still to read them from a copy here (sendCopy).
	// Added to by posting threads, taken from by them and the lease holder, read by Settle; sequentially consistent.
	copies atomic.Int32
	// lost says that a thread sent an RTS while its peer was lost. Set by that thread, cleared by the lease holder;
	// sequentially consistent.
	lost atomic.Bool
}

// open makes room for perStripe requests in each of n stripes, with payloads of injectMax bytes that were injected, and
// for the counts of a number of links.
func (t *requests) open(n, perStripe, injectMax, links int) (err error) {
	if err = t.links.Reserve(links); err != nil {
		return err
	}
	if t.Requests, err = stripe.NewTable[request](n, perStripe); err != nil {
		return err
	}
	return t.inject.Open(n*perStripe, injectMax)
}

// close gives all memory back.
func (t *requests) close() {
	t.inject.Close()
	if t.Requests != nil {
		_ = t.Requests.Close()
	}
	_ = t.links.Free()
}

// fill gives the data plane what it needs for rendezvous.
func (t *requests) fill(h *hot.EP) {
	h.Requests, h.Links = addressOf(t.Requests), uintptr(t.links.Base())
	atomic.StoreUint32(&h.LinkLimit, t.links.Ready())
}

// lineOf is where the data plane counts for a peer, by the number of its link. The caller has the table of links
// locked.
func (t *requests) lineOf(h *hot.EP, index uint32) *dataplane.Link {
	if int(index) >= t.links.Len() || t.links.Grow(int(index)+1) != nil {
		return new(dataplane.Link) // the data plane finds the number beyond its limit
	}
	atomic.StoreUint32(&h.LinkLimit, t.links.Ready())
	line := t.links.At(uint64(index))
	line.Listed.Store(0)
	line.ListedBytes.Store(0)
	return line
}

// injectBuffer is the buffer of a request for a payload that was injected.
func (t *requests) injectBuffer(id uint64) []byte { return t.inject.At(t.Index(id)) }
