package rma

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A read or write of FI_WEFT_RMA_ASSIST_SIZE or more that the initiator copies by itself is shared with a target that
// makes progress meanwhile: the initiator opens a round (package claim) and offers it (wire.AMShare), the target copies
// chunks from the back (package onesided). A target that has two offers unread gets no other, so one that computes
// costs two slots of its ring.
//
// The post returns when all chunks are taken. The target completes a chunk that it has taken before it takes in
// anything that is sent later, so messages still come after the data. The operation completes when the target's count
// says that its chunks are complete; until then it waits in Initiator.shares, where progress or a later post finds it.
// What the target could not copy is done again as messages.

// shares are an endpoint's operations that are shared with their targets.
type shares struct {
	// mu guards what follows, but for waiting. Posts of long operations try it and keep
	// it for some loads and stores; one that does not get it shares nothing.
	mu    sync.Mutex
	peers map[hw.Endpoint]*Rounds
	ops   pending.List[*sharedOp] // that the target has not completed
	spare []*sharedOp

	// waiting is the length of ops. Written under mu, read by any thread;
	// sequentially consistent.
	waiting atomic.Int32
}

// Rounds is what an initiator knows of the rounds with one target. Guarded by
// shares.mu, but for words, which is immutable.
type Rounds struct {
	claim.Rounds
	words     *claim.Words
	delegated *sharedOp // the operation of the open round, if it is delegated whole (delegate.go)
	last      span      // what the last operation that might have been delegated writes
}

// sharedOp is an operation of which the target has not completed its share.
type sharedOp struct {
	args      Operation // without the vectors
	local     fi.IOVec
	remote    fi.RMAIOVec
	link      *Link
	path      *Path
	needs     uint32 // the target's count when it has completed it
	ended     bool   // the target has completed it
	again     bool   // chunks are missing: the operation is done again as messages
	completes bool   // it writes a completion

	list *list.Share // it is a list, which has neither args, local nor remote; else nil

	round uint64 // of one that is delegated whole
	polls int    // since, while the target has not taken it
}

// Connected takes in a path that is new: operations over it may be shared with the peer, if its transport can that. All
// paths to one endpoint of a transport share what is known of the rounds.
func (in *Initiator) Connected(p *Path) {
	if p.On.Attr.Caps&hw.CapPeerMemory == 0 || p.On.Attr.Caps&DirectCaps != DirectCaps {
		return
	}
	s := &in.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.peers[p.Endpoint]
	if r == nil {
		r = &Rounds{words: claim.OneSidedWords(p.Endpoint.(hw.PeerMemory).SharedWords())}
		if s.peers == nil {
			s.peers = map[hw.Endpoint]*Rounds{}
		}
		s.peers[p.Endpoint] = r
	}
	p.rounds = r
}

// Forget drops what is known of the peer of a transport's endpoint, which is gone.
func (in *Initiator) Forget(ep hw.Endpoint) {
	s := &in.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, ep)
}

// mayHelp reports whether the target may copy a share of an operation that the posting
// thread can do. Not where a thread may sleep on a doorbell: the target rings none when
// it has completed its last chunk.
func (in *Initiator) mayHelp(a *Operation, p *Path) bool {
	return !in.rules.On() && p.rounds != nil && len(a.IOV) == 1 && len(a.Remote) == 1 &&
		!a.Injects() && !in.host.Sleeps()
}

// mayShare reports whether an operation is one to share by chunks.
func (in *Initiator) mayShare(a *Operation, p *Path, total uint64) bool {
	least := uint64(in.cfg.RMAAssistSize)
	return least != 0 && total >= least && in.mayHelp(a, p) &&
		claim.Chunks(total, wire.ShareChunk(total)) <= claim.MaxChunks
}

// share does an operation together with the target.
func (in *Initiator) share(a *Operation, l *Link, p *Path, key hw.RemoteKey, completes bool) claim.Outcome {
	in.Reap()
	total := a.IOV[0].Len
	chunk := wire.ShareChunk(total)
	n := claim.Chunks(total, chunk)
	s := &in.shares
	if !s.mu.TryLock() {
		return claim.Alone
	}
	round, ok := in.offer(p, n, a.Remote[0].Addr, shareOf(a, chunk))
	s.mu.Unlock()
	if !ok {
		return claim.Alone
	}
	words := p.rounds.words
	var err error
	take := func() (uint64, bool) { return words.TakeFront(round, n) }
	for i, ok := take(); ok && err == nil; i, ok = take() {
		part := a.Remote[0]
		part.Addr += i * chunk
		part.Len = min(chunk, total-i*chunk)
		err = directPart(a, p, &part, key, i*chunk)
	}
	return in.endOpen(sharedOf(a, l, p, completes), n-words.Stop(round, n), err)
}

// shareOf is what an operation is offered by, in chunks of a size.
func shareOf(a *Operation, chunk uint64) *wire.Share {
	return &wire.Share{
		Key: a.Remote[0].Key, Local: uint64(a.IOV[0].Base), Want: a.IOV[0].Len, Chunk: uint32(chunk),
		Read: a.Read,
	}
}

// offer begins a round of n chunks and offers it to the target. It reports false
// when that cannot be now. The caller has shares.mu.
func (in *Initiator) offer(p *Path, n, addr uint64, h *wire.Share) (round uint64, ok bool) {
	r := p.rounds
	if r.delegated != nil && !r.taken() || r.Unseen(r.words) >= claim.MaxRounds {
		return 0, false // the target has enough to do
	}
	if round, ok = r.Begin(r.words, n); !ok {
		return 0, false
	}
	h.Round = uint16(round)
	d := directScratches.Get().(*directScratch)
	defer directScratches.Put(d)
	if p.AMShort(wire.AMShare, addr, h.Put(d.head[:]), nil) != nil {
		r.Cancel()
		return 0, false
	}
	return round, true
}

// Offer begins a round of n chunks of a list, and offers it to the target at a path. False: that cannot be now.
func (in *Initiator) Offer(p *Path, n uint64, h *wire.Share) (list.Round, bool) {
	if !in.shares.mu.TryLock() {
		return list.Round{}, false
	}
	defer in.shares.mu.Unlock()
	round, ok := in.offer(p, n, 0, h)
	return list.Round{Words: p.rounds.words, Number: round}, ok
}

// EndRound ends the open round of a list, of which the target took a number of chunks and err is how copying the others
// ended. With claim.Part the list waits for the target; see [list.Sharing].
func (in *Initiator) EndRound(l *Link, p *Path, s *list.Share, took uint64, err error) claim.Outcome {
	return in.endOpen(sharedOp{link: l, path: p, list: s}, took, err)
}

// endOpen ends the open round of an operation, of which the target took a number of chunks and
// err is how copying the others ended.
func (in *Initiator) endOpen(op sharedOp, took uint64, err error) claim.Outcome {
	s, r := &in.shares, op.path.rounds
	s.mu.Lock()
	defer s.mu.Unlock()
	op.needs = r.Taken(took)
	ended, failed := r.words.Wait(op.needs, 1)
	if errors.Is(err, hw.ErrPeerDead) {
		r.End()
		return claim.Dead
	}
	if ended {
		r.End()
		if failed || err != nil {
			return claim.Alone
		}
		return claim.All
	}
	op.again = err != nil
	in.addShared(op)
	return claim.Part
}

// sharedOf is what is kept of an operation while it waits.
func sharedOf(a *Operation, l *Link, p *Path, completes bool) sharedOp {
	op := sharedOp{args: *a, local: a.IOV[0], remote: a.Remote[0], link: l, path: p, completes: completes}
	op.args.IOV, op.args.Remote = nil, nil
	return op
}

// addShared has an operation wait for its target's count. The caller has shares.mu.
func (in *Initiator) addShared(from sharedOp) *sharedOp {
	s := &in.shares
	op := new(sharedOp)
	if n := len(s.spare); n > 0 {
		op, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	*op = from
	op.link.InFlight.Add(1)
	s.ops = append(s.ops, op)
	s.waiting.Add(1)
	in.host.NotifyPoll()
	return op
}

// Reap ends the operations whose targets have completed them, as far as they have not failed.
func (in *Initiator) Reap() { in.reap(nil) }

// reap is Reap. pr is the protocol of a caller that has the progress lease, nil: it has not, and what fails is left.
func (in *Initiator) reap(pr *Protocol) {
	s := &in.shares
	if s.waiting.Load() == 0 || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.ops.Step(func(at **sharedOp) bool {
		op := *at
		if !in.reapShare(op, pr) {
			return false
		}
		op.link, op.path, op.list = nil, nil, nil
		s.spare = append(s.spare, op)
		return true
	})
	s.waiting.Store(int32(len(s.ops)))
}

// reapShare reports whether it has ended an operation. The caller has shares.mu.
func (in *Initiator) reapShare(op *sharedOp, pr *Protocol) bool {
	r := op.path.rounds
	if r.delegated == op && !in.reclaim(op, pr != nil) {
		return false
	}
	if !op.ended {
		// A peer that is gone copies nothing: its process has died, or its endpoint was closed
		// under the lease under which it helped. The count that is read after that is the last.
		gone := op.path.Err() != nil
		ended, failed := r.words.Wait(op.needs, 1)
		if !ended {
			if pr == nil || !gone {
				return false
			}
			in.endShare(op, fi.ECONNRESET)
			return true
		}
		op.ended = true
		r.End()
		if failed {
			r.Refuse()
			op.again = true
		}
	}
	if op.list != nil {
		return op.endList()
	}
	if op.again {
		return pr != nil && pr.repost(op)
	}
	if op.args.WithData() {
		op.args.Remote = []fi.RMAIOVec{op.remote}
		if err := Notify(&op.args, op.path, op.remote.Len); fi.ErrnoOf(err) == fi.EAGAIN || err != nil && pr == nil {
			return false
		} else if err != nil {
			in.endShare(op, fi.ErrnoOf(err))
			return true
		}
	}
	in.endShare(op, fi.Success)
	return true
}

// endList ends a list of which the target has completed its chunks. It reports false when the rest cannot go now. The
// caller has shares.mu.
func (op *sharedOp) endList() bool {
	if !op.again {
		op.link.InFlight.Add(-1)
		op.list.Done()
		return true
	}
	if op.list.Again() != nil {
		return false
	}
	op.link.InFlight.Add(-1)
	return true
}

// endShare completes an operation. The caller holds the progress lease if status
// is an error.
func (in *Initiator) endShare(op *sharedOp, status fi.Errno) {
	op.link.InFlight.Add(-1)
	if op.list != nil {
		op.list.Lost(status)
		return
	}
	if status != fi.Success {
		in.end(op.args.Ended(false, status, 0))
		return
	}
	in.end(op.args.Ended(op.completes, status, op.remote.Len))
	in.counts.Direct(op.args.Read, 1, op.remote.Len)
}

// repost does an operation again as messages, by which the target says why it fails. It reports false when there is no
// room.
func (pr *Protocol) repost(op *sharedOp) bool {
	in := pr.in
	lease, ok := in.stripes.Acquire(0)
	if !ok {
		return false
	}
	defer in.stripes.Release(lease)
	req, id, ok := in.requests.Alloc(lease)
	if !ok {
		return false
	}
	a := op.args
	a.IOV, a.Remote = []fi.IOVec{op.local}, []fi.RMAIOVec{op.remote}
	var r Request
	in.describe(&r, &a, op.link, op.local.Len)
	req.set(&r)
	pr.waiting = append(pr.waiting, id) // it is in flight already
	in.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
	return true
}

// Abandon waits until targets have completed what they are at, because the
// endpoint is closed.
func (pr *Protocol) Abandon() {
	s := &pr.in.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	end := time.Now().Add(rendezvous.AbandonTime)
	for _, op := range s.ops {
		if r := op.path.rounds; r.delegated == op {
			_, op.ended = r.words.TakeFront(op.round, 1)
		}
		for done := op.ended; !done && op.path.Err() == nil && time.Now().Before(end); {
			done, _ = op.path.rounds.words.Wait(op.needs, rendezvous.WaitPolls)
		}
	}
	s.ops, s.spare, s.peers = nil, nil, nil
	s.waiting.Store(0)
}
