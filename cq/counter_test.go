package cq

import (
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

func openCounter(t testing.TB, attr fi.CntrAttr, set *WaitSet) *Counter {
	t.Helper()
	c, err := OpenCounter(&attr, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCounterValues(t *testing.T) {
	c := openCounter(t, fi.CntrAttr{}, nil)
	want := func(value, errs uint64) {
		t.Helper()
		if c.Read() != value || c.ReadErr() != errs {
			t.Fatalf("%d and %d errors, want %d and %d", c.Read(), c.ReadErr(), value, errs)
		}
	}
	want(0, 0)
	c.Count(2)
	c.Add(3)
	want(5, 0)
	c.CountError(1)
	c.AddErr(1)
	want(5, 2)
	c.Set(7)
	c.SetErr(9)
	want(7, 9)
	c.Set(1<<64 - 1)
	c.Add(2)
	want(1, 9)
	if c.hot.Value != 1 || c.hot.Errors != 9 {
		t.Error("C sees other values")
	}
}

func TestCounterOpen(t *testing.T) {
	for _, c := range []struct {
		attr fi.CntrAttr
		want fi.Errno
	}{
		{fi.CntrAttr{Flags: 1}, fi.EBADFLAGS},
		{fi.CntrAttr{Events: 2}, fi.ENOSYS},
		{fi.CntrAttr{WaitObj: 9}, fi.EINVAL},
		{fi.CntrAttr{WaitObj: fi.WaitSet}, fi.EINVAL},
	} {
		_, err := OpenCounter(&c.attr, nil)
		wantErr(t, err, c.want)
	}
	c, err := OpenCounter(&fi.CntrAttr{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ep hot.EP
	if err := c.Attach(&ep); err != nil {
		t.Fatal(err)
	}
	wantErr(t, c.Close(), fi.EBUSY)
	c.Retain()
	if err := c.Detach(&ep); err != nil {
		t.Fatal(err)
	}
	wantErr(t, c.Close(), fi.EBUSY)
	c.Release()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCounterWait(t *testing.T) {
	for _, kind := range kinds {
		c := openCounter(t, fi.CntrAttr{WaitObj: kind}, nil)
		wantErr(t, c.Wait(1, 0), fi.ETIMEDOUT)
		begin := time.Now()
		wantErr(t, c.Wait(1, 20), fi.ETIMEDOUT)
		if d := time.Since(begin); d < 20*time.Millisecond {
			t.Errorf("waited %v", d)
		}
		join := later(func() {
			for range 5 {
				time.Sleep(2 * time.Millisecond)
				c.Count(1)
			}
		})
		if err := c.Wait(5, 10000); err != nil || c.Read() != 5 {
			t.Errorf("kind %d: %v at %d", kind, err, c.Read())
		}
		join()
		join = later(func() { c.CountError(1) })
		wantErr(t, c.Wait(6, 10000), fi.EAVAIL)
		join()
		join = later(func() { c.Set(100) })
		if err := c.Wait(6, 10000); err != nil {
			t.Errorf("kind %d: %v", kind, err)
		}
		join()
		if c.hot.Armed != 0 {
			t.Errorf("kind %d: armed while nothing sleeps", kind)
		}
	}
	c := openCounter(t, fi.CntrAttr{}, nil)
	wantErr(t, c.Wait(0, 0), fi.ENOSYS)
}

// TestCounterThresholds has threads wait for different values of one counter:
// one that goes back to sleep must not take another's wake-up, nor that of an
// application that polls the descriptor.
func TestCounterThresholds(t *testing.T) {
	const threads, rounds = 4, 300
	c := openCounter(t, fi.CntrAttr{WaitObj: fi.WaitFD}, nil)
	for round := range uint64(rounds) {
		if round == rounds/2 {
			if err := c.TryWait(); fi.ErrnoOf(err) == fi.EAGAIN {
				err = c.TryWait()
				wantErr(t, err, fi.Success)
			}
		}
		base := c.Read()
		results := make(chan error, threads)
		for i := range uint64(threads) {
			go func() { results <- c.Wait(base+1+i, 60000) }()
		}
		for range round % 20 {
			runtime.Gosched()
		}
		for range threads {
			c.Count(1)
			if err := <-results; err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if round >= rounds/2 {
			if !readable(t, c.FD(), 0) {
				t.Fatalf("round %d: the descriptor was made unreadable", round)
			}
			wantErr(t, c.TryWait(), fi.EAGAIN)
			if err := c.TryWait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCounterKeepsRaised has a thread wait for more than an application that
// polls the descriptor wants to hear of.
func TestCounterKeepsRaised(t *testing.T) {
	c := openCounter(t, fi.CntrAttr{WaitObj: fi.WaitFD}, nil)
	if err := c.TryWait(); err != nil {
		t.Fatal(err)
	}
	c.Count(1)
	wantErr(t, c.Wait(100, 5), fi.ETIMEDOUT)
	if !readable(t, c.FD(), 0) {
		t.Error("the change was not kept for the application")
	}
	join := later(func() { c.Count(99) })
	if err := c.Wait(100, 10000); err != nil {
		t.Error(err)
	}
	join()
}

// TestCounterProgress has a wait do the work that counts.
func TestCounterProgress(t *testing.T) {
	c := openCounter(t, fi.CntrAttr{WaitObj: fi.WaitFD}, nil)
	d := newDoorbell(t, nil)
	d.source.Progress = func() { c.Count(uint64(d.inbound.Swap(0))) }
	d.add(t, c.wait)
	join := later(func() {
		for range 5 {
			time.Sleep(2 * time.Millisecond)
			d.deliver()
		}
	})
	if err := c.Wait(5, 10000); err != nil {
		t.Fatal(err)
	}
	join()
	d.deliver()
	if c.Read() != 6 {
		t.Errorf("a read makes no progress: %d", c.Read())
	}
}

func TestCounterTryWait(t *testing.T) {
	c := openCounter(t, fi.CntrAttr{WaitObj: fi.WaitFD}, nil)
	for range 3 {
		if err := c.TryWait(); err != nil {
			t.Fatal(err)
		}
		if readable(t, c.FD(), 0) {
			t.Fatal("readable without a change")
		}
		c.Count(1)
		if !readable(t, c.FD(), 1000) {
			t.Fatal("a change does not wake")
		}
		wantErr(t, c.TryWait(), fi.EAGAIN)
	}
}

// TestCounterBytes: a counter of bytes counts those of every part, one of completions the
// last part.
func TestCounterBytes(t *testing.T) {
	for events, want := range map[fi.CntrEvents]uint64{fi.CntrEventsComp: 2, fi.CntrEventsBytes: 107} {
		c, err := OpenCounter(&fi.CntrAttr{Events: events}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Part(60, false)
		c.Part(40, true)
		c.Done(7)
		c.CountError(1)
		if c.Read() != want || c.ReadErr() != 1 {
			t.Errorf("events %d: %d and %d errors, want %d", events, c.Read(), c.ReadErr(), want)
		}
		wantErr(t, c.Close(), fi.Success)
	}
}
