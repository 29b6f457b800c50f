package cxi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/internal/drive"
)

// Rounds of TestBeside, and the messages of one.
const (
	besideRounds = 200
	besideCount  = 200
)

// standing are two interfaces on a NIC that stands still unless it is stepped, and a connection.
type standing struct {
	t    *testing.T
	a, b *Iface
	e    *Endpoint
	step func(uint) uint
}

func newStanding(t *testing.T) *standing {
	s := &standing{t: t}
	d, err := OpenDomain(DomainConfig{Library: library(t)})
	if err != nil {
		t.Fatal(err)
	}
	if s.step, err = step.Function(library(t)); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { // what is opened waits for the NIC
		for {
			select {
			case <-over:
				return
			default:
				s.step(1 << 30)
				time.Sleep(time.Microsecond)
			}
		}
	}()
	c := Config{Depth: 1024, BounceCount: besideCount + 8, ConnectWait: time.Second, Direct: true, KeepAlive: time.Hour}
	a, errA := d.Open(c)
	b, errB := d.Open(c)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	s.a, s.b = a, b
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep, err := a.Connect(b.Address())
	if err == nil {
		err = ep.AMShort(1, 0, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for s.e = ep.(*Endpoint); got < 1; a.Progress(8) {
		b.Progress(8)
	}
	close(over)
	for n := 0; n < 1000; n++ {
		s.step(1 << 30)
		a.Progress(8)
		b.Progress(8)
	}
	return s
}

// each is the time of one of n calls that f makes, in nanoseconds, and f says how many it has made.
func (s *standing) each(n int, f func() int) float64 {
	s.t.Helper()
	from := time.Now()
	made := f()
	d := time.Since(from)
	if made != n {
		s.t.Fatalf("%d of %d calls did what they are timed for", made, n)
	}
	return float64(d) / float64(n)
}

// transfer sends messages and takes them in, by C's route, or by Go's where they are longer than C sends.
func (s *standing) transfer(length int) (send, sent, received, empty float64) {
	payload := make([]byte, length)
	if length <= s.a.Attr().MaxAMShort {
		send = s.each(besideCount, func() int { return drive.Sends(s.e.HotPath(), 1, payload, besideCount) })
	} else {
		send = s.each(besideCount, func() (n int) {
			for n < besideCount && s.e.AMBcopy(1, 0, nil, length, func(b []byte) { copy(b, payload) }, 0) == nil {
				n++
			}
			return n
		})
	}
	s.step(1 << 30)
	sent = s.each(1, func() int { return drive.Polls(s.a.HotTransport(), 1) }) / besideCount // one call takes all in
	received = s.each(besideCount, func() int { return drive.Takes(s.b.HotTransport(), besideCount) })
	empty = s.each(besideCount, func() int { return drive.Polls(s.b.HotTransport(), besideCount) })
	if w := &s.e.w; w.head != w.tail {
		s.t.Fatalf("%d messages have not arrived", w.tail-w.head)
	}
	s.step(1 << 30)
	return send, sent, received, empty
}

// round is what tests/cxi/posts.c measures, as far as there is such a thing here: a receive is none of the backend's.
func (s *standing) round() [7]float64 {
	send8, sent, received, empty := s.transfer(8)
	send192, _, _, _ := s.transfer(192)
	send1024, _, _, _ := s.transfer(1024)
	return [7]float64{0, send8, send192, send1024, sent, received, empty}
}

// vendor is tests/cxi/posts.c, of which each line is a round.
type vendor struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newVendor(t *testing.T, command string) *vendor {
	cmd := exec.Command("sh", "-c", "exec "+command)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &vendor{t, in, bufio.NewReader(out)}
}

func (v *vendor) round() (times [7]float64) {
	_, err := fmt.Fprintln(v.in)
	if err == nil {
		_, err = fmt.Fscan(v.out, &times[0], &times[1], &times[2], &times[3], &times[4], &times[5], &times[6])
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return times
}

// TestBeside measures the backend beside libfabric's own provider, which is a program that scripts/bench-cxi.sh names,
// over the stepped model, in turns, and prints rows of a table: least time and lower quartile.
func TestBeside(t *testing.T) {
	command := os.Getenv("WEFT_TEST_CXI_BESIDE")
	if command == "" {
		t.Skip("scripts/bench-cxi.sh runs it")
	}
	if !seam.Possible() {
		t.Skip("C calls no Go code without the runtime here")
	}
	sides := []interface{ round() [7]float64 }{newStanding(t), newVendor(t, command), newVendor(t, command+" domain")}
	var all [3][7][]float64
	for range besideRounds {
		for n, s := range sides {
			for k, ns := range s.round() {
				all[n][k] = append(all[n][k], ns)
			}
		}
	}
	for k, what := range []string{"receive posted", "8 bytes sent", "192 bytes sent", "1024 bytes sent",
		"a send's completion taken in", "a message taken in", "a poll that finds nothing"} {
		row := []string{what}
		for n := range sides {
			v := all[n][k]
			if slices.Sort(v); v[0] == 0 {
				row = append(row, "", "")
				continue
			}
			row = append(row, fmt.Sprintf("%.1f", v[0]), fmt.Sprintf("%.1f", v[len(v)/4]))
		}
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
}
