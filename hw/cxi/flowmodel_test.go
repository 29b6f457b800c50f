package cxi

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/race"
)

// The model of flow control: two senders of two messages and one (fullPeer), a NIC with few list entries, and a
// receiver (flowCore) that takes any message. The NIC matches, or software, or the NIC until it has no entry. Each step
// is one of: a sender posts; the NIC takes a message; a command of the receiver; a sender takes in an answer or a
// control message; the receiver takes in an event or a control message, or posts, in two steps. All orders of them are
// tried.

const (
	modelSenders  = 2
	modelMessages = 2 // of a sender at most
	modelAll      = 3 // of all
	modelEntries  = 1
)

// modelCounts are how many messages each sends.
var modelCounts = [modelSenders]int8{2, 1}

// modelEvent is an event of the NIC, a command, or a control message.
type modelEvent struct {
	kind  byte
	value int8
}

const (
	evStopped  byte = iota // value: the reason, -1 by software
	evEnabled              // and commands of the same name
	evDiffers              // another count of drops
	evFlushed              // all appends before have taken effect
	evRemoved              // value: a message
	evReceived             // value: a message
	evRefused              // an append; value 1: the first that is tried again
	evLinked               // that one
	evAppend               // value 1: the first that is tried again
	evRecalled             // receives that are taken back; value: how many
	evDisable
	evNotify
	evResume
	evManaged // the NIC leaves matching to software; value: the reason
	evRequest // value: a message that software is to match
	evDropped // answer to a message
	evTaken
)

// modelSender is one.
type modelSender struct {
	posted int8
	wire   []int8 // messages on their way, in order
	acks   []modelEvent
	peer   *fullPeer
	inbox  []modelEvent
	epoch  int8 // of the NIC, when it dropped a message
}

// modelWorld is a state of all.
type modelWorld struct {
	senders [modelSenders]modelSender
	// NIC
	enabled, failing bool
	managed          bool // what no receive takes goes to software
	room             int8 // for that
	entries          int8
	drops            int8
	epoch            int8 // how often it was enabled
	unexpected       []int8
	appended         int8
	events, commands []modelEvent
	// receiver
	core             flowCore
	control          []modelEvent // value: drops * modelSenders + sender
	soft             []int8
	later            []int8 // messages for software that came while others were taken over
	softPosts        int8   // receives that software matches
	removing         int8
	posts, waiting   int8
	reading, probing bool
	claimed          bool
	got              []int8
	resumedTooEarly  bool
}

// modelMutant is a fault that the model must find.
type modelMutant struct {
	name                                  string
	uncounted, early, blind, noAsk, reset bool
	hasty, kept                           bool
}

func newModelWorld(first int64, mode MatchMode) *modelWorld {
	w := &modelWorld{enabled: true, entries: modelEntries, room: 1, managed: mode == MatchSoftware}
	w.core = flowCore{first: first, drops: first, hybrid: mode == MatchHybrid, software: w.managed}
	w.core.state = w.core.enabled()
	return w
}

func (w *modelWorld) clone() *modelWorld {
	c := *w
	for k := range c.senders {
		s := &c.senders[k]
		s.wire, s.acks, s.inbox = slices.Clone(s.wire), slices.Clone(s.acks), slices.Clone(s.inbox)
		if s.peer != nil {
			p := *s.peer
			p.waiting = slices.Clone(p.waiting)
			s.peer = &p
		}
	}
	c.unexpected, c.events, c.commands = slices.Clone(c.unexpected), slices.Clone(c.events),
		slices.Clone(c.commands)
	c.control, c.soft, c.got = slices.Clone(c.control), slices.Clone(c.soft), slices.Clone(c.got)
	c.core.notified, c.later = slices.Clone(c.core.notified), slices.Clone(w.later)
	return &c
}

func (w *modelWorld) key() string {
	var b []byte
	put := func(v ...int8) {
		b = append(b, byte(len(v)))
		for _, x := range v {
			b = append(b, byte(x))
		}
	}
	flag := func(v bool) int8 {
		if v {
			return 1
		}
		return 0
	}
	list := func(l []modelEvent) {
		b = append(b, byte(len(l)))
		for _, e := range l {
			b = append(b, e.kind, byte(e.value))
		}
	}
	for k := range w.senders {
		s := &w.senders[k]
		put(s.posted, s.epoch)
		put(s.wire...)
		list(s.acks)
		list(s.inbox)
		if s.peer != nil {
			put(int8(s.peer.underway), int8(s.peer.drops))
			for _, n := range s.peer.waiting {
				put(int8(n))
			}
		}
	}
	put(w.epoch, flag(w.enabled), flag(w.failing), w.entries, w.drops, w.appended, w.removing, w.posts,
		w.waiting, flag(w.reading),
		flag(w.probing), flag(w.claimed))
	put(w.unexpected...)
	put(w.soft...)
	put(w.later...)
	put(flag(w.managed), w.room, w.softPosts, flag(w.core.software), flag(w.core.leave), flag(w.core.recall))
	put(w.got...)
	list(w.events)
	list(w.commands)
	list(w.control)
	c := &w.core
	put(int8(c.state), int8(c.drops), flag(c.asked), int8(c.askedDrops), int8(c.askedSenders))
	for _, a := range c.notified {
		put(int8(a))
	}
	return string(b)
}

// next are the states that one step leads to.
func (w *modelWorld) next(m *modelMutant) (all []*modelWorld) {
	try := func(can bool, step func(*modelWorld)) {
		if can {
			c := w.clone()
			step(c)
			all = append(all, c)
		}
	}
	for k := range w.senders {
		s := &w.senders[k]
		try(s.posted < modelCounts[k] && s.peer == nil, func(w *modelWorld) { w.send(k) })
		try(len(s.wire) > 0, func(w *modelWorld) { w.arrive(k) })
		try(len(s.acks) > 0, func(w *modelWorld) { w.answer(k, m) })
		try(len(s.inbox) > 0, func(w *modelWorld) { w.replay(k) })
	}
	try(len(w.commands) > 0, (*modelWorld).command)
	try(len(w.events) > 0, func(w *modelWorld) { w.event(m) })
	try(len(w.control) > 0, func(w *modelWorld) { w.notified(m) })
	try(!w.reading && w.posts < modelAll && appends(w.core.state), func(w *modelWorld) { w.reading = true })
	try(w.reading, func(w *modelWorld) { w.post(m) })
	try(w.core.hybrid && !w.claimed && len(w.unexpected) > 0, func(w *modelWorld) {
		if w.claimed = w.core.stop(true, false); w.claimed {
			w.commands = append(w.commands, modelEvent{evDisable, 0})
		}
	})
	try(w.waiting > 0 && !w.probing && !w.core.software && appends(w.core.state) &&
		(w.entries > 0 || len(w.unexpected) > 0),
		func(w *modelWorld) {
			w.probing = true
			w.commands = append(w.commands, modelEvent{evAppend, 1})
		})
	return all
}

func (w *modelWorld) send(k int) {
	s := &w.senders[k]
	s.wire = append(s.wire, int8(k*modelMessages)+s.posted)
	s.posted++
}

// arrive has the NIC take a message.
func (w *modelWorld) arrive(k int) {
	s := &w.senders[k]
	n := s.wire[0]
	s.wire = s.wire[1:]
	e := modelEvent{evTaken, n}
	switch {
	case !w.enabled:
		w.drops++
		e.kind = evDropped
	case w.appended > 0:
		w.appended--
		w.entries++
		w.events = append(w.events, modelEvent{evReceived, n})
	case w.entries > 0 && !w.managed:
		w.entries--
		w.unexpected = append(w.unexpected, n)
	case w.request(n):
	default:
		reason := int8(wire.ReasonFcUnexpectedFail)
		if w.managed {
			reason = wire.ReasonFcRequestFull
		}
		w.enabled, w.managed, w.drops = false, false, int8(w.core.first)+1
		w.events = append(w.events, modelEvent{evStopped, reason})
		e.kind = evDropped
	}
	if e.kind == evDropped {
		s.epoch = w.epoch
	}
	s.acks = append(s.acks, e)
}

// request has the NIC leave a message to software. False: there is no room.
func (w *modelWorld) request(n int8) bool {
	if !w.managed && w.core.hybrid {
		w.managed = true
		w.events = append(w.events, modelEvent{evManaged, wire.ReasonSmUnexpectedFail})
	}
	if !w.managed || w.room == 0 {
		return false
	}
	w.room--
	w.events = append(w.events, modelEvent{evRequest, n})
	return true
}

// answer has a sender take in an answer.
func (w *modelWorld) answer(k int, m *modelMutant) {
	s := &w.senders[k]
	e := s.acks[0]
	s.acks = s.acks[1:]
	notify := false
	switch {
	case e.kind == evDropped:
		if s.peer == nil {
			s.peer = &fullPeer{underway: 1 + len(s.acks) + len(s.wire)}
		}
		if notify = s.peer.dropped(uint32(e.value)); m.uncounted && len(s.peer.waiting) == 2 {
			s.peer.drops--
		}
	case s.peer != nil:
		notify = s.peer.answered()
	}
	if notify {
		w.control = append(w.control, modelEvent{evNotify, int8(s.peer.drops)*modelSenders + int8(k)})
	}
}

// replay has a sender send again.
func (w *modelWorld) replay(k int) {
	s := &w.senders[k]
	s.inbox = s.inbox[1:]
	if s.peer == nil || s.peer.underway > 0 || s.epoch == w.epoch {
		w.resumedTooEarly = true
		return
	}
	again := s.peer.waiting
	s.peer = nil
	slices.Sort(again)
	for _, n := range again {
		s.wire = append(s.wire, int8(n))
	}
}

// command has the NIC do a command.
func (w *modelWorld) command() {
	e := w.commands[0]
	w.commands = w.commands[1:]
	switch e.kind {
	case evAppend:
		w.link(e.value == 1)
	case evDisable:
		if w.enabled {
			w.enabled, w.managed, w.drops = false, false, 0
		}
		w.events = append(w.events, modelEvent{evStopped, -1})
	case evFlushed:
		w.events = append(w.events, e)
	case evRecalled:
		w.events = append(w.events, modelEvent{evRecalled, w.appended})
		w.entries, w.appended = w.entries+w.appended, 0
	case evRemoved:
		n := w.unexpected[0]
		w.unexpected = w.unexpected[1:]
		w.entries++
		w.events = append(w.events, modelEvent{evRemoved, n})
	case evEnabled:
		if w.drops != e.value {
			w.events = append(w.events, modelEvent{evDiffers, 0})
			return
		}
		w.enabled, w.drops = true, 0
		w.epoch++
		w.events = append(w.events, e)
	}
}

// link appends a receive.
func (w *modelWorld) link(restart bool) {
	tried := int8(0)
	if restart {
		w.failing, tried = false, 1
	}
	switch {
	case w.managed || w.failing || w.entries == 0:
		w.failing = w.failing || !w.managed
		w.events = append(w.events, modelEvent{evRefused, tried})
		if w.core.hybrid && w.enabled && !w.managed {
			w.managed = true
			w.events = append(w.events, modelEvent{evManaged, wire.ReasonSmAppendFail})
		}
		return
	case len(w.unexpected) > 0:
		n := w.unexpected[0]
		w.unexpected = w.unexpected[1:]
		w.entries++
		w.events = append(w.events, modelEvent{evReceived, n})
	default:
		w.entries--
		w.appended++
	}
	if restart {
		w.events = append(w.events, modelEvent{evLinked, 0})
	}
}

// event has the receiver take in an event.
func (w *modelWorld) event(m *modelMutant) {
	e := w.events[0]
	w.events = w.events[1:]
	c := &w.core
	switch e.kind {
	case evReceived:
		w.got = append(w.got, e.value)
	case evRefused:
		if e.value == 1 {
			w.probing = false
		} else {
			w.waiting++
		}
		if c.hybrid && c.stop(e.value == 1, true) || !c.hybrid && c.stop(len(w.unexpected) > 0, false) {
			w.commands = append(w.commands, modelEvent{evDisable, 0})
		}
	case evLinked:
		w.probing = false
		w.waiting--
	case evStopped:
		if c.stopped(e.value >= 0, uint32(max(e.value, 0))) {
			w.commands = append(w.commands, modelEvent{evFlushed, 0})
		}
	case evManaged:
		if c.managed() {
			w.commands = append(w.commands, modelEvent{evFlushed, 0})
		}
	case evRequest:
		if c.matches() || m.hasty {
			w.match(e.value)
		} else {
			w.later = append(w.later, e.value)
		}
	case evFlushed:
		if c.recall && !m.kept {
			w.commands = append(w.commands, modelEvent{evRecalled, 0})
			return
		}
		w.remove()
	case evRecalled:
		w.waiting += e.value
		w.remove()
	case evRemoved:
		w.removing--
		w.soft = append(w.soft, e.value)
		w.onloaded()
	case evDiffers:
		if c.differs() || c.counted(int64(w.drops)) {
			w.ask(m)
		}
	case evEnabled:
		w.resumed(m)
	}
}

// remove begins to take over the NIC's messages.
func (w *modelWorld) remove() {
	w.removing = int8(len(w.unexpected))
	for range w.unexpected {
		w.commands = append(w.commands, modelEvent{evRemoved, 0})
	}
	w.onloaded()
}

// onloaded matches receives that wait when all messages were taken over.
func (w *modelWorld) onloaded() {
	if w.removing > 0 {
		return
	}
	w.core.takenOver()
	for w.waiting > 0 && len(w.soft) > 0 {
		w.waiting--
		w.got, w.soft = append(w.got, w.soft[0]), w.soft[1:]
	}
	if w.core.software {
		w.softPosts, w.waiting = w.softPosts+w.waiting, 0
	}
	later := w.later
	w.later = nil
	for _, n := range later {
		w.match(n)
	}
	w.ask(&modelMutant{})
}

// match has software match a message, which has room for the next then.
func (w *modelWorld) match(n int8) {
	w.room++
	if w.softPosts > 0 {
		w.softPosts--
		w.got = append(w.got, n)
		return
	}
	w.soft = append(w.soft, n)
}

func (w *modelWorld) ask(m *modelMutant) {
	drops, ok := w.core.ask()
	if !ok || m.noAsk {
		return
	}
	if !w.core.software {
		w.commands = append(w.commands, modelEvent{evEnabled, int8(drops)})
		return
	}
	if int64(w.drops) == drops {
		w.enabled, w.managed, w.drops = true, true, 0
		w.epoch++
		w.resumed(m)
	} else if w.core.differs() || w.core.counted(int64(w.drops)) {
		w.ask(m)
	}
}

// resumed has the senders know that messages are taken again.
func (w *modelWorld) resumed(m *modelMutant) {
	for _, to := range w.core.resumed() {
		w.senders[to].inbox = append(w.senders[to].inbox, modelEvent{evResume, 0})
	}
	if m.reset {
		w.core.drops = w.core.first
	}
}

// notified has the receiver take in a notice.
func (w *modelWorld) notified(m *modelMutant) {
	e := w.control[0]
	w.control = w.control[1:]
	k := e.value % modelSenders
	w.core.notify(hw.MatchAddress(k), uint32(e.value/modelSenders))
	if m.early {
		w.senders[k].inbox = append(w.senders[k].inbox, modelEvent{evResume, 0})
		w.core.notified = nil
	}
	w.ask(m)
}

// post has the receiver post a receive, having read the state.
func (w *modelWorld) post(m *modelMutant) {
	w.reading = false
	switch {
	case !appends(w.core.state) && !m.blind:
	case len(w.soft) > 0:
		w.got, w.soft = append(w.got, w.soft[0]), w.soft[1:]
		w.posts++
	case w.core.software:
		w.softPosts++
		w.posts++
	case w.waiting > 0:
		w.waiting++
		w.posts++
	default:
		w.commands = append(w.commands, modelEvent{evAppend, 0})
		w.posts++
	}
}

// wrong is what is not as it should be: in what has come, and in the end.
func (w *modelWorld) wrong(end bool) error {
	if w.resumedTooEarly {
		return fmt.Errorf("a sender is to send again that is not ready to")
	}
	return w.order(end)
}

func (w *modelWorld) order(end bool) error {
	last := [modelSenders]int8{-1, -1}
	for _, n := range w.got {
		if k := n / modelMessages; n%modelMessages != last[k]+1 {
			return fmt.Errorf("messages come as %v", w.got)
		}
		last[n/modelMessages]++
	}
	if end && (len(w.got) != modelAll || !taking(w.core.state) && w.core.state != flowControl) {
		return fmt.Errorf("it ends with %v in state %s: %+v", w.got, w.core.state, w)
	}
	return nil
}

// exploreFlow tries all orders, and returns how many states there are and the first fault.
func exploreFlow(first int64, mode MatchMode, m *modelMutant) (int, error) {
	start := newModelWorld(first, mode)
	seen := map[string]bool{start.key(): true}
	for todo := []*modelWorld{start}; len(todo) > 0; {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next := w.next(m)
		if err := w.wrong(len(next) == 0); err != nil {
			return len(seen), err
		}
		for _, n := range next {
			if k := n.key(); !seen[k] {
				seen[k] = true
				todo = append(todo, n)
			}
		}
	}
	return len(seen), nil
}

// TestFlowModel tries every order of the steps of a NIC, a receiver and two senders.
func TestFlowModel(t *testing.T) {
	if race.Enabled {
		t.Skip("one thread: nothing for the race detector")
	}
	for _, mode := range []MatchMode{MatchHardware, MatchSoftware, MatchHybrid} {
		for _, first := range []int64{-1, 0} {
			n, err := exploreFlow(first, mode, &modelMutant{})
			t.Logf("%d states", n)
			if err != nil {
				t.Errorf("mode %d, count from %d: %v", mode, first, err)
			}
		}
	}
	mutants(t, MatchHybrid, []modelMutant{
		{name: "messages matched before those that are taken over", hasty: true},
		{name: "receives left to a NIC that stopped when it had left matching", kept: true},
	})
	mutants(t, MatchHardware, []modelMutant{
		{name: "a drop not counted", uncounted: true}, {name: "a resume before the enabling", early: true},
		{name: "a post between reading the state and its change", blind: true},
		{name: "notices that do not have the NIC asked", noAsk: true},
		{name: "notices of the next stop forgotten", reset: true},
	})
}

// mutants has the model find faults.
func mutants(t *testing.T, mode MatchMode, all []modelMutant) {
	for _, m := range all {
		if n, err := exploreFlow(-1, mode, &m); err == nil {
			t.Errorf("%s: not found in %d states", m.name, n)
		} else {
			t.Logf("%s: %v", m.name, err)
		}
	}
}
