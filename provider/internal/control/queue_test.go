package control

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// ring is a destination with room for some messages.
type ring struct {
	name string
	room int
	gone bool
}

// to is a destination: a ring, and the log of what was sent in all.
type to struct {
	*ring
	log *[]string
}

func (d to) Send(id hw.AMID, header uint64, head []byte) error {
	switch {
	case d.gone:
		return fi.ECONNRESET
	case d.room == 0:
		return fi.EAGAIN
	}
	d.room--
	text := fmt.Sprintf("%s %d %d %s", d.name, id, header, head)
	*d.log = append(*d.log, text)
	return nil
}

// TestRoom: a message goes out at once if there is room and none waits, else in order, with the head that it had.
func TestRoom(t *testing.T) {
	var log []string
	var q Queue[to]
	a := to{&ring{name: "a", room: 1}, &log}
	head := []byte("x")
	for i := range uint64(3) {
		q.Send(a, 1, i, head)
		head[0]++
	}
	if want := []string{"a 1 0 x"}; !slices.Equal(log, want) || q.Len() != 2 {
		t.Fatalf("%v, %d wait", log, q.Len())
	}
	a.room = 1
	q.Flush()
	if want := []string{"a 1 0 x", "a 1 1 y"}; !slices.Equal(log, want) || q.Len() != 1 {
		t.Fatalf("%v, %d wait", log, q.Len())
	}
	a.room = 2
	q.Send(a, 2, 3, nil) // stays behind what waits
	if len(log) != 2 || q.Len() != 2 {
		t.Fatalf("%v, %d wait", log, q.Len())
	}
	q.Flush()
	if want := []string{"a 1 0 x", "a 1 1 y", "a 1 2 z", "a 2 3 "}; !slices.Equal(log, want) || q.Len() != 0 {
		t.Fatalf("%v, %d wait", log, q.Len())
	}
}

// TestOthers: a destination without room holds back its own messages only, and one that is gone none.
func TestOthers(t *testing.T) {
	var log []string
	var q Queue[to]
	full, gone := to{&ring{name: "full"}, &log}, to{&ring{gone: true}, &log}
	free := to{&ring{name: "free", room: 9}, &log}
	q.Send(gone, 1, 1, nil)
	if q.Len() != 0 {
		t.Error("a message to a destination that is gone waits")
	}
	for i := range uint64(3) {
		q.Send(full, 1, i, nil)
		q.Send(free, 1, i, nil)
		q.Send(gone, 1, i, nil)
	}
	q.Flush()
	if want := []string{"free 1 0 ", "free 1 1 ", "free 1 2 "}; !slices.Equal(log, want) || q.Len() != 3 {
		t.Errorf("%v, %d wait", log, q.Len())
	}
	for d := range q.Destinations() {
		if *d != full {
			t.Errorf("%s waits", d.name)
		}
		break
	}
}

// TestDrop: messages to destinations that are gone are dropped, and the others stay in order.
func TestDrop(t *testing.T) {
	var log []string
	var q Queue[to]
	a, b := to{&ring{name: "a"}, &log}, to{&ring{name: "b"}, &log}
	for i := range uint64(3) {
		q.Send(a, 1, i, nil)
		q.Send(b, 1, i, nil)
	}
	q.Drop(func(d *to) bool { return *d == a })
	a.room, b.room = 9, 9
	q.Flush()
	if want := []string{"b 1 0 ", "b 1 1 ", "b 1 2 "}; !slices.Equal(log, want) || q.Len() != 0 {
		t.Errorf("%v, %d wait", log, q.Len())
	}
}

// TestHead: the longest head is kept whole.
func TestHead(t *testing.T) {
	var log []string
	var q Queue[to]
	a := to{&ring{name: "a"}, &log}
	head := bytes.Repeat([]byte{'h'}, HeadMax)
	q.Send(a, 1, 7, head)
	a.room = 1
	if q.Flush(); len(log) != 1 || log[0] != fmt.Sprintf("a 1 7 %s", head) {
		t.Errorf("sent %v", log)
	}
}
