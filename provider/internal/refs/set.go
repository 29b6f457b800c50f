package refs

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
)

// Set knows which of the objects that were opened are open still. They belong to other packages, which do not report
// that they are closed. The zero Set is empty. Any thread.
type Set struct {
	mu      sync.Mutex // control operations only
	objects []member
	prune   int // length at which closed ones are dropped
}

// member is an object of a set, and what reports whether it is open.
type member struct {
	object any
	open   func() bool
}

// Has reports whether an open object was added.
func (s *Set) Has(object any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.objects, func(m member) bool { return m.object == object })
}

// Add adds an open object. The caller is a user of what the set belongs to.
func (s *Set) Add(object any, open func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.objects) >= s.prune {
		s.drop()
		s.prune = 2*len(s.objects) + 16
	}
	s.objects = append(s.objects, member{object, open})
}

// drop drops the closed objects. The caller has s.mu.
func (s *Set) drop() {
	s.objects = slices.DeleteFunc(s.objects, func(m member) bool { return !m.open() })
}

// WhenClosed calls f if no object is open, and returns its result; else fi.EBUSY. No object is added while f runs.
func (s *Set) WhenClosed(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drop(); len(s.objects) != 0 {
		return fi.EBUSY
	}
	return f()
}
