package cxi

import (
	"slices"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// flowState is how far flow control of the receiver is. The lease holder changes it under the receiver's lock.
type flowState = hw.MatchState

const (
	flowDisabled       = hw.MatchDisabled
	flowEnabled        = hw.MatchEnabled
	flowPendingDisable = hw.MatchPendingDisable
	flowOnload         = hw.MatchOnload
	flowOnloadReenable = hw.MatchOnloadReenable
	flowControl        = hw.MatchFlowControl
	flowSoftware       = hw.MatchEnabledSoftware
	flowPendingSoft    = hw.MatchPendingSoftware
	flowPendingHard    = hw.MatchPendingHardware
)

// appends reports whether receives may be posted.
func appends(s flowState) bool {
	switch s {
	case flowDisabled, flowOnload, flowOnloadReenable, flowPendingSoft, flowPendingHard:
		return false
	}
	return true
}

// taking reports whether messages are taken in, in the way in which that goes on.
func taking(s flowState) bool { return s == flowEnabled || s == flowSoftware }

// flowCore is the receiver's state machine: what comes from the NIC and from senders, and what is to be done then. It
// does nothing itself.
type flowCore struct {
	state flowState
	// first is where the NIC's count of drops begins when it stops by itself: the message for which it does is the
	// first drop. Constant.
	first int64
	// hybrid has software match once the NIC runs out of what it needs. Constant.
	hybrid bool
	// software says that software matches, or is to when messages are taken again. leave has it be so once the NIC
	// has stopped.
	software, leave bool
	// recall says that the NIC left matching to software and stopped before software had begun. Receives whose
	// appends it did after that are younger than messages that software is to match: they are taken back first.
	recall bool

	drops int64 // that senders have notified of, from first
	// notified are senders of dropped messages, in the order of their notices.
	notified []hw.MatchAddress
	// asked says that the NIC is to take messages again if it has dropped askedDrops, of which the first askedSenders
	// of notified have sent.
	asked        bool
	askedDrops   int64
	askedSenders int
}

// stopped takes in that the NIC takes no messages any more. True: what it keeps is to be taken over.
func (c *flowCore) stopped(automatic bool, reason uint32) bool {
	switch c.state {
	case flowEnabled, flowPendingDisable, flowSoftware:
	case flowPendingSoft: // what it keeps is being taken over
		c.state, c.recall = flowOnloadReenable, true
		return false
	default:
		return false // both have stopped it
	}
	c.state = flowOnloadReenable
	if !automatic {
		c.drops -= c.first // its count begins at none
	}
	if !automatic || reason == wire.ReasonFcUnexpectedFail {
		c.state = flowOnload
	}
	short := automatic && (reason == wire.ReasonFcUnexpectedFail || reason == wire.ReasonFcNoMatch)
	c.software = c.software || c.leave || c.hybrid && short
	return true
}

// managed takes in that the NIC leaves matching to software, of its own accord. True: what it keeps is to be taken
// over. One that is to stop does so next.
func (c *flowCore) managed() bool {
	switch c.state {
	case flowEnabled:
		c.state, c.software = flowPendingSoft, true
		return true
	case flowPendingDisable:
		c.leave, c.recall = true, true
	}
	return false
}

// takenOver takes in that the NIC keeps no messages.
func (c *flowCore) takenOver() {
	c.recall = false
	if c.state == flowPendingSoft {
		c.state = flowSoftware
		return
	}
	c.state = flowControl
}

// matches reports whether software matches what comes, and may now: all that came before is taken over.
func (c *flowCore) matches() bool {
	return c.software && (c.state == flowSoftware || c.state == flowControl)
}

// enabled is the state in which messages are taken.
func (c *flowCore) enabled() flowState {
	if c.software {
		return flowSoftware
	}
	return flowEnabled
}

// ask reports whether the NIC is to take messages again if it has dropped so many.
func (c *flowCore) ask() (drops int64, ok bool) {
	if c.state != flowControl || c.asked || c.drops < 0 {
		return 0, false
	}
	c.asked, c.askedDrops, c.askedSenders = true, c.drops, len(c.notified)
	return c.drops, true
}

// unasked takes in that the command was not accepted.
func (c *flowCore) unasked() { c.asked = false }

// notify takes in a sender's notice of its drops, which any peer may send, at any time: that of the next stop may come
// before the NIC's. False: the sender has notified already.
func (c *flowCore) notify(from hw.MatchAddress, drops uint32) bool {
	if slices.Contains(c.notified, from) {
		return false
	}
	c.drops += int64(drops)
	c.notified = append(c.notified, from)
	return true
}

// resumed takes in that the NIC takes messages again, and returns the senders that are to know.
func (c *flowCore) resumed() []hw.MatchAddress {
	if !c.asked || c.state != flowControl {
		return nil
	}
	c.state, c.asked = c.enabled(), false
	c.drops += c.first - c.askedDrops
	all := slices.Clone(c.notified[:c.askedSenders])
	c.notified = append(c.notified[:0], c.notified[c.askedSenders:]...)
	return all
}

// released takes in that the list is gone, and returns the senders that have notified.
func (c *flowCore) released() (all []hw.MatchAddress) {
	all, c.notified = c.notified, nil
	return all
}

// differs takes in that the NIC has dropped another number of messages, and reports whether senders have notified of
// more since.
func (c *flowCore) differs() bool {
	c.asked = false
	return c.drops != c.askedDrops
}

// counted takes in how many the NIC has dropped, and reports whether senders have notified of more than that.
func (c *flowCore) counted(drops int64) bool {
	if c.drops <= drops {
		return false
	}
	c.drops = drops
	return true
}

// stop takes in that the receiver needs messages that the NIC keeps: they have the list entries of receives, or one is
// claimed. True: the NIC is to stop. With leave software matches from then on, in hybrid mode.
func (c *flowCore) stop(keeps, leave bool) bool {
	if c.state != flowEnabled || !keeps {
		return false
	}
	c.state, c.leave = flowPendingDisable, leave && c.hybrid
	return true
}

// fullPeer is a receiver that takes no messages, at one of its senders.
type fullPeer struct {
	underway int      // messages whose answer has not come
	drops    uint32   // messages that it has dropped
	waiting  []uint32 // messages to be sent again: those, and others that wait to be
}

// dropped takes in the answer to a message.
func (f *fullPeer) dropped(n uint32) (notify bool) {
	f.drops++
	f.waiting = append(f.waiting, n)
	return f.answered()
}

// answered takes in the answer to a message, and reports whether it was the last: the receiver is to know of the drops.
func (f *fullPeer) answered() (notify bool) {
	f.underway--
	return f.underway == 0
}
