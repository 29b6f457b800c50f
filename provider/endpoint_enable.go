package provider

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/messages"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/stripe"
)

// Enable makes the endpoint ready for transfers. Errors: fi.EOPBADSTATE when
// it is enabled, fi.ENOAV, fi.ENOEQ for a connected endpoint if neither it nor the domain has an event
// queue, fi.ENOCQ when a direction has neither a completion
// queue nor a counter (but see Deaf), fi.ENOSPC or fi.ENOMEM when there is no room for its
// segment.
func (e *Endpoint) Enable() error {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	if e.base.state.Load() != stateCreated {
		return fi.EOPBADSTATE
	}
	if e.base.scalable != nil {
		e.base.scalable.share(e)
	}
	if err := e.base.checkEnable(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.base.name, err)
		return err
	}
	e.base.chosen.silent = e.base.receivesOnly() && len(e.base.bound.queues()) == 0
	if err := e.open(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.base.name, err)
		e.release()
		return err
	}
	e.fillHot()
	if err := e.attachQueues(); err != nil {
		e.base.detachQueues()
		r := e.base.rx.acquire()
		e.base.table.Hide()
		r.give()
		e.release()
		return err
	}
	e.base.rx.attach(e.leased.Alone())
	err := e.base.startNetworks()
	if err == nil && e.base.scalable != nil {
		err = e.base.scalable.join(e)
	}
	if err == nil {
		err = e.startBackground()
	}
	if err == nil && e.base.info.Caps&(fi.Trigger|fi.RMA|fi.Atomic|fi.Collective) != 0 {
		err = e.base.domain.drives.Join(e)
	}
	if err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.base.name, err)
		e.disable()
		return fi.ErrnoOf(err)
	}
	enabled.Add(e, e.base.name.AppendSockaddr(nil))
	e.base.state.Store(stateEnabled)
	e.base.setFast(true)
	return nil
}

func (e *peering) checkEnable() error {
	if e.bound.av == nil {
		return fi.ENOAV
	}
	caps := e.info.Caps
	either := e.scalable == nil && caps&(fi.Send|fi.Recv) == 0
	if (either || caps&fi.Send != 0) && e.bound.txCQ == nil && e.bound.txCntr.Load() == nil {
		return fi.ENOCQ
	}
	receives := e.scalable != nil || caps&(fi.Msg|fi.Tagged|fi.Collective) != 0
	if receives && (either || caps&fi.Recv != 0) && e.bound.rxCQ == nil && e.bound.rxCntr.Load() == nil && !e.deaf() {
		return fi.ENOCQ
	}
	if q := e.shareEQ(); q != nil && e.conn != nil {
		e.bound.undo.binds = append(e.bound.undo.binds, func() { q.Forget(e.conn.fid) })
	}
	if e.conn != nil && e.bound.eq.Load() == nil {
		return fi.ENOEQ
	}
	return nil
}

// shareEQ has an endpoint without an event queue use the domain's, and returns it. The domain outlives its endpoints.
func (e *binder) shareEQ() *eq.Queue {
	e.domain.mu.Lock()
	defer e.domain.mu.Unlock()
	if q := e.domain.events; e.bound.eq.CompareAndSwap(nil, q) {
		return q
	}
	return nil
}

// deaf is Endpoint.Deaf.
func (e *peering) deaf() bool {
	return e.scalable == nil && e.bound.srx == nil && e.bound.rxCQ == nil && e.bound.rxCntr.Load() == nil &&
		e.info.Caps&(fi.RMA|fi.Atomic) != 0
}

// NoReceives is why none can be posted to an endpoint: fi.EOPBADSTATE, it is not enabled, or another provider owns its
// receive context; fi.ENOCQ, it is Deaf. nil if they can.
func NoReceives(e *Endpoint) error {
	switch {
	case e.base.state.Load() != stateEnabled || e.Imported():
		return fi.EOPBADSTATE
	case e.Deaf():
		return fi.ENOCQ
	}
	return nil
}

// open opens the transport and what transfers need.
func (e *Endpoint) open() (err error) {
	exclusive := e.base.exclusive()
	n := e.base.stripeCount()
	cfg := e.base.domain.cfg
	e.base.msgOrder = e.base.info.Tx.MsgOrder
	if e.base.bound.stx != nil {
		e.base.msgOrder |= e.base.bound.stx.attr.MsgOrder
	}
	if err := e.base.holdAuthKeys(); err != nil {
		return err
	}
	if !exclusive {
		cq.Share(flushTime, e.base.bound.txCQ, e.base.bound.rxCQ)
	}
	if e.base.bound.srx != nil {
		e.base.rx = e.base.bound.srx.rx
	} else if e.base.rx, err = newRxContext(e.base.domain, e.base.info.Rx, exclusive); err != nil {
		return fi.ENOMEM
	} else {
		e.base.rx.offload = e.base.domain.hybrid()
	}
	l := e.leased.Alone() // nothing else uses it before it is attached
	l.rx = e.base.rx.leased.Alone()
	e.leased = lease.PartOf(&e.base.rx.leased, l)
	if err = e.base.links.Open(e.base.hot, e.base.bound.av, e.base.chosen.apart); err != nil {
		return fi.ENOMEM
	}
	e.base.sourceAddrs.Open(func(i uint32) *uint64 { return &e.base.sourceLines.At(i).Addr })
	if e.base.sourceLines, err = mem.NewSparseArray[hot.Source](cfg.MaxPeers); err != nil {
		return fi.ENOMEM
	}
	stripes := stripe.NewSet(stripesAt(e.base.hot, n), exclusive)
	perStripe := max(int(e.base.info.Tx.Size)/n, 16)
	if err = e.base.sends.Open(&messages.Resources{
		Hot: e.base.hot, Rules: e.base.order(), Stripes: stripes, PerStripe: perStripe,
		InjectMax: int(e.base.info.Tx.InjectSize),
		Lossy:     e.base.chosen.lossy,
	}); err != nil {
		return fi.ENOMEM
	}
	if err = e.base.rmas.Open(&rma.Resources{
		Hot: e.base.hot, Rules: e.base.order(), Stripes: stripes, PerStripe: perStripe,
		InjectMax: int(e.base.info.Tx.InjectSize),
		Leased:    lease.Beside(&e.base.rx.leased, &l.initiated),
	}); err != nil {
		return fi.ENOMEM
	}
	l.openReceive()
	l.openCollectives()
	l.openProtocols()
	if err = e.base.openPendings(n, perStripe); err != nil {
		return fi.ENOMEM
	}
	if e.base.transports.iface, err = e.openNamed(); err != nil {
		return openError(err)
	}
	e.another, e.base.attr = nil, l.addTransport(e.base.transports.iface).Attr // peers reach it by its name
	if err = l.openNetworks(); err != nil {
		return openError(err)
	}
	if err = e.base.openDriven(); err != nil {
		return fi.ENOMEM
	}
	if err = e.base.openStats(n + 1); err != nil {
		return fi.ENOMEM
	}
	if err = e.openNotes(); err != nil {
		return fi.ENOMEM
	}
	return nil
}

// bounces returns the number of bounce buffers of an endpoint with so many stripes, that of progress included: a
// receive context's answers need no more than there have to be, unless peers read from it.
func bounces(e *attributes, stripes int) int {
	if e.receivesOnly() && e.info.Caps&(fi.RMA|fi.Atomic) == 0 {
		return stripes
	}
	cfg := e.domain.cfg
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.SHMDir, &fs); err != nil {
		log.Infof(log.EPCtrl, "size of the file system of %s: %v", cfg.SHMDir, err)
		return cfg.Bounces(stripes, 0)
	}
	return cfg.Bounces(stripes, fs.Blocks*uint64(fs.Bsize))
}

// openError gives a transport's refusal to open the errno that fits.
func openError(err error) error {
	switch {
	case errors.As(err, new(fi.Errno)): // of a program's network, too
		return err
	case errors.As(err, new(syscall.Errno)):
		return fmt.Errorf("open the software NIC: %w", err)
	case errors.Is(err, hw.ErrPermission):
		return fmt.Errorf("open the software NIC: %w: %w", err, fi.EACCES)
	}
	return fmt.Errorf("open the software NIC: %w: %w", err, fi.EIO)
}

// fillHot writes the tables that the data plane reads.
func (e *Endpoint) fillHot() {
	h := e.base.hot
	cfg := e.base.domain.cfg
	e.base.links.Fill(h)
	h.Flags |= uint32(e.base.bound.av.RxCtxBits()) << hot.EPCtxShift
	if e.base.bound.txCQ != nil {
		h.TxCQ = addressOf(e.base.bound.txCQ.Hot())
		if !e.base.bound.txSelective {
			h.Flags |= hot.EPTxAlways
		}
	}
	e.base.bound.fillCounters(h)
	n := e.base.stripeCount()
	stripes := stripesAt(e.base.hot, n+1) // that of the progress lease's holder behind the others
	h.Stripes = addressOf(&stripes[0])
	h.StripeMask = uint32(n - 1)
	for i := range stripes {
		_ = e.base.transports.iface.FillStripe(i, &stripes[i])
	}
	if e.base.exclusive() {
		h.Flags |= hot.EPExclusive
	}
	h.Sources = addressOf(e.base.sourceLines.At(0))
	h.SourceLimit = uint32(e.base.sourceLines.Len())
	if e.base.bound.rxCQ != nil {
		h.RxCQ = addressOf(e.base.bound.rxCQ.Hot())
	}
	h.InjectMax = uint32(e.base.info.Tx.InjectSize)
	h.EagerMax = uint32(links.EagerOver(cfg, &e.base.attr))
	if e.base.info.EP.Type == fi.EPDgram {
		h.EagerMax = uint32(cfg.EagerSize) // as fi_getinfo says
	}
	h.ReadMax = e.base.readMax()
	e.base.sends.Fill(h)
	e.base.chosen.sourceErr = e.base.info.Caps&fi.SourceErr != 0
	if e.base.rx.owner == nil {
		h.Flags |= hot.EPMatches
	}
	if e.base.bound.rxSelective {
		h.Flags |= hot.EPRxSelective
	}
	e.base.counts.Fill(h)
	e.base.fillOneSided(h)
	e.base.fillDriven(h)
	h.Notes = e.notes.Fill(e.base.bound.rxCQ)
	h.Handle = e.base.handle
	h.Polled = hot.PolledEnough
	if e.base.domain.threaded() {
		h.Polled = 0
	}
	e.base.transports.iface.FillEP(h)
	if e.base.bound.srx == nil && e.base.bound.rxSelective {
		e.base.rx.hot.Selective = 1
	}
	if e.base.bound.srx == nil {
		e.base.rx.minMulti.Store(e.base.chosen.minMulti)
	}
	// Last, with release: a late reader of another endpoint that had this memory reads it first.
	atomic.StoreUintptr(&h.Rx, addressOf(e.base.rx.hot))
}

// release undoes open. First it ends what the address vector calls, as other threads may change that meanwhile.
func (e *Endpoint) release() {
	for _, end := range e.base.bound.undo.calls {
		end()
	}
	e.base.bound.undo.calls = nil
	e.base.closeTransports()
	e.base.dropAuthKeys()
	l := e.leased.Alone()
	l.dropRegions()
	if l.rendezvous.Leaves() {
		r := e.base.rx.acquire()
		l.rendezvous.Abandon()
		r.give()
	}
	e.base.sends.Close()
	e.base.rmas.Close()
	if e.coll != nil {
		l.collective.Close()
	}
	e.base.pendings.Close()
	e.base.closeStats()
	e.base.links.Free()
	_ = e.base.sourceLines.Free()
	l.senders.Close()
	e.base.driven.closeDriven()
	e.notes.Close()
	if e.base.rx != nil && e.base.bound.srx == nil {
		e.base.rx.close()
	}
	e.base.rx = nil
}

// dropRegions takes back what was registered for transfers that an endpoint which is closed leaves under way.
func (e *leasedEP) dropRegions() {
	e.rendezvous.Close()
	e.ep.base.sends.Unregister()
	e.initiated.Leave()
	e.ep.base.lists.Unregister()
}
