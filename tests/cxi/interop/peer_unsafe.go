package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi"
)

// op is something posted.
type op struct {
	memory hw.Memory
	b      []byte
	id     hw.MatchID
	notify hw.MatchID // of a region: its entry for writes with data
	count  int        // of a region: writes
	search bool
	throw  bool // a receive that throws away what was claimed
	atomic bool
	claim  hw.Claim
}

// side is one side of the tests: an endpoint that does what it reads.
type side struct {
	i     *cxi.Iface
	d     *cxi.MemoryDomain
	m     hw.Matcher
	peers []hw.MatchAddress // in the order in which they were named
	peer  hw.MatchAddress   // where messages go
	ops   [256]op
	lines []string // that await has not printed
	// region is what the NIC has answered about a region, nil: nothing yet.
	region *error
	// chosen says that the NIC chooses keys, counted that what is written by them is counted.
	chosen, counted bool
}

// open makes the endpoint and prints its name.
func (s *side) open(c cxi.MatchConfig) (err error) {
	logf := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	if s.d, err = cxi.OpenDomain(cxi.DomainConfig{Logf: logf}); err != nil {
		return err
	}
	if s.i, err = s.d.Open(cxi.Config{Match: &c, Logf: logf}); err != nil {
		return err
	}
	s.m = s.i.Matcher()
	s.m.OnMatch(s.say)
	fmt.Print("name")
	for _, b := range s.m.MatchName() {
		fmt.Print(" ", b)
	}
	fmt.Println()
	return nil
}

// begin takes memory for what is posted.
func (s *side) begin(id, n int) (*op, hw.Segment, error) {
	o := &s.ops[id%len(s.ops)]
	if o.memory != nil {
		if err := o.memory.Close(); err != nil {
			return nil, hw.Segment{}, err
		}
	}
	*o = op{}
	if n == 0 {
		return o, hw.Segment{}, nil
	}
	var err error
	if o.memory, err = s.d.Alloc(hw.Region{Len: n, Access: hw.LocalWrite}); err != nil {
		return nil, hw.Segment{}, err
	}
	at := o.memory.Region().Addr
	o.b = unsafe.Slice((*byte)(at), n)
	return o, hw.Segment{Addr: at, Len: n, Memory: o.memory}, nil
}

func (s *side) receive(line string) error {
	var id, n int
	var tagged, directed, many bool
	var tag, ignore uint64
	if _, err := fmt.Sscanf(line, "receive %d %t %x %x %d %t %t", &id, (*flag)(&tagged), &tag, &ignore, &n,
		(*flag)(&directed), (*flag)(&many)); err != nil {
		return err
	}
	o, local, err := s.begin(id, n)
	if err != nil {
		return err
	}
	r := hw.MatchReceive{From: hw.AnyAddress, Tagged: tagged, Tag: tag, Ignore: ignore, Local: local, Multi: many,
		MinFree: 1000, Context: uint64(id)}
	if directed {
		r.From = s.peer
	}
	o.id, err = s.m.PostReceive(&r)
	return err
}

func (s *side) send(line string) error {
	var id, n int
	var tagged, hasData bool
	var tag, data uint64
	var level string
	if _, err := fmt.Sscanf(line, "send %d %t %x %d %t %x %s", &id, (*flag)(&tagged), &tag, &n, (*flag)(&hasData),
		&data, &level); err != nil {
		return err
	}
	o, local, err := s.begin(id, n)
	if err != nil {
		return err
	}
	o.fill(id)
	p := hw.MatchSend{To: s.peer, Tagged: tagged, Tag: tag, Data: data, HasData: hasData, Local: local,
		Matched: level == "match", Context: uint64(id)}
	if level == "inject" {
		p.Inject, p.Local = o.b, hw.Segment{}
	}
	if err = s.m.PostMatched(&p); err == nil {
		fmt.Printf("ok %x\n", sum(o.b))
	}
	return err
}

// fill makes what is sent.
func (o *op) fill(id int) {
	for k := range o.b {
		o.b[k] = byte(id*131 + k*7 + k>>8)
	}
}

func (s *side) memory() hw.MemoryMatcher { return s.m.(hw.MemoryMatcher) }

// answered waits for the NIC's answer about a region.
func (s *side) answered() error {
	s.region = nil
	for end := time.Now().Add(10 * time.Second); s.region == nil; s.i.Progress(1) {
		if time.Now().After(end) {
			return errors.New("no answer about a region")
		}
	}
	return *s.region
}

func (s *side) expose(line string) error {
	var id, n int
	var key uint64
	var rights string
	if _, err := fmt.Sscanf(line, "expose %d %x %d %s", &id, &key, &n, &rights); err != nil {
		return err
	}
	access := hw.Access(0)
	for _, right := range rights {
		access |= map[rune]hw.Access{'r': hw.RemoteRead, 'w': hw.RemoteWrite}[right]
	}
	o, _, err := s.begin(id, n)
	if err != nil {
		return err
	}
	o.fill(id)
	r := hw.MatchRegion{Memory: o.memory, Key: key, Access: access, Choose: s.chosen,
		Data: s.chosen && !s.counted, Events: s.counted, Context: uint64(id)}
	o.id, err = s.memory().Expose(&r)
	key = r.Key
	if err == nil {
		err = s.answered()
	}
	if err == nil && !s.counted && access&hw.RemoteWrite != 0 {
		o.notify, err = s.memory().Expose(&hw.MatchRegion{Memory: o.memory, Key: key, Access: hw.RemoteWrite,
			Notify: true})
		if err == nil {
			err = s.answered()
		}
	}
	if err == nil {
		fmt.Printf("ok %x\n", key)
	}
	return err
}

func (s *side) content(line string) error {
	var id, off, n int
	_, err := fmt.Sscanf(line, "content %d %d %d", &id, &off, &n)
	if err == nil {
		fmt.Printf("ok %x\n", sum(s.ops[id%len(s.ops)].b[off:off+n]))
	}
	return err
}

func (s *side) transfer(line string) error {
	var word string
	var id, n int
	var key, off uint64
	if _, err := fmt.Sscanf(line, "%s %d %x %d %d", &word, &id, &key, &off, &n); err != nil {
		return err
	}
	o, local, err := s.begin(id, n)
	if err != nil {
		return err
	}
	o.search = word == "read"
	if !o.search {
		o.fill(id)
	}
	err = s.memory().PostTransfer(&hw.MatchTransfer{To: s.peer, Key: key, Offset: off, Get: o.search, Local: local,
		Context: uint64(id)})
	if err == nil {
		fmt.Printf("ok %x\n", sum(o.b))
	}
	return err
}

// put writes with a completion level, or with data.
func (s *side) put(line string) error {
	var id, n int
	var key, off, data uint64
	var level string
	if _, err := fmt.Sscanf(line, "put %d %x %d %d %s %x", &id, &key, &off, &n, &level, &data); err != nil {
		return err
	}
	o, local, err := s.begin(id, n)
	if err != nil {
		return err
	}
	o.fill(id)
	t := hw.MatchTransfer{To: s.peer, Key: key, Offset: off, Local: local, Context: uint64(id),
		Delivered: level == "delivery", HasData: level == "data", Data: data}
	if level == "inject" {
		t.Inject, t.Local = o.b, hw.Segment{}
	}
	if err = s.memory().PostTransfer(&t); err == nil {
		fmt.Printf("ok %x\n", sum(o.b))
	}
	return err
}

// atomic performs an operation on an element.
func (s *side) atomic(line string) error {
	var id int
	a := hw.MatchAtomic{To: s.peer}
	var op, kind uint8
	var v [4]uint64
	if _, err := fmt.Sscanf(line, "atomic %d %x %d %d %d %t %x %x %x %x", &id, &a.Key, &a.Offset, &op, &kind,
		(*flag)(&a.Fetch), &v[0], &v[1], &v[2], &v[3]); err != nil {
		return err
	}
	o, _, err := s.begin(id, 0)
	if err != nil {
		return err
	}
	o.atomic = true
	a.Op, a.Type, a.Context = hw.MatchOp(op), hw.MatchType(kind), uint64(id)
	for k, b := range [][]byte{a.Operand[:8], a.Operand[8:], a.Compare[:8], a.Compare[8:]} {
		binary.NativeEndian.PutUint64(b, v[k])
	}
	return s.m.(hw.AtomicMatcher).PostAtomic(&a)
}

// withdraw ends a region.
func (s *side) withdraw(id int) error {
	o := &s.ops[id%len(s.ops)]
	for _, entry := range []hw.MatchID{o.id, o.notify} {
		if entry == 0 {
			continue
		}
		err := s.memory().Withdraw(entry)
		if err == nil {
			err = s.answered()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *side) search(line string) error {
	var id int
	var tagged bool
	var tag uint64
	var word string
	if _, err := fmt.Sscanf(line, "%s %d %t %x", &word, &id, (*flag)(&tagged), &tag); err != nil {
		return err
	}
	o, _, err := s.begin(id, 0)
	if err != nil {
		return err
	}
	o.search = true
	r := hw.MatchReceive{From: hw.AnyAddress, Tagged: tagged, Tag: tag, Context: uint64(id)}
	if word == "claim" {
		return s.m.(hw.Claimer).Claim(&r)
	}
	return s.m.Search(&r)
}

// take receives what was claimed, or throws it away.
func (s *side) take(line string) error {
	var id, n int
	var word string
	if _, err := fmt.Sscanf(line+" 0", "%s %d %d", &word, &id, &n); err != nil {
		return err
	}
	claim := s.ops[id%len(s.ops)].claim
	o, local, err := s.begin(id, n)
	if err != nil {
		return err
	}
	o.throw, o.claim = word == "discard", claim
	return s.m.(hw.Claimer).ReceiveClaimed(claim, &hw.MatchReceive{Local: local, Context: uint64(id)})
}

// flag is a 0 or 1 in a command.
type flag bool

// Scan reads it.
func (f *flag) Scan(state fmt.ScanState, _ rune) error {
	b, err := state.Token(true, nil)
	*f = string(b) == "1"
	return err
}

// sum is a checksum.
func sum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b) // never fails
	return h.Sum64()
}

// say notes what has become of something, for await.
func (s *side) say(e *hw.MatchEvent) {
	o := &s.ops[e.Context%uint64(len(s.ops))]
	switch {
	case e.Kind == hw.MatchExposed || e.Kind == hw.MatchWithdrawn:
		err := e.Err
		s.region = &err
	case e.Kind == hw.MatchWritten && !e.HasData:
		o.count++
	case e.Kind == hw.MatchWritten:
		s.note("written %x %d %d", e.Data, e.Length, s.from(e))
	case e.Kind == hw.MatchTransferred && e.Err != nil:
		s.note("refused %d", e.Context)
	case e.Kind == hw.MatchTransferred && o.atomic:
		s.note("performed %d %x %x", e.Context, binary.NativeEndian.Uint64(e.Fetched[:]),
			binary.NativeEndian.Uint64(e.Fetched[8:]))
	case e.Kind == hw.MatchTransferred && o.search:
		s.note("read %d %x", e.Context, sum(o.b))
	case e.Kind == hw.MatchTransferred:
		s.note("sent %d", e.Context)
	case e.Kind == hw.MatchCanceled:
		s.note("canceled %d", e.Context)
	case e.Err != nil:
		s.note("error %d %v", e.Context, e.Err)
	case e.Kind == hw.MatchMissing:
		s.note("missing %d", e.Context)
	case e.Kind == hw.MatchFound:
		o.claim = e.Claim
		s.note("found %d %d %x", e.Context, e.Wanted, e.Tag)
	case e.Kind == hw.MatchSent:
		s.note("sent %d", e.Context)
	case o.throw:
		s.note("discarded %d %d", e.Context, e.Wanted)
	case e.Wanted > e.Length:
		s.note("truncated %d %d %d", e.Context, e.Length, e.Wanted-e.Length)
	default:
		s.note("received %d %d %x %x %d %x", e.Context, e.Length, e.Tag, e.Data, s.from(e),
			sum(o.b[e.Offset:e.Offset+e.Length]))
	}
}

// from says which peer an event is of, counted from 1.
func (s *side) from(e *hw.MatchEvent) int { return slices.Index(s.peers, e.From) + 1 }

// note adds a line for await.
func (s *side) note(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *side) await(line string) error {
	var n int
	if _, err := fmt.Sscanf(line, "await %d", &n); err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); n > 0; {
		if len(s.lines) > 0 {
			fmt.Println(s.lines[0])
			s.lines = s.lines[1:]
			n--
			continue
		}
		if s.i.Progress(1) == 0 {
			time.Sleep(20 * time.Microsecond)
		}
		if time.Now().After(end) {
			fmt.Println("late")
			return nil
		}
	}
	fmt.Println("end")
	return nil
}

// drain prints what ends until nothing has for some milliseconds.
func (s *side) drain(line string) error {
	var ms int
	if _, err := fmt.Sscanf(line, "drain %d", &ms); err != nil {
		return err
	}
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); {
		for _, line := range s.lines {
			fmt.Println(line)
			end = time.Now().Add(time.Duration(ms) * time.Millisecond)
		}
		s.lines = s.lines[:0]
		if s.i.Progress(64) == 0 {
			time.Sleep(20 * time.Microsecond)
		}
	}
	fmt.Println("end")
	return nil
}

// scan reads the number that a line has.
func scan(text string, to any) error {
	_, err := fmt.Sscan(text, to)
	return err
}

// do does what a line says, and answers.
func (s *side) do(line string) (err error) {
	ok := true
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "peer":
		name := make([]byte, 8)
		for k, v := range strings.Fields(rest) {
			if err = scan(v, &name[k]); err != nil {
				return err
			}
		}
		if s.peer, err = s.m.ParseMatchName(name); err == nil {
			s.peers = append(s.peers, s.peer)
		}
	case "to":
		var n int
		if err = scan(rest, &n); err == nil {
			s.peer = s.peers[n-1]
		}
	case "receive":
		err = s.receive(line)
	case "send":
		err, ok = s.send(line), false
	case "search", "claim":
		err = s.search(line)
	case "take", "discard":
		err = s.take(line)
	case "expose":
		err, ok = s.expose(line), false
	case "content":
		err, ok = s.content(line), false
	case "withdraw":
		var id int
		if err = scan(rest, &id); err == nil {
			err = s.withdraw(id)
		}
	case "count":
		var id int
		if err = scan(rest, &id); err != nil {
			return err
		}
		s.i.Progress(1000)
		fmt.Println("ok", s.ops[id%len(s.ops)].count)
		ok = false
	case "counter":
		err, ok = s.counter(rest), false
	case "write", "read":
		err, ok = s.transfer(line), false
	case "put":
		err, ok = s.put(line), false
	case "atomic":
		err = s.atomic(line)
	case "cancel":
		var id int
		if err = scan(rest, &id); err == nil {
			err = s.m.CancelReceive(s.ops[id%len(s.ops)].id)
		}
	case "await":
		err, ok = s.await(line), false
	case "drain":
		err, ok = s.drain(line), false
	case "rest":
		for range 5 {
			s.i.Progress(1000)
			s.i.CheckPeers()
			time.Sleep(time.Millisecond)
		}
	default:
		return fmt.Errorf("what is %q", line)
	}
	if err == nil && ok {
		fmt.Println("ok")
	}
	return err
}

// peer is the program as one side.
func peer(c cxi.MatchConfig) error {
	keys := os.Getenv("INTEROP_KEYS")
	s := &side{chosen: keys != "", counted: keys == "counted"}
	if err := s.open(c); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := s.do(in.Text()); errors.Is(err, hw.ErrNoResource) {
			fmt.Println("again")
		} else if err != nil {
			fmt.Println("failed", err)
		}
	}
	return s.i.Close()
}
