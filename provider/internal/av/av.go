// Package av has address vectors: they give each inserted name an index, by which
// endpoints send and name the sources of messages (fi_av(3)).
package av

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/addrs"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/names"
)

// AV is an address vector: it gives each inserted name an index, which is its
// fi.Addr in address vectors of either type. An index is the lowest that is
// not in use.
//
// # Concurrency
//
// Every method may be called from any thread. Name, Find and Generation take no
// lock and allocate nothing, except that in a named address vector the first
// of them after a change by another process takes over that change, under the
// lock, without waiting for another process. All others are control operations and take the lock.
type AV struct {
	o     Options    // immutable
	refs  refs.Count // users: bound endpoints, regions and sets
	flags uint64     // of fi_av_attr
	// rxCtxBits are those bits of an fi.Addr that name a receive context.
	rxCtxBits int
	// mapped: opened as fi.AVMap, so its addresses are not known to be indexes.
	mapped bool

	// addrs are the addresses. Their lock guards what is below, too. It is not on the data path: transfers only
	// load addresses.
	addrs *addrs.Vector
	ids   userIDs

	keys        []avKey // authorisation keys, by their numbers minus one
	fid         uintptr // in events
	events      *eq.Queue
	subscribers []*func(removed fi.Addr)

	// calling is locked while listeners are called, so that taking one away waits for that. It is taken
	// without the lock of addrs, and not on the data path.
	calling   sync.Mutex
	listeners []*func() // under calling
}

// Options are what an address vector needs of the domain that opens it.
type Options struct {
	// Owner is the domain: what AV.Owner returns.
	Owner any
	// Format is that of the addresses.
	Format fi.AddrFormat
	// Capacity is how many addresses are allowed, Limit below how much their indexes are.
	Capacity, Limit uint64
	// Keys is how many authorisation keys there may be; 0: none, and no address has one.
	Keys int
	// Admits judges an authorisation key, nil: all are possible.
	Admits func(authkey.Key) error
	// UserIDs says that fi.AVUserID is allowed.
	UserIDs bool
	// Domain, Dir and Timeout are for named address vectors: the domain's name, the folder of their files, and how
	// long one may take to be initialised by another process.
	Domain  string
	Dir     string
	Timeout time.Duration
	// Resolve returns the names that a node and a service stand for.
	Resolve func(node, service string) ([]names.Name, error)
	// Reach returns nil if endpoints may reach a name, else an error that wraps the errno. Any thread.
	Reach func(names.Name) error
	// Here reports whether a name is of this host. Any thread.
	Here func(names.Name) bool
	// Closed is called when the address vector is closed.
	Closed func()
}

// sharers names what shares named address vectors: all domains of a name whose endpoints have names of one kind,
// socket addresses or words.
func (o *Options) sharers() string {
	if o.Format == names.Matched {
		return o.Domain + "\x00words"
	}
	return o.Domain
}

// avFlags are the flags that an address vector can be opened with.
const avFlags = fi.Event | fi.Read | fi.Symmetric | fi.AVUserID

// avCountHint bounds how many addresses are prepared for because the
// application says so.
const avCountHint = 1 << 16

// Open opens an address vector. It sets attr.Type where it was unspecified
// and, for a named address vector, attr.MapAddr: there lies an array of fi_addr_t
// with the addresses in their order, fi.AddrNotAvail where there is none, as long as attr.Count and beyond the highest
// address that was ever there, up to the capacity.
//
// attr.Count is a hint. fi.AVMap and fi.AVTable both give indexes, so a domain
// opened for one of them takes both. Errors: fi.EBADFLAGS for flags other than
// fi.Event, fi.Read, fi.Symmetric and fi.AVUserID; fi.EINVAL for an unknown type, for more
// than MaxRxCtxBits receive context bits, and for fi.Read without a name; for fi.Read of a named address vector that
// no process has open fi.ENOENT; for one of another user fi.EACCES; and what the
// system says when the file of a named one cannot be made (fi.ENOSPC).
func Open(attr *fi.AVAttr, o Options) (*AV, error) {
	err := check(attr, &o)
	if err != nil {
		log.Warnf(log.AV, "open address vector: %v", err)
		return nil, err
	}
	a := &AV{o: o, flags: attr.Flags, rxCtxBits: attr.RxCtxBits}
	limit := min(o.Limit, MaxLines>>attr.RxCtxBits)
	a.addrs, err = addrs.Open(addrs.Options{
		Hint: int(min(attr.Count, avCountHint, o.Capacity, limit)), Capacity: o.Capacity, Limit: limit,
		Removed: a.removed, Name: attr.Name, Domain: o.sharers(), Dir: o.Dir, Timeout: o.Timeout, Count: attr.Count,
		ReadOnly: attr.Flags&fi.Read != 0,
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && attr.Flags&fi.Read != 0: // clients ask so whether it is there
		log.Infof(log.AV, "there is no named address vector %q", attr.Name)
		return nil, err
	case err != nil:
		log.Warnf(log.AV, "open named address vector %q: %v", attr.Name, err)
		return nil, err
	}
	if a.Shared() {
		attr.MapAddr = a.addrs.MapAddr()
	}
	if attr.Type == fi.AVUnspec {
		attr.Type = fi.AVTable
	}
	a.mapped = attr.Type == fi.AVMap
	return a, nil
}

// check says what is wrong with attributes.
func check(attr *fi.AVAttr, o *Options) error {
	keyed := o.Keys != 0
	switch {
	case attr.Flags&^avFlags != 0:
		return fmt.Errorf("flags %#x: %w", attr.Flags&^avFlags, fi.EBADFLAGS)
	case attr.Type != fi.AVUnspec && attr.Type != fi.AVMap && attr.Type != fi.AVTable:
		return fmt.Errorf("type %d: %w", attr.Type, fi.EINVAL)
	case attr.RxCtxBits < 0 || attr.RxCtxBits > MaxRxCtxBits:
		return fmt.Errorf("%d receive context bits, at most %d: %w", attr.RxCtxBits, MaxRxCtxBits, fi.EINVAL)
	case keyed && attr.Name != "":
		return fmt.Errorf("authorisation keys in an address vector that others share: %w", fi.EINVAL)
	case attr.Flags&fi.AVUserID != 0 && attr.Name != "":
		return fmt.Errorf("user ids in an address vector that others share: %w", fi.EINVAL)
	case attr.Flags&fi.Read != 0 && attr.Name == "":
		return fmt.Errorf("read-only without a name: %w", fi.EINVAL)
	case attr.Flags&fi.AVUserID != 0 && !o.UserIDs:
		return fmt.Errorf("FI_AV_USER_ID: the domain was opened without it: %w", fi.EBADFLAGS)
	}
	return nil
}

// Close closes the address vector. fi.EBUSY while endpoints are bound to it.
func (a *AV) Close() error {
	if err := a.refs.Close(); err != nil {
		return err
	}
	a.addrs.Lock()
	defer a.addrs.Unlock()
	if a.events != nil {
		a.events.Release()
		a.events = nil
	}
	err := a.addrs.Close()
	a.o.Closed()
	return err
}

// BindEQ binds the event queue to which insertions into an address vector opened
// with fi.Event report. Errors: fi.EBADFLAGS unless flags is 0, fi.EINVAL when
// q is nil or one is bound already.
func (a *AV) BindEQ(q *eq.Queue, flags uint64) error {
	switch {
	case flags != 0:
		return fi.EBADFLAGS
	case q == nil:
		return fi.EINVAL
	}
	a.addrs.Lock()
	defer a.addrs.Unlock()
	if a.events != nil {
		return fi.EINVAL
	}
	if err := q.Acquire(); err != nil {
		return err
	}
	a.events = q
	return nil
}

// SetFID sets the address of the C object, which events name.
func (a *AV) SetFID(fid uintptr) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	a.fid = fid
}

// Format returns the format of the addresses that Insert, Lookup and StrAddr
// take and give.
func (a *AV) Format() fi.AddrFormat { return a.o.Format }

// Shared reports whether other processes can change the address vector. An
// endpoint that keeps what it found in such a one asks Generation before it
// uses it, because it is not notified in time when an index was given to another
// name.
func (a *AV) Shared() bool { return a.addrs.Shared() }

// Name returns the name at an address, false where none is. It takes no lock
// and allocates nothing.
func (a *AV) Name(addr fi.Addr) (names.Name, bool) {
	return a.addrs.Name(uint64(addr))
}

// Find returns the lowest address of a name, fi.AddrNotAvail if it is not in
// the address vector. It takes no lock and allocates nothing.
func (a *AV) Find(n names.Name) fi.Addr {
	i, ok := a.addrs.Find(n)
	if !ok {
		return fi.AddrNotAvail
	}
	return fi.Addr(i)
}

// Generation changes with every insertion and removal, after it is done. So
// a thread that loads it, finds something there, and later finds it unchanged may use what
// it found.
func (a *AV) Generation() uint64 { return a.addrs.Generation() }

// Subscribe has f called for each address that is removed, after Name ceased
// to find it and Generation has changed, and before its index is used again. The call is made under the
// address vector's lock: f must not call the address vector, nor wait for
// any thread that may. After cancel has returned f is not called again.
func (a *AV) Subscribe(f func(removed fi.Addr)) (cancel func()) {
	a.addrs.Lock()
	defer a.addrs.Unlock()
	a.subscribers = append(a.subscribers, &f)
	return func() {
		a.addrs.Lock()
		defer a.addrs.Unlock()
		a.subscribers = slices.DeleteFunc(a.subscribers, func(g *func(fi.Addr)) bool { return g == &f })
	}
}

// OnInsert has f called after each call that has inserted an address, by the same thread, which has no lock of the
// address vector but that for such calls: f must not call OnInsert nor cancel. After cancel has returned f is not
// called again.
func (a *AV) OnInsert(f func()) (cancel func()) {
	a.calling.Lock()
	defer a.calling.Unlock()
	a.listeners = append(a.listeners, &f)
	return func() {
		a.calling.Lock()
		defer a.calling.Unlock()
		a.listeners = slices.DeleteFunc(a.listeners, func(g *func()) bool { return g == &f })
	}
}

// inserted calls the listeners after an insertion of n addresses. The caller does not have the lock.
func (a *AV) inserted(n int) {
	if n == 0 {
		return
	}
	a.calling.Lock()
	defer a.calling.Unlock()
	for _, f := range a.listeners {
		(*f)()
	}
}

// removed is called for each address that is removed, and calls the subscribers. The caller has the lock.
func (a *AV) removed(i uint64, n names.Name) {
	if n.Key != 0 {
		a.keys[n.Key-1].users--
	}
	a.ids.remove(fi.Addr(i))
	for _, f := range a.subscribers {
		(*f)(fi.Addr(i))
	}
}

// Remove takes addresses out of the address vector, or with fi.AuthKey
// authorisation keys. Errors: fi.EINVAL if an address is
// not in it, fi.EBADFLAGS
// for other flags, fi.EACCES if the address vector is read-only, fi.EBUSY for a
// key that is in use. All that can be removed are, whatever is wrong with others.
func (a *AV) Remove(addrs []fi.Addr, flags uint64) error {
	switch flags {
	case 0:
	case fi.AuthKey:
		return a.removeAuthKeys(addrs)
	default:
		return fi.EBADFLAGS
	}
	done, err := a.change()
	if err != nil {
		return err
	}
	defer done()
	for _, addr := range addrs {
		if !a.addrs.Has(uint64(addr)) {
			err = refuse(fi.EINVAL, "remove address %#x: not in the address vector", addr)
			continue
		}
		a.addrs.Remove(uint64(addr))
	}
	return err
}

// change takes the lock for a change, and returns what ends it.
func (a *AV) change() (done func(), err error) {
	if a.flags&fi.Read != 0 {
		return nil, fi.EACCES
	}
	return a.addrs.Change()
}

// Limit returns how many addresses there can be: every fi.Addr is below it.
func (a *AV) Limit() uint64 { return a.addrs.Limit() }

// Lookup writes the address to b, as much of it as fits, and returns the bytes
// that all of it takes. fi.EINVAL if it is not in the address vector.
func (a *AV) Lookup(addr fi.Addr, b []byte) (needed int, err error) {
	n, ok := a.Name(addr)
	if !ok {
		return 0, fi.EINVAL
	}
	raw, err := names.Encode(a.o.Format, n)
	if err != nil {
		return 0, err
	}
	copy(b, raw)
	return len(raw), nil
}

// StrAddr returns an address in the address vector's format as text; the
// address need not be in it.
func (a *AV) StrAddr(addr []byte) string {
	n, err := names.Decode(a.o.Format, addr)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return n.String()
}

// Acquire adds a user, which keeps the address vector from being closed. fi.EBADF once it is closed.
func (a *AV) Acquire() error { return a.refs.Acquire() }

// Release takes a user away that Acquire added.
func (a *AV) Release() { a.refs.Release() }

// Owner is what opened the address vector.
func (a *AV) Owner() any { return a.o.Owner }

// GenerationWord is where Generation is stored, for the data plane.
func (a *AV) GenerationWord() *atomic.Uint64 { return a.addrs.GenerationWord() }

// Add inserts a name without asking whether there is a way to it. Errors: as of changes, and fi.ENOMEM.
func (a *AV) Add(n names.Name) error {
	done, err := a.change()
	if err != nil {
		return err
	}
	_, err = a.addrs.Insert(n)
	done()
	if err == nil {
		a.inserted(1)
	}
	return err
}

// KnowContext is Know of a receive context of a scalable endpoint with a name, of the endpoint itself with 0. fi.EINVAL
// too: the addresses have no bits for the index.
func (a *AV) KnowContext(n names.Name, context uint8) (fi.Addr, error) {
	if uint64(context) >= 1<<a.rxCtxBits {
		return fi.AddrNotAvail, fmt.Errorf("receive context %d of %v in an address vector with %d bits for it: %w",
			context, n, a.rxCtxBits, fi.EINVAL)
	}
	addr, err := a.Know(n)
	if err != nil || context == 0 {
		return addr, err
	}
	return addr | fi.Addr(context)<<(64-a.rxCtxBits), nil
}

// Know returns the address of a name, which it inserts if need be, under the key of the name. Errors as of Insert about
// one address, and of changes.
func (a *AV) Know(n names.Name) (fi.Addr, error) {
	if addr := a.Find(n); addr != fi.AddrNotAvail {
		return addr, nil
	}
	if _, err := names.Encode(a.o.Format, n); err != nil {
		return fi.AddrNotAvail, fmt.Errorf("%v in an address vector of another format: %w", n, fi.EINVAL)
	}
	done, err := a.change()
	if err != nil {
		return fi.AddrNotAvail, err
	}
	if i, ok := a.addrs.FindLocked(n); ok { // another thread was faster
		done()
		return fi.Addr(i), nil
	}
	var keys []uint8
	if n.Key != 0 {
		keys = []uint8{n.Key}
	}
	addr, err := a.insertOne(0, func(int) (names.Name, error) { return n, nil }, keys)
	done()
	if err == nil {
		a.inserted(1)
	}
	return addr, err
}

// refuse logs why a call fails and returns the errno with that.
func refuse(errno fi.Errno, format string, args ...any) error {
	return log.Refuse(log.AV, errno, format, args...)
}
