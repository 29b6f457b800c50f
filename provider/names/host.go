package names

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/log"
)

// Host says which addresses are this host's. The zero Host asks the kernel; any thread may use it. Endpoints are bound
// to sockets of this network namespace, so an address that none of its interfaces has belongs to no endpoint that can
// be reached through shared memory, unless that is shared with other network namespaces (FI_WEFT_SHM_ACROSS). The
// reverse does not hold; whether a peer is there is found out by connecting.
type Host struct {
	// mu guards what follows. It is not on the data path: addresses are
	// found when they are inserted into an address vector.
	mu   sync.Mutex
	src  Source // nil: System
	ifis []Interface
	read time.Time
}

// hostAge is how long a list without the address that is asked for
// counts as current.
const hostAge = 100 * time.Millisecond

// Has reports whether n's address is one of this host, as far as that can be found out.
func (h *Host) Has(n Name) bool {
	is, err := h.Find(n)
	if err != nil {
		log.Warnf(log.AV, "%v", err)
	}
	return is
}

// Find reports whether n's address is one of this host. Errors are of the kernel, which may have no descriptor.
func (h *Host) Find(n Name) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known(n) {
		return true, nil
	}
	if !h.read.IsZero() && time.Since(h.read) < hostAge {
		return false, nil
	}
	ifis, err := h.source()()
	if err != nil {
		return false, fmt.Errorf("list network interfaces: %w", err)
	}
	h.ifis, h.read = ifis, time.Now()
	return h.known(n), nil
}

// All returns the addresses, with port 0, as they were when they were last
// read.
func (h *Host) All() []Name {
	h.mu.Lock()
	defer h.mu.Unlock()
	locals, err := Locals(func() ([]Interface, error) { return slices.Clone(h.ifis), nil })
	if err != nil {
		return nil // cannot be: the list is at hand
	}
	var list []Name
	for _, a := range locals {
		list = append(list, a.Name)
	}
	return list
}

// known finds n in the list. The caller has h.mu.
func (h *Host) known(n Name) bool {
	local, err := IsLocal(func() ([]Interface, error) { return h.ifis, nil }, n)
	return local && err == nil
}

// Use has the interfaces come from src from now on, nil: System. What was read before is forgotten.
func (h *Host) Use(src Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.src, h.ifis, h.read = src, nil, time.Time{}
}

// source is where the interfaces come from. The caller has h.mu.
func (h *Host) source() Source {
	if h.src == nil {
		return System
	}
	return h.src
}

// Locals are the addresses of the interfaces as they are now. Errors are of the kernel.
func (h *Host) Locals() ([]Local, error) {
	h.mu.Lock()
	src := h.source()
	h.mu.Unlock()
	return Locals(src)
}
