// Package congestion decides how much a path may carry: it estimates round-trip
// times, keeps congestion windows, sends probes, cuts long one-sided operations
// into segments and keeps the statistics of every peer.
//
// Nothing here reads a clock, opens a socket or draws a random number of its
// own. Time comes in as a [Time], random numbers as a [Rand], and what is to be
// sent goes out as a return value, so that a transport, a simulator
// (internal/netsim) and a test drive the very same code.
//
// The pieces, from the bottom up:
//
//   - [Estimator]: SRTT, RTTVAR, base RTT and retransmission timer of one path.
//   - oneway: what of the round trip's queueing delay is that of the way back.
//   - slew: whether the clocks by which that is known are being set by their rates.
//   - [Delivery]: how fast a path delivers, from the send state that the
//     transport keeps with every packet.
//   - [Controller]: the window. [NewFixed], [NewAIMD], [NewDelay] and [NewBBR]
//     make one; [New] makes the one that a [Config] names.
//   - [Path]: the three put together, which is what a transport drives.
//   - [Pacer]: when the next packet may leave.
//   - [Stats]: what many threads report about one peer, read as one snapshot.
//   - [Prober]: when to probe which peer, and what became of it.
//   - [Judge]: what probes and data together say about a path.
//   - [Flow]: long operations to one peer as segments driven by a window.
//   - [Stamp], [RoundTrip]: time stamps of an interface, and the RTT by them.
//
// Sizes are bytes, rates bytes per second, times nanoseconds. Except for
// [Stats] nothing here may be used by two threads at once: a path belongs to
// the thread that has the lease of its connection.
package congestion
