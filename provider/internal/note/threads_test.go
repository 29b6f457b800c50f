package note

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// ending is a post of a notification that another thread may end.
type ending struct {
	Outgoing
	ends atomic.Int32
}

func (p *ending) NoteEnded(fi.Errno) { p.ends.Add(1) }

// TestThreads posts notifications from several threads at once, some of which are taken back, or not sent as their
// posts have failed: the others come once, those of one thread in order, and nothing is left to wait for.
func TestThreads(t *testing.T) {
	eachMemory(t, func(t *testing.T, places int) {
		const threads, each = 4, 300
		nodes := newNodes(t, 2, places)
		x, y, to := nodes[0], nodes[1], links(nodes)
		posts := make([]ending, threads*each)
		var all sync.WaitGroup
		for thread := range threads {
			all.Go(func() {
				for i := range each {
					p := &posts[thread*each+i]
					p.Op, p.Owner = Write, p
					data := binary.LittleEndian.AppendUint32(nil, uint32(thread<<16|i))
					if err := x.notes.Out.Add(&p.Outgoing, to[1], data, true); err != nil {
						t.Error(err)
						return
					}
					switch i % 8 {
					case 3:
						x.notes.Out.Take(&p.Outgoing, to[1])
						p.ends.Add(1) // which its owner does
					case 5:
						x.notes.Out.Settle(&p.Outgoing, fi.EIO)
					default:
						x.notes.Out.Settle(&p.Outgoing, fi.Success)
					}
				}
			})
		}
		all.Wait()
		next, came := [threads]int{}, 0
		for end := time.Now().Add(10 * time.Second); came < threads*each*6/8 && time.Now().Before(end); {
			x.Progress()
			y.Progress()
			for _, n := range y.take() {
				v := binary.LittleEndian.Uint32(n.Data)
				thread, i := v>>16, int(v&0xffff)
				if i < next[thread] || i%8 == 3 || i%8 == 5 {
					t.Fatalf("thread %d: notification %d comes behind %d", thread, i, next[thread]-1)
				}
				next[thread] = i + 1
				came++
			}
		}
		for i := range posts {
			if n := posts[i].ends.Load(); n != 1 {
				t.Fatalf("post %d has ended %d times", i, n)
			}
		}
		if o := &x.notes.Out; o.bytes.Load() != 0 || *to[1].count != 0 || o.steps.Any() {
			t.Errorf("%d bytes are left, %d wait for the peer", o.bytes.Load(), *to[1].count)
		}
		if line := x.notes.memory.lineOf(to[1]); line != nil && line.Waiting != 0 {
			t.Errorf("the data plane waits for %d", line.Waiting)
		}
	})
}

// TestWaitsForNothing: a post, and its end, wait for no thread that is at the notifications. That one sends what they
// leave, and until then the data plane sends nothing that would overtake it.
func TestWaitsForNothing(t *testing.T) {
	nodes := newNodes(t, 2, 8)
	x, y, to := nodes[0], nodes[1], links(nodes)
	ends := x.notes.Out.lock()
	done := make(chan *posted)
	go func() {
		p, err := x.post(to[1], []byte("note"), false)
		if err != nil {
			t.Error(err)
		}
		done <- p
	}()
	var p *posted
	select {
	case p = <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	if line := x.notes.memory.lineOf(to[1]); line.Waiting != 1 || len(p.ends) != 0 {
		t.Errorf("the data plane waits for %d; ended %v", line.Waiting, p.ends)
	}
	x.notes.Out.unlock(ends)
	y.Progress()
	if list := y.take(); len(list) != 1 || len(p.ends) != 1 {
		t.Errorf("%d notifications, ended %v", len(list), p.ends)
	}
	if line := x.notes.memory.lineOf(to[1]); line.Waiting != 0 {
		t.Errorf("the data plane waits for %d", line.Waiting)
	}
}
