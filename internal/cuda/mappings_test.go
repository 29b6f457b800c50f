package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory is a mapping that knows what is done with it.
type memory struct {
	size   uint64
	state  *memoryState
	closed atomic.Bool
}

// memoryState is what all mappings of an allocation have in common.
type memoryState struct {
	open  atomic.Int64 // mappings
	opens atomic.Int64 // how often it was opened
}

func (m *memory) Size() uint64 { return m.size }

func (m *memory) Close() error {
	if m.closed.Swap(true) {
		return errors.New("closed twice")
	}
	m.state.open.Add(-1)
	return nil
}

func (s *memoryState) opener(t *testing.T, size uint64) func(func(string) error) (Mapping, error) {
	return func(claim func(string) error) (Mapping, error) {
		if err := claim(fmt.Sprintf("%p", s)); err != nil {
			return nil, err
		}
		s.opens.Add(1)
		if s.open.Add(1) != 1 {
			t.Error("opened twice")
		}
		return &memory{size: size, state: s}, nil
	}
}

func newMappings(t *testing.T) *Mappings {
	c := &Mappings{}
	c.SetClosed(func(a Foreign, err error) {
		if err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	})
	return c
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// TestMappingsKept keeps what there is room for, and drops what was used least recently.
func TestMappingsKept(t *testing.T) {
	c := newMappings(t)
	states := make([]memoryState, 4)
	use := func(i int, l Limits) *Use {
		t.Helper()
		u, err := c.Acquire(Foreign{PID: 1, Token: uint64(i)}, l, states[i].opener(t, 100))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	two := Limits{Entries: 2, Bytes: 1000}
	for _, i := range []int{0, 0, 1, 0, 2, 0, 1} { // 2 takes the place of 1, and then 1 that of 2
		use(i, two).Release()
	}
	for i, want := range []int64{1, 2, 1, 0} {
		if n := states[i].opens.Load(); n != want {
			t.Errorf("%d was opened %d times, want %d", i, n, want)
		}
	}
	if k := c.Kept(); k != (Limits{2, 200}) {
		t.Errorf("kept: %+v", k)
	}
	u := use(3, Limits{Entries: 9, Bytes: 150}) // what is in use stays
	v := use(1, Limits{Entries: 9, Bytes: 150})
	u.Pause() // and what is paused
	if k := c.Kept(); k.Entries != 2 {
		t.Errorf("kept: %+v", k)
	}
	if !u.Resume() {
		t.Error("a paused mapping was dropped")
	}
	v.Release()
	u.Release()
	if k := c.Kept(); k != (Limits{1, 100}) {
		t.Errorf("kept: %+v", k)
	}
	<-c.Drop()
	for i := range states {
		if states[i].open.Load() != 0 {
			t.Errorf("%d is open", i)
		}
	}
}

// TestMappingsRecalled has a recall wait for users, and for no paused ones.
func TestMappingsRecalled(t *testing.T) {
	c, s, a, room := newMappings(t), &memoryState{}, Foreign{PID: 1, Token: 2, Buffer: 3}, Limits{10, 1000}
	if !isDone(c.Recall(1, 2)) {
		t.Error("a recall of nothing waits")
	}
	u, err := c.Acquire(a, room, s.opener(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	done := c.Recall(1, 2)
	if isDone(done) || s.open.Load() != 1 {
		t.Error("a mapping that is in use was taken away")
	}
	u.Pause()
	<-done
	if s.open.Load() != 0 || u.Resume() {
		t.Error("a paused mapping stays, and is good")
	}
	u.Release()
	if u, err = c.Acquire(a, room, s.opener(t, 10)); err != nil {
		t.Fatal(err)
	}
	u.Release()
	if s.open.Load() != 1 {
		t.Error("it is not kept")
	}
	if <-c.Gone(2); s.open.Load() != 1 {
		t.Error("another process's end took it away")
	}
	if <-c.Gone(1); s.open.Load() != 0 {
		t.Error("it outlives its owner")
	}
	failed := errors.New("refused")
	for range 2 {
		if _, err := c.Acquire(a, room, func(func(string) error) (Mapping, error) {
			return nil,
				failed
		}); !errors.Is(err, failed) {
			t.Errorf("%v", err)
		}
	}
	if c.Kept() != (Limits{}) || len(c.entries) != 0 {
		t.Errorf("left: %+v, %d entries", c.Kept(), len(c.entries))
	}
}

// TestMappingsClaimed has memory under two names, which is mapped under one at a time.
func TestMappingsClaimed(t *testing.T) {
	c, s, room := newMappings(t), &memoryState{}, Limits{10, 1000}
	u, err := c.Acquire(Foreign{PID: 1, Token: 1}, room, s.opener(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(10 * time.Millisecond)
		u.Release()
	}()
	v, err := c.Acquire(Foreign{PID: 1, Token: 2}, room, s.opener(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	if n := s.opens.Load(); n != 2 {
		t.Errorf("opened %d times", n)
	}
	<-c.Drop()
}

// TestMappingsTogether has threads use, recall and drop a few allocations: none is open twice, none is used when it is
// closed, and nothing stays.
func TestMappingsTogether(t *testing.T) {
	c := newMappings(t)
	states := make([]memoryState, 5)
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			for range 3000 {
				i := r.IntN(len(states))
				a := Foreign{PID: i % 2, Token: uint64(i)}
				switch r.IntN(12) {
				case 0:
					<-c.Recall(a.PID, a.Token)
					continue
				case 1:
					<-c.Gone(a.PID)
					continue
				}
				u, err := c.Acquire(a, Limits{r.IntN(4), 1000}, states[i].opener(t, 10))
				if err != nil {
					t.Error(err)
					return
				}
				for good := true; good && r.IntN(2) == 0; good = u.Resume() {
					u.Pause()
				}
				if !u.paused && u.Mapping().(*memory).closed.Load() {
					t.Error("closed under a use")
				}
				u.Release()
			}
		})
	}
	wg.Wait()
	<-c.Drop()
	if c.Kept() != (Limits{}) || len(c.entries) != 0 || c.idle.Len() != 0 {
		t.Errorf("left: %+v, %d entries, %d idle", c.Kept(), len(c.entries), c.idle.Len())
	}
	for i := range states {
		if states[i].open.Load() != 0 {
			t.Errorf("%d is open", i)
		}
	}
}

// TestMappingsFailKept: a thread that has a use of what has failed gets no second one, and does not wait for itself.
func TestMappingsFailKept(t *testing.T) {
	t.Parallel()
	c := newMappings(t)
	var state memoryState
	a, limits := Foreign{PID: 1, Token: 1}, Limits{Entries: 8, Bytes: 1000}
	u, err := c.Acquire(a, limits, state.opener(t, 100))
	if err != nil {
		t.Fatal(err)
	}
	u.Fail()
	if _, err := c.Acquire(a, limits, state.opener(t, 100)); !errors.Is(err, ErrLeaving) {
		t.Errorf("a second use: %v", err)
	}
	u.Release()
	<-c.Drop()
	if n := state.open.Load(); n != 0 {
		t.Errorf("%d are open", n)
	}
}

// TestMappingsFail: a mapping that the driver has failed has no new users, goes with the last one it has, and the next
// use opens another.
func TestMappingsFail(t *testing.T) {
	c := newMappings(t)
	var state memoryState
	a, limits := Foreign{PID: 1, Token: 1}, Limits{Entries: 8, Bytes: 1000}
	acquire := func() *Use {
		u, err := c.Acquire(a, limits, state.opener(t, 100))
		if err != nil {
			t.Error(err)
		}
		return u
	}
	first, second := acquire(), acquire()
	second.Pause()
	first.Fail()
	if second.Resume() {
		t.Error("a use goes on")
	}
	third := make(chan *Use)
	go func() { third <- acquire() }()
	select {
	case <-third:
		t.Error("a new use of what has failed")
	case <-time.After(20 * time.Millisecond):
	}
	first.Release()
	u := <-third
	second.Release()
	if n := state.opens.Load(); n != 2 {
		t.Errorf("opened %d times", n)
	}
	u.Release()
	if k := c.Kept(); k != (Limits{1, 100}) {
		t.Errorf("kept: %+v", k)
	}
	<-c.Drop()
	if n := state.open.Load(); n != 0 {
		t.Errorf("%d are open", n)
	}
}
