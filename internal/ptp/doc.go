// Package ptp reports whether this host's clock is synchronised by PTP (IEEE 1588),
// and how well: which PTP clock an interface has (ethtool), what that clock says
// (/dev/ptpN), and what the PTP daemon knows (ptp4l's management socket).
//
// A round-trip time needs none of this: it is the difference of two readings of
// one clock. One-way delays do, because they compare two hosts' clocks. A
// [Monitor] makes the checks, repeats them, and says whether one-way delays may
// be computed; when they may not it says why, once.
package ptp
