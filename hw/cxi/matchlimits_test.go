package cxi

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
)

// limitsConfig is a small interface that has the NIC match messages.
func limitsConfig() Config {
	return Config{RxBuffers: 4, RxBytes: 1 << 16, RxEvents: 64, BounceBytes: 256, BounceCount: 4, Posted: 32,
		Match: &MatchConfig{Buffers: 2, BufferBytes: 40000, Events: 256, Sends: 64, Receives: 8}}
}

// TestMatchLimits: a NIC that has no more of something when an interface is to match messages says so by a named error
// that says of what, at once; what was open works on, and what is given back can be had again.
func TestMatchLimits(t *testing.T) {
	for _, c := range []struct {
		settings string
		ifaces   int    // that find room
		says     string // of the next
	}{
		{"pids=3", 3, "take a PID"},
		{"eqs=12", 2, "event queue"},
		{"tgqs=5", 2, "command queue"},
		{"txqs=5", 2, "command queue"},
		{"ptes=12", 2, "portal table entry"},
		{"les=40", 4, "list entries"},
		{"lacs=0", 0, "register"},
		{"slots=64", 0, "command queue"},
		{"eq_bytes=4096", 0, "event queue"},
		{"lacs=1 lcids=1", 8, ""},
		{"cts=0 tles=0", 8, ""},
	} {
		t.Run(c.settings, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				t.Log(alone(t, "fabric=-1 "+c.settings))
				return
			}
			d := domain(t)
			for range 3 {
				var list []*Iface
				var err error
				for err == nil && len(list) < 8 {
					var i *Iface
					if i, err = d.Open(limitsConfig()); err == nil {
						list = append(list, i)
					}
				}
				if len(list) != c.ifaces || (c.ifaces < 8) != errors.Is(err, hw.ErrNoResource) ||
					err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%d interfaces, %v", len(list), err)
				}
				t.Log(err)
				err = nil
				entries := strings.HasPrefix(c.settings, "les=")
				for _, i := range slices.Backward(list) {
					if !entries || i == list[0] { // a receive needs an entry of the list
						err = useMatcher(t, i)
					}
					if err = errors.Join(err, i.Close()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// limitStates are states of a receiver in use.
var limitStates = []struct {
	name    string
	config  MatchConfig
	count   int // messages that are sent at most
	state   flowState
	entries int // of the list, until that state; 0: as many as there are
}{
	{"enabled", MatchConfig{Receives: 8}, 8, flowEnabled, 0},
	{"stopped", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 30, flowEnabled, 0},
	{"messages are taken over", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 30, flowOnloadReenable, 0},
	{"in flow control", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 30, flowControl, 0},
	{"to be stopped", MatchConfig{Mode: MatchHybrid, Unexpected: 6, Requests: 2, RequestBytes: 400000, Receives: 8}, 8,
		flowPendingDisable, 0},
	{"stopped by software", MatchConfig{Mode: MatchHybrid, Unexpected: 6, Requests: 2, RequestBytes: 400000,
		Receives: 8}, 8, flowOnload, 0},
	{"software", MatchConfig{Mode: MatchSoftware, Requests: 2, RequestBytes: 400000, Receives: 8}, 8, flowSoftware, 0},
	{"software is to match", MatchConfig{Mode: MatchHybrid, Buffers: 2, Requests: 2, RequestBytes: 400000, Receives: 8},
		60, flowPendingSoft, 95},
}

// TestMatchLimitsInUse: a NIC has no more of something when a receiver is in any of its states. Another interface is
// refused, the messages of those that are open arrive, and with room there is another one again.
func TestMatchLimitsInUse(t *testing.T) {
	for state, c := range limitStates {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, "fabric=-1")
				return
			}
			for limit, l := range []struct {
				what       string
				least, all int
			}{
				{"pids", 1, 511}, {"eqs", 1, 2048}, {"tgqs", 1, 512}, {"txqs", 1, 1024}, {"ptes", 1, 2048},
				{"les", 1, entries}, {"lacs", 0, 8}, {"slots", 64, 65536}, {"eq_bytes", 4096, math.MaxInt},
			} {
				if testing.Short() && (state+limit)%4 != 0 { // each state and each limit is there
					continue
				}
				t.Run(l.what, func(t *testing.T) {
					f := newRefusing(t, c.config, map[refusal]int{})
					if c.entries > 0 {
						limitNIC(t, "les", c.entries)
					}
					f.send(c.count, func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 })
					f.reach(c.state)
					limitNIC(t, "les", entries)
					limitNIC(t, l.what, l.least)
					i, err := f.a.i.d.Open(limitsConfig())
					if !errors.Is(err, hw.ErrNoResource) {
						t.Fatalf("another interface: %v, %v", i, err)
					}
					for range 1000 {
						f.poll()
					}
					if l.what == "les" { // receives need some
						limitNIC(t, l.what, l.all)
					}
					f.drain()
					f.settled(false)
					limitNIC(t, l.what, l.all)
				})
				i, err := domain(t).Open(limitsConfig())
				if err == nil {
					err = errors.Join(useMatcher(t, i), i.Close())
				}
				if err != nil {
					t.Errorf("%s: an interface behind that: %v", l.what, err)
				}
			}
		})
	}
}

// limitNIC gives the NIC another limit.
func limitNIC(t *testing.T, what string, value int) {
	t.Helper()
	if err := step.Set(library(t), what, value); err != nil {
		t.Fatal(err)
	}
}

// reach has the receiver alone make progress until it is in a state.
func (f *refusing) reach(s flowState) {
	f.t.Helper()
	x := &f.b.i.match.rx
	for n := 0; x.flow.state() != s; n++ {
		if f.b.i.Progress(1); n > 10000 {
			f.t.Fatalf("state %d, not %d", x.flow.state(), s)
		}
	}
}

// ownEntries are the list entries that an interface of limitsConfig has for itself: its buffers, and the entries for
// presence, notices, control messages and the question for room.
const ownEntries = 4 + 2 + 4

// TestOneEntry: a NIC has one list entry beside those that an interface has for itself. Each receive and each
// unexpected message has it in turn, and all arrive, in order. With none they wait until there is one.
func TestOneEntry(t *testing.T) {
	for _, les := range []int{ownEntries + 1, ownEntries} {
		t.Run(strconv.Itoa(les), func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, "fabric=-1")
				return
			}
			d := domain(t)
			limitNIC(t, "les", les)
			i, err := d.Open(limitsConfig())
			if err != nil {
				t.Fatal(err)
			}
			x := newOwnExchange(t, i)
			if les == ownEntries {
				if x.run(5, 3, polls(20000)) {
					t.Fatal("a message has come without a list entry")
				}
				limitNIC(t, "les", les+1)
			}
			for _, ahead := range []struct{ sends, receives int }{{1, 4}, {4, 1}, {5, 5}} {
				if x.want += 50; !x.run(ahead.sends, ahead.receives, within(time.Minute)) {
					t.Fatalf("%+v: %d of %d messages have come, %d sends have ended", ahead, x.got, x.want, x.ended)
				}
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// ownExchange is an interface that sends messages to itself.
type ownExchange struct {
	t                              *testing.T
	i                              *Iface
	self                           hw.MatchAddress
	sent, ended, posted, got, want int
}

func newOwnExchange(t *testing.T, i *Iface) *ownExchange {
	x := &ownExchange{t: t, i: i, want: 1}
	var err error
	if x.self, err = i.Matcher().ParseMatchName(i.Matcher().MatchName()); err != nil {
		t.Fatal(err)
	}
	i.Matcher().OnMatch(func(e *hw.MatchEvent) {
		if e.Err != nil || e.Kind == hw.MatchReceived && (e.Data != uint64(x.got) || e.Wanted != uint64(x.got%193)) {
			t.Errorf("message %d: %+v", x.got, *e)
		}
		if e.Kind == hw.MatchReceived {
			x.got++
		} else {
			x.ended++
		}
	})
	return x
}

// polls is over when it was asked so often.
func polls(n int) (over func() bool) {
	return func() bool {
		n--
		return n < 0
	}
}

// within is over after some time.
func within(d time.Duration) (over func() bool) {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}

// run sends messages and posts receives, so many ahead of what has come, and reports whether all come before it is
// over, which it asks for each time that the interface makes progress.
func (x *ownExchange) run(sends, receives int, over func() bool) bool {
	m, payload := x.i.Matcher(), make([]byte, 192)
	for ; x.got < x.want || x.ended < x.want; x.i.Progress(8) {
		if x.sent < min(x.want, x.got+sends) {
			s := hw.MatchSend{To: x.self, HasData: true, Data: uint64(x.sent), Inject: payload[:x.sent%193]}
			if err := m.PostMatched(&s); err == nil {
				x.sent++
			} else if !errors.Is(err, hw.ErrNoResource) {
				x.t.Fatal(err)
			}
		}
		if x.posted < min(x.want, x.got+receives) {
			if _, err := m.PostReceive(&hw.MatchReceive{From: x.self}); err == nil {
				x.posted++
			} else if !errors.Is(err, hw.ErrNoResource) {
				x.t.Fatal(err)
			}
		}
		if over() {
			return false
		}
	}
	return true
}
