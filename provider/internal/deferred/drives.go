package deferred

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/cq"
)

// Drives are counters of a domain by which a reader makes progress of all the domain's endpoints, of type E: what
// advances such a counter may be anywhere in the domain. Any thread may call its methods.
//
// Its lock is taken before a counter's locks.
type Drives[E comparable] struct {
	drive   func(E, *cq.Counter) error
	undrive func(E, *cq.Counter)

	mu     sync.Mutex
	eps    []E // that are enabled
	driven map[*cq.Counter]bool
}

// NewDrives returns drives without endpoints. drive makes readers of a counter make progress of an endpoint, and
// undrive takes that back; both are called by a thread that has the lock.
func NewDrives[E comparable](drive func(E, *cq.Counter) error, undrive func(E, *cq.Counter)) *Drives[E] {
	return &Drives[E]{drive: drive, undrive: undrive, driven: map[*cq.Counter]bool{}}
}

// Join adds an endpoint, which is enabled. With an error, drive's, it is not added.
func (d *Drives[E]) Join(e E) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var done []*cq.Counter
	for c := range d.driven {
		if err := d.drive(e, c); err != nil {
			for _, c := range done {
				d.undrive(e, c)
			}
			return err
		}
		done = append(done, c)
	}
	d.eps = append(d.eps, e)
	return nil
}

// Part takes an endpoint out that Join has added; another is ignored.
func (d *Drives[E]) Part(e E) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.eps, e)
	if i < 0 {
		return
	}
	d.eps = slices.Delete(d.eps, i, i+1)
	for c := range d.driven {
		d.undrive(e, c)
	}
}

// Find returns an endpoint that fits, the one that joined first, and whether there is one.
func (d *Drives[E]) Find(fits func(e E) bool) (e E, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.eps, fits); i >= 0 {
		return d.eps[i], true
	}
	return e, false
}

// Drive adds a counter; one that is there already stays. With an error, drive's, it is not added.
func (d *Drives[E]) Drive(c *cq.Counter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.driven[c] {
		return nil
	}
	for i, e := range d.eps {
		if err := d.drive(e, c); err != nil {
			for _, other := range d.eps[:i] {
				d.undrive(other, c)
			}
			return err
		}
	}
	d.driven[c] = true
	return nil
}

// Undrive takes a counter out that closes; one that is not there is ignored.
func (d *Drives[E]) Undrive(c *cq.Counter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.driven[c] {
		return
	}
	delete(d.driven, c)
	for _, e := range d.eps {
		d.undrive(e, c)
	}
}

// Wake wakes the threads that sleep on the counters.
func (d *Drives[E]) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.driven {
		c.Waiter().Wake()
	}
}

// Do runs f while no thread is in another method.
func (d *Drives[E]) Do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}
