// Package deferred is the operations that wait for counters (fi_trigger(3)): triggered ones, which are posted with
// fi.Trigger, and deferred work, which is queued to the domain.
//
//	waiting → fired → posted → gone
//	             ↘ blocked ↗
//
// A waiting operation has armed a trigger of its counter (package cq). The thread that advances the counter fires it,
// in the middle of anything, so firing only enters the operation into a list (fired). The operations of the list are
// posted at points where the thread holds nothing: at the end of calls that post or count, and after progress
// ([Queue.PostReady]). There one thread at a time goes through the list. What finds no room is tried again with every
// progress of its receive context, before later ones of the same [Sequence].
//
// A triggered operation is an ordinary one from then on. Deferred work is known until it completes ([Queue.End]),
// because it is counted by its own counter.
//
// What holds:
//
//   - An operation is posted at most once, after its counter has reached the threshold, and one that [Queue.Cancel]
//     returns is not posted.
//   - Operations of one sequence are posted in the order in which they fired; triggers fire in the order of their
//     thresholds.
//   - A counter stays open while an operation waits for it, and until the operation that it is to count is gone.
//   - [Backlog] is not empty while an operation of its receive context has fired and is not posted.
//
// What an operation does is a function that its owner gives ([Op]): the package knows counters, and neither endpoints
// nor domains.
package deferred
