package receive

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// model is what is queued.
type model struct {
	*world
	next       uint64
	receives   []*posted
	unexpected []*sent
	claimed    map[uint64]*sent
}

func (p *posted) takes(m *sent) bool {
	return p.tagged == m.tagged && (p.source < 0 || p.source == int(m.from)) && (p.tag^m.tag)&^p.ignore == 0
}

// outcomeOf is what the completion of a receive says of a message of which n bytes fit.
func outcomeOf(m *sent, n int) outcome {
	o := outcome{tag: m.tag, length: uint64(n), payload: -1, rest: uint64(len(m.payload) - n)}
	if n != 0 {
		o.payload = int(m.payload[0])
	}
	if m.hasData {
		o.data = m.number
	}
	switch {
	case o.rest != 0:
		o.status = fi.ETRUNC
	case m.from >= strangers:
		o.status = fi.EADDRNOTAVAIL
	}
	return o
}

// deliver gives a message to a receive in the model.
func (w *model) deliver(p *posted, m *sent) {
	n := min(len(p.buf)-p.used, len(m.payload))
	o := outcomeOf(m, n)
	if m.kind == long && m.refused {
		o = outcome{status: fi.ENOMEM, tag: m.tag, payload: -1}
	}
	p.want = append(p.want, o)
	p.used += n
	if !p.multi || len(p.buf)-p.used < DefaultMinMulti {
		p.out = true
		w.receives = slices.DeleteFunc(w.receives, func(q *posted) bool { return q == p })
	}
	if m.kind != eager && len(m.want) == 0 {
		status := fi.Success
		if m.kind == long && m.refused {
			status = fi.ENOMEM
		}
		m.want = []fi.Errno{status}
	}
}

// arrive has a message arrive.
func (w *model) arrive() {
	w.next++
	m := &sent{
		at: w.eps[w.r.IntN(len(w.eps))], from: hw.Source(w.r.IntN(sendersOf)), kind: w.r.IntN(4),
		tagged: w.r.IntN(2) == 0, tag: w.r.Uint64N(4), number: w.next, hasData: w.r.IntN(2) == 0,
		payload: bytes.Repeat([]byte{byte(w.next)}, []int{0, 1, 8, 9, 50, 200}[w.r.IntN(6)]),
	}
	if m.kind == eager {
		m.from = strangers + m.from%(sendersOf-strangers) // the data plane takes others in
	}
	m.refused = m.kind == long && w.r.IntN(8) == 0
	w.messages[m.number] = m
	for _, p := range w.receives {
		if p.takes(m) {
			w.deliver(p, m)
			w.send(m)
			return
		}
	}
	w.unexpected = append(w.unexpected, m)
	if m.kind == awaited {
		m.want = []fi.Errno{fi.Success}
	}
	w.send(m)
}

// send calls the handler of a message.
func (w *model) send(m *sent) {
	flags := uint32(0)
	if m.tagged {
		flags |= wire.FlagTagged
	}
	if m.hasData {
		flags |= wire.FlagData
	}
	var head []byte
	switch m.kind {
	case eager:
		id := wire.AMMsg
		if m.tagged {
			id = wire.AMTag
		}
		if m.hasData {
			id++
			head = binary.LittleEndian.AppendUint64(nil, m.number)
		}
		m.at.on[id](m.from, m.tag, head, m.payload)
	case long:
		m.at.e.Arrived(m.from, m.tag, &wire.RTS{
			Request: m.number, Length: uint64(len(m.payload)), Data: m.number, Flags: flags,
		})
	default:
		if m.kind == matched {
			flags |= wire.FlagMatch
		}
		s := wire.Sync{Request: m.number, Data: m.number, Flags: flags}
		m.at.on[wire.AMSync](m.from, m.tag, s.Put(make([]byte, wire.SyncBytes)), m.payload)
	}
}

// receive posts a receive.
func (w *model) receive() {
	w.next++
	p := &posted{
		context: w.next, source: w.r.IntN(sendersOf+2) - 2, tagged: w.r.IntN(2) == 0, tag: w.r.Uint64N(4),
		ignore: []uint64{0, 1, ^uint64(0)}[w.r.IntN(3)], buf: make([]byte, []int{0, 8, 60, 300}[w.r.IntN(4)]),
	}
	if p.source < 0 {
		p.source = -1
	}
	flags := uint64(0)
	if p.tagged {
		flags |= hot.RecvTagged
	}
	if p.multi = len(p.buf) == 300 && w.r.IntN(2) == 0; p.multi {
		flags |= fi.MultiRecv
	}
	w.world.receives[p.context] = p
	w.receives = append(w.receives, p)
	for i := 0; i < len(w.unexpected) && !p.out; {
		if m := w.unexpected[i]; p.takes(m) {
			w.unexpected = slices.Delete(w.unexpected, i, i+1)
			w.deliver(p, m)
		} else {
			i++
		}
	}
	entry := hot.RecvEntry{
		Flags: flags, Src: uint64(fi.AddrUnspec), Tag: p.tag, Ignore: p.ignore, Context: p.context,
		Len: uint64(len(p.buf)),
	}
	if p.source >= 0 {
		entry.Src = uint64(p.source)
	}
	if len(p.buf) != 0 {
		entry.Buf = uint64(vector.Of(p.buf).Base)
	}
	w.push(entry)
	if p.multi || w.r.IntN(2) == 0 {
		w.c.Drain(0)
	}
}

// cancel ends a receive that waits.
func (w *model) cancel() {
	if len(w.receives) == 0 {
		return
	}
	p := w.receives[w.r.IntN(len(w.receives))]
	w.receives = slices.DeleteFunc(w.receives, func(q *posted) bool { return q == p })
	p.out = true
	// A buffer into which messages are being fetched is given back with the last of them.
	w.c.Drain(0)
	if !slices.ContainsFunc(w.fetches, func(f *fetch) bool { return f.m.Target.Context == p.context }) {
		p.want = append(p.want, outcome{status: fi.ECANCELED, tag: p.tag, payload: -1})
	}
	w.push(hot.RecvEntry{Flags: hot.RecvCancel, Context: p.context})
	w.c.Drain(0)
}

// search peeks for a message, and claims or drops it.
func (w *model) search() {
	w.next++
	p := &posted{context: w.next, source: -1, tagged: true, tag: w.r.Uint64N(4), buf: make([]byte, 300)}
	w.world.receives[p.context] = p
	flags := hot.RecvTagged | fi.Peek | []uint64{0, fi.Claim, fi.Discard}[w.r.IntN(3)]
	i := slices.IndexFunc(w.unexpected, p.takes)
	if i < 0 {
		p.want = append(p.want, outcome{status: fi.ENOMSG, tag: p.tag, payload: -1})
	} else {
		m := w.unexpected[i]
		o := outcomeOf(m, len(m.payload))
		o.payload = -1 // it names no buffer
		p.want = append(p.want, o)
		if flags&(fi.Claim|fi.Discard) != 0 {
			w.unexpected = slices.Delete(w.unexpected, i, i+1)
		}
		if flags&fi.Discard != 0 && m.kind >= matched {
			m.want = []fi.Errno{fi.Success}
		}
		if flags&fi.Claim != 0 {
			w.claimed[p.context] = m
		}
	}
	w.push(hot.RecvEntry{Flags: flags, Src: uint64(fi.AddrUnspec), Tag: p.tag, Context: p.context})
	w.c.Drain(0)
}

// claim receives or drops the first message that was claimed, if there is one.
func (w *model) claim() {
	if len(w.claimed) == 0 {
		return
	}
	context := slices.Min(slices.Collect(maps.Keys(w.claimed)))
	p, m := w.world.receives[context], w.claimed[context]
	flags := hot.RecvTagged | fi.Claim
	if w.r.IntN(2) == 0 {
		flags |= fi.Discard
		o := outcomeOf(m, len(m.payload))
		o.payload = -1
		p.want = append(p.want, o)
		if m.kind >= matched {
			m.want = []fi.Errno{fi.Success}
		}
	} else {
		w.deliver(p, m)
	}
	delete(w.claimed, context)
	w.push(hot.RecvEntry{
		Flags: flags, Buf: uint64(vector.Of(p.buf).Base), Len: uint64(len(p.buf)), Context: context,
	})
	w.c.Drain(0)
}

// check compares all that has ended with the model.
func (w *model) check() {
	w.c.Drain(0)
	for len(w.fetches) != 0 {
		i := w.r.IntN(len(w.fetches))
		f := w.fetches[i]
		w.fetches = slices.Delete(w.fetches, i, i+1)
		f.end()
	}
	for _, p := range w.world.receives {
		back := 0
		for i := range p.got {
			if p.got[i].multi || p.got[i].status == fi.ECANCELED {
				back++
			}
			p.got[i].multi = false
		}
		if p.multi && back != map[bool]int{true: 1}[p.out] {
			w.t.Errorf("the buffer of receive %d is given back %d times", p.context, back)
		}
		if !same(p.got, p.want) {
			w.t.Errorf("receive %+v ends with\n%+v, not\n%+v", p.context, p.got, p.want)
		}
	}
	for _, m := range w.messages {
		if !slices.Equal(m.acks, m.want) {
			w.t.Errorf("request %d of kind %d is acknowledged with %v, not %v", m.number, m.kind, m.acks, m.want)
		}
	}
	if n := w.c.UnexpectedMessages(); n != len(w.unexpected) {
		w.t.Errorf("%d messages are unexpected, not %d", n, len(w.unexpected))
	}
	if n := w.c.Posted(); n != len(w.receives) {
		w.t.Errorf("%d receives are posted, not %d", n, len(w.receives))
	}
	if over := w.c.UnexpectedBytes > w.c.UnexpectedMax || w.c.Memory > w.c.MemoryMax; over && !w.c.Closed {
		w.t.Error("the window is open, and too much is unexpected")
	}
	for _, h := range w.eps {
		if h.shut != w.c.Closed {
			w.t.Errorf("the window of a transport is shut %v, the context's %v", h.shut, w.c.Closed)
		}
		if h.bad != 0 || h.again != 0 {
			w.t.Errorf("%d malformed messages, %d postponed", h.bad, h.again)
		}
	}
}

// same reports whether there are the same outcomes, in any order: payloads of long messages come in any.
func same(a, b []outcome) bool {
	rest := slices.Clone(b)
	for _, o := range a {
		i := slices.Index(rest, o)
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

// TestModel runs programs of chance: messages of each kind from several senders at two endpoints, receives, searches
// and cancels; then an endpoint is detached, and the other.
func TestModel(t *testing.T) {
	closures := uint64(0)
	for seed := range uint64(200) {
		bounds := Bounds{Bytes: 1 << 20, Memory: 1 << 20}
		switch seed % 3 {
		case 0:
			bounds.Bytes = 300
		case 1:
			bounds.Memory = 1500
		}
		w := &model{world: newWorld(t, seed, bounds, 2), claimed: map[uint64]*sent{}}
		w.late = seed%3 != 0
		for range 200 {
			switch w.r.IntN(9) {
			case 0:
				w.cancel()
			case 1:
				w.search()
			case 2:
				w.claim()
			case 3, 4, 5:
				w.receive()
			default:
				w.arrive()
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		w.check()
		closures += w.c.Closures()
		for _, h := range w.eps {
			w.c.Detach(&h.e)
		}
		if w.c.UnexpectedMessages() != 0 || w.c.UnexpectedBytes != 0 || w.c.Memory != 0 || w.c.Closed {
			t.Errorf("%d messages, %d bytes and %d of memory are left; closed %v", w.c.UnexpectedMessages(),
				w.c.UnexpectedBytes, w.c.Memory, w.c.Closed)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if closures < 20 {
		t.Errorf("the eager window was closed %d times", closures)
	}
}
