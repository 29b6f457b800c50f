package cxi

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Commands and calls of flow control that are made again: after a while where the NIC or the driver has refused them,
// as often as that is so, and with the next progress where the queue had no room. What is for something that is over
// is not: the NIC may have stopped by itself while the command to stop was on its way. Where all are refused for
// refusedFor, the receiver ends, as where its events have overrun.

// refusedFor is how long commands and calls of flow control are made again while none of them is done. Of the time
// between two refusals refusedGap counts at most, so that an application that does not poll brings the end no nearer.
const (
	refusedFor = 10 * time.Second
	refusedGap = 10 * time.Millisecond
)

// errRefused says that they were made in vain.
var errRefused = fmt.Errorf("cxi: the NIC has refused all commands of flow control for a while: %w", unix.EIO)

// due reports whether a command belongs to what goes on in a state.
func (c flowCommand) due(s flowState) bool {
	switch c {
	case flowDisable:
		return s == flowPendingDisable
	case flowEnable:
		return s == flowControl
	}
	return !appends(s)
}

// refusedCommand takes in that the NIC has refused a command.
func (f *flow) refusedCommand(c flowCommand) {
	if c == flowRemove {
		f.removing--
	}
	f.later(c)
}

// later has a command be posted again after a while, unless what it is for is over.
func (f *flow) later(c flowCommand) {
	if !c.due(f.state()) {
		return
	}
	now := time.Now()
	f.again[c], f.againAt = true, now.Add(retryDelay)
	if !f.refusedAt.IsZero() {
		f.refusedTime += min(now.Sub(f.refusedAt), refusedGap)
	}
	f.refusedAt = now
}

// done takes in that a command was done, or a call answered.
func (f *flow) done() { f.refusedAt, f.refusedTime = time.Time{}, 0 }

// refusedAll ends a receiver whose commands are refused for too long. Lease.
func (f *flow) refusedAll() {
	x := f.x
	if f.refusedTime <= x.m.cfg.refusedFor {
		return
	}
	f.done()
	x.m.i.cfg.Logf("cxi %s: %v", x.m.i.d.dev.Name, errRefused)
	x.fail(errRefused)
}

// postAgain posts commands that were refused, or for which there was no room, if they are for what goes on still.
func (f *flow) postAgain() {
	again := f.again
	f.again = [flowCommands]bool{}
	for c := range again {
		if !again[c] || !flowCommand(c).due(f.state()) {
			continue
		}
		switch flowCommand(c) {
		case flowDisable:
			f.x.lock.take()
			f.disable()
			f.x.lock.give()
		case flowFlush:
			f.flush()
		case flowRemove:
			f.removeMore()
		case flowEnable:
			f.core.unasked()
			f.enable()
		case flowRecall:
			f.recallMore()
		}
	}
}
