package refs

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

func TestRefs(t *testing.T) {
	var r Count
	if err := r.Acquire(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, fi.EBUSY) {
		t.Fatalf("close of a used object: %v", err)
	}
	r.Release()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); !errors.Is(err, fi.EBADF) {
		t.Fatalf("second close: %v", err)
	}
	if err := r.Acquire(); !errors.Is(err, fi.EBADF) {
		t.Fatalf("acquire after close: %v", err)
	}
	if err := r.Close(); !errors.Is(err, fi.EBADF) {
		t.Fatalf("close after a refused acquire: %v", err)
	}
}

func TestRefsReleaseWithoutAcquirePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	var r Count
	r.Release()
}

// One closer wins, and never while a user holds the object.
func TestRefsConcurrent(t *testing.T) {
	for range 200 {
		var r Count
		var inside, closed atomic.Int32
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 50 {
					if r.Acquire() != nil {
						return
					}
					inside.Add(1)
					if closed.Load() != 0 {
						t.Error("acquired after close")
					}
					inside.Add(-1)
					r.Release()
				}
			})
			wg.Go(func() {
				for {
					switch fi.ErrnoOf(r.Close()) {
					case fi.Success:
						if inside.Load() != 0 {
							t.Error("closed while in use")
						}
						closed.Add(1)
						return
					case fi.EBADF:
						return
					}
					runtime.Gosched()
				}
			})
		}
		wg.Wait()
		if n := closed.Load(); n != 1 {
			t.Fatalf("%d closers succeeded", n)
		}
	}
}
