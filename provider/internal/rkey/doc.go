// Package rkey deals with keys by which devices reach memory on other hosts (remote keys).
//
// A [Device] registers memory of this process: of messages, whose keys go with their RTS, for as long as a [Table]
// keeps them. A [Peer] has the keys of a peer's regions for one-sided operations: the peer sends each when it is asked
// for it by the region's key ([wire.KeyAnswer]). Both messages may be lost to a lack of room: then the question comes
// again. Until the answer is there operations go as messages, so no operation waits for it. The exchange of both knows
// its endpoint by interfaces ([Host], [Path]).
package rkey
