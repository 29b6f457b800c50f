package provider

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
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
// it is enabled, fi.ENOAV, fi.ENOEQ for a connected endpoint without event
// queue, fi.ENOCQ when a direction has neither a completion
// queue nor a counter (but see Deaf), fi.ENOSPC or fi.ENOMEM when there is no room for its
// segment.
func (e *Endpoint) Enable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Load() != stateCreated {
		return fi.EOPBADSTATE
	}
	if e.scalable != nil {
		e.scalable.share(e)
	}
	if err := e.checkEnable(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.name, err)
		return err
	}
	if err := e.open(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.name, err)
		e.release()
		return err
	}
	e.fillHot()
	if err := e.attachQueues(); err != nil {
		e.detachQueues()
		r := e.rx.acquire()
		e.table.Hide()
		r.give()
		e.release()
		return err
	}
	e.rx.attach(e.leased.Alone())
	if err := e.startNetworks(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.name, err)
		e.disable()
		return fi.ErrnoOf(err)
	}
	if err := e.startBackground(); err != nil {
		log.Warnf(log.EPCtrl, "enable %s: %v", e.name, err)
		e.disable()
		return err
	}
	if e.info.Caps&(fi.Trigger|fi.RMA|fi.Atomic|fi.Collective) != 0 {
		if err := e.domain.drives.Join(e); err != nil {
			log.Warnf(log.EPCtrl, "enable %s: %v", e.name, err)
			e.disable()
			return fi.ErrnoOf(err)
		}
	}
	enabled.Add(e, e.name.AppendSockaddr(nil))
	e.state.Store(stateEnabled)
	e.setFast(true)
	return nil
}

func (e *peering) checkEnable() error {
	if e.bound.av == nil {
		return fi.ENOAV
	}
	if e.conn != nil && e.bound.eq.Load() == nil {
		return fi.ENOEQ
	}
	caps := e.info.Caps
	either := e.scalable == nil && caps&(fi.Send|fi.Recv) == 0
	if (either || caps&fi.Send != 0) && e.bound.txCQ == nil && e.bound.txCntr.Load() == nil {
		return fi.ENOCQ
	}
	receives := e.scalable != nil || caps&(fi.Msg|fi.Tagged|fi.Collective) != 0
	if receives && (either || caps&fi.Recv != 0) && e.bound.rxCQ == nil && e.bound.rxCntr.Load() == nil && !e.Deaf() {
		return fi.ENOCQ
	}
	return nil
}

// Deaf reports whether the endpoint has nothing that receives could complete on, and
// none is posted: one that is used for one-sided operations, though it could do
// messages too. fi_endpoint(3) asks for queues for the operations that are initiated.
func (e *peering) Deaf() bool {
	return e.scalable == nil && e.bound.srx == nil && e.bound.rxCQ == nil && e.bound.rxCntr.Load() == nil &&
		e.info.Caps&(fi.RMA|fi.Atomic) != 0
}

// NoReceives is why none can be posted to an endpoint: fi.EOPBADSTATE, it is not enabled, or another provider owns its
// receive context; fi.ENOCQ, it is Deaf. nil if they can.
func NoReceives(e *Endpoint) error {
	switch {
	case e.state.Load() != stateEnabled || e.Imported():
		return fi.EOPBADSTATE
	case e.Deaf():
		return fi.ENOCQ
	}
	return nil
}

// open opens the transport and what transfers need.
func (e *Endpoint) open() (err error) {
	exclusive := e.exclusive()
	n := e.stripeCount()
	cfg := e.domain.cfg
	e.msgOrder = e.info.Tx.MsgOrder
	if e.bound.stx != nil {
		e.msgOrder |= e.bound.stx.attr.MsgOrder
	}
	if err := e.holdAuthKeys(); err != nil {
		return err
	}
	if !exclusive {
		cq.Share(flushTime, e.bound.txCQ, e.bound.rxCQ)
	}
	if e.bound.srx != nil {
		e.rx = e.bound.srx.rx
	} else if e.rx, err = newRxContext(e.domain, e.info.Rx, exclusive); err != nil {
		return fi.ENOMEM
	} else {
		e.rx.offload = e.domain.hybrid()
	}
	l := e.leased.Alone() // nothing else uses it before it is attached
	l.rx = e.rx.leased.Alone()
	e.leased = lease.PartOf(&e.rx.leased, l)
	if err = e.links.Open(e.hot, e.bound.av, e.chosen.apart); err != nil {
		return fi.ENOMEM
	}
	e.sourceAddrs.Open(func(i uint32) *uint64 { return &e.sourceLines.At(i).Addr })
	if e.sourceLines, err = mem.NewSparseArray[hot.Source](cfg.MaxPeers); err != nil {
		return fi.ENOMEM
	}
	stripes := stripe.NewSet(stripesAt(e.hot, n), exclusive)
	perStripe := max(int(e.info.Tx.Size)/n, 16)
	if err = e.sends.Open(&messages.Resources{
		Hot: e.hot, Rules: e.order(), Stripes: stripes, PerStripe: perStripe, InjectMax: int(e.info.Tx.InjectSize),
		Lossy: e.chosen.lossy,
	}); err != nil {
		return fi.ENOMEM
	}
	if err = e.rmas.Open(&rma.Resources{
		Hot: e.hot, Rules: e.order(), Stripes: stripes, PerStripe: perStripe, InjectMax: int(e.info.Tx.InjectSize),
		Leased: lease.Beside(&e.rx.leased, &l.initiated),
	}); err != nil {
		return fi.ENOMEM
	}
	l.openCollectives()
	l.openProtocols()
	if err = e.openPendings(n, perStripe); err != nil {
		return fi.ENOMEM
	}
	if e.transports.iface, err = e.openNamed(); err != nil {
		return openError(err)
	}
	e.another, e.attr = nil, l.addTransport(e.transports.iface).Attr // peers reach it by its name
	if err = l.openNetworks(); err != nil {
		return openError(err)
	}
	if err = e.openDriven(); err != nil {
		return fi.ENOMEM
	}
	if err = e.openStats(n + 1); err != nil {
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
	h := e.hot
	cfg := e.domain.cfg
	e.links.Fill(h)
	h.Flags |= uint32(e.bound.av.RxCtxBits()) << hot.EPCtxShift
	if e.bound.txCQ != nil {
		h.TxCQ = addressOf(e.bound.txCQ.Hot())
		if !e.bound.txSelective {
			h.Flags |= hot.EPTxAlways
		}
	}
	e.bound.fillCounters(h)
	n := e.stripeCount()
	stripes := stripesAt(e.hot, n+1) // that of the progress lease's holder behind the others
	h.Stripes = addressOf(&stripes[0])
	h.StripeMask = uint32(n - 1)
	for i := range stripes {
		_ = e.transports.iface.FillStripe(i, &stripes[i])
	}
	if e.exclusive() {
		h.Flags |= hot.EPExclusive
	}
	h.Sources = addressOf(e.sourceLines.At(0))
	h.SourceLimit = uint32(e.sourceLines.Len())
	if e.bound.rxCQ != nil {
		h.RxCQ = addressOf(e.bound.rxCQ.Hot())
	}
	h.InjectMax = uint32(e.info.Tx.InjectSize)
	h.EagerMax = uint32(links.EagerOver(cfg, &e.attr))
	if e.info.EP.Type == fi.EPDgram {
		h.EagerMax = uint32(cfg.EagerSize) // as fi_getinfo says
	}
	h.ReadMax = e.readMax()
	e.sends.Fill(h)
	e.chosen.sourceErr = e.info.Caps&fi.SourceErr != 0
	if e.rx.owner == nil {
		h.Flags |= hot.EPMatches
	}
	if e.bound.rxSelective {
		h.Flags |= hot.EPRxSelective
	}
	e.counts.Fill(h)
	e.fillOneSided(h)
	e.fillDriven(h)
	h.Notes = e.notes.Fill(e.bound.rxCQ)
	h.Handle = e.handle
	h.Polled = hot.PolledEnough
	if e.domain.threaded() {
		h.Polled = 0
	}
	e.transports.iface.FillEP(h)
	if e.bound.srx == nil && e.bound.rxSelective {
		e.rx.hot.Selective = 1
	}
	if e.bound.srx == nil {
		e.rx.minMulti.Store(e.chosen.minMulti)
	}
	// Last, with release: a late reader of another endpoint that had this memory reads it first.
	atomic.StoreUintptr(&h.Rx, addressOf(e.rx.hot))
}

// release undoes open. First it ends what the address vector calls, as other threads may change that meanwhile.
func (e *Endpoint) release() {
	for _, end := range e.bound.undo.calls {
		end()
	}
	e.bound.undo.calls = nil
	e.closeTransports()
	e.dropAuthKeys()
	l := e.leased.Alone()
	l.dropRegions()
	if l.rendezvous.Leaves() {
		r := e.rx.acquire()
		l.rendezvous.Abandon()
		r.give()
	}
	e.sends.Close()
	e.rmas.Close()
	if e.coll != nil {
		e.coll.Close()
	}
	e.pendings.Close()
	e.closeStats()
	e.links.Free()
	_ = e.sourceLines.Free()
	l.senders.Close()
	e.driven.closeDriven()
	e.notes.Close()
	if e.rx != nil && e.bound.srx == nil {
		e.rx.close()
	}
	e.rx = nil
}

// dropRegions takes back what was registered for transfers that an endpoint which is closed leaves unfinished.
func (e *leasedEP) dropRegions() {
	e.rendezvous.Close()
	e.ep.sends.Unregister()
	e.initiated.Leave()
	e.ep.lists.Unregister()
}
