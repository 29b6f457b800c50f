package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/proc"
)

// page is the process's. The range of addresses is mapped once and stays: a
// thread may add to a counter of an endpoint that another thread has just
// closed. While no endpoint is open there is no file, and private memory is
// mapped there.
type page struct {
	mu   sync.Mutex // taken by endpoints that are enabled and closed
	base unsafe.Pointer
	fd   int    // of the file, -1: none
	path string // of the file
	used [MaxEndpoints]bool
	// ready says which blocks have memory of the file.
	ready  [MaxEndpoints]bool
	open   int // endpoints, hidden ones too
	hidden int
	opened uint64           // endpoints ever, hidden ones too
	live   []*Endpoint      // the open ones
	spare  []unsafe.Pointer // blocks that are not shown, to be used again
}

var own = page{fd: -1}

// shared is the address of the process's page, which stays mapped once it is: to
// the file or to private memory. Written when the first file is made; read by
// CountProcess.
var shared atomic.Pointer[unsafe.Pointer]

// CountProcess adds one to a word of the process, by a locked addition. Any
// thread may call it. Without a page nothing is counted.
func CountProcess(word int) {
	if base := shared.Load(); base != nil {
		atomic.AddUint64((*uint64)(unsafe.Add(*base, processAt+word*wordBytes)), 1)
	}
}

// processCount is what CountProcess has counted in a word.
func processCount(word int) uint64 {
	base := shared.Load()
	if base == nil {
		return 0
	}
	return atomic.LoadUint64((*uint64)(unsafe.Add(*base, processAt+word*wordBytes)))
}

// OpenEndpoint takes a block for an endpoint that is known by a socket address,
// and makes the process's page in dir if there is none. It never fails for
// want of the page: without one, or with shown false, the block is private
// memory. why says then what is missing. err: no memory at all.
func OpenEndpoint(dir, weft string, shown bool, sockaddr []byte) (e *Endpoint, why, err error) {
	p := &own
	p.mu.Lock()
	defer p.mu.Unlock()
	if shown {
		why = p.ensure(dir, weft)
	}
	e = &Endpoint{page: p, index: -1}
	if shown && why == nil {
		e.index, why = p.take()
	}
	if e.index >= 0 {
		e.block = unsafe.Add(p.base, headerBytes+e.index*blockBytes)
	} else if e.block, err = p.private(); err != nil {
		return nil, why, err
	}
	clear(unsafe.Slice((*byte)(e.block), blockBytes))
	p.open++
	p.opened++
	p.live = append(p.live, e)
	if e.index < 0 {
		p.hidden++
	}
	p.count()
	if e.index >= 0 {
		h := (*blockHead)(e.block)
		h.Opened = time.Now().UnixNano()
		h.Name = uint32(copy(h.Addr[:maxAddr], sockaddr))
		order.Store32(&h.State, 1)
		atomic.AddUint64(p.word(ProcOpened), 1)
	}
	return e, why, nil
}

// Close gives the block back. Threads that are late may still add to it.
func (e *Endpoint) Close() {
	p := e.page
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.live = slices.DeleteFunc(p.live, func(o *Endpoint) bool { return o == e })
	if e.index >= 0 {
		order.Store32(&(*blockHead)(e.block).State, 0)
		p.used[e.index] = false
	} else {
		p.hidden--
		p.spare = append(p.spare, e.block)
	}
	p.count()
	if p.open == 0 {
		p.remove()
	}
}

func (p *page) word(i int) *uint64 { return (*uint64)(unsafe.Add(p.base, processAt+i*wordBytes)) }

// count shows the numbers of endpoints.
func (p *page) count() {
	if p.fd >= 0 {
		order.Store64(p.word(ProcEndpoints), uint64(p.open))
		order.Store64(p.word(ProcHidden), uint64(p.hidden))
	}
}

// take finds a block with memory.
func (p *page) take() (int, error) {
	for i := range p.used {
		if p.used[i] {
			continue
		}
		if !p.ready[i] {
			if err := reserve(p.fd, headerBytes+int64(i)*blockBytes, blockBytes); err != nil {
				return -1, fmt.Errorf("page of counters: memory for an endpoint: %w", err)
			}
			p.ready[i] = true
		}
		p.used[i] = true
		return i, nil
	}
	return -1, fmt.Errorf("page of counters: more than %d endpoints", MaxEndpoints)
}

// private returns a block that is not shown.
func (p *page) private() (unsafe.Pointer, error) {
	if n := len(p.spare); n != 0 {
		b := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return b, nil
	}
	b, err := mem.Map(blockBytes, mem.NoReserve)
	if err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	return unsafe.Pointer(unsafe.SliceData(b)), nil
}

// ensure makes the file if there is none.
func (p *page) ensure(dir, weft string) error {
	if p.fd >= 0 {
		return nil
	}
	host, err := proc.This()
	if err != nil {
		return fmt.Errorf("page of counters: %w", err)
	}
	sweep(dir, &host)
	path := filepath.Join(dir, fileName(host.User, host.PIDNS, host.Self.PID))
	fd, err := p.create(dir, path, newHeader(&host, weft))
	if err != nil {
		return fmt.Errorf("page of counters %s: %w", path, err)
	}
	p.fd, p.path = fd, path
	return nil
}

// create makes a complete file, maps it over the page's range and gives it its
// name.
func (p *page) create(dir, path string, h header) (fd int, err error) {
	fd, temp, err := nameless(dir)
	if err != nil {
		return -1, err
	}
	defer func() {
		if temp != "" {
			unix.Unlink(temp)
		}
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err = unix.Fchmod(fd, 0o600); err == nil { // whatever the umask
		err = mem.FileSize(fileBytes)
	}
	if err == nil {
		err = unix.Ftruncate(fd, fileBytes)
	}
	if err == nil {
		err = reserve(fd, 0, headerBytes)
	}
	if err != nil {
		return -1, err
	}
	if err = p.mapFile(fd); err != nil {
		return -1, err
	}
	if setLock(fd) == nil {
		h.Locked = 1
	}
	*(*header)(p.base) = h
	from := temp
	if temp == "" {
		from = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	unix.Unlink(path) // of a process that had our id and has not been swept
	if err = unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		p.detach()
	}
	return fd, err
}

// nameless opens a file without a name, or with a temporary one where the file
// system knows no others.
func nameless(dir string) (fd int, temp string, err error) {
	fd, err = unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil || err != unix.EOPNOTSUPP && err != unix.EISDIR {
		return fd, "", err
	}
	temp = filepath.Join(dir, "."+FilePrefix+strconv.Itoa(os.Getpid()))
	fd, err = unix.Open(temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	return fd, temp, err
}

// reserve allocates memory of the file, so that a full file system is an error
// here and no SIGBUS later.
func reserve(fd int, at, n int64) error {
	for {
		switch err := unix.Fallocate(fd, 0, at, n); err {
		case unix.EINTR:
		case unix.EOPNOTSUPP:
			_, err := unix.Pwrite(fd, make([]byte, n), at)
			return err
		default:
			return err
		}
	}
}

// mapFile maps the file at the page's addresses.
func (p *page) mapFile(fd int) error {
	flags := unix.MAP_SHARED
	if p.base != nil {
		flags |= unix.MAP_FIXED
	}
	at, err := unix.MmapPtr(fd, 0, p.base, fileBytes, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err == nil && p.base == nil {
		p.base = at
		shared.Store(&at)
	}
	return err
}

// detach maps private memory at the page's addresses. What cannot be replaced
// stays.
func (p *page) detach() {
	_, _ = unix.MmapPtr(-1, 0, p.base, fileBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
}

// remove ends the page.
func (p *page) remove() {
	if p.fd < 0 {
		return
	}
	unix.Unlink(p.path)
	p.detach()
	unix.Close(p.fd)
	p.fd, p.path = -1, ""
	p.ready = [MaxEndpoints]bool{}
}
