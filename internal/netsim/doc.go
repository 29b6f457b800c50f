// Package netsim is a discrete-event simulator of hosts, links and queues that
// runs package congestion's own code: the windows, the estimators and the
// prober see simulated time and nothing else distinguishes them from a real transport.
// A run depends on its seed alone.
//
// A [Net] holds the clock and the events. A [Link] has a rate, a delay, a queue
// with a limit and an ECN threshold, and may lose and reorder; it may let bursts
// through as a token bucket does. Packets follow a
// route of links. A [Flow] is a reliable transport in small: packet numbers that
// are never reused, selective acknowledgement, loss detection by time
// (RFC 8985) and a retransmission timer. A [PingPong] sends one small message
// back and forth. A [ProbeHost] drives a congestion.Prober.
//
// A [Group] exchanges slices over packets, a [Fabric] over flows instead, for thousands of hosts: its [Port]s serve
// chunks.
//
// A [Host] is a processor that several flows share, and that does not run their
// programs now and then. Without one a host takes no time to send or receive.
package netsim
