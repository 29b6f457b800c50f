// Package addrs holds the addresses of an address vector: names at indexes, each index the lowest that is not in use.
// Lookups in both directions take no lock and allocate nothing. A vector is private, or one of several processes of a
// user, behind a file.
package addrs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// Options say what a vector is to be.
type Options struct {
	Hint     int    // names that are prepared for
	Capacity uint64 // names that a vector that is made has room for
	Limit    uint64 // names that there may be at most, also in a shared vector that was made with a higher capacity

	// Removed is called for each name that leaves, after Name ceases to find it and before its index is used again,
	// under the vector's lock: it must not call the vector. nil: not called.
	Removed func(i uint64, n names.Name)

	// Name is of a vector that processes share which give the same Domain and Name, "": private. The rest is for
	// such a one: the folder of its file, how long another process's lock is waited for, and whether it is only
	// read.
	// Count names are asked for: so many words of the array of MapAddr are set.
	Name, Domain, Dir string
	Count             uint64
	Timeout           time.Duration
	ReadOnly          bool
}

// Vector is the addresses of an address vector.
//
// Name, Find and Generation may be called by any thread, without the lock. In a shared vector the first of them after a
// change by another process takes over that change, under the lock, and waits for no other process. The lock may guard
// what belongs to the vector
// elsewhere, too.
type Vector struct {
	sync.Mutex
	table   table
	index   index
	file    *file  // nil: private; immutable
	limit   uint64 // immutable
	removed func(i uint64, n names.Name)
	// generation is added to by the holder of the lock after each change, for a removal before removed is called as
	// well, and loaded by any thread before it finds something; sequentially consistent. If it is unchanged afterwards,
	// what was found still holds.
	generation atomic.Uint64
}

// Open makes a vector, or opens a shared one, which has the capacity that the first to open it gave. Errors, for shared
// ones: fi.ENOENT where the file is only read and no process has it open, fi.EACCES where it is of another user
// or open to others, fi.ENOSPC, fi.ETIMEDOUT, and what the system says.
func Open(o Options) (*Vector, error) {
	v := &Vector{limit: min(o.Capacity, o.Limit), removed: o.Removed}
	v.index.init(&v.table, o.Hint)
	if o.Name == "" {
		return v, nil
	}
	f, err := openFile(&o)
	if err != nil {
		return nil, err
	}
	v.file, v.limit = f, min(f.capacity, o.Limit)
	v.refresh()
	if !o.ReadOnly {
		if err := v.fillArray(o.Count); err != nil {
			_ = v.Close() // it has failed
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return v, nil
}

// fillArray has the first words of the array set that the application wants.
func (v *Vector) fillArray(count uint64) error {
	if atomic.LoadUint64(&v.file.header.filled) >= min(max(count, 1), v.file.capacity) {
		return nil
	}
	done, err := v.Change()
	if err != nil {
		return err
	}
	defer done()
	return v.file.fill(max(count, 1))
}

// Close stops using the file of a shared vector; the last user removes it.
func (v *Vector) Close() error {
	if v.file == nil {
		return nil
	}
	return v.file.close()
}

// Shared reports whether other processes can change the vector. A caller that keeps what it found in such a one calls
// Generation before it uses it: an index may have another name by then.
func (v *Vector) Shared() bool { return v.file != nil }

// Limit is one more than the highest index that there can be.
func (v *Vector) Limit() uint64 { return v.limit }

// MapAddr is the address of the array of a shared vector that has the index of each name at its place, fi.AddrNotAvail
// where there is none: as many words as the largest Count of its openers that change it, and one more at least than the
// highest index that was ever used, but no more than its capacity. 0 for a private one.
func (v *Vector) MapAddr() uintptr {
	if v.file == nil {
		return 0
	}
	return v.file.mapAddr()
}

// Name returns the name at an index, false where none is.
func (v *Vector) Name(i uint64) (names.Name, bool) {
	v.refresh()
	p, ok := v.table.load(i)
	if !ok {
		return names.Name{}, false
	}
	return p.unpack(), true
}

// Find returns the lowest index of a name, false if it is not there.
func (v *Vector) Find(n names.Name) (i uint64, ok bool) {
	v.refresh()
	return v.index.find(pack(n))
}

// Generation changes with every insertion and removal, after it is done.
func (v *Vector) Generation() uint64 {
	v.refresh()
	return v.generation.Load()
}

// GenerationWord is the word that Generation reads, of a private vector; nil for a shared one. It is only read, with
// acquire.
func (v *Vector) GenerationWord() *atomic.Uint64 {
	if v.file != nil {
		return nil
	}
	return &v.generation
}

// Change takes the lock for changes, and returns what ends them and gives it back. Errors, of shared vectors:
// fi.ETIMEDOUT when another process does not end its changes, and what the system says.
func (v *Vector) Change() (done func(), err error) {
	v.Lock()
	if v.file != nil {
		if err := v.lockFile(); err != nil {
			v.Unlock()
			return nil, err
		}
	}
	return func() {
		if v.file != nil {
			v.file.unlock()
		}
		v.generation.Add(1)
		v.Unlock()
	}, nil
}

// Insert puts a name at the lowest index that is unset, between Change and its end. fi.ENOMEM when Limit names are
// there; fi.ENOSPC and the like when a shared vector's file cannot be written.
func (v *Vector) Insert(n names.Name) (uint64, error) {
	i := v.table.next()
	if i >= v.limit {
		return 0, fmt.Errorf("the address vector is full with %d addresses: %w", v.limit, fi.ENOMEM)
	}
	p := pack(n)
	if v.file != nil {
		if err := v.file.insert(i, p); err != nil {
			return 0, err
		}
	}
	v.put(i, p)
	return i, nil
}

// Has reports whether there is a name at an index. The caller has the lock.
func (v *Vector) Has(i uint64) bool {
	_, ok := v.table.load(i)
	return ok
}

// FindLocked is Find for the holder of the lock.
func (v *Vector) FindLocked(n names.Name) (i uint64, ok bool) { return v.index.find(pack(n)) }

// Remove takes the name at an index out, between Change and its end. There must be one.
func (v *Vector) Remove(i uint64) {
	if v.file != nil {
		v.file.remove(i)
	}
	v.take(i)
}

// Range returns the indexes from start to end, stride apart, at which names are.
func (v *Vector) Range(start, end, stride uint64) (list []uint64) {
	v.refresh()
	v.Lock()
	defer v.Unlock()
	for i := start; i <= end && i < v.table.limit; i += stride {
		if v.Has(i) {
			list = append(list, i)
		}
		if i+stride < i {
			break
		}
	}
	return list
}

// put enters a name at an unset index of the private tables. The caller has the lock.
func (v *Vector) put(i uint64, n packed) {
	v.table.set(i, n)
	if n != noName {
		v.index.add(n, i)
	}
}

// take removes a set index from the private tables. The caller has the lock, and changes the generation before it gives
// the lock back. So does take before it calls removed, which drops what was found: what is found at the generation
// after that is of the tables without the name.
func (v *Vector) take(i uint64) {
	n, named := v.table.load(i)
	if named {
		v.index.remove(n, i)
	}
	v.table.clear(i)
	if named && v.removed != nil {
		v.generation.Add(1)
		v.removed(i, n.unpack())
	}
}

// lockFile locks the shared table and takes over what others changed.
func (v *Vector) lockFile() error {
	died, err := v.file.lock(v)
	if err != nil {
		return err
	}
	if _, err = v.file.sync(true, v.take, v.put); err == nil && died {
		err = v.file.repair()
	}
	if err != nil {
		v.file.abandon()
		v.generation.Add(1) // some changes may be taken over
		return err
	}
	return nil
}

// refresh takes over what other processes changed.
func (v *Vector) refresh() {
	if v.file == nil || !v.file.changed() {
		return
	}
	v.Lock()
	defer v.Unlock()
	generation := atomic.LoadUint64(&v.file.header.generation)
	changed, err := v.file.sync(false, v.take, v.put)
	if err != nil && !errors.Is(err, fi.EAGAIN) && v.file.logged != generation {
		v.file.logged = generation
		log.Warnf(log.AV, "changes by other processes are not seen: %s: %v", v.file.path, err)
	}
	if changed {
		v.generation.Add(1)
	}
}
