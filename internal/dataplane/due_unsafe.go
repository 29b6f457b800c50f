package dataplane

import "github.com/weft-fabric/weft/internal/hot"

// Counting polls. The shim counts down with each. One that is not due begins with Try, which finds nothing most often,
// and ends with that. When the count is over a poll is due: it makes progress whatever Try would find, runs the timers
// if it is time to, and the thread yields if it has polled in vain for long.

// phaseIdle is Poll.Phase of a poll that has found nothing and ends with idle.
const phaseIdle = 64

// One in foundOften due polls makes progress also when completions are read.
const foundOften = 32

// due begins a poll that is due, and says when the next is: after 32 others on average, because reading the clock
// costs as much as a poll; a program that sleeps a millisecond between polls still sees a dead peer soon. How many it
// is is drawn, because a thread that goes through several queues in turn must not always meet the same one; no more
// than until the thread's turn to yield. What counts is the thread's own, so readers of one queue share no line that
// they write. (Numerical Recipes' linear congruential generator; its high bits are good enough.)
func due(p *hot.Poll) {
	t := (*hot.Thread)(pointer(p.Thread))
	if t.Left != hot.PollsOver {
		return // the call goes on
	}
	if t.Turn == 0 {
		t.Turn, t.Limit = yieldFirst, yieldFirst
	}
	t.Random = t.Random*1664525 + 1013904223
	t.Empty += t.Base + 1
	t.Left = min(t.Random>>26, max(t.Turn, t.Empty)-t.Empty)
	t.Base = t.Left
	if t.Random>>21%foundOften == 0 {
		p.Flags |= hot.PollFoundToo
	}
}

// endPoll ends a poll. If it has found something, the count of those that have not begins anew; else the thread may be
// to yield. The result is a code of hot.Poll.
func endPoll(p *hot.Poll) uintptr {
	t := (*hot.Thread)(pointer(p.Thread))
	if p.Found != 0 {
		restart(t)
		return hot.DeliveryDone
	}
	if p.Flags&hot.PollDue == 0 || t.Empty <= t.Turn {
		return hot.DeliveryDone
	}
	p.Phase, p.Step = phaseIdle, idleBegin
	return idle(p)
}

// restart begins the count of a thread's polls that find nothing anew.
func restart(t *hot.Thread) {
	if t.Empty+t.Base-t.Left > hot.YieldMin {
		t.Yields = 0
	}
	t.Empty, t.Base = 0, t.Left
}
