package cxi

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// refusal is a command of flow control that the NIC has refused, and the state in which its receiver learned of it.
type refusal struct {
	command flowCommand
	state   flowState
}

// refusing is a sender and its receiver, of whose commands one is refused.
type refusing struct {
	t        *testing.T
	a, b     *matching
	seen     map[refusal]int
	sent     int
	lost     []uint64 // messages whose own command was refused
	got      []uint64
	ended    int  // sends
	receives int  // that are posted
	failed   int  // of these
	other    int  // receives of messages that are not sent
	again    int  // times that a command of flow control was to be posted again
	silent   bool // the sender does not poll
}

const (
	refusedLength = 5000 // bytes of a message
	refusedOther  = 99   // context of a receive for which there is no message
	refusedMost   = 2000 // commands of which one is refused
	refusedEach   = 13   // of these one is, in the short form
	refusedSweeps = 5    // at most, until each command of flow control was refused
)

func newRefusing(t *testing.T, c MatchConfig, seen map[refusal]int) *refusing {
	f := &refusing{t: t, seen: seen, a: newMatching(t, MatchConfig{Sends: 200}, refusedLength),
		b: newMatching(t, c, refusedLength)}
	fillBytes(f.a.b, 1)
	f.a.m.OnMatch(func(e *hw.MatchEvent) {
		if f.ended++; errors.Is(e.Err, unix.EIO) {
			f.lost = append(f.lost, e.Context)
		} else if e.Err != nil {
			t.Errorf("a send: %+v", *e)
		}
	})
	f.b.m.OnMatch(func(e *hw.MatchEvent) {
		if e.Context == refusedOther {
			f.other--
		} else {
			f.receives--
		}
		switch {
		case errors.Is(e.Err, unix.EIO):
			f.failed++
		case errors.Is(e.Err, hw.ErrCanceled): // it was for a message that is lost
		case e.Err != nil || e.Length != refusedLength || string(f.b.b) != string(f.a.b):
			t.Errorf("a receive: %+v", *e)
		default:
			f.got = append(f.got, e.Data)
		}
		clear(f.b.b)
	})
	return f
}

// send sends messages, each when the one before was answered or dropped, until some were dropped.
func (f *refusing) send(count int, enough func() bool) {
	f.t.Helper()
	for goal := f.sent + count; f.sent < goal && !enough(); f.sent++ {
		f.a.send(hw.MatchSend{To: f.b.self, Tagged: true, Tag: 1, Data: uint64(f.sent), HasData: true,
			Local: f.a.at(0, refusedLength), Context: uint64(f.sent)})
		for end := time.Now().Add(20 * time.Second); f.a.i.match.txOf(f.b.self).inFlight() > 0; f.a.i.Progress(8) {
			if enough() || time.Now().After(end) {
				break
			}
		}
	}
}

// short posts a receive for which there is no list entry, as messages have them.
func (f *refusing) short() {
	f.t.Helper()
	file := library(f.t)
	err := step.Set(file, "les", 1)
	f.other++
	f.b.post(hw.MatchReceive{From: f.a.self, Tagged: true, Tag: 2, Local: f.b.at(0, 8), Context: refusedOther})
	if err = errors.Join(err, step.Set(file, "les", entries)); err != nil {
		f.t.Fatal(err)
	}
}

// poll has both make progress, and notes what commands of flow control are refused.
func (f *refusing) poll() {
	if !f.silent {
		f.a.i.Progress(8)
	}
	f.b.i.Progress(1)
	w := &f.b.i.match.rx.flow
	for c := range w.again {
		state := w.state()
		if w.again[c] && !w.againAt.IsZero() {
			f.again++
			f.seen[refusal{flowCommand(c), state}]++
		}
		if w.again[c] && !flowCommand(c).due(state) {
			f.t.Fatalf("command %d is to be posted again in state %d", c, state)
		}
	}
}

// drain receives all messages.
func (f *refusing) drain() {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); len(f.got)+len(f.lost) < f.sent || f.ended < f.sent; f.poll() {
		if f.receives < min(8, f.sent-len(f.lost)-len(f.got)) {
			_, err := f.b.m.PostReceive(&hw.MatchReceive{From: f.a.self, Tagged: true, Tag: 1,
				Local: f.b.at(0, refusedLength)})
			if err == nil {
				f.receives++
			} else if !errors.Is(err, hw.ErrNoResource) {
				f.t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			rx := &f.b.i.match.rx
			f.t.Fatalf("%d of %d messages have come, %d are lost, %d ended: state %d, %+v", len(f.got), f.sent,
				len(f.lost), f.ended, rx.flow.state(), rx.flow.again)
		}
	}
}

// settled checks what has come, and that nothing is left of it. Of a command that was refused a message or a receive
// may have failed, if it was its own.
func (f *refusing) settled(refused bool) {
	f.t.Helper()
	var want []uint64
	for k := range f.sent {
		if !slices.Contains(f.lost, uint64(k)) {
			want = append(want, uint64(k))
		}
	}
	most := 0
	if refused && f.again == 0 {
		most = 1
	}
	if !slices.Equal(f.got, want) || len(f.lost)+f.failed > most {
		f.t.Errorf("%v have come, %v are lost, %d receives have failed", f.got, f.lost, f.failed)
	}
	for end := time.Now().Add(20 * time.Second); ; f.poll() {
		x := &f.b.i.match.rx
		if x.free.Len()+f.receives+f.other == len(x.list) && taking(x.flow.state()) &&
			x.flow.again == [flowCommands]bool{} {
			if at := x.flow.refusedAt; !at.IsZero() {
				f.t.Errorf("commands count as refused, at %v", at)
			}
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("state %d: %d ids are free and %d receives posted, of %d; %+v", x.flow.state(), x.free.Len(),
				f.receives+f.other, len(x.list), x.flow.again)
		}
	}
}

// refuse has the command be refused that is the nth from now on, and reports whether there was one.
func (f *refusing) refuse(n int, then func()) bool {
	f.t.Helper()
	file := library(f.t)
	before, err := step.Count(file, "commands")
	if err = errors.Join(err, step.Set(file, "fault_rc", wire.RcCmdInvalidArg),
		step.Set(file, "fault_at", int(before)+n)); err != nil {
		f.t.Fatal(err)
	}
	then()
	after, err := step.Count(file, "commands")
	if err = errors.Join(err, step.Set(file, "fault_at", 0)); err != nil {
		f.t.Fatal(err)
	}
	return after >= before+uint64(n)
}

// flowRefusals are receivers that stop for a reason, and the commands of flow control that are to be refused.
var flowRefusals = []struct {
	name, settings string
	config         MatchConfig
	messages       int  // at most
	posted         bool // receives of all are posted before the receiver makes progress
	short          bool // a receive finds no list entry
	want           []refusal
}{
	{"buffers", "", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 400, false, false, []refusal{
		{flowFlush, flowOnloadReenable}, {flowRemove, flowOnloadReenable}, {flowEnable, flowControl}}},
	{"events", "version=2", MatchConfig{Events: 64, Receives: 8}, 400, false, false, []refusal{
		{flowFlush, flowOnloadReenable}, {flowRemove, flowOnloadReenable}, {flowEnable, flowControl}}},
	{"entries", "", MatchConfig{Buffers: 2, Receives: 8}, 30, false, true, []refusal{
		{flowDisable, flowPendingDisable}, {flowFlush, flowOnload}, {flowRemove, flowOnload},
		{flowEnable, flowControl}}},
	{"entries for messages", "les=95", MatchConfig{Buffers: 2, Receives: 8}, 400, false, false, []refusal{
		{flowFlush, flowOnload}, {flowRemove, flowOnload}, {flowEnable, flowControl}}},
	{"unexpected, hybrid", "", MatchConfig{Mode: MatchHybrid, Unexpected: 6, Requests: 2, RequestBytes: 40000,
		Receives: 8}, 400, false, false, []refusal{
		{flowDisable, flowPendingDisable}, {flowFlush, flowOnload}, {flowRemove, flowOnload}}},
	{"entries, hybrid", "les=95", MatchConfig{Mode: MatchHybrid, Buffers: 2, Requests: 2, RequestBytes: 200000,
		Receives: 8}, 60, false, false, []refusal{
		{flowFlush, flowPendingSoft}, {flowRemove, flowPendingSoft}}},
	{"entries, then requests, hybrid", "les=95", MatchConfig{Mode: MatchHybrid, Buffers: 2, Requests: 2,
		RequestBytes: 40000, Receives: 128}, 400, true, false, []refusal{
		{flowFlush, flowOnloadReenable}, {flowRecall, flowOnloadReenable}}},
}

// TestFlowRefused: a receiver stops, or leaves matching to software, and of all that both sides command from then on
// one command is refused, the first, the second and so on (in the short form every 13th). A message or a receive ends
// with an error if it is its own, and nothing if it is one of flow control: all else arrives, in order, and nothing is
// left.
func TestFlowRefused(t *testing.T) {
	for _, c := range flowRefusals {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, "fabric=-1 "+c.settings)
				return
			}
			seen := map[refusal]int{}
			each := 1
			if testing.Short() {
				each = refusedEach
			}
			absent := func(r refusal) bool { return seen[r] == 0 }
			for sweep := range refusedSweeps { // the number of a command is not the same in each run
				refuseEach(t, sweep, each, func(t *testing.T, n int) bool {
					f := newRefusing(t, c.config, seen)
					f.send(c.messages, func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 })
					more := f.refuse(n, func() {
						if c.short {
							f.short()
						}
						for k := 0; c.posted && k < f.sent; k++ {
							f.receives++
							f.b.post(hw.MatchReceive{From: f.a.self, Tagged: true, Tag: 1,
								Local: f.b.at(0, refusedLength)})
						}
						f.drain()
					})
					f.settled(more)
					return more
				})
				if t.Failed() || testing.Short() || !slices.ContainsFunc(c.want, absent) {
					return
				}
			}
			t.Errorf("of %+v some were not refused, but %+v", c.want, seen)
		})
	}
}

// refuseEach runs a test with the number of the command to refuse, for every number, until there is none such.
func refuseEach(t *testing.T, sweep, each int, run func(*testing.T, int) bool) {
	more := true
	for n := 1; more && !t.Failed(); n += each {
		if n >= refusedMost {
			t.Errorf("there are more than %d commands", refusedMost)
			return
		}
		t.Run(fmt.Sprint(sweep, "/", n), func(t *testing.T) { more = run(t, n) })
	}
}

// TestFlowStopsItself: the NIC stops by itself while the command to stop it is on its way, which is refused then: that
// is over, and is not commanded again.
func TestFlowStopsItself(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	f := newRefusing(t, MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, map[refusal]int{})
	dropped := func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 }
	f.send(3, dropped)
	f.short() // for which the NIC is to stop, as it keeps messages
	f.send(30, dropped)
	if !dropped() {
		t.Fatal("the NIC has not stopped")
	}
	w := &f.b.i.match.rx.flow
	for n := 0; w.state() == flowEnabled; n++ {
		refused := f.refuse(1, func() { f.b.i.Progress(1) })
		if commands := w.state() == flowPendingDisable; commands != refused || n > 100 {
			t.Fatalf("state %d, a command is refused: %v", w.state(), refused)
		}
	}
	for n := 0; w.counts.refused.Load() == 0; n++ {
		if f.poll(); n > 10000 {
			t.Fatal("no command is refused")
		}
	}
	if s := w.state(); s != flowOnloadReenable || f.again != 0 {
		t.Errorf("state %d, %+v", s, f.seen)
	}
	f.drain()
	f.settled(false)
}

// TestFlowRefusedForever: the NIC refuses each command of a receiver that has stopped. After a while its receives end
// with an error, which a sleeping thread is woken for, as those do that are posted then, which is said once; the sends
// of its peers end, whether these have said what was dropped or not, and they and what is opened instead work.
func TestFlowRefusedForever(t *testing.T) {
	t.Run("senders that poll", func(t *testing.T) { refusedForever(t, false) })
	t.Run("senders that do not", func(t *testing.T) { refusedForever(t, true) })
}

func refusedForever(t *testing.T, silent bool) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		if said := alone(t, "fabric=-1"); strings.Count(said, errRefused.Error()) != 1 {
			t.Errorf("it is not said once: %s", said)
		}
		return
	}
	c := MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8, refusedFor: 50 * time.Millisecond}
	f := newRefusing(t, c, map[refusal]int{})
	late := newMatching(t, MatchConfig{}, 8) // learns of its drops when the receiver has ended
	f.other++
	f.b.post(hw.MatchReceive{From: f.a.self, Tagged: true, Tag: 2, Local: f.b.at(0, 8), Context: refusedOther})
	if f.silent = silent; silent {
		for range 30 {
			f.a.send(hw.MatchSend{To: f.b.self, Tagged: true, Tag: 1, Local: f.a.at(0, refusedLength)})
		}
	} else {
		f.send(30, func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 })
	}
	late.send(hw.MatchSend{To: f.b.self, Tagged: true, Tag: 1, Inject: []byte{1}})
	if err := f.b.i.EnableWait(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !f.b.i.match.rx.down.Load(); {
		f.refuse(1, func() { f.poll() })
		if time.Now().After(end) {
			t.Fatalf("state %d", f.b.i.match.rx.flow.state())
		}
	}
	for f.other > 0 {
		f.b.arm()
		f.b.woken()
		f.b.i.Progress(1)
	}
	f.refusedPeers(late)
	if f.failed != 1 || f.again == 0 || len(f.got) != 0 {
		t.Errorf("%d receives have failed, %d commands were to be posted again, %v have come", f.failed, f.again, f.got)
	}
	_, err := f.b.m.PostReceive(&hw.MatchReceive{From: f.a.self, Tagged: true, Tag: 1, Local: f.b.at(0, 8)})
	if !errors.Is(err, unix.EIO) {
		t.Errorf("a receive is posted: %v", err)
	}
	other := newMatching(t, MatchConfig{}, 4096)
	f.b.m.OnMatch(func(e *hw.MatchEvent) { f.b.events = append(f.b.events, *e) })
	works(t, other, newMatching(t, MatchConfig{}, 4096))
	works(t, f.b, other)
}

// refusedPeers has sends end whose receiver has ended: those that it has dropped, and one that is posted then.
func (f *refusing) refusedPeers(late *matching) {
	f.t.Helper()
	f.a.m.OnMatch(func(e *hw.MatchEvent) { f.a.events = append(f.a.events, *e) })
	for range 2 {
		for _, x := range []*matching{f.a, late} {
			for end := time.Now().Add(10 * time.Second); x.i.match.txOf(f.b.self).inFlight() > 0; x.i.Progress(8) {
				f.b.i.Progress(8)
				if time.Now().After(end) {
					f.t.Fatalf("sends do not end: %+v", x.events)
				}
			}
			if len(x.events) == 0 {
				f.t.Error("no send ends")
			}
			for _, e := range x.events {
				if !errors.Is(e.Err, hw.ErrPeerDead) && !(f.silent && e.Err == nil) { // one that had come before
					f.t.Errorf("%+v", e)
				}
			}
			x.clear()
			x.send(hw.MatchSend{To: f.b.self, Tagged: true, Tag: 1, Inject: []byte{1}})
		}
	}
}

// TestFlowRefusedPaused: the NIC refuses a command of a receiver that has stopped, and once more after the application
// has not polled for longer than commands may be refused: the receiver goes on.
func TestFlowRefusedPaused(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	c := MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8, refusedFor: 50 * time.Millisecond}
	f := newRefusing(t, c, map[refusal]int{})
	f.send(30, func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 })
	w := &f.b.i.match.rx.flow
	for n := range uint64(2) {
		for end := time.Now().Add(20 * time.Second); w.counts.refused.Load() <= n; {
			f.refuse(1, func() { f.poll() })
			if time.Now().After(end) {
				t.Fatalf("%d commands are refused, state %d", n, w.state())
			}
		}
		time.Sleep(2 * c.refusedFor)
	}
	f.drain()
	f.settled(true)
}

// TestFlowFailedCall: of the calls of the driver that a receiver without room makes, to learn what the NIC keeps and to
// have messages be taken again, one fails: it is made again. So is that for what the NIC has dropped, where a peer says
// that it is more.
func TestFlowFailedCall(t *testing.T) {
	hybrid := MatchConfig{Mode: MatchHybrid, Unexpected: 6, Requests: 2, RequestBytes: 400000, Receives: 8}
	for _, c := range []struct {
		name   string
		config MatchConfig
		call   int  // that fails
		lies   bool // a peer reports more drops than there are
		want   refusal
	}{
		{"what it keeps", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 1, false,
			refusal{flowRecall, flowOnloadReenable}},
		{"what it keeps, hybrid", hybrid, 1, false, refusal{flowRecall, flowOnload}},
		{"software is to match", hybrid, 2, false, refusal{flowEnable, flowControl}},
		{"what it has dropped", MatchConfig{Buffers: 2, BufferBytes: 40000, Receives: 8}, 2, true,
			refusal{flowEnable, flowControl}},
		{"what it has dropped, hybrid", hybrid, 3, true, refusal{flowEnable, flowControl}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, "fabric=-1")
				return
			}
			f := newRefusing(t, c.config, map[refusal]int{})
			f.send(30, func() bool { return f.a.m.(hw.MatchCounter).MatchStats().Dropped > 0 })
			if c.lies {
				liar := newMatching(t, MatchConfig{}, 8)
				liar.lie(f.b, proto.Control(proto.ControlNotify, 1<<16-1))
				liar.i.Progress(8)
			}
			file := library(t)
			err := errors.Join(step.Set(file, "call_rc", int(unix.EBUSY)), step.Set(file, "call_at", c.call))
			if err != nil {
				t.Fatal(err)
			}
			f.drain()
			f.settled(false)
			if err := step.Set(file, "call_at", 0); err != nil {
				t.Fatal(err)
			}
			if f.seen[c.want] == 0 {
				t.Errorf("the call has not failed: %v", f.seen)
			}
		})
	}
}

// TestFlowCallAnswered: the driver fails a call that is to have messages be taken again, and answers the next one that
// there are drops of which their sender has not said: refusals count from anew.
func TestFlowCallAnswered(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	f := newRefusing(t, MatchConfig{Mode: MatchHybrid, Unexpected: 6, Requests: 2, RequestBytes: 400000, Receives: 8},
		map[refusal]int{})
	late := newMatching(t, MatchConfig{}, 8)
	f.send(30, func() bool { return false })
	w := &f.b.i.match.rx.flow
	for end := time.Now().Add(10 * time.Second); w.state() != flowOnload; f.poll() {
		if time.Now().After(end) {
			t.Fatalf("state %d", w.state())
		}
	}
	late.send(hw.MatchSend{To: f.b.self, Tagged: true, Tag: 1, Inject: []byte{1}})
	for end := time.Now().Add(10 * time.Second); !late.i.match.tx.events.Waiting(); {
		if time.Now().After(end) {
			t.Fatal("no message is dropped")
		}
	}
	file := library(t)
	err := errors.Join(step.Set(file, "call_rc", int(unix.EBUSY)), step.Set(file, "call_at", 2))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; f.poll() {
		failed := f.seen[refusal{flowEnable, flowControl}] > 0
		if failed && w.refusedAt.IsZero() && w.state() == flowControl {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("failed: %v, refused at %v, state %d", failed, w.refusedAt, w.state())
		}
	}
	for end := time.Now().Add(10 * time.Second); !taking(w.state()); late.i.Progress(8) {
		if f.poll(); time.Now().After(end) {
			t.Fatalf("state %d", w.state())
		}
	}
}
