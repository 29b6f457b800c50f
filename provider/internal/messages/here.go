package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/threads"
)

// SendHere sends a message to a peer of this host by the data plane, as threads of C do. The message need not be
// checked. done is false if it does not go this way: nothing has happened then. The error is nil or fi.EAGAIN.
func (s *Sender) SendHere(m *Send) (done bool, err error) {
	if len(m.IOV) != 1 || m.Work != 0 || s.lossy || hmem.OnDevice(uint64(m.IOV[0].Base)) || hmem.Nowhere(m.IOV[0]) {
		return false, nil
	}
	hmem.TouchOne(&m.IOV[0])
	t := threads.Take()
	if t == nil {
		return false, nil
	}
	p := &t.Post
	p.Buf, p.Len, p.Kind = m.IOV[0].Base, m.IOV[0].Len, m.kind()
	p.Dest, p.Header, p.Data, p.Flags, p.Context = uint64(m.Dest), m.Tag, m.Data, m.Flags, m.Context
	code := dataplane.SendHere(s.hot, p)
	todo, peer, flags := p.Todo, p.Peer, p.Completion
	t.Give()
	if todo != 0 {
		s.act(m.Context, todo, peer, flags)
	}
	switch code {
	case hot.PostDone:
		return true, nil
	case hot.PostAgain:
		return true, fi.EAGAIN
	}
	return false, nil
}

// kind is what a message is to the data plane (hot.Post).
func (m *Send) kind() (kind uint32) {
	if m.Tagged {
		kind = hot.PostTagged
	}
	if m.HasData {
		kind |= hot.PostData
	}
	if m.Inject {
		kind |= hot.PostInject
	}
	return kind
}

// act does what the data plane has left to do (hot.Todo*) for a message with a context, to a peer with a number: flags
// are those of the completion that has found no room.
func (s *Sender) act(context uint64, todo, peer uint32, flags uint64) {
	if todo&hot.TodoComplete != 0 {
		s.host.Complete(context, flags)
	}
	if todo&hot.TodoPeerLost != 0 {
		s.host.PeerLost()
	}
	if todo&hot.TodoWakePeer != 0 {
		s.host.WakePeer(peer)
	}
	// a post names the queue and the counter of transmits by the bits by which a delivery names those of receives
	completed := uint32(0)
	if todo&hot.TodoWakeCQ != 0 {
		completed = hot.TodoWakeTxCQ
	}
	if todo&hot.TodoWakeCntr != 0 {
		completed |= hot.TodoWakeTxCntr
	}
	s.host.Act(completed)
}
