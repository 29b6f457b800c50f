package proxy

import (
	"sync/atomic"
	"time"
)

// Engine is what a progress thread drives: an endpoint and the receive context
// that it delivers into. Its methods are called by the thread alone, except
// String. None may wait for the thread that removes it.
type Engine interface {
	// DoorbellFD has something new to read when work comes between Arm and
	// Disarm; -1: nothing rings.
	DoorbellFD() int
	// Arm asks for the doorbell, with a full fence behind; HasWork is read
	// after it.
	Arm()
	// Disarm takes that back.
	Disarm()
	// HasWork reports whether Progress would find something. It is a few loads.
	HasWork() bool
	// Attention reports whether there is work that no peer rings for, such as
	// messages that wait for room at a peer.
	Attention() bool
	// Progress does a batch of the work, and reports whether that got something
	// done; false when another thread is at it.
	Progress() bool
	// Housekeeping runs the timers: dead peers, time-outs.
	Housekeeping()
	// Polled reports whether the application has made progress on its own, often
	// enough to be left alone, since the last call.
	Polled() bool
	// Reserved reports whether the application polls until it says otherwise, so that
	// nothing is the thread's meanwhile. Each change is followed by a call of [Progress.Refresh].
	Reserved() bool
	// String says what the engine is and what it is at, on one line, for the
	// dump. Any thread may call it.
	String() string
}

// driven is an engine as its thread sees it.
type driven struct {
	Engine
	app      bool // the application makes the progress
	reserved bool // and has said so
	armed    bool
}

// Policy says how long a progress thread polls before it sleeps.
type Policy struct {
	// Spin is how long it polls for more work after the last before it sleeps.
	// The first half it keeps the processor, in the second it yields it between
	// polls. It does not spin on the only processor that it has.
	Spin time.Duration
	// Watch is how often it finds out whether an application that makes progress by
	// itself still does.
	Watch time.Duration
	// Check is the time between two runs of the timers. While nothing happens
	// they are run less often, see checkMost and checkShare.
	Check time.Duration
	// AppendFreq is the number of rounds of a busy thread between two polls
	// of the pool, AppendBatch the most operations taken at a poll. Both at least 1.
	AppendFreq, AppendBatch int
}

// What an idle thread may spend: one run of the timers each checkMost, unless
// Check is more, and one part in checkShare of its time as long as checkLongest
// is not exceeded. A run costs an idle process some 170 us, most of it for the Go
// runtime: its own monitor thread wakes, too.
const (
	checkMost    = time.Second
	checkShare   = 5000
	checkLongest = 5 * time.Second
)

// driveMost bounds a call of ProgressOptions.Drive: how long a change of the engines, or a tick, may wait for it.
const driveMost = 50 * time.Microsecond

// attentionSleep is how long a thread sleeps while an engine wants attention.
const attentionSleep = time.Millisecond

// ProgressStats counts what a progress thread did. Any thread may read it.
type ProgressStats struct {
	Rounds      uint64 // through the engines
	Batches     uint64 // that did something
	Operations  uint64 // taken off the pool
	Activations uint64 // transitions from idle to active
	Idlings     uint64 // transitions from active to idle
	Sleeps      uint64 // with the doorbells armed
	Watches     uint64 // short ones, because the application makes the progress
	Checks      uint64 // runs of the timers
	Rings       uint64 // of the thread's bell
}

// counters are the statistics as the thread writes them: one writer, so a plain
// add and a release store.
type counters struct {
	rounds, batches, activations, idlings, sleeps, watches, checks atomic.Uint64
}

func add(c *atomic.Uint64) { c.Store(c.Load() + 1) }
