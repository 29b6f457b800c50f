package bench

import (
	"cmp"
	"slices"
)

// job is what goes through a port: so many bytes of payload, from a time on, in ns after the
// beginning.
type job struct {
	release int64
	bytes   float64
}

// span is a time, of CLOCK_MONOTONIC in ns, in which a port has another rate than else, in bytes per ns.
type span struct {
	from, to int64
	rate     float64
}

// bytesPerNs is a rate.
func bytesPerNs(mbit float64) float64 { return mbit / 8 / 1e3 }

// bound is what no order can beat, in ns: the time of the port, or the path, that needs
// longest for its bytes, headers included, from when they are there on.
func (w *labNetwork) bound(slice int64, o *operation, net others) int64 {
	ins, outs := make([][]job, w.hosts), make([][]job, w.hosts)
	paths := map[[2]int][]job{}
	for from := range w.ranks {
		for to := range w.ranks {
			a, b := w.host(from), w.host(to)
			if a == b {
				continue
			}
			both := max(w.arrival(from, o.round), w.arrival(to, o.round))
			j := job{both, float64(w.bytes(slice, from, to)) * wireShare}
			outs[a], ins[b] = append(outs[a], j), append(ins[b], j)
			paths[[2]int{a, b}] = append(paths[[2]int{a, b}], j)
		}
	}
	worst := w.lastArrival()
	for h := range w.hosts {
		var spans []span
		if net != nil {
			spans = net.spans(h)
		}
		worst = max(worst, through(ins[h], bytesPerNs(float64(w.in[h])), spans, o.began))
		if w.out != nil && w.out[h] != 0 {
			worst = max(worst, through(outs[h], bytesPerNs(float64(w.out[h])), nil, o.began))
		}
	}
	if w.path != nil {
		for pair, jobs := range paths {
			if mbit := w.path(pair[0], pair[1]); mbit != 0 {
				worst = max(worst, through(jobs, bytesPerNs(mbit), nil, o.began))
			}
		}
	}
	return max(worst, 1)
}

// through is how long a port takes for jobs, whose order does not matter as long as it does
// not idle; spans follow each other.
func through(jobs []job, rate float64, spans []span, began int64) int64 {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b job) int { return cmp.Compare(a.release, b.release) })
	at := began
	for _, j := range jobs {
		at = max(at, began+j.release)
		left := j.bytes
		for left > 0 {
			until, now := int64(1)<<62, rate
			if i := slices.IndexFunc(spans, func(s span) bool { return s.to > at }); i >= 0 {
				if spans[i].from <= at {
					until, now = spans[i].to, spans[i].rate
				} else {
					until = spans[i].from
				}
			}
			if now > 0 && left/now <= float64(until-at) {
				at += int64(left / now)
				break
			}
			left -= now * float64(until-at)
			at = until
		}
	}
	return at - began
}
