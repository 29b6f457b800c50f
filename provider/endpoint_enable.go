package provider

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/stripe"
)

func log2(n int) uint32 { return uint32(bits.Len(uint(n)) - 1) }

// stripeCount is the number of transmit stripes: a power of two.
func (e *Endpoint) stripeCount() int { return e.domain.stripes(e.info.Tx.Size) }

// Enable makes the endpoint ready for transfers. Errors: fi.EOPBADSTATE when
// it is enabled, fi.ENOAV, fi.ENOCQ when a direction has neither a completion
// queue nor a counter, fi.ENOSPC or fi.ENOMEM when there is no room for its
// segment.
func (e *Endpoint) Enable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Load() != stateCreated {
		return fi.EOPBADSTATE
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
		e.rx.acquire()
		e.hide()
		e.rx.give()
		e.release()
		return err
	}
	e.rx.attach(e)
	e.state.Store(stateEnabled)
	e.hot.Flags |= hot.EPFast
	return nil
}

func (e *Endpoint) checkEnable() error {
	if e.av == nil {
		return fi.ENOAV
	}
	caps := e.info.Caps
	either := caps&(fi.Send|fi.Recv) == 0
	if (either || caps&fi.Send != 0) && e.txCQ == nil && e.txCntr == nil {
		return fi.ENOCQ
	}
	if (either || caps&fi.Recv != 0) && e.rxCQ == nil && e.rxCntr == nil {
		return fi.ENOCQ
	}
	return nil
}

// open opens the transport and what transfers need.
func (e *Endpoint) open() (err error) {
	exclusive, _ := e.domain.exclusive()
	n := e.stripeCount()
	cfg := e.domain.cfg
	if e.srx != nil {
		e.rx = e.srx.rx
	} else if e.rx, err = newRxContext(cfg, e.info.Rx, exclusive); err != nil {
		return fi.ENOMEM
	}
	if e.peers, err = mem.NewArray[hot.Peer](int(e.av.Limit())); err != nil {
		return fi.ENOMEM
	}
	if e.sourceLines, err = mem.NewArray[hot.Source](cfg.MaxPeers); err != nil {
		return fi.ENOMEM
	}
	e.stripes = stripe.NewSet(e.hotStripes(n), exclusive)
	perStripe := max(int(e.info.Tx.Size)/n, 16)
	if e.requests, err = stripe.NewTable[txRequest](n, perStripe); err != nil {
		return fi.ENOMEM
	}
	if e.inject, err = mem.Map(n*perStripe*int(e.info.Tx.InjectSize), mem.NoReserve); err != nil {
		return fi.ENOMEM
	}
	if e.iface, err = openIface(e.name.AppendSockaddr(nil), e.socket, n+1, cfg); err != nil {
		return openError(err)
	}
	e.attr = e.iface.Attr()
	e.progressStripe = n
	e.assisted = make([]bool, cfg.MaxPeers)
	e.scratch = newScratch(n + 1)
	e.setHandlers()
	return nil
}

// openError gives a transport's refusal to open the errno that fits.
func openError(err error) error {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return fmt.Errorf("open the software NIC: %w", fi.Errno(errno))
	case errors.Is(err, hw.ErrPermission):
		return fi.EACCES
	}
	return fmt.Errorf("open the software NIC: %v: %w", err, fi.EIO)
}

func (e *Endpoint) setHandlers() {
	i := e.iface
	i.SetHandler(amMsg, e.onPlain(e.rx.untagged, 0))
	i.SetHandler(amMsgData, e.onEager(msgData))
	i.SetHandler(amTag, e.onPlain(e.rx.tagged, msgTagged))
	i.SetHandler(amTagData, e.onEager(msgTagged|msgData))
	i.SetHandler(amRTS, e.onRTS)
	i.SetHandler(amSync, e.onSync)
	i.SetHandler(amAck, e.onAck)
	i.SetHandler(amCTS, e.onCTS)
	i.SetHandler(amFrag, e.onFrag)
	i.SetHandler(amAssist, e.onAssist)
	i.OnPeerEvent(e.onPeer)
}

func (e *Endpoint) hotStripes(n int) []hot.Stripe {
	at := unsafe.Add(unsafe.Pointer(e.hot), unsafe.Sizeof(hot.EP{}))
	return unsafe.Slice((*hot.Stripe)(at), n)
}

// fillHot writes the tables that C reads.
func (e *Endpoint) fillHot() {
	h := e.hot
	cfg := e.domain.cfg
	h.Peers = uintptr(unsafe.Pointer(e.peers.At(0)))
	h.PeerLimit = e.av.Limit()
	if e.txCQ != nil {
		h.TxCQ = uintptr(unsafe.Pointer(e.txCQ.Hot()))
		if !e.txSelective {
			h.Flags |= hot.EPTxAlways
		}
	}
	if e.txCntr != nil {
		h.TxCntr = uintptr(unsafe.Pointer(e.txCntr.Hot()))
	}
	n := e.stripeCount()
	stripes := e.hotStripes(n)
	h.Stripes = uintptr(unsafe.Pointer(&stripes[0]))
	h.StripeMask = uint32(n - 1)
	for i := range stripes {
		_ = e.iface.FillStripe(i, &stripes[i])
	}
	if exclusive, _ := e.domain.exclusive(); exclusive {
		h.Flags |= hot.EPExclusive
	}
	h.Sources = uintptr(unsafe.Pointer(e.sourceLines.At(0)))
	h.SourceLimit = uint32(e.sourceLines.Len())
	if e.rxCQ != nil {
		h.RxCQ = uintptr(unsafe.Pointer(e.rxCQ.Hot()))
	}
	h.InjectMax = uint32(e.info.Tx.InjectSize)
	h.EagerMax = uint32(min(cfg.EagerSize, e.attr.MaxAMBcopy))
	e.syncMax = uint64(h.EagerMax)
	e.sourceErr = e.info.Caps&fi.SourceErr != 0
	e.plainRecv = e.rxCQ != nil && !e.rxSelective && e.rxCntr == nil && !e.sourceErr
	if e.plainRecv {
		h.Flags |= hot.EPPlainRx
	}
	h.TxOpFlags = e.info.Tx.OpFlags
	h.Handle = e.handle
	e.iface.FillEP(h)
	if e.srx == nil && e.rxSelective {
		e.rx.hot.Selective = 1
	}
	if e.srx == nil {
		e.rx.minMulti.Store(e.minMulti)
	}
	// Last, with release: a late reader of another endpoint that had this memory looks at it first.
	atomic.StoreUintptr(&h.Rx, uintptr(unsafe.Pointer(e.rx.hot)))
}

// release undoes open.
func (e *Endpoint) release() {
	if e.iface != nil {
		_ = e.iface.Close()
		e.iface = nil
	}
	if e.inject != nil {
		_ = mem.Unmap(e.inject)
		e.inject = nil
	}
	if e.requests != nil {
		_ = e.requests.Close()
	}
	_ = e.peers.Free()
	_ = e.sourceLines.Free()
	if e.rx != nil && e.srx == nil {
		e.rx.close()
	}
	e.rx = nil
}

// injectBuffer is the buffer of a request for a payload that was injected.
func (e *Endpoint) injectBuffer(id uint64) []byte {
	n := int(e.hot.InjectMax)
	i := e.requests.Index(id) * n
	return e.inject[i : i+n]
}
