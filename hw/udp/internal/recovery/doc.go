// Package recovery keeps the books of one connection: which packets have
// arrived ([Received]), which of those sent are acknowledged, lost or still
// under way ([Sent]), which bytes of a stream that makes ([Ranges]), and how
// large a packet may be ([MTU]).
//
// Time comes in as congestion.Time and nothing here reads a clock or sends, so
// that tests drive the very same code.
//
// # Loss
//
// A packet is lost when one that was sent later has arrived and this one has
// had time enough to arrive too (RFC 8985, RACK): a round trip and a window for
// reordering, which is a quarter of the least round trip at first and grows
// when packets taken for lost arrive after all. Until reordering was seen,
// three later arrivals are enough. When nothing comes back, a timer of RFC
// 6298 first sends a probe (RFC 8985, section 7), then takes all for lost.
//
// Numbers are never used twice, so an acknowledgement always says which
// sending it means, and every round-trip time is of one packet.
//
// # Hostile peers
//
// An acknowledgement of a number that was never sent is an error: numbers are
// skipped now and then so that a peer that acknowledges what it did not get is
// found (RFC 9000, section 21.4). Work for one acknowledgement is bounded by
// the packets under way.
package recovery
