// Package flow moves long operations in segments under congestion windows.
//
// The segments of all operations to one peer are a [Flow]: it has the window, decides how large the next segment is and
// of which operation, and goes on when segments end. The window is driven by the segments' own round-trip times, from
// the post to the completion.
//
//	Begin → Pump: Mover.Post …             until the window is full
//	a segment ends → Transfer.Ended, Pump
//	no room at the transport, or too early for the pace → Set.Pump, which progress calls
//
// How a segment moves is the owner's: a [Mover] posts it, and says how it has ended. A [Sender] moves it as messages,
// which the peer answers.
//
// A [Set] has the flows of one endpoint. It, its flows and their transfers are used by one thread at a time.
package flow
