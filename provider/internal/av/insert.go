package av

import (
	"fmt"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// Inserting addresses into an address vector: fi_av_insert and its like.

// Insertion is what the calls that insert have in common.
type Insertion struct {
	// Flags may have fi.More, which changes nothing, fi.SyncErr, fi.AVUserID, and
	// fi.AuthKey.
	Flags uint64
	// Context comes back in the events of an address vector opened with fi.Event.
	Context uint64
	// Addrs takes the result for each address, fi.AddrNotAvail for one that was
	// refused. nil, or as long as there are addresses. With fi.AVUserID it has what
	// completions are to call each address, with fi.AuthKey the keys of the addresses.
	Addrs []fi.Addr
	// Errs takes, with fi.SyncErr, 0 or the errno for each address. As long
	// as there are addresses, and not nil.
	Errs []int32
}

// insertFlags are the flags of the calls that insert.
const insertFlags = fi.More | fi.SyncErr | fi.AVUserID | fi.AuthKey

// AddrSize returns the bytes that each address of an array for Insert takes, if
// the first of them is of the given family. Addresses of an unknown family
// count as the shortest.
func (a *AV) AddrSize(family uint16) int {
	switch a.o.Format {
	case fi.SockaddrIn:
		return names.SockaddrInLen
	case fi.SockaddrIn6:
		return names.SockaddrIn6Len
	case fi.AddrEFA, fi.AddrCXI:
		return names.OpaqueLen
	case names.Matched:
		return names.WordLen
	}
	if n := (names.Name{Family: family}).SockaddrLen(); n != 0 {
		return n
	}
	return names.SockaddrInLen
}

// Insert inserts count socket addresses, AddrSize bytes each. It returns how
// many were inserted; 0 in an address vector opened with fi.Event, whose events report it.
//
// What is wrong with one address is that address's result: fi.EINVAL (not an
// address of the format, or without a port), fi.EHOSTUNREACH (no transport
// leads there), fi.ENOMEM (FI_WEFT_AV_SIZE_MAX reached). Errors of the call:
// fi.EBADFLAGS, fi.ENOEQ (fi.Event, but no event queue is bound), fi.EACCES
// (read-only), fi.EINVAL (arrays too short, or the format is FI_ADDR_STR, see
// InsertNames), and for a named address vector what the system says.
func (a *AV) Insert(addrs []byte, count int, in *Insertion) (int, error) {
	if count == 0 {
		return a.insert(0, nil, in)
	}
	if a.o.Format == fi.AddrStr || count < 0 {
		return 0, fi.EINVAL
	}
	if len(addrs) < 2 {
		return 0, fi.EINVAL
	}
	size := a.AddrSize(uint16(addrs[0]) | uint16(addrs[1])<<8)
	if len(addrs)/size < count {
		return 0, fi.EINVAL
	}
	return a.insert(count, func(i int) (names.Name, error) {
		return names.Decode(a.o.Format, addrs[i*size:(i+1)*size])
	}, in)
}

// InsertNames is Insert for the format FI_ADDR_STR.
func (a *AV) InsertNames(list []string, in *Insertion) (int, error) {
	if a.o.Format != fi.AddrStr {
		return 0, fi.EINVAL
	}
	return a.insert(len(list), func(i int) (names.Name, error) { return names.Parse(list[i]) }, in)
}

// insert inserts n names.
func (a *AV) insert(n int, name func(i int) (names.Name, error), in *Insertion) (int, error) {
	if err := a.checkInsertion(n, in); err != nil {
		log.Infof(log.AV, "insert %d addresses: %v", n, err)
		return 0, err
	}
	done, err := a.change()
	if err != nil {
		return 0, err
	}
	keys, err := a.keysToInsert(n, in)
	if err != nil {
		done()
		return 0, refuse(fi.EINVAL, "insert %d addresses: %v", n, err)
	}
	inserted := 0
	var refused refusals
	for i := range n {
		addr, err := a.insertOne(i, name, keys)
		if err == nil {
			inserted++
			if in.Flags&fi.AVUserID != 0 {
				a.ids.set(addr, in.Addrs[i])
			}
		} else {
			refused.add(i, err)
		}
		if in.Addrs != nil {
			in.Addrs[i] = addr
		}
		if in.Flags&fi.SyncErr != 0 {
			in.Errs[i] = int32(fi.ErrnoOf(err))
		}
	}
	done()
	refused.log(n)
	a.inserted(inserted)
	if a.flags&fi.Event == 0 {
		return inserted, nil
	}
	a.addrs.Lock()
	a.report(in.Context, inserted, refused)
	a.addrs.Unlock()
	return 0, nil
}

// report posts the events of one call. The caller has the lock.
func (a *AV) report(context uint64, inserted int, refused refusals) {
	for i, errno := range refused.errno {
		a.events.PostError(eq.ErrEntry{
			FID: a.fid, Context: context, Data: uint64(refused.index[i]), Err: errno, ProvErrno: int32(errno),
		})
	}
	a.events.Post(eq.Completion(fi.AVComplete, a.fid, context, uint64(inserted)))
}

// checkInsertion checks what does not depend on the addresses.
func (a *AV) checkInsertion(n int, in *Insertion) error {
	switch {
	case in.Flags&^insertFlags != 0:
		return fmt.Errorf("flags %#x: %w", in.Flags&^insertFlags, fi.EBADFLAGS)
	case in.Flags&fi.SyncErr != 0 && a.flags&fi.Event != 0:
		return fmt.Errorf("FI_SYNC_ERR is for address vectors without FI_EVENT: %w", fi.EBADFLAGS)
	case in.Flags&fi.AVUserID != 0 && (in.Addrs == nil && n != 0 || a.flags&fi.AVUserID != 0 || a.Shared()):
		return fmt.Errorf(
			"FI_AV_USER_ID without ids, or in an address vector that is shared or was opened with it: %w", fi.EINVAL)
	case in.Addrs != nil && len(in.Addrs) < n, in.Flags&fi.SyncErr != 0 && (in.Errs == nil || len(in.Errs) < n):
		return fmt.Errorf("result array too short: %w", fi.EINVAL)
	}
	if err := a.checkKeyed(n, in); err != nil {
		return err
	}
	if a.flags&fi.Event != 0 {
		a.addrs.Lock()
		defer a.addrs.Unlock()
		if a.events == nil {
			return fi.ENOEQ
		}
	}
	return nil
}

// insertOne inserts the i-th name of a call, under the i-th key if there are some.
// The caller has the lock.
func (a *AV) insertOne(i int, name func(i int) (names.Name, error), keys []uint8) (fi.Addr, error) {
	n, err := name(i)
	if err != nil {
		return fi.AddrNotAvail, err
	}
	if !n.IsEndpoint() {
		return fi.AddrNotAvail, fmt.Errorf("%v names no endpoint: %w", n, fi.EINVAL)
	}
	if err := a.o.Reach(n); err != nil {
		return fi.AddrNotAvail, fmt.Errorf("%v: %w", n, err)
	}
	if keys != nil {
		n = n.WithKey(keys[i])
	}
	at, err := a.addrs.Insert(n)
	if err != nil {
		return fi.AddrNotAvail, err
	}
	if keys != nil {
		a.keys[n.Key-1].users++
	}
	return fi.Addr(at), nil
}

// refusals are the addresses of one call that were not inserted.
type refusals struct {
	index []int
	errno []fi.Errno
	first error
}

func (r *refusals) add(i int, err error) {
	if r.first == nil {
		r.first = err
	}
	r.index = append(r.index, i)
	r.errno = append(r.errno, fi.ErrnoOf(err))
}

// log writes one line for the call that inserted n addresses.
func (r *refusals) log(n int) {
	if r.first != nil {
		log.Warnf(log.AV, "%d of %d addresses not inserted, the first because %v", len(r.index), n, r.first)
	}
}
