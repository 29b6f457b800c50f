package weft

import (
	"context"
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// Match says which messages a receive takes.
type Match struct {
	From   Peer   // AnyPeer, the zero value: from any
	Tag    uint64 // what the message's tag must be
	Ignore uint64 // bits of the tag that may differ
}

// Message describes a received message.
type Message struct {
	From Peer // AnyPeer where the endpoint was never given the sender's address
	Tag  uint64
	Len  int // bytes, which are at the start of the buffer
}

// Send sends b to a peer under a tag and returns when b may be used again; the peer need not have a receive posted.
// When ctx ends first, the message may still be sent: b stays in use, and must not be changed, until the operation has
// completed, at the latest when Close returns.
func (e *Endpoint) Send(ctx context.Context, to Peer, tag uint64, b []byte) error {
	if err := e.enter(); err != nil {
		return err
	}
	r, err := e.post(ctx, OpSend, to, b, func(r *request) error { return e.postSend(r, tag) })
	if err == nil {
		err = e.end(ctx, r)
	}
	return e.result(err)
}

// Recv receives the oldest message that m fits into b. ETRUNC: it is longer than b, whose bytes are received. When ctx
// ends first, the receive is taken back before Recv returns; a message that has matched by then is received.
func (e *Endpoint) Recv(ctx context.Context, m Match, b []byte) (Message, error) {
	if err := e.enter(); err != nil {
		return Message{}, err
	}
	r, err := e.post(ctx, OpRecv, m.From, b, func(r *request) error { return e.postRecv(r, m) })
	if err != nil {
		return Message{}, e.result(err)
	}
	if err = e.await(ctx, r); err != nil && !errors.Is(err, errClosed) {
		ended := err
		if err = e.takeBack(r); err == nil {
			err = e.await(context.Background(), r)
		}
		if err == nil && errors.Is(r.err, errCanceled) {
			r.err = ended
		}
	}
	if err != nil {
		e.abandon(r) // the endpoint is being closed
		return Message{}, e.result(err)
	}
	msg, err := Message{r.from, r.tag, r.n}, r.failure()
	e.requests.put(r)
	return msg, e.result(err)
}

// takeBack asks for the end of a receive, and waits for room to ask as long as the endpoint is open.
func (e *Endpoint) takeBack(r *request) error {
	for tries := 0; ; tries++ {
		if err := e.ep.Cancel(uint64(r.number)); !errors.Is(err, errAgain) {
			return err
		}
		if err := e.again(context.Background(), tries); err != nil {
			return err
		}
	}
}

// errCanceled is the error of a receive that was taken back.
var errCanceled = fi.ECANCELED.Err()

// StartSend is Send in completion form. b stays in use until [Endpoint.Completions] yields the operation, with value.
// EAGAIN: nothing happened; read completions, and try again.
func (e *Endpoint) StartSend(to Peer, tag uint64, b []byte, value any) error {
	return e.start(OpSend, to, b, value, func(r *request) error { return e.postSend(r, tag) })
}

// StartRecv is Recv in completion form, as StartSend is of Send.
func (e *Endpoint) StartRecv(m Match, b []byte, value any) error {
	return e.start(OpRecv, m.From, b, value, func(r *request) error { return e.postRecv(r, m) })
}

func (e *Endpoint) postSend(r *request, tag uint64) error {
	return e.ep.Send(&provider.SendArgs{
		IOV: r.iov[:], Dest: r.peer.addr(), Tag: tag, Tagged: true, Context: uint64(r.number),
	})
}

func (e *Endpoint) postRecv(r *request, m Match) error {
	return e.ep.PostRecv(&provider.RecvArgs{
		IOV: r.iov[:], Src: m.From.addr(), Tag: m.Tag, Ignore: m.Ignore, Tagged: true, Context: uint64(r.number),
	})
}

// post posts an operation in blocking form, and waits for room as long as there is none.
func (e *Endpoint) post(ctx context.Context, op Op, peer Peer, b []byte, post func(*request) error) (*request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := e.requests.get(op, peer, b)
	for tries := 0; r == nil; tries++ {
		if err := e.again(ctx, tries); err != nil {
			return nil, err
		}
		r = e.requests.get(op, peer, b)
	}
	for tries := 0; ; tries++ {
		orderBegin()
		err := post(r)
		orderEnd()
		if errors.Is(err, errAgain) {
			if err = e.again(ctx, tries); err == nil {
				continue
			}
		} else if err != nil {
			err = &Error{Op: op, Peer: peer, Err: err}
		}
		if err != nil {
			e.requests.put(r)
			return nil, err
		}
		return r, nil
	}
}

// start posts an operation in completion form.
func (e *Endpoint) start(op Op, peer Peer, b []byte, value any, post func(*request) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	r := e.requests.get(op, peer, b)
	if r == nil {
		e.poll()
		return errAgain
	}
	r.started, r.context = true, value
	orderBegin()
	err := post(r)
	orderEnd()
	if err == nil {
		return nil
	}
	e.requests.put(r)
	if errors.Is(err, errAgain) {
		e.poll()
		return err
	}
	return &Error{Op: op, Peer: peer, Err: err}
}

// end waits for a posted send, read or write and gives its request back.
func (e *Endpoint) end(ctx context.Context, r *request) error {
	if err := e.await(ctx, r); err != nil {
		e.abandon(r)
		return err
	}
	err := r.failure()
	e.requests.put(r)
	return err
}

// abandon leaves a request to the goroutine that dispatches its completion.
func (e *Endpoint) abandon(r *request) {
	if !r.state.CompareAndSwap(waiting, abandoned) {
		e.requests.put(r) // it is done by now
	}
}

// failure is the error of a request that is done.
func (r *request) failure() error {
	if r.err == nil {
		return nil
	}
	if errno := fi.Errno(0); !errors.As(r.err, &errno) {
		return r.err // the context's
	}
	return &Error{Op: r.op, Peer: r.peer, Err: r.err}
}

// result ends a call that entered and gives its error. When the endpoint is being closed it waits until nothing is in
// use any more.
func (e *Endpoint) result(err error) error {
	e.leave()
	if errors.Is(err, errClosed) {
		<-e.closed
	}
	return err
}
