package provider

import (
	"os"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/wire"
)

// Memory of a device is read and written by processes of the same host that map it (device_foreign.go). Which processes
// may do so has a token of the allocation, by which it fetches a dma-buf's descriptor or an allocation's CUDA handle
// from the owner's descriptor thread, which answers processes of the same user only: so says the kernel, of both sides.
//
// Mappings are kept. Before a region is closed those of its allocation are recalled from all processes that have
// fetched it, and a process that has none any more says so; it is not fetched by that token again. So memory that is
// freed after its regions are closed is mapped nowhere. Memory that was freed without that is found by the driver's
// number of it, and its token is good no longer.

// share is an allocation that registered regions lie in.
type share struct {
	base, size uint64 // tagged address; bytes
	buffer     uint64 // the driver's number of the memory, 0: it has none
	mapping    *dmabuf.Mapping
	users      int    // regions; under shares
	token      uint64 // 0: not exported yet; under shares
	hopeless   bool   // it cannot be exported; under shares
}

// shares are the allocations by their first address. Control operations and announcements of
// large messages in device memory take the lock.
var shares struct {
	sync.Mutex
	byBase    map[uint64]*share
	importers int                // domains that have mapped memory of others
	thread    *proxy.Descriptors // started with the first export or mapping, ends with the last region and importer
}

// enterShare counts a region in an allocation. If what was there is freed, without its regions having been closed, what
// others have of it is recalled.
func enterShare(base, size, buffer uint64, mapping *dmabuf.Mapping, limit time.Duration) *share {
	shares.Lock()
	if shares.byBase == nil {
		shares.byBase = map[uint64]*share{}
	}
	s := shares.byBase[base]
	if s != nil && s.buffer != buffer {
		defer s.withdraw()(limit)
		s = nil
	}
	if s == nil {
		s = &share{base: base, size: size, buffer: buffer, mapping: mapping}
		shares.byBase[base] = s
	}
	s.users++
	shares.Unlock()
	return s
}

// leave takes a region off, and takes back what others have of the allocation, for at most limit.
func (s *share) leave(limit time.Duration) {
	shares.Lock()
	recall := s.withdraw()
	if s.users--; s.users == 0 && shares.byBase[s.base] == s {
		delete(shares.byBase, s.base)
	}
	shares.Unlock()
	recall(limit)
	shares.Lock()
	defer shares.Unlock()
	endDescriptors()
}

// endDescriptors ends the thread if nothing is left that it is for. shares is locked.
func endDescriptors() {
	if len(shares.byBase) == 0 && shares.importers == 0 && shares.thread != nil {
		shares.thread.Close(stopTime)
		shares.thread = nil
	}
}

// withdraw ends the allocation's token, and returns what recalls its mappings. shares is locked, and is not when that
// is called.
func (s *share) withdraw() (recall func(limit time.Duration)) {
	if s.token == 0 {
		return func(time.Duration) {}
	}
	token := s.token
	s.token = 0
	holders := shares.thread.Revoke(token)
	return func(limit time.Duration) { recallFrom(holders, token, limit) }
}

// recallFrom has processes give up what they have of an allocation.
func recallFrom(holders []int, token uint64, limit time.Duration) {
	late := time.After(limit)
	done := make(chan struct{}, len(holders))
	for _, pid := range holders {
		go func() {
			recallOne(pid, token, limit)
			done <- struct{}{}
		}()
	}
	for range holders {
		select {
		case <-done:
		case <-late:
			log.Warnf(log.MR, "processes %v still have a region mapped after %v, of which it is closed now", holders, limit)
			return
		}
	}
}

func recallOne(pid int, token uint64, limit time.Duration) {
	if pid == os.Getpid() {
		<-mappings.Recall(pid, token)
		return
	}
	c, err := proxy.Dial(proxy.PeerAddress("fd", pid), limit)
	if err != nil {
		return // it has ended, and its mappings with it, or its last importer has
	}
	defer c.Close()
	if err := c.Recall(token); err != nil {
		log.Infof(log.MR, "recall device memory from process %d: %v", pid, err)
	}
}

// exported is an allocation that other processes may map.
type exported struct{ token, base, size, buffer uint64 }

// has reports whether n bytes at addr lie in the allocation.
func (x *exported) has(addr, n uint64) bool {
	return x.token != 0 && addr-x.base <= x.size && n <= x.size-(addr-x.base)
}

// shareFor returns the token of the allocation that n bytes at addr lie in, and
// where in it. false: other processes cannot map it.
func (d *Domain) shareFor(addr, n uint64) (token, offset uint64, ok bool) {
	x, ok := d.exportedAt(addr, n)
	return x.token, addr - x.base, ok
}

// exportedAt returns the allocation that n bytes at addr lie in, which others may map from now on. false: they
// cannot.
func (d *Domain) exportedAt(addr, n uint64) (x exported, ok bool) {
	if d.cfg.Service == config.No {
		return x, false
	}
	base, buffer := allocationOf(addr, n)
	shares.Lock()
	s := shares.byBase[base]
	if s != nil && s.buffer != buffer {
		recall := s.withdraw()
		shares.Unlock()
		log.Warnf(log.MR, "memory of a device at %#x was freed while a region of it is open", appAddress(addr))
		go recall(d.cfg.PeerTimeout)
		return x, false
	}
	defer shares.Unlock()
	if s == nil || s.hopeless || addr-base > s.size || n > s.size-(addr-base) {
		return x, false
	}
	if s.token == 0 {
		if err := s.export(); err != nil {
			log.Infof(log.MR, "device memory goes to other processes in fragments: %v", err)
			s.hopeless = true
			return x, false
		}
	}
	return exported{s.token, base, s.size, s.buffer}, true
}

// allocationOf returns where the allocation begins that n bytes at addr lie in, and the driver's number of
// it. 0: there is none.
func allocationOf(addr, n uint64) (base, buffer uint64) {
	if isDMABuf(addr) {
		dmabufs.RLock()
		defer dmabufs.RUnlock()
		if b := findDMABuf(addr, n); b != nil {
			base = b.start
		}
		return base, 0
	}
	base, _, _ = cuda.Allocation(addr)
	buffer, _ = cuda.Buffer(addr)
	return base, buffer
}

// startDescriptors starts the thread unless it runs. shares is locked.
func startDescriptors() (err error) {
	if shares.thread != nil {
		return nil
	}
	watched = map[int]bool{}
	t, err := proxy.StartDescriptors(proxy.ServiceOptions{
		Name: "weft-fd", Address: proxy.OwnAddress("fd"), Place: proxy.Placement{Node: -1},
		Handlers: map[proxy.Kind]func(*proxy.Request){proxy.KindRegion: answerRegion, proxy.KindCopy: answerCopy},
		Logf:     func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	}, mappings.Recall)
	if err == nil {
		shares.thread = t
	}
	return err
}

// export gives the allocation a token. shares is locked.
func (s *share) export() error {
	if err := startDescriptors(); err != nil {
		return err
	}
	var err error
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

// announceDevice completes the announcement of a message in device memory.
func (e *peering) announceDevice(r *wire.RTS, s *SendArgs, p *path) {
	r.Flags |= wire.FlagNoGet
	least := uint64(e.domain.cfg.HMEMMapSize)
	if len(s.IOV) != 1 || p.port.attr.Caps&hw.CapPeerMemory == 0 || least == 0 || r.Length < least ||
		e.p2p.Load() == fi.HMEMP2PDisabled {
		return
	}
	if token, offset, ok := e.domain.shareFor(uint64(s.IOV[0].Base), r.Length); ok {
		r.Flags |= wire.FlagShared
		r.IOV[0].Addr, r.Token, r.PID = offset, token, uint32(os.Getpid())
	}
}
