package stats

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Words of the process.
const (
	ProcEndpoints = iota
	ProcOpened
	ProcHidden
	ProcActivations
	ProcIdlings
	ProcSleeps
	ProcEntries
)

// Words of a thread's line.
//
//weft:enum weft_stat_thread
const (
	ThreadInline      = 0  //weft:name WEFT_STAT_TX_INLINE
	ThreadInlineBytes = 1  //weft:name WEFT_STAT_TX_INLINE_BYTES
	ThreadBounce      = 2  //weft:name WEFT_STAT_TX_BOUNCE
	ThreadBounceBytes = 3  //weft:name WEFT_STAT_TX_BOUNCE_BYTES
	ThreadWrite       = 4  //weft:name WEFT_STAT_TX_WRITE
	ThreadWriteBytes  = 5  //weft:name WEFT_STAT_TX_WRITE_BYTES
	ThreadAtomic      = 6  //weft:name WEFT_STAT_TX_ATOMIC
	ThreadRead        = 7  //weft:name WEFT_STAT_TX_READ
	ThreadNoRing      = 8  //weft:name WEFT_STAT_EAGAIN_RING
	ThreadNoCQ        = 9  //weft:name WEFT_STAT_EAGAIN_CQ
	ThreadNoBounce    = 10 //weft:name WEFT_STAT_EAGAIN_BOUNCE
	ThreadNoStripe    = 11 //weft:name WEFT_STAT_EAGAIN_STRIPE
	ThreadLeaseBusy   = 12 //weft:name WEFT_STAT_LEASE_BUSY
	ThreadReadBytes   = 13 //weft:name WEFT_STAT_TX_READ_BYTES
	ThreadNote        = 14 //weft:name WEFT_STAT_TX_NOTE
	ThreadNoteDirect  = 15 //weft:name WEFT_STAT_TX_NOTE_DIRECT

	ThreadRendezvous      = 16 //weft:name WEFT_STAT_TX_RENDEZVOUS
	ThreadRendezvousBytes = 17 //weft:name WEFT_STAT_TX_RENDEZVOUS_BYTES
	ThreadNoRequest       = 18 //weft:name WEFT_STAT_EAGAIN_REQUEST
	ThreadSync            = 19 //weft:name WEFT_STAT_TX_SYNC
	ThreadSyncBytes       = 20 //weft:name WEFT_STAT_TX_SYNC_BYTES

	ThreadListIPC      = 21 //weft:name WEFT_STAT_TX_LIST_IPC
	ThreadListIPCBytes = 22 //weft:name WEFT_STAT_TX_LIST_IPC_BYTES
	ThreadListDirect   = 23 //weft:name WEFT_STAT_TX_LIST_DIRECT
)

// Words of a stripe's line.
const (
	StripeEager = iota
	StripeEagerBytes
	StripeSync
	StripeSyncBytes
	StripeRendezvous
	StripeRendezvousBytes
	StripeNoRequest
	StripeNoCQ
	StripeNoRing
	StripeFragments
	StripeFragmentBytes
	StripeWrite
	StripeWriteBytes
	StripeRead
	StripeReadBytes
	StripeAtomic
)

// Words of the lease holder. C writes the first seven; those of one-sided
// operations and rendezvous Go writes too, under the same lease.
//
//weft:enum weft_stat_rx
const (
	RxDirect          = iota //weft:name WEFT_STAT_RX_DIRECT
	RxDirectBytes            //weft:name WEFT_STAT_RX_DIRECT_BYTES
	RxDirectBatches          //weft:name WEFT_STAT_RX_DIRECT_BATCHES
	RxServedWrites           //weft:name WEFT_STAT_RX_SERVED_WRITES
	RxServedAtomics          //weft:name WEFT_STAT_RX_SERVED_ATOMICS
	RxRendezvous             //weft:name WEFT_STAT_RX_RENDEZVOUS
	RxRendezvousBytes        //weft:name WEFT_STAT_RX_RENDEZVOUS_BYTES
	RxEager
	RxEagerBytes
	RxBatches
	RxArrivals
	RxBatchPeak
	RxUnexpected
	RxUnexpectedBytes
	RxFragments
	RxFragmentBytes
	RxPosts
	RxSearches
	RxSearchesDirect
	RxPosted
	RxPostedPeak
	RxPostRing
	RxKept
	RxKeptPeak
	RxKeptBytes
	RxKeptBytesPeak
	RxMatchSteps
	RxRingDepth
	RxRingPeak
	RxTxCQDepth
	RxRxCQDepth
	RxOverflow
	RxInFlight
	RxOps
	RxControls
	RxPeers
	RxSenders
	RxWindowCloses
	RxWindowClosed
	RxErrTruncated
	RxErrReset
	RxErrCanceled
	RxErrMemory
	RxErrOther
	RxMalformed
	RxReclaimed
	RxPeersLost
	RxServedReads
	RxProbes
	RxHelped
	RxProbesEchoed
	RxProbesLost
	RxProbesStray
	RxPTP
	RxPTPError
	RxExchangeChunks
	RxExchangeDeferrals
	RxExchangeForced
	RxExchangeCredits
	RxExchangeInvited
	RxExchangePeers
	RxExchangePeersPeak
	RxExchangeRelayed
	RxExchangeCarried
	RxExchangeAgain
	RxExchangePut
	RxExchangeGot
	RxExchangeRegistered
	RxNotes
	RxNotesDirect
	RxAcksDirect
	RxMatchSent
	RxMatchSentBytes
	RxMatchReceived
	RxMatchReceivedBytes
	RxMatchState
	RxMatchNoEvents // and the reasons behind it, in the order of hw.MatchReason
	RxMatchNoBuffers
	RxMatchNoEntries
	RxMatchNoRequests
	RxMatchBySoftware
	RxMatchElse
	RxMatchSoftUnexpected
	RxMatchSoftReceive
	RxMatchDropped
	RxMatchOnloaded
	RxMatchSoftware
	RxMatchDoorbells
	RxMatchRefused
	RxMatchOverruns
	RxMatchUnknown
	RxMatchWritten
	RxMatchWrittenBytes
	RxMatchRead
	RxMatchReadBytes
	RxMatchAtomic
	RxMatchAtomicBytes
	RxRendezvousDirect
	RxMatchProgress
)

// Shared words.
const (
	SharedNoPost = iota
	SharedNoStripe
	SharedNotUp
	SharedConnects
	SharedRefused
	SharedWrite
	SharedWriteBytes
	SharedRead
	SharedReadBytes
	SharedDevice
	SharedKeyAsked
	SharedTokenIPC
	SharedTokenIPCBytes
	SharedTokenRDMA
	SharedTokenRDMABytes
	SharedTokenMessage
	SharedTokenMessageBytes
	SharedNote
	SharedMapped
	SharedMappedBytes
	SharedMatchPosts
)

// Words of a peer.
const (
	PeerInFlight = iota
	PeerRTT
	PeerWindow
	PeerLost
	PeerRTTVar
	PeerRTTMin
	PeerRTTMax
	PeerSamples
	PeerLostPackets
	PeerAge
	PeerSegments
	PeerSegmentRTT
	PeerSegmentWindow
	PeerSegmentSize
	PeerSegmentFlight
	PeerProbes
	PeerProbesLost
	PeerProbeRTT
	PeerForth
	PeerBack
	PeerTokenIPC
	PeerTokenIPCBytes
	PeerTokenRDMA
	PeerTokenRDMABytes
	PeerTokenMessage
	PeerTokenMessageBytes
)

func at(places ...Place) []Place { return places }

func pick(name string) *Counter {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Find returns the counter of that name, nil if there is none.
func Find(name string) *Counter { return pick(name) }

// Table returns every counter, in the order of the documentation. It must not
// be changed.
func Table() []Counter { return table }

const (
	unitMessages = "messages"
	unitBytes    = "bytes"
	unitCalls    = "calls"
	unitTimes    = "times"
)

// table declares every counter. Immutable after package initialisation.
var table = []Counter{
	{"endpoints", "endpoints", Gauge, "Enabled endpoints of the process.", at(Place{Process, ProcEndpoints})},
	{"endpoints_opened", "endpoints", Sum, "Endpoints enabled since the page was made.",
		at(Place{Process, ProcOpened})},
	{"endpoints_hidden", "endpoints", Gauge, "Enabled endpoints whose counters are not shown: the page or its file " +
		"system is full.",
		at(Place{Process, ProcHidden})},

	{"thread_activations", unitTimes, Sum, "Times that a progress thread of weft's went from idle to active.",
		at(Place{Process, ProcActivations})},
	{"thread_idlings", unitTimes, Sum, "Times that a progress thread went from active to idle.",
		at(Place{Process, ProcIdlings})},
	{"thread_sleeps", unitTimes, Sum, "Times that a progress thread went to sleep on its doorbells.",
		at(Place{Process, ProcSleeps})},
	{"runtime_entries", unitCalls, Sum, "Times that posting, polling, cancelling, waiting or the reading of an error " +
		"or a notification entered the Go runtime, other than for timers.", at(Place{Process, ProcEntries})},

	{"tx_inline", unitMessages, Sum, "Short messages that the data plane sent: in a slot of the peer's ring, or " +
		"by an RDMA device.",
		at(Place{Thread, ThreadInline})},
	{"tx_inline_bytes", unitBytes, Sum, "Payload of tx_inline.", at(Place{Thread, ThreadInlineBytes})},
	{"tx_bounce", unitMessages, Sum, "Messages that the data plane sent through a bounce buffer.",
		at(Place{Thread, ThreadBounce})},
	{"tx_bounce_bytes", unitBytes, Sum, "Payload of tx_bounce.", at(Place{Thread, ThreadBounceBytes})},
	{"tx_eager", unitMessages, Sum, "Messages sent with their payload from Go: vectors, and the first to a peer.",
		at(Place{Stripe, StripeEager})},
	{"tx_eager_bytes", unitBytes, Sum, "Payload of tx_eager.", at(Place{Stripe, StripeEagerBytes})},
	{"tx_sync", unitMessages, Sum, "Messages sent with their payload that the receiver acknowledges.",
		at(Place{Stripe, StripeSync}, Place{Thread, ThreadSync})},
	{"tx_sync_direct", unitMessages, Sum, "Those of tx_sync that did not enter the Go runtime.",
		at(Place{Thread, ThreadSync})},
	{"tx_sync_bytes", unitBytes, Sum, "Payload of tx_sync.",
		at(Place{Stripe, StripeSyncBytes}, Place{Thread, ThreadSyncBytes})},
	{"tx_rendezvous", unitMessages, Sum, "Messages of which an RTS went to the receiver, which fetches them.",
		at(Place{Stripe, StripeRendezvous}, Place{Thread, ThreadRendezvous})},
	{"tx_rendezvous_bytes", unitBytes, Sum, "Payload of tx_rendezvous.",
		at(Place{Stripe, StripeRendezvousBytes}, Place{Thread, ThreadRendezvousBytes})},
	{"tx_rendezvous_direct", unitMessages, Sum, "Those of tx_rendezvous that did not enter the Go runtime.",
		at(Place{Thread, ThreadRendezvous})},
	{"tx_acks_direct", unitMessages, Sum, "Acknowledgements of transmits that did not enter the Go runtime.",
		at(Place{Rx, RxAcksDirect})},
	{"tx_fragments", unitMessages, Sum, "Fragments sent of rendezvous messages that the receiver could not read.",
		at(Place{Stripe, StripeFragments})},
	{"tx_fragment_bytes", unitBytes, Sum, "Payload of tx_fragments, part of tx_rendezvous_bytes.",
		at(Place{Stripe, StripeFragmentBytes})},
	{"tx_in_flight", unitMessages, Gauge, "Transmits that wait for an acknowledgement.", at(Place{Rx, RxInFlight})},

	{"rma_writes", "operations", Sum, "Writes posted.", at(Place{Stripe, StripeWrite}, Place{Shared, SharedWrite},
		Place{Thread, ThreadWrite})},
	{"rma_write_bytes", unitBytes, Sum, "Bytes of rma_writes.", at(Place{Stripe, StripeWriteBytes},
		Place{Shared, SharedWriteBytes}, Place{Thread, ThreadWriteBytes})},
	{"rma_reads", "operations", Sum, "Reads posted.", at(Place{Stripe, StripeRead}, Place{Shared, SharedRead},
		Place{Thread, ThreadRead})},
	{"rma_read_bytes", unitBytes, Sum, "Bytes of rma_reads.", at(Place{Stripe, StripeReadBytes},
		Place{Shared, SharedReadBytes}, Place{Thread, ThreadReadBytes})},
	{"rma_device", "operations", Sum, "Reads and writes that an RDMA device did.", at(Place{Shared, SharedDevice})},
	{"rma_keys_asked", unitMessages, Sum, "Questions to peers for the key by which an RDMA device reaches a region.",
		at(Place{Shared, SharedKeyAsked})},
	{"rma_mapped", "operations", Sum, "Reads and writes with memory of a device that went by mappings.",
		at(Place{Shared, SharedMapped})},
	{"rma_mapped_bytes", unitBytes, Sum, "Bytes of rma_mapped.", at(Place{Shared, SharedMappedBytes})},
	{"list_ipc", "elements", Sum, "Elements of lists of memory under tokens that this process copied to or from the " +
		"memory of another one of this host.", at(Place{Shared, SharedTokenIPC}, Place{Thread, ThreadListIPC})},
	{"list_ipc_bytes", unitBytes, Sum, "Bytes of list_ipc.",
		at(Place{Shared, SharedTokenIPCBytes}, Place{Thread, ThreadListIPCBytes})},
	{"lists_direct", "operations", Sum, "Posts of lists of several elements that did not enter the Go runtime.",
		at(Place{Thread, ThreadListDirect})},
	{"list_rdma", "elements", Sum, "Elements of lists that were posted to an RDMA device.",
		at(Place{Shared, SharedTokenRDMA})},
	{"list_rdma_bytes", unitBytes, Sum, "Bytes of list_rdma.", at(Place{Shared, SharedTokenRDMABytes})},
	{"list_message", "elements", Sum, "Elements of lists that went as messages.",
		at(Place{Shared, SharedTokenMessage})},
	{"list_message_bytes", unitBytes, Sum, "Bytes of list_message.", at(Place{Shared, SharedTokenMessageBytes})},
	{"notes_sent", unitMessages, Sum, "Notifications sent, alone or behind lists.",
		at(Place{Shared, SharedNote}, Place{Thread, ThreadNote})},
	{"notes_sent_direct", unitMessages, Sum, "Those of notes_sent that did not enter the Go runtime.",
		at(Place{Thread, ThreadNoteDirect})},
	{"notes_received", unitMessages, Sum, "Notifications that have arrived as a whole.", at(Place{Rx, RxNotes})},
	{"notes_direct", unitMessages, Sum, "Those of notes_received that did not enter the Go runtime.",
		at(Place{Rx, RxNotesDirect})},
	{"atomics", "operations", Sum, "Atomic operations posted.",
		at(Place{Stripe, StripeAtomic}, Place{Thread, ThreadAtomic})},
	{"served_writes", unitMessages, Sum, "Pieces of peers' writes put in place by this process.",
		at(Place{Rx, RxServedWrites})},
	{"served_reads", unitMessages, Sum, "Peers' reads answered by this process.", at(Place{Rx, RxServedReads})},
	{"served_atomics", unitMessages, Sum, "Peers' atomic operations performed by this process.",
		at(Place{Rx, RxServedAtomics})},

	{"eagain_ring", unitCalls, Sum, "Posts refused: the peer's inbound ring was full (or, posting from Go, the " +
		"bounce buffers were in use).", at(Place{Thread, ThreadNoRing}, Place{Stripe, StripeNoRing})},
	{"eagain_bounce", unitCalls, Sum, "Posts refused: every bounce buffer of the stripe was in use.",
		at(Place{Thread, ThreadNoBounce})},
	{"eagain_cq", unitCalls, Sum, "Posts refused: no room for the completion.",
		at(Place{Thread, ThreadNoCQ}, Place{Stripe, StripeNoCQ})},
	{"eagain_stripe", unitCalls, Sum, "Posts refused: other threads leased every transmit stripe.",
		at(Place{Thread, ThreadNoStripe}, Place{Shared, SharedNoStripe})},
	{"eagain_request", unitCalls, Sum, "Posts refused: as many transmits wait for acknowledgements as the queue holds.",
		at(Place{Thread, ThreadNoRequest}, Place{Stripe, StripeNoRequest})},
	{"eagain_peer", unitCalls, Sum, "Posts refused: the peer has not answered yet.", at(Place{Shared, SharedNotUp})},
	{"eagain_recv", unitCalls, Sum, "Receives refused: the ring of posted receives was full.",
		at(Place{Shared, SharedNoPost})},
	{"post_errors", unitCalls, Sum, "Posts refused for good: the peer is gone, out of reach or not permitted.",
		at(Place{Shared, SharedRefused})},
	{"lease_busy", unitCalls, Sum, "Polls that found work while another thread made progress.",
		at(Place{Thread, ThreadLeaseBusy})},

	{"rx_direct", unitMessages, Sum, "Messages that the data plane took in without the Go runtime, expected or not.",
		at(Place{Rx, RxDirect})},
	{"rx_direct_bytes", unitBytes, Sum, "Payload of rx_direct.", at(Place{Rx, RxDirectBytes})},
	{"rx_eager", unitMessages, Sum, "Messages with their payload that entered the Go runtime, expected or not.",
		at(Place{Rx, RxEager})},
	{"rx_eager_bytes", unitBytes, Sum, "Payload of rx_eager.", at(Place{Rx, RxEagerBytes})},
	{"rx_unexpected", unitMessages, Sum, "Messages and RTS that came before their receive.",
		at(Place{Rx, RxUnexpected})},
	{"rx_unexpected_bytes", unitBytes, Sum, "Payload copied for rx_unexpected.", at(Place{Rx, RxUnexpectedBytes})},
	{"rx_rendezvous", unitMessages, Sum, "Rendezvous messages fetched from their senders.",
		at(Place{Rx, RxRendezvous})},
	{"rx_rendezvous_direct", unitMessages, Sum, "Those of rx_rendezvous that were fetched without the Go runtime.",
		at(Place{Rx, RxRendezvousDirect})},
	{"rx_rendezvous_bytes", unitBytes, Sum, "Payload of rx_rendezvous.", at(Place{Rx, RxRendezvousBytes})},
	{"rx_fragments", unitMessages, Sum, "Fragments received where the kernel refuses to read the sender's memory.",
		at(Place{Rx, RxFragments})},
	{"rx_fragment_bytes", unitBytes, Sum, "Payload of rx_fragments, part of rx_rendezvous_bytes.",
		at(Place{Rx, RxFragmentBytes})},
	{"rx_helped_bytes", unitBytes, Sum, "Payload that its sender has put into the receiver's memory over a device " +
		"that is software, part of rx_rendezvous_bytes.", at(Place{Rx, RxHelped})},
	{"rx_posts", unitMessages, Sum, "Receives taken off the ring of posted receives.", at(Place{Rx, RxPosts})},
	{"rx_searches", "operations", Sum, "Searches (FI_PEEK, FI_CLAIM) that have ended.", at(Place{Rx, RxSearches})},
	{"rx_searches_direct", "operations", Sum, "Those of rx_searches that did not enter the Go runtime.",
		at(Place{Rx, RxSearchesDirect})},

	{"matched_sent", unitMessages, Sum, "Messages sent for a NIC to match.", at(Place{Rx, RxMatchSent})},
	{"matched_sent_bytes", unitBytes, Sum, "Payload of matched_sent.", at(Place{Rx, RxMatchSentBytes})},
	{"matched_received", unitMessages, Sum, "Messages received that a NIC has matched.",
		at(Place{Rx, RxMatchReceived})},
	{"matched_received_bytes", unitBytes, Sum, "Payload of matched_received.", at(Place{Rx, RxMatchReceivedBytes})},
	{"matched_state", "state", Gauge,
		"Receiver whose messages a NIC matches: 1 enabled, 2 to be stopped, 3 and 4 messages are taken over " +
			"from the NIC (for list entries; for buffers or events), 5 flow control, 6 enabled and matched by " +
			"software, 7 on the way there, 8 being enabled.",
		at(Place{Rx, RxMatchState})},
	{"matched_no_events", unitTimes, Sum, "Times that the NIC took no messages any more: no room for events.",
		at(Place{Rx, RxMatchNoEvents})},
	{"matched_no_buffers", unitTimes, Sum, "The same: no buffer for unexpected messages.",
		at(Place{Rx, RxMatchNoBuffers})},
	{"matched_no_entries", unitTimes, Sum, "The same: no list entry for an unexpected message.",
		at(Place{Rx, RxMatchNoEntries})},
	{"matched_no_requests", unitTimes, Sum, "The same: no room in request buffers.", at(Place{Rx, RxMatchNoRequests})},
	{"matched_by_software", unitTimes, Sum, "The same: weft had it stop, as receives or claims need what it keeps.",
		at(Place{Rx, RxMatchBySoftware})},
	{"matched_stopped_else", unitTimes, Sum, "The same, for another reason.", at(Place{Rx, RxMatchElse})},
	{"matched_soft_unexpected", unitTimes, Sum,
		"Times that the NIC left matching to software: no list entry for an unexpected message.",
		at(Place{Rx, RxMatchSoftUnexpected})},
	{"matched_soft_receive", unitTimes, Sum, "The same: no list entry for a receive.",
		at(Place{Rx, RxMatchSoftReceive})},
	{"matched_dropped", unitMessages, Sum,
		"Messages that a receiver's NIC did not take, and that were or will be sent again.",
		at(Place{Rx, RxMatchDropped})},
	{"matched_onloaded", unitMessages, Sum, "Unexpected messages that weft took over from the NIC.",
		at(Place{Rx, RxMatchOnloaded})},
	{"matched_software", unitMessages, Sum, "Messages that found their receive in software.",
		at(Place{Rx, RxMatchSoftware})},
	{"matched_doorbells", unitTimes, Sum, "Times that a NIC's doorbell was rung.", at(Place{Rx, RxMatchDoorbells})},
	{"matched_refused", "commands", Sum, "Commands that the NIC has refused.", at(Place{Rx, RxMatchRefused})},
	{"matched_overruns", unitTimes, Sum, "Times that a NIC's event queue was full, and events were dropped.",
		at(Place{Rx, RxMatchOverruns})},
	{"matched_unknown", "events", Sum, "Events of a NIC of a kind that nothing expects.",
		at(Place{Rx, RxMatchUnknown})},
	{"matched_posts", unitCalls, Sum, "Entries into Go to post at an endpoint with a NIC that matches.",
		at(Place{Shared, SharedMatchPosts})},
	{"matched_progress", unitTimes, Sum, "Entries into Go for progress at an endpoint with a NIC that matches.",
		at(Place{Rx, RxMatchProgress})},
	{"matched_writes", "operations", Sum, "Writes of peers' memory by an endpoint with a NIC that matches.",
		at(Place{Rx, RxMatchWritten})},
	{"matched_write_bytes", unitBytes, Sum, "Payload of matched_writes.", at(Place{Rx, RxMatchWrittenBytes})},
	{"matched_reads", "operations", Sum, "Reads of peers' memory by such an endpoint.", at(Place{Rx, RxMatchRead})},
	{"matched_read_bytes", unitBytes, Sum, "Payload of matched_reads.", at(Place{Rx, RxMatchReadBytes})},
	{"matched_atomics", "operations", Sum, "Atomic operations on peers' memory by such an endpoint.",
		at(Place{Rx, RxMatchAtomic})},
	{"matched_atomic_bytes", unitBytes, Sum, "Elements of matched_atomics.", at(Place{Rx, RxMatchAtomicBytes})},

	{"posted", unitMessages, Gauge, "Receives that wait in matching.", at(Place{Rx, RxPosted})},
	{"posted_peak", unitMessages, Peak, "Most of them.", at(Place{Rx, RxPostedPeak})},
	{"posted_ring", unitMessages, Gauge, "Receives on the ring of posted receives.", at(Place{Rx, RxPostRing})},
	{"unexpected", unitMessages, Gauge, "Unexpected messages that wait for a receive.", at(Place{Rx, RxKept})},
	{"unexpected_peak", unitMessages, Peak, "Most of them.", at(Place{Rx, RxKeptPeak})},
	{"unexpected_held_bytes", unitBytes, Gauge, "Payload that they hold.", at(Place{Rx, RxKeptBytes})},
	{"unexpected_held_bytes_peak", unitBytes, Peak, "Most of it.", at(Place{Rx, RxKeptBytesPeak})},
	{"match_steps", "steps", Sum, "Entries of matching tables that were read beyond the first place of a key.",
		at(Place{Rx, RxMatchSteps})},
	{"ring_depth", unitMessages, Gauge, "Messages in the inbound ring.", at(Place{Rx, RxRingDepth})},
	{"ring_peak", unitMessages, Peak, "Most of them at a poll of progress.", at(Place{Rx, RxRingPeak})},
	{"tx_cq_depth", "entries", Gauge, "Completions in the transmit queue.", at(Place{Rx, RxTxCQDepth})},
	{"rx_cq_depth", "entries", Gauge, "Completions in the receive queue.", at(Place{Rx, RxRxCQDepth})},
	{"cq_overflow", "entries", Gauge, "Completions kept off these queues, which are full.", at(Place{Rx, RxOverflow})},
	{"operations", "operations", Gauge, "Rendezvous messages that are being fetched.", at(Place{Rx, RxOps})},
	{"controls", unitMessages, Gauge, "Messages of the protocol that wait for room at their peer.",
		at(Place{Rx, RxControls})},
	{"window_closes", unitTimes, Sum, "Times that too much unexpected payload closed the eager window.",
		at(Place{Rx, RxWindowCloses})},
	{"window_closed", "flag", Gauge, "1 while the eager window is closed.", at(Place{Rx, RxWindowClosed})},

	{"progress_batches", "batches", Sum, "Entries into progress that found an arrival, of the data plane or the " +
		"runtime.",
		at(Place{Rx, RxDirectBatches}, Place{Rx, RxBatches})},
	{"progress_arrivals", unitMessages, Sum, "Arrivals that the runtime handled, messages of the protocol included.",
		at(Place{Rx, RxArrivals})},
	{"progress_batch_peak", unitMessages, Peak, "Most arrivals of one entry into the runtime's progress.",
		at(Place{Rx, RxBatchPeak})},

	{"peers", "peers", Gauge, "Peers that this endpoint has connected to.", at(Place{Rx, RxPeers})},
	{"senders", "peers", Gauge, "Peers that have sent to this endpoint.", at(Place{Rx, RxSenders})},
	{"connects", unitTimes, Sum, "Connections made to peers.", at(Place{Shared, SharedConnects})},
	{"peers_lost", "peers", Sum, "Peers found dead.", at(Place{Rx, RxPeersLost})},
	{"slots_reclaimed", "slots", Sum, "Ring slots taken back from dead senders.", at(Place{Rx, RxReclaimed})},

	{"probes", "probes", Sum, "Probes sent to peers.", at(Place{Rx, RxProbes})},
	{"probes_echoed", "probes", Sum, "Probes answered in time.", at(Place{Rx, RxProbesEchoed})},
	{"probes_lost", "probes", Sum, "Probes not answered in time.", at(Place{Rx, RxProbesLost})},
	{"probes_stray", "probes", Sum, "Answers to no probe in flight: late, doubled or forged.",
		at(Place{Rx, RxProbesStray})},
	{"ptp_synchronised", "flag", Gauge, "1 while PTP synchronises this host's clock, where that is watched.",
		at(Place{Rx, RxPTP})},
	{"exchange_chunks", "chunks", Sum,
		"Chunks of all-to-alls that were sent in an order that followed the network.",
		at(Place{Rx, RxExchangeChunks})},
	{"exchange_deferrals", "chunks", Sum,
		"Times that a peer gave way to another one after a chunk, because its path was congested.",
		at(Place{Rx, RxExchangeDeferrals})},
	{"exchange_forced", "chunks", Sum,
		"Chunks to a peer that had waited too long, or whose path was congested while this host's link " +
			"would have idled.",
		at(Place{Rx, RxExchangeForced})},
	{"exchange_credits", "credits", Sum,
		"Credits received: a receiver's link had room.",
		at(Place{Rx, RxExchangeCredits})},
	{"exchange_invited", "credits", Sum,
		"Credits given.",
		at(Place{Rx, RxExchangeInvited})},
	{"exchange_peers", "peers", Gauge,
		"Peers that chunks of all-to-alls go to at present.",
		at(Place{Rx, RxExchangePeers})},
	{"exchange_peers_peak", "peers", Peak,
		"The most peers that they went to at a time.",
		at(Place{Rx, RxExchangePeersPeak})},
	{"exchange_relayed", "bytes", Sum,
		"Bytes of all-to-alls that went through other members, because the path was slow.",
		at(Place{Rx, RxExchangeRelayed})},
	{"exchange_carried", "bytes", Sum,
		"Bytes of all-to-alls that were passed on for other members.",
		at(Place{Rx, RxExchangeCarried})},
	{"exchange_relayed_again", "pieces", Sum,
		"Pieces of all-to-alls that were sent again, because the member they went through was gone or late.",
		at(Place{Rx, RxExchangeAgain})},
	{"exchange_put", "bytes", Sum,
		"Bytes of all-to-alls that were put into the memory of their receivers.",
		at(Place{Rx, RxExchangePut})},
	{"exchange_got", "bytes", Sum,
		"Bytes of all-to-alls that were fetched from the memory of their senders.",
		at(Place{Rx, RxExchangeGot})},
	{"exchange_registered", "regions", Sum,
		"Regions of memory registered for peers' puts and gets of all-to-alls; persistent ones keep theirs.",
		at(Place{Rx, RxExchangeRegistered})},
	{"ptp_error", "ns", Gauge, "How far the synchronised clock may be off.", at(Place{Rx, RxPTPError})},

	{"errors_truncated", "operations", Sum, "Operations that ended with FI_ETRUNC.", at(Place{Rx, RxErrTruncated})},
	{"errors_reset", "operations", Sum, "Operations that ended because their peer was gone.",
		at(Place{Rx, RxErrReset})},
	{"errors_canceled", "operations", Sum, "Operations that were cancelled.", at(Place{Rx, RxErrCanceled})},
	{"errors_memory", "operations", Sum, "Operations that ended for want of memory.", at(Place{Rx, RxErrMemory})},
	{"errors_other", "operations", Sum, "Operations that ended with another error.", at(Place{Rx, RxErrOther})},
	{"malformed", unitMessages, Sum, "Messages that were refused because they made no sense.",
		at(Place{Rx, RxMalformed})},

	{"peer_in_flight", unitMessages, Gauge, "Transmits that wait for this peer's acknowledgement.",
		at(Place{Peer, PeerInFlight})},
	{"peer_rtt", "ns", Gauge, "Smoothed round-trip time, 0 where the transport measures none.",
		at(Place{Peer, PeerRTT})},
	{"peer_window", unitBytes, Gauge, "Congestion window, 0 where the transport has none.",
		at(Place{Peer, PeerWindow})},
	{"peer_rtt_deviation", "ns", Gauge, "Mean deviation of the round-trip time.", at(Place{Peer, PeerRTTVar})},
	{"peer_rtt_min", "ns", Gauge, "Least round-trip time.", at(Place{Peer, PeerRTTMin})},
	{"peer_rtt_max", "ns", Gauge, "Greatest round-trip time.", at(Place{Peer, PeerRTTMax})},
	{"peer_rtt_samples", "samples", Sum, "Round-trip times measured.", at(Place{Peer, PeerSamples})},
	{"peer_rtt_age", "ns", Gauge, "Time since the last round-trip time or loss.", at(Place{Peer, PeerAge})},
	{"peer_segments", "segments", Sum, "Segments of long one-sided operations that have ended.",
		at(Place{Peer, PeerSegments})},
	{"peer_segment_rtt", "ns", Gauge, "Smoothed time from a segment's post to its end, without what its size adds.",
		at(Place{Peer, PeerSegmentRTT})},
	{"peer_segment_window", unitBytes, Gauge, "How much of segments may be under way.",
		at(Place{Peer, PeerSegmentWindow})},
	{"peer_segment_size", unitBytes, Gauge, "Size of the next segment.", at(Place{Peer, PeerSegmentSize})},
	{"peer_segment_flight", unitBytes, Gauge, "How much of segments is under way.", at(Place{Peer, PeerSegmentFlight})},
	{"peer_probes", "probes", Sum, "Probes sent to the peer.", at(Place{Peer, PeerProbes})},
	{"peer_probes_lost", "probes", Sum, "Those not answered in time.", at(Place{Peer, PeerProbesLost})},
	{"peer_probe_rtt", "ns", Gauge, "Round-trip time of the latest probe.", at(Place{Peer, PeerProbeRTT})},
	{"peer_delay_out", "ns", Gauge, "One-way delay to the peer, where PTP synchronises both clocks.",
		at(Place{Peer, PeerForth})},
	{"peer_delay_back", "ns", Gauge, "One-way delay from the peer, likewise.", at(Place{Peer, PeerBack})},
	{"peer_list_ipc", "elements", Sum, "Those of list_ipc of the peer's memory.", at(Place{Peer, PeerTokenIPC})},
	{"peer_list_ipc_bytes", unitBytes, Sum, "Bytes of peer_list_ipc.", at(Place{Peer, PeerTokenIPCBytes})},
	{"peer_list_rdma", "elements", Sum, "Those of list_rdma of the peer's memory.", at(Place{Peer, PeerTokenRDMA})},
	{"peer_list_rdma_bytes", unitBytes, Sum, "Bytes of peer_list_rdma.", at(Place{Peer, PeerTokenRDMABytes})},
	{"peer_list_message", "elements", Sum, "Those of list_message of the peer's memory.",
		at(Place{Peer, PeerTokenMessage})},
	{"peer_list_message_bytes", unitBytes, Sum, "Bytes of peer_list_message.", at(Place{Peer, PeerTokenMessageBytes})},
	{"peer_packets_lost", "packets", Sum, "Packets found lost on the way to the peer.",
		at(Place{Peer, PeerLostPackets})},
	{"peer_lost", unitTimes, Sum, "Times that the peer was found gone.", at(Place{Peer, PeerLost})},
}

// hash identifies the layout: it changes with every name and place of the table.
func hash() uint64 {
	var b strings.Builder
	for _, c := range table {
		fmt.Fprintf(&b, "%s %d %v\n", c.Name, c.Kind, c.At)
	}
	h := fnv.New64a()
	h.Write([]byte(b.String()))
	return h.Sum64()
}
