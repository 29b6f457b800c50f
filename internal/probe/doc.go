// Package probe measures the way to peers on other hosts while they are idle: round-trip times by probes that a
// transport sends ([Prober]), and the one-way delays of these while PTP synchronises the clocks of both hosts
// ([Clock]).
//
// Which peer to probe when, and what becomes of a probe, decides [congestion.Prober]. A [Prober] here reads which peers
// there are, sends what is due, and keeps the results where a statistics page finds them.
package probe
