package hmem

import (
	"maps"
	"os"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
)

// Share is an allocation that registered regions lie in.
type Share struct {
	base, size uint64 // tagged address; bytes
	buffer     uint64 // the driver's number of the memory, 0: it has none
	mapping    *dmabuf.Mapping
	users      int    // regions; under shares
	token      uint64 // 0: not exported yet; under shares
	hopeless   bool   // it cannot be exported; under shares
}

// shares are the allocations by their first address. Control operations and RTS of large messages in device memory take
// the lock.
var shares struct {
	sync.Mutex
	byBase    map[uint64]*Share
	importers int                // domains that have mapped memory of others
	thread    *proxy.Descriptors // started with the first export or mapping, ends with the last region and importer
}

// Enter counts a region in a device's allocation, which begins at a tagged address and has size bytes and the driver's
// number buffer. If what was there is freed, without its regions having been closed, what others have of it is
// recalled, for at most limit.
func Enter(base, size, buffer uint64, limit time.Duration) *Share {
	return enter(base, size, buffer, nil, limit)
}

func enter(base, size, buffer uint64, mapping *dmabuf.Mapping, limit time.Duration) *Share {
	shares.Lock()
	if shares.byBase == nil {
		shares.byBase = map[uint64]*Share{}
	}
	s := shares.byBase[base]
	if s != nil && s.buffer != buffer {
		defer s.withdraw()(limit)
		s = nil
	}
	if s == nil {
		s = &Share{base: base, size: size, buffer: buffer, mapping: mapping}
		shares.byBase[base] = s
	}
	s.users++
	shares.Unlock()
	return s
}

// Base is the allocation's first address.
func (s *Share) Base() uint64 { return s.base }

// Buffer is the driver's number of the memory, 0: it has none.
func (s *Share) Buffer() uint64 { return s.buffer }

// leave takes a region off the allocations that it lies in, and takes back what others have of them: of all at once,
// for at most limit in all.
func leave(of []*Share, limit time.Duration) {
	recalls := make([]func(time.Duration), 0, len(of))
	shares.Lock()
	for _, s := range of {
		recalls = append(recalls, s.withdraw())
		if s.users--; s.users == 0 && shares.byBase[s.base] == s {
			delete(shares.byBase, s.base)
		}
	}
	shares.Unlock()
	var all sync.WaitGroup
	for _, recall := range recalls {
		all.Go(func() { recall(limit) })
	}
	all.Wait()
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
func (s *Share) withdraw() (recall func(limit time.Duration)) {
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
			log.Warnf(log.MR, "processes %v still have a region mapped after %v, of which it is closed now",
				holders, limit)
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

// Exported is an allocation that other processes may map: its token, first address and length in bytes, and the
// driver's number of its memory.
type Exported struct{ Token, Base, Size, Buffer uint64 }

// Has reports whether n bytes at addr lie in the allocation.
func (x *Exported) Has(addr, n uint64) bool {
	return x.Token != 0 && addr-x.Base <= x.Size && n <= x.Size-(addr-x.Base)
}

// ExportedAt returns the allocation that n bytes at addr lie in, which others may map from now on. false: they
// cannot. Mappings of memory that was freed are recalled, for at most limit.
func ExportedAt(addr, n uint64, limit time.Duration) (x Exported, ok bool) {
	base, buffer := allocationOf(addr, n)
	shares.Lock()
	s := shares.byBase[base]
	if s != nil && s.buffer != buffer {
		recall := s.withdraw()
		shares.Unlock()
		log.Warnf(log.MR, "memory of a device at %#x was freed while a region of it is open", AppAddress(addr))
		go recall(limit)
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
	return Exported{s.token, base, s.size, s.buffer}, true
}

// BufferOf is the driver's number of the memory that n bytes at addr lie in, 0: it has none.
func BufferOf(addr, n uint64) uint64 {
	_, buffer := allocationOf(addr, n)
	return buffer
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

// stopTime bounds how long ending the thread, and dropping all mappings, wait.
const stopTime = time.Second

// answers are what the thread answers, by what is asked for. Under shares.
var answers = map[proxy.Kind]func(*proxy.Request){}

// Answer has f answer processes that ask this one ([Ask]) by kind. It is called before the first domain is opened. f
// is called by the descriptor thread, so it waits for nothing.
func Answer(kind proxy.Kind, f func(*proxy.Request)) {
	shares.Lock()
	defer shares.Unlock()
	answers[kind] = f
}

// startDescriptors starts the thread unless it runs. shares is locked.
func startDescriptors() (err error) {
	if shares.thread != nil {
		return nil
	}
	watched = map[int]bool{}
	t, err := proxy.StartDescriptors(proxy.ServiceOptions{
		Name: "weft-fd", Address: proxy.OwnAddress("fd"), Place: proxy.Placement{Node: -1},
		Handlers: maps.Clone(answers),
		Logf:     func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	}, mappings.Recall)
	if err == nil {
		shares.thread = t
	}
	return err
}

// export gives the allocation a token. shares is locked.
func (s *Share) export() error {
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
