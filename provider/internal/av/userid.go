package av

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// ReservedIDs is how many of the highest values are no user ids, for tables that need values of their own.
const ReservedIDs = 2

// userIDs are what completions call addresses (FI_AV_USER_ID).
type userIDs struct {
	// any reports whether an address has one. Stored under mu, read by any thread.
	any atomic.Bool
	mu  sync.RWMutex // taken for reading once for each source and change of the address vector
	ids map[fi.Addr]fi.Addr
}

func (u *userIDs) set(addr, id fi.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = map[fi.Addr]fi.Addr{}
	}
	u.ids[addr] = id
	u.any.Store(true)
}

func (u *userIDs) remove(addr fi.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.ids, addr)
}

// Reported is what a completion calls an address of the address vector.
func (a *AV) Reported(addr fi.Addr) fi.Addr {
	named := a.flags&fi.AVUserID != 0
	if addr == fi.AddrNotAvail || !named && !a.ids.any.Load() {
		return addr
	}
	a.ids.mu.RLock()
	defer a.ids.mu.RUnlock()
	id, ok := a.ids.ids[addr]
	switch {
	case ok && id < 1<<64-ReservedIDs:
		return id
	case named || ok:
		return fi.AddrNotAvail
	}
	return addr
}

// Renames reports whether completions may call addresses otherwise than transfers
// do.
func (a *AV) Renames() bool { return a.flags&fi.AVUserID != 0 || a.ids.any.Load() }

// SetUserID has completions call an address id from now on, or with fi.AuthKey an
// authorisation key. Errors: fi.EINVAL
// unless the address vector was opened with fi.AVUserID and has the address or key,
// fi.EBADFLAGS for other flags.
func (a *AV) SetUserID(addr, id fi.Addr, flags uint64) error {
	switch {
	case flags&^fi.AuthKey != 0:
		return refuse(fi.EBADFLAGS, "set user id: flags %#x", flags)
	case a.flags&fi.AVUserID == 0:
		return refuse(fi.EINVAL, "set user id: the address vector was opened without FI_AV_USER_ID")
	case flags == fi.AuthKey:
		return a.setKeyID(addr, id)
	}
	done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	if !a.addrs.Has(uint64(addr)) { // asked under the lock, so that no later address has the id
		return refuse(fi.EINVAL, "set user id of address %d: not in the address vector", addr)
	}
	a.ids.set(addr, id)
	return nil
}
