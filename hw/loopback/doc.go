// Package loopback is the software NIC of one host: interfaces of one process
// or of several that exchange active messages through shared memory, and read
// each other's memory with process_vm_readv.
//
// # Model
//
// Every [Iface] owns one segment, an owner-only file in a memory file system,
// laid out by internal/hot/segment.go:
//
//	header | inbound rings | attach table | key table | claims | proofs | bounce buffers
//
// A sender maps the receiver's segment, takes an entry of its attach table and
// from then on claims slots of an inbound ring under the number of that entry
// plus one. The first seven entries have a ring each, all others share the eighth.
// A message of up to 104 bytes stands in the slot. A longer one is
// written into a bounce buffer of the sender's own segment, which the slot
// names; the receiver maps the sender's segment, reads the buffer there and
// frees it by storing 0 into its state word. So an idle interface costs its
// ring and its buffers once, however many peers it has.
//
// # Names
//
// An interface is named by the socket address that it is given. Several may share one and have different numbers then
// ([AppendNumber]). The file is called weft.<uid>.<network namespace>.<address>, with a dot and the number if there is
// one, so users and network namespaces do not meet. With Config.Across it has one more name, with 0 for the namespace,
// by which it is found from all. A file becomes visible with its name only when it is complete (link of a nameless
// file). An interface that answers at all addresses of a family has a second name, that of the wildcard address, and is
// found under it by peers that know another address than its own.
//
// # Threads
//
// Sends, ReadPeer and WritePeer: any thread. Progress and CheckPeers: the holder
// of the progress lease, to which types receiver and source belong. Connect and
// Close take a mutex, which no send or arrival takes. The data plane (package
// internal/dataplane) sends and takes in messages by itself, with the tables that
// the methods of hw.Direct fill in.
//
// # Dead and hostile peers
//
// A process that is killed leaves its file, its attach entries, slots that it
// had taken, and bounce buffers that it had not returned. CheckPeers and
// Progress find all four: the owner of a slot is in the slot's sequence word,
// the owner of an entry in the entry, the holder of a buffer in the buffer, and
// the owner of a file in its header, always as process id and start time. Whether
// that process lives is read from /proc in its own pid namespace, and in others from a lock
// that it holds in the directory (package proclock).
// The memory of a dead peer is replaced by private memory at the same address
// before it is given back, because epoch readers may still be writing there. For
// the same reason the addresses of an interface's own segment outlive it: they
// show zeros until the next interface takes them.
//
// A peer of the same user can write everything in a segment at any time. What
// it writes can lose, repeat or forge messages, but leads to no access outside
// the mapping and to no endless loop: geometry is copied out and checked once,
// each other word is read once and checked. It is beyond this that a process of
// the same user truncates the file, which ends in SIGBUS; it could as well
// have sent a signal.
//
// # Bounce buffers
//
// A buffer's state goes from 0 to its receiver's number for the sender, by the thread that has the stripe, and back
// to 0 by the receiver when it has read the payload, or by CheckPeers when the receiver is dead. Its receiver stands
// in it before it is marked and does not change while it is. So what CheckPeers reads after a mark belongs to that
// mark or a later one; if to a later one, its compare-and-swap frees the buffer of that one, whose receiver is dead,
// or fails. The tests run a model of the three in every order of their steps, with x86's store buffers (package
// internal/interleave).
//
// # Limits
//
// Peers must see the same directory and be the same user, and share the network
// namespace unless both are opened with Config.Across.
// An interface has at most [MaxAttach] senders at a time.
package loopback
