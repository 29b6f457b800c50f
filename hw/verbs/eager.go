package verbs

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Eager rings: the first peers get memory into which they write their short messages
// (RDMA WRITE), which spares both sides the receive queue. It is the eager RDMA of MVAPICH
// (Liu et al.: High Performance RDMA-Based MPI Implementation over InfiniBand, 2003), but
// in order with what is sent, and whole by a sum instead of the order of a device's writes (package transport).
// What comes there rings no bell.

// ringPool is the interface's rings.
type ringPool struct {
	memory []byte // of all, off the Go heap; immutable
	// owners are the peers, by number, nil: free. Stored under Iface.mu, read by the lease holder.
	owners []atomic.Pointer[Endpoint]
}

// ring is an endpoint's, for its peer, with a key of its own. Immutable; the zero value is none.
type ring struct {
	number int
	memory []byte
	mr     *ibv.MR
}

// open maps the memory.
func (p *ringPool) open(n int) (err error) {
	if n == 0 {
		return nil
	}
	p.owners = make([]atomic.Pointer[Endpoint], n)
	p.memory, err = mapPinned(n * transport.RingBytes)
	return err
}

func (p *ringPool) close() error { return mem.Unmap(p.memory) }

// giveRing gives a ring to a peer that no other thread knows yet, if one is free and the device has room for its
// registration. The caller has i.mu.
func (i *Iface) giveRing(e *Endpoint) {
	for k := range i.rings.owners {
		if i.rings.owners[k].Load() != nil {
			continue
		}
		b := i.rings.memory[k*transport.RingBytes:][:transport.RingBytes]
		mr, err := i.d.pd.Register(mem.Address(b), transport.RingBytes, ibv.LocalWrite|ibv.RemoteWrite)
		if err != nil {
			i.logf("no ring for short messages of peer %s: %v", e, err)
			return
		}
		e.ring = ring{k, b, mr}
		i.rx.transport.GiveRing(k, e.c, b)
		i.rings.owners[k].Store(e)
		return
	}
}

// dropRing takes the ring back, once. No queue pair of the peer's is left; the caller has i.mu and the progress lease,
// or no other thread uses the interface any more.
func (e *Endpoint) dropRing() error {
	if e.ring.mr == nil {
		return nil
	}
	e.i.rings.owners[e.ring.number].Store(nil)
	e.i.rx.transport.TakeRing(e.ring.number, e.c)
	return e.ring.mr.Close()
}

// offer writes the peer's ring into a hand-shake's packet.
func (e *Endpoint) offer(p *packet, taken uint32) {
	if e.ring.mr != nil {
		p.reach, p.rkey, p.taken = mem.Address(e.ring.memory), e.ring.mr.RKey, taken
	}
}

// ringFor is where short messages are written after the peer has sent where its ring is: nowhere once its device has
// refused a write there.
func (e *Endpoint) ringFor(r transport.Ring) transport.Ring {
	if e.lease.ringRefused {
		return transport.Ring{}
	}
	return r
}

// clearRing empties the ring of what the former queue pair may have left there in part.
func (e *Endpoint) clearRing() { clear(e.ring.memory) }

// written reports whether the next message of the peer has come to its ring.
func (e *Endpoint) written() bool { return e.c.There() }

// takeRings delivers up to limit messages that peers have written, which have their turns, and that come next from
// them, and returns how many that was. What a peer must not write counts, too. A ring whose message is postponed
// holds up no other.
func (r *receiver) takeRings(limit int) (delivered int) {
	var m hot.TransportMessage
	var stuck uint32 // rings whose next message is postponed, one bit each
	moved := false   // since one of those was found
	for range limit {
		found := r.transport.FindWritten(&m)
		if found == hot.TransportEmpty {
			break
		}
		if found == hot.TransportGo {
			r.passRing()
			continue
		}
		ring := uint32(1) << r.transport.Ring()
		if stuck&ring != 0 && !moved {
			break
		}
		got, postponed := false, stuck&ring != 0
		if !postponed {
			got, postponed = r.deliver(&m)
		}
		moved = !postponed
		if postponed {
			stuck |= ring
			r.transport.PassRing()
		}
		delivered += btoi(got)
	}
	return delivered
}

// passRing passes by what the transport has found in a peer's ring that is no message which comes next from it.
func (r *receiver) passRing() {
	b := r.transport.Written()
	r.refuse("message of %d bytes with header %x in a ring", len(b), b[:transport.HeaderBytes])
	r.transport.Skip(0)
	r.transport.PassRing() // else its peer would be asked first again, whatever it writes
}

// Written reports whether one of the peers has written its next message into its ring. The caller holds the
// progress lease.
func (i *Iface) Written() bool {
	for k := range i.rings.owners {
		if e := i.rings.owners[k].Load(); e != nil && e.written() {
			return true
		}
	}
	return false
}
