package provider

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/proxy"
)

// The receiver of a large message in device memory on the same host maps that
// memory and copies once, where it would otherwise ask for fragments, each of
// which is copied from the device, through a bounce buffer, and to its place. The
// announcement has a token. Who has it fetches a dma-buf's descriptor or an
// allocation's CUDA handle from the sender's descriptor thread, which answers
// processes of the same user only: so says the kernel, of both sides.
//
// A mapping lives as long as the one operation. Kept for longer it would outlive
// the allocation, which CUDA does not define.

// share is an allocation that registered regions lie in.
type share struct {
	base, size uint64 // tagged address; bytes
	mapping    *dmabuf.Mapping
	users      int    // regions; under shares
	token      uint64 // 0: not exported yet; under shares
	hopeless   bool   // it cannot be exported; under shares
}

// shares are the allocations by their first address. Control operations and announcements of
// large messages in device memory take the lock.
var shares struct {
	sync.Mutex
	byBase map[uint64]*share
	thread *proxy.Descriptors // started with the first export, ends with the last region
}

// enterShare counts a region in an allocation.
func enterShare(base, size uint64, mapping *dmabuf.Mapping) *share {
	shares.Lock()
	defer shares.Unlock()
	if shares.byBase == nil {
		shares.byBase = map[uint64]*share{}
	}
	s := shares.byBase[base]
	if s == nil {
		s = &share{base: base, size: size, mapping: mapping}
		shares.byBase[base] = s
	}
	s.users++
	return s
}

// leave takes a region off. With the last one nobody can fetch the allocation any more.
func (s *share) leave() {
	shares.Lock()
	defer shares.Unlock()
	if s.users--; s.users != 0 {
		return
	}
	delete(shares.byBase, s.base)
	if s.token != 0 {
		shares.thread.Revoke(s.token)
	}
	if len(shares.byBase) == 0 && shares.thread != nil {
		shares.thread.Close(stopTime)
		shares.thread = nil
	}
}

// shareFor returns the token of the allocation that n bytes at addr lie in, and
// where in it. false: other processes cannot map it.
func (d *Domain) shareFor(addr, n uint64) (token, offset uint64, ok bool) {
	if d.cfg.Service == config.No {
		return 0, 0, false
	}
	base := uint64(0)
	if isDMABuf(addr) {
		dmabufs.RLock()
		if b := findDMABuf(addr, n); b != nil {
			base = b.start
		}
		dmabufs.RUnlock()
	} else {
		base, _, _ = cuda.Allocation(addr)
	}
	shares.Lock()
	defer shares.Unlock()
	s := shares.byBase[base]
	if s == nil || s.hopeless || addr-base > s.size || n > s.size-(addr-base) {
		return 0, 0, false
	}
	if s.token == 0 {
		if err := s.export(); err != nil {
			log.Infof(log.MR, "device memory goes to other processes in fragments: %v", err)
			s.hopeless = true
			return 0, 0, false
		}
	}
	return s.token, addr - base, true
}

// export gives the allocation a token. shares is locked.
func (s *share) export() (err error) {
	if shares.thread == nil {
		shares.thread, err = proxy.StartDescriptors(proxy.ServiceOptions{
			Name: "weft-fd", Address: proxy.OwnAddress("fd"), Place: proxy.Placement{Node: -1},
			Logf: func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
		})
		if err != nil {
			return err
		}
	}
	if s.mapping != nil {
		s.token, err = shares.thread.Export(s.mapping.FD(), proxy.DescriptorDMABuf, s.size)
		return err
	}
	h, err := cuda.Export(s.base)
	if err == nil {
		s.token, err = shares.thread.ExportHandle(h[:], proxy.DescriptorDevice, s.size)
	}
	return err
}

// States of a foreignMemory. The fetching goroutine changes fetching to ready or
// useless, the lease holder changes it to dropped; who comes second cleans up.
const (
	foreignFetching uint32 = iota
	foreignReady
	foreignUseless
	foreignDropped
)

// foreignMemory is an allocation of another process that one operation reads.
type foreignMemory struct {
	state atomic.Uint32 // sequentially consistent
	// Written by the goroutine before it leaves foreignFetching, read after.
	base    uint64          // of a CUDA allocation
	mapping *dmabuf.Mapping // else
	size    uint64          // bytes
	err     error
}

// fetchTime bounds what asking the sender takes, once for each step.
const fetchTime = 2 * time.Second

// fetch maps the allocation that process pid calls token; near is where it will
// be copied to, and device tells whether this side may call CUDA.
func (m *foreignMemory) fetch(pid int, token, near uint64, device bool) {
	m.err = m.open(pid, token, near, device)
	outcome := foreignReady
	if m.err != nil {
		outcome = foreignUseless
	}
	if !m.state.CompareAndSwap(foreignFetching, outcome) && m.err == nil {
		m.unmap()
	}
}

func (m *foreignMemory) open(pid int, token, near uint64, device bool) error {
	c, err := proxy.Dial(proxy.PeerAddress("fd", pid), fetchTime)
	if err != nil {
		return err
	}
	defer c.Close()
	e, err := c.Fetch(token)
	if err != nil {
		return err
	}
	if e.FD >= 0 {
		defer unix.Close(e.FD)
	}
	switch {
	case e.Kind == proxy.DescriptorDMABuf && e.FD >= 0:
		if m.mapping, err = dmabuf.Map(e.FD, false); err == nil {
			m.size = uint64(len(m.mapping.Bytes()))
		}
		return err
	case pid == os.Getpid():
		return errors.New("CUDA maps no memory of the process's own")
	case e.Kind == proxy.DescriptorDevice && len(e.Handle) == cuda.HandleBytes && device:
		h := cuda.Handle([]byte(e.Handle))
		m.base, m.size, err = cuda.Import(&h, near)
		return err
	}
	return fmt.Errorf("memory of kind %d is not for this side", e.Kind)
}

func (m *foreignMemory) unmap() {
	var err error
	if m.mapping != nil {
		err = m.mapping.Close()
	} else {
		err = cuda.Unimport(m.base)
	}
	if err != nil {
		log.Warnf(log.EPData, "unmap device memory of another process: %v", err)
	}
}

// drop gives the memory up, now or when it was fetched.
func (m *foreignMemory) drop() {
	if !m.state.CompareAndSwap(foreignFetching, foreignDropped) && m.state.Load() == foreignReady {
		m.unmap()
	}
}

// copyTo copies n bytes from offset on to an address of any kind.
func (m *foreignMemory) copyTo(to, offset, n uint64) (err error) {
	if m.mapping != nil {
		if e := m.mapping.Access(false, func() { err = store(to, m.mapping.Bytes()[offset:offset+n]) }); e != nil {
			return e
		}
		return err
	}
	if isDMABuf(to) {
		return accessDMABuf(to, n, true, func(b []byte) error { return load(b, m.base+offset) })
	}
	return cuda.Copy(to, m.base+offset, n)
}

// announceDevice completes the announcement of a message in device memory.
func (e *Endpoint) announceDevice(r *rts, s *SendArgs, p *path) {
	r.flags |= wireNoGet
	least := uint64(e.domain.cfg.HMEMMapSize)
	if len(s.IOV) != 1 || p.port.attr.Caps&hw.CapPeerMemory == 0 || least == 0 || r.length < least || e.p2p.Load() == fi.HMEMP2PDisabled {
		return
	}
	if token, offset, ok := e.domain.shareFor(uint64(s.IOV[0].Base), r.length); ok {
		r.flags |= wireShared
		r.iov[0].Addr, r.token, r.pid = offset, token, uint32(os.Getpid())
	}
}

// mayMap tells whether an announced message is to be read from a mapping of the
// sender's memory.
func (e *Endpoint) mayMap(src hw.Source, announced *rts) bool {
	least := uint64(e.domain.cfg.HMEMMapSize)
	return announced.flags&wireShared != 0 && least != 0 && announced.length >= least &&
		e.reads(src) && e.p2p.Load() != fi.HMEMP2PDisabled
}

// startForeign begins to fetch the memory of an announced message.
func (r *rxContext) startForeign(e *Endpoint, op *recvOp, announced *rts) {
	m := &foreignMemory{}
	op.foreign = true
	r.foreign[op.id()] = m
	pid, token, near, device := int(announced.pid), announced.token, op.t.first(), e.info.Caps&fi.HMEM != 0 && cuda.Load() == nil
	go func() {
		m.fetch(pid, token, near, device)
		r.ring()
	}()
	r.activate(op)
}

// stepForeign reads the next piece of an operation and tells whether progress is
// done with it.
func (r *rxContext) stepForeign(e *Endpoint, op *recvOp) bool {
	m := r.foreign[op.id()]
	switch m.state.Load() {
	case foreignFetching:
		return false
	case foreignReady:
		offset := op.iov[0].Addr
		if offset > m.size || op.want > m.size-offset {
			log.Warnf(log.EPData, "%s announces %d bytes at %d of %d", r.addressOf(op.sender()), op.want, offset, m.size)
			op.status = fi.EIO
			break
		}
		n := min(op.want-op.done, getChunk)
		for _, s := range op.t.segments(r.local[:0], op.done, n) {
			if err := m.copyTo(uint64(uintptr(s.Addr)), offset+op.done, uint64(s.Len)); err != nil {
				log.Warnf(log.EPData, "copy device memory of %s: %v", r.addressOf(op.sender()), err)
				op.status = fi.EIO
				break
			}
			op.done += uint64(s.Len)
		}
	default:
		log.Infof(log.EPData, "device memory of %s is asked for in fragments: %v", r.addressOf(op.sender()), m.err)
		r.dropForeign(op)
		r.pull(e, op)
		return true
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	r.finishOp(e, op)
	return true
}

// dropForeign gives up what an operation has of the sender's memory.
func (r *rxContext) dropForeign(op *recvOp) {
	if op.foreign {
		r.foreign[op.id()].drop()
		delete(r.foreign, op.id())
		op.foreign = false
	}
}
