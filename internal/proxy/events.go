package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Event is a change of a progress thread between idle and active.
type Event struct {
	Thread string // its name, as "ps -L" shows it
	TID    int32  // its number in the kernel
	Active bool
	Time   time.Duration // of the system's monotonic clock
}

// An event in the answer to KindEvents, little endian:
//
//	0 name, filled up with zeros | 16 number of the thread 32 | 20 active 32 | 24 ns 64
const eventBytes = 32

func (e *Event) put(b []byte) []byte {
	var name [maxName + 1]byte
	copy(name[:maxName], e.Thread)
	active := uint32(0)
	if e.Active {
		active = 1
	}
	b = append(b, name[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.TID))
	b = binary.LittleEndian.AppendUint32(b, active)
	return binary.LittleEndian.AppendUint64(b, uint64(e.Time))
}

// parseEvents reads what another process wrote.
func parseEvents(b []byte) ([]Event, error) {
	if len(b)%eventBytes != 0 {
		return nil, fmt.Errorf("events of %d bytes: %w", len(b), errMessage)
	}
	var list []Event
	for ; len(b) > 0; b = b[eventBytes:] {
		name, _, ended := bytes.Cut(b[:maxName+1], []byte{0})
		tid, active, at := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:]),
			binary.LittleEndian.Uint64(b[24:])
		if !ended || slices.ContainsFunc(name, func(c byte) bool { return c < ' ' || c > '~' }) {
			return nil, fmt.Errorf("event of thread %q: %w", b[:maxName+1], errMessage)
		}
		if tid > math.MaxInt32 || active > 1 || at > math.MaxInt64 {
			return nil, fmt.Errorf("event of thread %d, state %d, time %d: %w", tid, active, at, errMessage)
		}
		list = append(list, Event{string(name), int32(tid), active == 1, time.Duration(at)})
	}
	return list, nil
}

// Events returns the last changes of the process's progress threads between idle
// and active: at most limit of each, the newest, oldest first.
func Events(limit int) []Event {
	live.Lock()
	threads := slices.Clone(live.threads)
	live.Unlock()
	var list []Event
	for _, t := range threads {
		p, ok := t.(*Progress)
		if !ok {
			continue
		}
		words := p.changes.copy()
		for _, w := range words[len(words)-min(len(words), limit):] {
			list = append(list, Event{p.name, p.tid.Load(), w&1 == 1, time.Duration(w >> 1)})
		}
	}
	return list
}

// putEvents is the body of an answer. What does not fit is left out.
func putEvents() []byte {
	var b []byte
	for _, e := range Events(keptTransitions) {
		if len(b)+eventBytes > MaxBody {
			break
		}
		b = e.put(b)
	}
	return b
}

// Events asks another process for its [Events].
func (c *Client) Events() ([]Event, error) {
	b, err := c.Call(KindEvents, nil)
	if err != nil {
		return nil, err
	}
	return parseEvents(b)
}
