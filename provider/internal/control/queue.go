// Package control keeps short messages of the protocol, requests and answers, for which there is no room at their
// destination, until there is.
package control

import (
	"errors"
	"iter"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// HeadMax is the longest head of a message that a [Queue] keeps, in bytes.
const HeadMax = max(wire.CTSBytes, wire.DoneBytes, wire.CollNoteBytes, wire.NoticeWordsBytes, wire.CollWordBytes,
	wire.CollRelayBytes, wire.CollTargetBytes, wire.CollPutBytes, wire.CollGrantBytes, wire.CollRefusalBytes,
	wire.CollJoinBytes)

// Destination is where messages go.
type Destination interface {
	// Send sends a message now; head is the caller's. fi.EAGAIN: there is no room. With any other error the message is
	// done with: its destination is gone.
	Send(id hw.AMID, header uint64, head []byte) error
}

// Queue has the messages that wait for room, in order. The zero Queue is empty. One thread at a time uses it.
type Queue[D Destination] struct{ list pending.List[message[D]] }

// message is one that found no room.
type message[D Destination] struct {
	to     D
	id     hw.AMID
	header uint64
	head   [HeadMax]byte
	n      int
}

// Send sends a message with a head of at most HeadMax bytes, or keeps a copy of it while others wait or there is no
// room.
func (q *Queue[D]) Send(to D, id hw.AMID, header uint64, head []byte) {
	if len(q.list) == 0 && !errors.Is(to.Send(id, header, head), fi.EAGAIN) {
		return
	}
	m := message[D]{to: to, id: id, header: header, n: len(head)}
	copy(m.head[:], head)
	q.list.Add(m)
}

// Flush sends what waits, in order, as far as there is room. A destination without room holds back only its own
// messages.
func (q *Queue[D]) Flush() {
	q.list.Step(func(m *message[D]) bool {
		return !errors.Is(m.to.Send(m.id, m.header, m.head[:m.n]), fi.EAGAIN)
	})
}

// Drop drops the messages to destinations for which gone reports true.
func (q *Queue[D]) Drop(gone func(to *D) bool) {
	q.list.Step(func(m *message[D]) bool { return gone(&m.to) })
}

// Len is how many messages wait.
func (q *Queue[D]) Len() int { return len(q.list) }

// Destinations are those of the messages that wait, in order.
func (q *Queue[D]) Destinations() iter.Seq[*D] {
	return func(yield func(to *D) bool) {
		for i := range q.list {
			if !yield(&q.list[i].to) {
				return
			}
		}
	}
}
