package verbs

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// closeWait bounds how long Close waits for what was posted to arrive.
const closeWait = 200 * time.Millisecond

// Close sends the peers a bye and gives everything back. What was posted gets a fifth
// of a second to arrive. The caller has stopped all threads that use the
// interface.
func (i *Iface) Close() error {
	if i.closed.Load() {
		return nil
	}
	i.drain()
	if i.closed.Swap(true) {
		return nil
	}
	i.svc.do(i.svc.farewell)
	i.svc.stop()
	i.d.remove(i)
	canceled := fmt.Errorf("verbs: interface closed: %w", hw.ErrCanceled)
	i.flushes.Cancel(canceled)
	var errs []error
	for _, e := range *i.peers.Load() {
		if e != nil {
			errs = append(errs, e.discard(canceled))
		}
	}
	return errors.Join(append(errs, i.release())...)
}

// drain waits until all peers have what was posted to them.
func (i *Iface) drain() {
	for end := time.Now().Add(closeWait); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		quiet := true
		for _, e := range *i.peers.Load() {
			if e != nil && e.failure.Load() == nil && !e.msg.quiet() {
				quiet = false
				e.signalAll()
			}
		}
		if quiet {
			return
		}
		i.rx.poll()
		i.rx.complete()
		i.rx.drop() // no handler will take them; make room for completions
	}
}

// discard frees an endpoint's queue pairs when the interface closes; the
// service has ended.
func (e *Endpoint) discard(err error) error {
	var errs []error
	if e.failure.CompareAndSwap(nil, &err) {
		e.c.Blocked.Or(transport.PeerFailed)
		e.answer()
	}
	if e.lease.phase < dead {
		if e.lease.phase != draining {
			errs = append(errs, e.msg.qp.Close())
		}
		e.msg.stop()
		e.endQueue(&e.msg, err)
		errs = append(errs, e.discardMemory(err))
	}
	for _, z := range e.lease.zombies {
		errs = append(errs, z.qp.Close())
	}
	if e.passive.qp != nil {
		errs = append(errs, e.passive.qp.Close())
	}
	errs = append(errs, e.dropRing())
	return errors.Join(errs...)
}

// farewell sends all peers a bye, and waits until the
// device has sent it. Service.
func (s *service) farewell() {
	for _, e := range *s.i.peers.Load() {
		if e != nil && e.Err() == nil && e.hello.applied != 0 {
			s.sendTo(e, &packet{kind: packetBye, seq: uint32(e.msg.LastSend())})
		}
	}
	for end := time.Now().Add(closeWait); len(s.free) < serviceSend && time.Now().Before(end); {
		if s.takeCompletions() == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
