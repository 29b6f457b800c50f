package congestion

import "time"

// oneway splits the queueing delay of round trips into that of the way there and that of the way back. The receiver
// says when a packet arrived, by its own clock. That less when it left, by the sender's, is the delay of the way there
// and an unknown constant, as in LEDBAT (RFC 6817). What exceeds the least of onewayWindow is queueing delay.
//
// Two clocks differ in rate as well, by 100 us a second if crystals are bad, so the constant is none. So the window is
// short, and the way back has a least delay of its own. Each of the two leasts alone says what of the queue is whose. A
// receiver's clock that runs slow makes the way there seem faster and the way back slower, so the greater of both
// answers counts. It is wrong by what the clocks drift apart in a window at most. Where queues stood both ways for all
// of the window, more of the delay counts as that of the way there, up to all of it. All of it does where a clock is
// being set by its rate.
type oneway struct {
	there, back filter        // least delays, which contain the constant
	last        time.Duration // constant and delay of the latest sample
	any         bool
	slew        slew
}

// onewayWindow is how long a least delay of a way counts: ten times as long as a flow that fills its path goes at most
// without draining its queue.
const onewayWindow = 10 * drainLeast

// unwrap makes of a difference of two clocks that is known modulo 2^32 ns the one that is next to the latest.
func (o *oneway) unwrap(d uint32) time.Duration {
	if !o.any {
		o.any, o.last = true, time.Duration(d)
	}
	o.last += time.Duration(int32(d - uint32(o.last)))
	return o.last
}

// add takes in a round trip and how much later its packet arrived than it left, by two clocks and modulo 2^32 ns. It
// returns what of the queueing delay, which is what the round trip exceeds base by, is that of the way back.
func (o *oneway) add(now Time, there uint32, rtt, base time.Duration) time.Duration {
	queue, d := rtt-base, o.unwrap(there)
	back := rtt - d
	forth := max(
		d-time.Duration(o.there.add(now, onewayWindow, int64(d))),
		queue-back+time.Duration(o.back.add(now, onewayWindow, int64(back))))
	if o.slew.add(now, d, back) {
		return 0
	}
	return queue - min(max(forth, 0), max(queue, 0))
}
