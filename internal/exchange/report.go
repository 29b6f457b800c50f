package exchange

import "time"

// Report is what became of the last operation.
type Report struct {
	// Took is how long the operation took this member, if it has ended.
	Took time.Duration
	// Out and In are the bytes to be sent and received, Received those that are here.
	Out, In, Received int64
	// Chunks were sent. Forced of them went to a peer that had waited too long, or whose
	// path was congested while the own link would have idled.
	Chunks, Forced uint64
	// Deferrals count pairs that gave way after a chunk. Trials count the attempts to send to one
	// peer more.
	Deferrals, Trials uint64
	// Credits were received, Invited of them given.
	Credits, Invited uint64
	// Forged chunks and words were dropped.
	Forged uint64
	// Relayed bytes of this member went through relays, Carried are those that it passed on for others.
	// Asked relays were asked, Refused of them did not want to. Again are the pieces that were sent
	// again, Twice those that came twice and Late messages with those of requests that were over: these were dropped.
	Relayed, Carried                   uint64
	Asked, Refused, Again, Twice, Late uint64
	// Most is the greatest number of peers that were sent to at a time.
	Most int
	// OutRate and InRate are the most that the own link carried lately, in bytes per second;
	// 0: not known. Bound is what these alone would have let the operation take, of what goes over links.
	OutRate, InRate float64
	Bound           time.Duration
}

// PeerReport is what became of the last operation's slices of one peer. Times are since
// the start of the operation, 0 if it has not happened.
type PeerReport struct {
	First, Last time.Duration // when its first and its last chunk were sent
	Received    time.Duration // when its slice had arrived
	Chunks      uint64
	Deferrals   uint64
	Began       uint64 // how often the pair began
	Queue       time.Duration
	Rate        float64 // bytes per second that its path was seen to deliver
}

// chunk counts a chunk that is sent at a time.
func (r *PeerReport) chunk(at time.Duration) {
	if r.Chunks == 0 {
		r.First = at
	}
	r.Last = at
	r.Chunks++
}

// Report returns what became of the last operation.
func (e *Engine) Report() Report {
	r := e.report
	r.OutRate, r.InRate = e.rate, e.in.rate
	if r.OutRate > 0 {
		r.Bound = time.Duration(float64(e.out) / r.OutRate * float64(time.Second))
	}
	if r.InRate > 0 {
		r.Bound = max(r.Bound, time.Duration(float64(e.in.all)/r.InRate*float64(time.Second)))
	}
	return r
}

// Peer returns what became of the slices of a peer; the zero value if these are empty.
func (e *Engine) Peer(i int) PeerReport {
	p := e.known.find(int32(i))
	if p == nil {
		return PeerReport{}
	}
	r := p.stats
	r.Queue, r.Rate = p.queue, p.rate
	return r
}
