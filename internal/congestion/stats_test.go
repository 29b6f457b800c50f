package congestion

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStats compares with the estimator, which computes the same formula.
func TestStats(t *testing.T) {
	var s Stats
	if got := s.Read(); got != (Snapshot{}) {
		t.Errorf("without reports: %+v", got)
	}
	s.Add(10, 800, 3000)
	s.Add(20, 1600, 0)
	s.Lose(30)
	want := Snapshot{SRTT: 900, RTTVAR: 500, Min: 800, Max: 1600, Samples: 2, Lost: 1, Window: 3000, Updated: 30}
	if got := s.Read(); got != want || got.Loss() != 1.0/3 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestStatsWaiting: what comes while another thread holds the owner bit is taken
// in by the next report, as samples of their mean.
func TestStatsWaiting(t *testing.T) {
	var s Stats
	s.Add(1, 16000, 0)
	state := s.state.Load()
	s.state.Store(state | 1)
	s.Add(2, 32000, 5000)
	s.Add(3, 64000, 6000)
	s.Lose(3)
	s.Lose(3)
	if got := s.Read(); got.Samples != 1 || got.Lost != 0 {
		t.Errorf("a reader sees what is not published: %+v", got)
	}
	s.state.Store(state)
	s.Lose(5)
	// two samples of 48000: 16000 + 32000/8 = 20000, + 28000/8 = 23500
	want := Snapshot{SRTT: 23500, RTTVAR: 0, Min: 16000, Max: 64000, Samples: 3, Lost: 3, Window: 6000, Updated: 5}
	got := s.Read()
	want.RTTVAR = got.RTTVAR
	if got != want || got.RTTVAR < 8000 || got.RTTVAR > 24000 {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Add(6, 20000, 0)
	if got := s.Read(); got.Samples != 4 || got.Lost != 3 {
		t.Errorf("what waited counts twice: %+v", got)
	}
}

// TestStatsFull: too much is dropped and counted, and does not spoil the rest.
func TestStatsFull(t *testing.T) {
	var s Stats
	s.state.Store(1)
	const all = 1000
	for range all {
		s.Add(1, time.Hour, 0)
	}
	s.state.Store(0)
	s.Add(2, time.Second, 0)
	got := s.Read()
	if s.Dropped() == 0 || got.Samples+s.Dropped() != all+1 || got.Max != longestRTT || got.SRTT > longestRTT ||
		got.SRTT < time.Second {
		t.Errorf("%+v, dropped %d", got, s.Dropped())
	}
}

// TestStatsConcurrent has 16 writers and two readers at one peer. Every record
// must be of one instant: writers report RTTs and windows that belong together.
func TestStatsConcurrent(t *testing.T) {
	const writers, reports = 16, 20000
	var s Stats
	var wg, readers sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		readers.Go(func() {
			var last Snapshot
			for !done.Load() {
				got := s.Read()
				if got.Samples < last.Samples || got.Lost < last.Lost || got.Updated < last.Updated {
					t.Errorf("%+v after %+v", got, last)
					return
				}
				if got.Samples > 0 && (got.Min < 1000 || got.Max > 1000+writers || got.SRTT < got.Min ||
					got.SRTT > got.Max) {
					t.Errorf("torn: %+v", got)
					return
				}
				last = got
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := range reports {
				if i%10 == 9 {
					s.Lose(Time(i + 1))
				} else {
					s.Add(Time(i+1), time.Duration(1000+w), 256)
				}
			}
		})
	}
	wg.Wait()
	done.Store(true)
	readers.Wait()
	s.Add(reports, 1000, 0) // takes in what waits
	got := s.Read()
	if all := got.Samples + got.Lost + s.Dropped(); all != writers*reports+1 {
		t.Errorf("%d samples, %d losses and %d dropped are not %d reports", got.Samples, got.Lost, s.Dropped(),
			writers*reports+1)
	}
}

// BenchmarkStats has 16 writers, at one peer and at 16.
func BenchmarkStats(b *testing.B) {
	for _, peers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=16/peers=%d", peers), func(b *testing.B) {
			const writers = 16
			table := NewTable(peers)
			var wg sync.WaitGroup
			b.ReportAllocs()
			for w := range writers {
				s := table.Peer(w % peers)
				wg.Go(func() {
					for i := range b.N / writers {
						s.Add(Time(i), time.Duration(1000+i&1023), 100000)
					}
				})
			}
			wg.Wait()
			dropped := uint64(0)
			for i := range peers {
				dropped += table.Peer(i).Dropped()
			}
			b.ReportMetric(float64(dropped)/float64(b.N), "dropped/op")
		})
	}
	b.Run("read", func(b *testing.B) {
		table := NewTable(1)
		table.Peer(0).Add(1, 1000, 1)
		for b.Loop() {
			if table.Peer(0).Read().Samples != 1 {
				b.Fatal("lost")
			}
		}
	})
}

// TestStatsAllocations: reports and snapshots allocate nothing.
func TestStatsAllocations(t *testing.T) {
	var s Stats
	if n := testing.AllocsPerRun(100, func() {
		s.Add(1, 1000, 1000)
		s.Lose(2)
		s.Read()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
