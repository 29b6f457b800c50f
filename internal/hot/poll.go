package hot

import "structs"

// What a call of the data plane (package dataplane) that makes progress shares with the shim that makes it.

// The functions of the data plane that C calls, in the order of cabi's table.
//
//weft:enum weft_plane_function
const (
	PlaneRead      = 0 // a [Poll], as of the next ones: reads a queue
	PlaneSread     = 1 // the same, and sleeps
	PlaneProgress  = 2
	PlaneDrive     = 3  // what a progress thread does
	PlaneRecv      = 4  // a [Post], and a [Rx] and an [EP] or NULL: posts a receive or a search
	PlaneSend      = 5  // a [Post], as of those below: posts a message
	PlaneDatagram  = 6  // posts one that may be dropped
	PlaneRMA       = 7  // posts a read or a write
	PlaneAtomic    = 8  // posts an atomic operation on one integer
	PlaneNote      = 9  // posts a notification, alone or behind a copy
	PlaneTake      = 10 // a [NoteTake]: takes notifications that have arrived
	PlaneEnroll    = 11 // a [Thread] begins to poll and post
	PlaneList      = 12 // a [Post]: posts a list
	PlaneReceive   = 13 // a [Post]: posts a receive that a device matches, or takes back what that has not taken
	PlaneReadError = 14 // a [CQ], and a struct fi_cq_err_entry: takes an error off a queue
	PlaneTry       = 15 // a [Reader], a [Thread], a list of endpoints: reads, or finds what there is to do
	PlaneFunctions = 16 // how many there are
)

// Thread is what a thread of C has in storage of its own. Only the thread reads and writes it.
//
//weft:name weft_hot_thread
type Thread struct {
	_      structs.HostLayout
	Line   uintptr `c:"struct weft_epoch_reader *"` // the thread's line, NULL: it has none (yet)
	Number uint32  // of its line of counters, plus one; 0: none yet
	Left   uint32  // polls before one is due (PollDue); the shim counts down, to PollsOver with the one that is
	Base   uint32  // data plane only, as what follows up to Since: Left when Empty was brought up to date
	Random uint32  // state of the generator that draws Left
	Empty  uint32  // polls in a row that found nothing, since the last yield at most
	Turn   uint32  // after so many of them the thread yields; 0: it has not polled yet
	Limit  uint32  // the same for a thread that is not patient
	Yields uint32  // yields since something came after more than YieldMin polls
	Since  uint64  // time of the last yield, or when there was found no reason for one, ns
	// with a bit for each number that a thread has, NULL: none yet; the bit of Number minus one is this thread's
	Numbers uintptr `c:"_Atomic uint64_t *"`
}

// PollsOver is [Thread].Left when the poll at hand is due.
const PollsOver = 1<<32 - 1

// YieldMin is how many polls in a row find nothing before a yield, at least.
const YieldMin = 64

// What a [Poll] asks of the shim before it goes on, beside DeliveryDone and what a [Delivery] does.
//
//weft:enum weft_poll_code
const (
	PollProgress  = 32 // the runtime makes progress at handle, the lease taken; answer: whether triggers have fired
	PollTimers    = 33 // the runtime runs the timers of handle, the lease taken; answer: as with PollProgress
	PollTriggered = 34 // the runtime posts what waited for counters at handle
	PollFlush     = 35 // the runtime moves completions to the queue's rings
	// sleep until the queue may have something; answer: 0, or a negative errno when timeout ms since the first sleep
	// are over
	PollSleep          = 36
	PollWake           = 37 // wake the sleepers on what [Delivery].Todo names
	PollClock          = 38 // set clock and processor
	PollYield          = 39 // yield the processor, then set clock and processor
	PollNext           = 40 // the message that [Transport].Next finds; answer: what that says
	PollSilent         = 41 // the same with [Transport].Peek
	PollTake           = 42 // [Transport].Take; answer: what that says
	PollFlushTransport = 43 // [Transport].Flush
	PollRing           = 44 // ring Bell at the endpoint's match transport
	PollMatched        = 45 // the runtime takes in Match, the lease taken
)

// What PlaneTry says, beside the entry of the list of endpoints (a multiple of 8) at which there is something to do,
// and a negative errno with which the read ends.
//
//weft:enum weft_try
const (
	TryEntries = 1 // so many entries were read, shifted by TryShift
	TryRead    = 2 // the queue has something that PlaneRead reads or says
	TryDue     = 4 // shim only: the poll is due

	TryShift = 2
)

// Bits of [Poll].Flags.
const (
	PollDue      = 1 // the thread's polls are counted, and the timers may be due; Now is set
	PollFoundToo = 2 // with PollDue, data plane only: also when completions are read
	PollThread   = 4 // a progress thread: the call ends when there is work for the runtime or of another thread
	PollWork     = 8 // the queue is empty, the endpoint at At has work, those before it have none
)

// Poll is a call that makes progress at endpoints and reads a queue. The shim sets what stands before Result, as far as
// the call has it, and calls again after each code but DeliveryDone; the rest is the data plane's.
//
//weft:name weft_poll
type Poll struct {
	_ structs.HostLayout
	// NULL-terminated, or NULL; where a queue is read the queue's are taken
	EPs     uintptr `c:"struct weft_hot_ep *const *"`
	Thread  uintptr `c:"struct weft_hot_thread *"`
	Reader  Reader  // of fi_cq_read; its queue is NULL where none is read
	Flags   uint32  // Poll*
	Step    uint32  // data plane only, as the next two, once the shim has set them to 0: where the call goes on
	Phase   uint32  // of a call of several passes
	Gated   uint32  // 1: inside the gate of the endpoint at hand, which the runtime leaves
	Now     uint32  // with PollDue: ms of CLOCK_MONOTONIC_COARSE
	Timeout int32   // of fi_cq_sread, ms; negative: none
	Start   int64   // of fi_cq_sread with a timeout: when it slept first, ms; the shim sets 0, the runtime the time
	Want    uint64  // of fi_cq_sread: entries that it waits for
	Idle    uint64  // of a progress thread: it returns when nothing has come for so many ns; 0: after one pass
	Most    uint64  // of a progress thread: it returns after so many ns
	// what the call ends with
	Result int64  // entries read, or a negative errno
	Found  uint32 // 1: there was something to do
	// answers to codes
	Answer    int32
	Clock     uint64 // ns of CLOCK_MONOTONIC
	Processor uint32 // that the thread runs on
	// data plane only
	_        uint32
	At       uintptr `c:"struct weft_hot_ep *const *"` // the endpoint at hand; set by the shim with PollWork
	Rx       uintptr `c:"struct weft_hot_rx *"`        // its receive context; the lease is taken
	Room     uint64  // entries that the reader had room for
	Begin    uint64  // of a progress thread: when the first pass was, ns
	Last     uint64  // of a progress thread: when something came last, ns
	Passes   uint32  // of a progress thread
	Worked   uint32  // of a progress thread, 1: there was something to do
	Fresh    uint32  // of a progress thread, 1: also since the clock was read
	Ended    uint32  // of a progress thread, 1: the call is to end
	Messages uint32  // taken from the transport
	Direct   uint32  // 1: completions may go to the reader
	ToGo     uint32  // 1: the runtime is to make progress
	_        uint32
	// what codes are about
	Handle    uint64           // Go's, of a receive context
	Transport uintptr          `c:"struct weft_hot_transport *"`
	Message   TransportMessage // that the transport has found
	Delivery  Delivery
	Match     MatchEvent // that the endpoint's match transport has found
	Bell      Bell       // with PollRing
}
