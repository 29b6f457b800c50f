package verbs

import "github.com/weft-fabric/weft/hw/verbs/internal/transport"

// SetEagerWindow sends peers whether eager payloads are welcome. Any thread.
func (i *Iface) SetEagerWindow(open bool) {
	var v uint32
	if !open {
		v = 1
	}
	if i.closed.Load() || i.window.Swap(v) == v {
		return
	}
	for _, e := range *i.peers.Load() {
		if e != nil {
			e.owesWindow.Store(true)
			if e.ready.Load() && e.run() {
				e.sendWindow()
			}
			if e.owesWindow.Load() {
				i.notify(e)
			}
		}
	}
}

// run reports whether messages are being posted.
func (e *Endpoint) run() bool { return e.msg.Run.Load() != transport.QueueStopped }

// sendWindow sends the peer our window as immediate data, which wakes it if it
// sleeps and needs no key to its memory.
func (e *Endpoint) sendWindow() {
	e.owesWindow.Store(false)
	imm := e.c.Index.Load()<<immBits | immOpen
	if e.i.window.Load() != 0 {
		imm = e.c.Index.Load()<<immBits | immClosed
	}
	if _, ok := e.msg.postNothing(imm, false); !ok {
		e.owesWindow.Store(true)
	}
}
