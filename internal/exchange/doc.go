// Package exchange decides the order of an all-to-all of long slices: which peer
// gets the next chunk, how many peers are sent to at a time, and which sender a
// receiver invites. An [Engine] is a state machine of one member. Events go in
// as method calls with their time, what is to be sent comes out of [Engine.Next];
// the engine reads no clock, starts no thread and takes no lock, so a
// transport, the simulator and a test drive the same code.
//
// # Pairs
//
// What a member has for another is a slice; it goes in chunks, in order. A pair
// that has begun has up to [Early] chunks on their way, and up to [Deepest] where no
// other peer waits for its turn. The receiver answers the end
// of a chunk with a [Word]: the bytes that have arrived, whether it has room for
// this sender (a credit, Invite), and whether its own link queues because of
// others (Busy). Offsets and acknowledgements are counts from the slice's
// beginning, so a chunk or word that comes twice, late or forged is recognised
// by comparison with what was sent, dropped and counted.
//
// Where only one direction of two members has bytes, an empty slice goes the other way; where neither has, nothing.
// So members whose lengths do not agree find that: what one of them sends is not what the other expects.
//
// # How many at a time
//
// A member begins with one peer, and begins another as soon as its own link idles:
// when the pairs that have begun deliver less than nine tenths of the most that
// all together delivered lately, or when it has sent, at that rate, everything that it was
// given, so that what is on its way waits elsewhere. A pair that something else holds back counts
// only with what it delivers, so it keeps going and takes no place. Now and then
// one pair more is tried; if all together deliver more then, the link has more
// room than was known. The receiver does the same for what arrives: while its
// link has room it invites a sender of which nothing is on its way, the one with the longest
// remainder first, and the sender begins with it at once (after dcPIM, SIGCOMM 2022,
// and SIRD, NSDI 2025: links with one owner are scheduled, shared ones left to the congestion control). It invites one
// as well if nothing arrives at first, because members with some partners only may all begin with others.
//
// # Members of one host
//
// Members of one host share its links. Each says what it does on them ([Use]), the others read that now and then
// ([Engine.Share]), and what all of them do is what counts: whether the link idles is judged by what the pairs of
// all deliver, and by what all have given it; what it carries, by what is delivered to all and arrives at all; the
// most peers at a time are those of all; and of receivers whose link has room one invites, that which has invited the
// fewest. Nothing else follows from it, so that one which is gone, says nothing or what is not true costs time only.
// What goes to members of the host takes no place on a link ([Engine.Near]): it goes at once and counts for nothing.
//
// # Which one
//
// In shifted order, as long as nothing speaks against it: rank r begins with
// r+1 and expects r-1, and so on, so that no member is the target of all. The
// policies ([Policy]) say what does. The default sends the first chunk of each
// slice to a peer of which nothing is known, and then begins those first that take
// longest at the rate that they were seen to have (LPT: Graham 1969).
//
// # No deadlock, no starvation
//
// A member that has something to send and nothing on its way begins with a peer,
// whatever policies, credits and limits say: a limit is at least one.
// So a credit that is lost or never given costs time only, and no member ever
// waits for another's decision, only for bytes that are on their way. Every chunk
// that arrives is acknowledged by its receiver without a condition. Thus there is
// no cycle of waiting. The tests search for one in every order of events of groups of two to four, with
// relays, with relays that wait for each other's hosts and with one that dies (package internal/interleave).
//
// A choice is the sending of one chunk. A peer that has data left and waits gets
// a chunk within [Engine.Patience] + 2 × peers + [Early] choices under every policy: when the
// one that has waited longest has waited for Patience choices, it is chosen,
// at every other choice at most. Below 100 percent of the link ([Config.Percent]) those that have begun in a pause go
// before it, which are 2 × peers more.
//
// # Relays
//
// Where a pair would end much later than both of its hosts need, twice as much where its target's link does not idle,
// as that may be what holds the pair back, the end of its slice goes through other members in pieces (Valiant 1981;
// RON, SOSP 2001): number 0 is the last one. Until then a pair that may need them has as much on its way as ends in
// half of the time that its hosts need: with less it would be slow for that reason, where others fill its target's
// link. One slow chunk is no reason, and acknowledgements that come late and together make neither a path seem slow nor
// the own link fast. What was seen of a slow path counts for the next operation as well, for a minute. The source asks
// members with faster paths; a relay with a slow path to the target refuses, and the others grant pieces, as their own
// traffic leaves room, their path takes them soon and a [Store] has places.
// A relay passes a piece on to its target and nothing further: two hops. The target's words say which pieces it has,
// of [relayWindow] at most; what comes twice is dropped. The source sends a piece again when its relay is gone, or
// late by [relayPatience]. A relay stays in the operation until all pieces that it has granted are passed on or given
// up, which the source says when it needs no more; it waits for nothing else, so that relays add no cycle of waiting.
//
// # Costs
//
// A peer with bytes to exchange has a record, and one that relays have to do with gets one. Of the others, to which
// nothing goes, five bytes are kept. So memory follows what a member exchanges and not the group's size:
// records of former operations stay for what they say of paths, at most [keptRecords] of them.
//
// Nothing is allocated per chunk, but for a first record, or for more chunks on their way than before; an event costs
// O(log n) for n peers with records.
package exchange
