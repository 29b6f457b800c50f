// Package cxi is the backend for the NICs of HPE Slingshot (Cassini), through
// libcxi, which is loaded at run time (package libcxi). Not verified on hardware: it is
// tested over the software model in tests/cassini.
//
// # Model
//
// A [MemoryDomain] is an open NIC under one service and one VNI. An [Iface] on it has a
// PID, which with the NIC's number is where commands of peers go, and there two
// portal indices:
//
//	messages  a list of buffers, which messages fill one behind the other
//	presence  one entry of no bytes that only the interface's own random number matches
//
// A device address names NIC, PID, VNI and that number. A put to the presence index
// says, without the peer's process, whether the interface is there, and whether it is
// still the same one: Connect and CheckPeers ask so. With Config.Named there is another
// entry, which any peer's NIC reads: the device address, for a peer that knows the name
// of a matched endpoint only.
//
// Memory that peers may reach has an entry at a third index, of the memory domain's own
// PID, each under match bits of its own that cannot be guessed.
//
// # Messages
//
// A message is one command: inline up to 192 bytes, else from a bounce buffer. Its
// 128 bits of match bits and header data carry the receiver's number, id, head length,
// position and header, so a handler gets everything from one event and the payload
// where the NIC wrote it.
//
// Commands of one queue arrive in order, so a peer belongs to one queue. But a receiver
// without a free buffer or event refuses a message and may take the next. So each carries
// its position; the receiver passes by what is not the next one, and the sender sends
// again, in order, from the first that was refused (resend.go).
//
// # Matching
//
// With Config.Match the interface also is an endpoint of libfabric's CXI provider: the NIC finds the receives of
// messages at index 0 of its PID, by that provider's match bits (package proto). For a peer that is such an endpoint
// the two do not differ. Nothing of the above is used for that but the PID and the wait object. Beside it messages of
// weft's own go between interfaces with Config.Named.
//
// # Threads
//
// Operations on endpoints: any thread. A queue's lock (type txQueue) guards what is
// posted to it and the windows of its peers. Progress and CheckPeers: the holder of the
// progress lease; everything marked "lease" belongs to it. A thread that is alone ([Iface.Alone]) takes no lock of what
// the NIC matches.
package cxi
