package provider

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/members"
	"github.com/weft-fabric/weft/provider/internal/tables"
	"github.com/weft-fabric/weft/provider/names"
)

// MatchedEndpoint is a reliable datagram endpoint with a device that matches its messages (hw.Matcher). It has that
// device and nothing else: no shared memory, and messages of weft's own for collective operations alone
// (package members). What happens to its operations is package matched's; this is the object around it.
//
// Any thread may post. Progress is made by the holder of the lease in the table that C reads (hot.Rx). There C finds by
// itself whether there is something to do, where it drives the interface (hw.Driven), and Go does it.
type MatchedEndpoint struct {
	binder
	collectives
	chosen matchedOptions

	hot    *hot.EP // of memory; nil after Close
	rx     *hot.Rx // of memory; from Open to Close
	memory matchedTables
	wakes  *cq.Source // immutable from Enable on
	// transfer has the operations, nil before Enable. Stored by Enable, read by any thread.
	transfer atomic.Pointer[matched.Endpoint]
	leased   lease.Guarded[leasedMatched] // set by open
	gate     *hot.Gate                    // nil: several threads use the endpoint; immutable
	stats    *stats.Endpoint              // immutable from Enable on; written by the lease holder
	waiting  deferred.Backlog             // operations whose counters are there, and that found no room
	peers    members.Directory
	driver   matchedDriver
}

// matchedTables is the memory of the tables that the data plane reads, from Open to Close.
type matchedTables struct {
	ep tables.EP
	rx tables.Rx
}

// leasedMatched is a matched endpoint as the holder of its progress lease has it.
type leasedMatched struct {
	e      *MatchedEndpoint
	dead   bool
	groups *members.Groups // of collective operations, nil: there are none; set by open

	calls   uint      // of progress
	sampled time.Time // when counters were shown
}

// noRings is the number of inbound rings that C sees.
var noRings uint32

// OpenMatched makes an endpoint in a domain that Matches. Errors: fi.EINVAL for attributes that it cannot have,
// fi.ENOMEM.
func (d *Domain) OpenMatched(given *fi.Info) (*MatchedEndpoint, error) {
	if given == nil {
		return nil, fi.EINVAL
	}
	full, err := d.complete(given)
	if err != nil {
		return nil, err
	}
	full.AddrFormat = fi.AddrCXI
	switch caps := full.Caps &^ info.MatchedCaps; {
	case caps != 0:
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open endpoint: FI_PROTO_CXI has no capabilities %#x", caps)
	case full.Caps&(fi.RMA|fi.Atomic) != 0 && d.info.Domain.MRMode&fi.MREndpoint == 0:
		return nil, refuse(log.EPCtrl, fi.EINVAL,
			"open endpoint: FI_RMA or FI_ATOMIC in a domain without FI_MR_ENDPOINT")
	case full.Caps&fi.DirectedRecv != 0 && d.Keyed() && d.keyLimit() > 1:
		return nil, refuse(log.EPCtrl, fi.EINVAL,
			"open endpoint: FI_DIRECTED_RECV with %d authorisation keys, not 1", d.keyLimit())
	case full.EP.Protocol != fi.ProtoUnspec && full.EP.Protocol != fi.ProtoCXI:
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open endpoint: protocol %v, not FI_PROTO_CXI", full.EP.Protocol)
	}
	own, err := backends.OwnMatchKey(d.cfg, d.info.Domain.Name, d.auth, authkey.Key(full.EP.AuthKey))
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open endpoint: authorisation key: %v", err)
	}
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	e := &MatchedEndpoint{
		binder: binder{attributes: attributes{domain: d, info: full, format: names.Matched, auth: d.auth}},
		chosen: matchedOptions{source: full.SrcAddr, min: matched.DefaultMinMulti, own: own},
		gate:   d.gateFor(full.Caps),
	}
	if err := e.allocate(); err != nil {
		d.refs.Release()
		return nil, fi.ENOMEM
	}
	return e, nil
}

// allocate takes the memory of the tables.
func (e *MatchedEndpoint) allocate() (err error) {
	if e.memory.rx, err = tables.OpenLease(e.gate != nil); err != nil {
		return err
	}
	if e.memory.ep, err = tables.OpenEP(0, 0, e.gate != nil); err != nil {
		e.memory.rx.Close()
		return err
	}
	e.hot, e.rx = e.memory.ep.Table(), e.memory.rx.Table()
	e.hot.RxRings = uintptr(unsafe.Pointer(&noRings))
	e.leased = lease.Guard(&e.rx.Lease, &leasedMatched{e: e})
	e.waiting.Notify = e.notify
	return nil
}

// Hot, HotRx and SetHandles are as an Endpoint's.
func (e *MatchedEndpoint) Hot() *hot.EP { return e.hot }

// HotRx is the table of the progress lease. Receives are not posted there.
func (e *MatchedEndpoint) HotRx() *hot.Rx { return e.rx }

// SetHandles sets the handle by which C calls back.
func (e *MatchedEndpoint) SetHandles(ep uint64) { e.hot.Handle = ep }

// SetFID does nothing: no event names the endpoint.
func (e *MatchedEndpoint) SetFID(uintptr) {}

// Info is the endpoint's, with every default filled in.
func (e *MatchedEndpoint) Info() *fi.Info { return e.info }

// Domain is the endpoint's.
func (e *MatchedEndpoint) Domain() *Domain { return e.domain }

// Name is the endpoint's, which it has once it is enabled. Errors: fi.EOPBADSTATE.
func (e *MatchedEndpoint) Name() ([]byte, error) {
	t := e.transfer.Load()
	if t == nil {
		return nil, fi.EOPBADSTATE
	}
	return t.Name(), nil
}

// SetName chooses the name before Enable, which opens the device. Errors: fi.EOPBADSTATE, fi.EINVAL.
func (e *MatchedEndpoint) SetName(raw []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state.Load() != stateCreated:
		return fi.EOPBADSTATE
	case len(raw) != names.WordLen:
		return refuse(log.EPCtrl, fi.EINVAL, "set name: %d bytes, not %d", len(raw), names.WordLen)
	}
	e.chosen.source = slices.Clone(raw)
	return nil
}

// GetOpt returns an option. Errors: fi.ENOPROTOOPT.
func (e *MatchedEndpoint) GetOpt(name fi.Opt) (uint64, error) {
	if name != fi.OptMinMultiRecv {
		return 0, fi.ENOPROTOOPT
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.transfer.Load(); t != nil {
		return t.MinMulti(), nil
	}
	return e.chosen.min, nil
}

// SetOpt sets an option, of which only fi.OptSharedMemoryPermitted, 0 or 1, is not asked for: the endpoint shares no
// memory, whatever it may. Errors: fi.ENOPROTOOPT, fi.EINVAL, fi.EOPBADSTATE as of Endpoint.SetOpt.
func (e *MatchedEndpoint) SetOpt(name fi.Opt, value uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch name {
	case fi.OptSharedMemoryPermitted:
		return e.chosen.permitShared(value != 0, e.state.Load() == stateCreated)
	case fi.OptMinMultiRecv:
		return e.chosen.setMinMulti(value, e.transfer.Load())
	}
	return fi.ENOPROTOOPT
}

// BindCounter is as an Endpoint's. What peers write to regions counts if it is bound before Enable. Errors:
// fi.EOPNOTSUPP for what they read, which the device does not report; fi.EINVAL for what they write, to an endpoint
// without fi.RMAEvent; fi.EOPBADSTATE for that after Enable.
func (e *MatchedEndpoint) BindCounter(c *cq.Counter, flags uint64) error {
	switch {
	case flags&fi.RemoteRead != 0:
		return refuse(log.EPCtrl, fi.EOPNOTSUPP, "bind counter: FI_PROTO_CXI counts no reads of peers")
	case flags&fi.RemoteWrite != 0 && e.info.Caps&fi.RMAEvent == 0:
		return refuse(log.EPCtrl, fi.EINVAL,
			"bind counter with FI_REMOTE_WRITE: the endpoint is without FI_RMA_EVENT")
	}
	return e.bindCounter(c, flags, func() error {
		if flags&fi.RemoteWrite != 0 {
			return refuse(log.EPCtrl, fi.EOPBADSTATE,
				"bind counter with FI_REMOTE_WRITE: the endpoint is enabled")
		}
		if !slices.Contains(e.bound.attached, queue(c)) {
			if err := e.attach(c); err != nil {
				return err
			}
		}
		e.gate.Share()
		defer e.gate.Unshare()
		l := e.leased.Wait()
		defer e.leased.Give()
		l.e.bound.setCounters(c, flags)
		l.e.bound.fillCounters(l.e.hot)
		return nil
	})
}

// BindSharedRx and BindSharedTx refuse. Errors: fi.EOPNOTSUPP.
func (e *MatchedEndpoint) BindSharedRx(*SharedRx) error {
	return refuse(log.EPCtrl, fi.EOPNOTSUPP, "bind shared receive context: FI_PROTO_CXI has none")
}

// BindSharedTx refuses. Errors: fi.EOPNOTSUPP.
func (e *MatchedEndpoint) BindSharedTx(*SharedTx) error {
	return refuse(log.EPCtrl, fi.EOPNOTSUPP, "bind shared transmit context: FI_PROTO_CXI has none")
}

// Enable opens the device's interface, and makes the endpoint ready for transfers. Errors: fi.EOPBADSTATE, fi.ENOAV,
// fi.ENOCQ, fi.EADDRINUSE, fi.ENOSPC when the device has no room for it, fi.EINVAL for a name that is not the device's,
// and what keeps the device from being used.
func (e *MatchedEndpoint) Enable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Load() != stateCreated {
		return fi.EOPBADSTATE
	}
	caps := e.info.Caps
	mute := e.bound.txCQ == nil && e.bound.txCntr.Load() == nil && e.bound.writeCntr.Load() == nil
	switch {
	case e.bound.av == nil:
		return refuse(log.EPCtrl, fi.ENOAV, "enable: no address vector")
	case caps&fi.Collective != 0 && caps&(fi.Send|fi.Recv) == 0 && mute,
		caps&fi.Send != 0 && e.bound.txCQ == nil && e.bound.txCntr.Load() == nil,
		caps&fi.Recv != 0 && e.bound.rxCQ == nil && e.bound.rxCntr.Load() == nil,
		caps&(fi.Read|fi.Write) != 0 && e.bound.txCQ == nil &&
			e.bound.readCntr.Load() == nil && e.bound.writeCntr.Load() == nil:
		return refuse(log.EPCtrl, fi.ENOCQ,
			"enable: neither completion queue nor counter for sends, receives or transfers")
	}
	e.shareEQ()
	if err := e.peers.HoldKeys(e.domain.Keyed(), e.bound.av); err != nil {
		return refuse(log.EPCtrl, fi.ErrnoOf(err), "enable: %v", err)
	}
	if !e.domain.exclusiveTo(caps) {
		cq.Share(flushTime, e.bound.txCQ, e.bound.rxCQ)
	}
	t, err := e.open()
	if err == nil {
		if e.stats, err = e.domain.openStats(t.Name()); err != nil {
			err = errors.Join(err, e.shut(t))
		}
	}
	if err != nil {
		e.peers.DropKeys()
		return refuse(log.EPCtrl, matched.OpenErrno(err), "enable: %v", err)
	}
	e.transfer.Store(t)
	e.fillHot(t)
	e.setAttention(e.leased.Alone())
	atomic.StoreUint32(&e.hot.TransportActive, 1)
	if !e.domain.threaded() {
		e.hot.Polled = hot.PolledEnough // nothing asks
	}
	atomic.StoreUintptr(&e.hot.Rx, uintptr(unsafe.Pointer(e.rx)))
	e.state.Store(stateEnabled)
	for _, q := range e.bound.queues() {
		if err := e.attach(q); err != nil {
			e.disable()
			e.state.Store(stateClosed)
			return refuse(log.EPCtrl, fi.ErrnoOf(err), "enable: %v", err)
		}
	}
	err = e.driver.start(e)
	if err == nil && e.info.Caps&(fi.Trigger|fi.Collective) != 0 {
		err = e.domain.drives.Join(e)
	}
	if err != nil {
		e.disable()
		e.state.Store(stateClosed)
		return refuse(log.EPCtrl, fi.ErrnoOf(err), "enable: %v", err)
	}
	return nil
}

// shut takes back what open has done, before any thread reaches it.
func (e *MatchedEndpoint) shut(t *matched.Endpoint) error {
	err := t.Close()
	l := e.leased.Alone()
	l.groups.Close()
	e.coll, l.groups, e.hot.Transport = nil, nil, 0
	return err
}

// open opens the interface.
func (e *MatchedEndpoint) open() (*matched.Endpoint, error) {
	device, err := e.domain.device.Domain()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.ENODEV)
	}
	i, err := backends.OpenMatched(device, &backends.Matched{
		Config: e.domain.cfg, Source: e.chosen.source, Receives: int(e.info.Rx.Size), Sends: int(e.info.Tx.Size),
		Keys: e.peers.Keys, Stripes: e.domain.stripes(e.info.Tx.Size), Direct: plane.Load(), Own: e.chosen.own,
		Messages: e.info.Caps&fi.Collective != 0,
	})
	if err != nil {
		return nil, err
	}
	e.driver.node = i.Attr().NUMANode
	m, ok := i.(hw.Matching)
	if !ok || i.Attr().Caps&hw.CapMatching == 0 {
		return nil, errors.Join(fmt.Errorf("the device matches no messages: %w", fi.EOPNOTSUPP), i.Close())
	}
	e.peers.Matcher = m.Matcher()
	l := e.leased.Alone() // no thread reaches it yet
	t := matched.Open(matched.Options{
		Iface: i, Matcher: e.peers.Matcher, Cache: e.domain.device.Cache(device), Copies: device,
		Caps: e.info.Caps, Order: e.info.Tx.MsgOrder,
		Limit: int(e.info.Rx.Size + e.info.Tx.Size), Stripes: e.domain.stripes(e.info.Tx.Size),
		Address: e.peers.Address, Source: e.peers.Source(e.info.Caps), Ended: l.ended,
		Await: e.await, Generation: e.bound.av.GenerationWord(), Gate: e.gate,
		Anyone: [2]bool{!info.Directed(e.info.Caps, false), !info.Directed(e.info.Caps, true)},
	})
	if d, ok := i.(hw.Driven); ok && i.Attr().Caps&hw.CapDriven != 0 {
		e.hot.Transport = uintptr(unsafe.Pointer(d.HotTransport()))
	}
	err = errors.Join(t.SetMinMulti(e.chosen.min), e.openGroups(i))
	if err == nil {
		e.wakes, err = e.wake(i)
	}
	if err != nil {
		return nil, errors.Join(err, e.shut(t))
	}
	return t, nil
}

// fillHot writes what the data plane needs to post and to take in events without the runtime, where the device can.
func (e *MatchedEndpoint) fillHot(t *matched.Endpoint) {
	h := e.hot
	if e.bound.txCQ != nil {
		h.TxCQ = uintptr(unsafe.Pointer(e.bound.txCQ.Hot()))
		if !e.bound.txSelective {
			h.Flags |= hot.EPTxAlways
		}
	}
	if e.bound.rxCQ != nil {
		h.RxCQ = uintptr(unsafe.Pointer(e.bound.rxCQ.Hot()))
	}
	if e.bound.rxSelective {
		h.Flags |= hot.EPRxSelective
	}
	e.bound.fillCounters(h)
	h.StatsThreads, h.StatsRx = e.stats.Threads(), e.stats.RxLine()
	if transport := t.HotMatch(); transport != nil && h.Transport != 0 {
		transport.Owner = uintptr(unsafe.Pointer(t))
		if transport.Gate != 0 {
			h.Flags |= hot.EPGated
		}
		atomic.StoreUintptr(&h.Match, uintptr(unsafe.Pointer(transport)))
	}
}

// wake is the endpoint as sleepers see it: with the interface's doorbell, if threads may sleep.
func (e *MatchedEndpoint) wake(i hw.Iface) (*cq.Source, error) {
	w, _ := i.(hw.Waiter)
	// Threads may sleep on counters of regions, of deferred work and of collective operations, and a progress thread
	// does.
	sleeps := e.info.Caps&(fi.RMAEvent|fi.Trigger|fi.Collective) != 0 && w != nil
	if sleeps || slept(e.bound.queues()) || e.domain.threaded() {
		if w == nil {
			return nil, fmt.Errorf("a wait object, but the device has no doorbell: %w", fi.EOPNOTSUPP)
		}
		if err := w.EnableWait(); err != nil {
			return nil, err
		}
	}
	s := &cq.Source{FD: -1, HasWork: func() bool { return true }, Progress: e.Advance}
	if w != nil {
		s.FD, s.Arm, s.Disarm, s.HasWork = w.DoorbellFD(), func() { w.Disarm(); w.Arm() }, w.Disarm, w.Pending
		due, _ := i.(hw.Attentive)
		driven := e.hot.Transport != 0
		s.Attention = func() bool {
			return !e.waiting.Empty() || e.domain.work.Ready() || e.collecting(driven) ||
				due != nil && due.Attention()
		}
	}
	return s, nil
}

// attach has readers of a queue or counter make progress at the endpoint. The caller has mu.
func (e *MatchedEndpoint) attach(q queue) error {
	if err := q.Attach(e.hot); err != nil {
		return err
	}
	e.bound.attached = append(e.bound.attached, q)
	return q.AddSource(e.wakes)
}

// disable takes the endpoint out of what makes progress, and ends its transfers.
func (e *MatchedEndpoint) disable() {
	for _, q := range e.bound.attached {
		_ = q.RemoveSource(e.wakes) // an error says that it was not added
		_ = q.Detach(e.hot)
	}
	e.bound.attached = nil
	e.domain.drives.Part(e)
	e.driver.stop(e.domain)
	e.gate.Share()
	defer e.gate.Unshare()
	l := e.leased.Wait()
	l.dead = true
	e.memory.ep.HideMatch()
	if err := e.transfer.Load().Close(); err != nil {
		log.Warnf(log.EPCtrl, "close endpoint: %v", err)
	}
	l.groups.Close()
	e.peers.DropKeys()
	e.stats.Close()
	e.leased.Give()
}

// Close ends the endpoint. Operations under way are dropped without a completion.
func (e *MatchedEndpoint) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refs.Close(); err != nil {
		return err
	}
	if e.state.Swap(stateClosed) == stateEnabled {
		e.domain.work.Leave(e)
		e.disable()
	}
	for i := len(e.bound.undo.binds) - 1; i >= 0; i-- {
		e.bound.undo.binds[i]()
	}
	e.hot = nil
	e.memory.ep.Close()
	e.memory.rx.Close()
	e.domain.refs.Release()
	return nil
}
