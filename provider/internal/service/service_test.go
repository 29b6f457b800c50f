package service

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/proxy"
)

// ask dials the process's service thread and asks it for names.
func ask(t *testing.T) ([]byte, error) {
	t.Helper()
	c, err := proxy.Dial(proxy.OwnAddress("service"), 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(proxy.KindName, nil)
}

// TestThread: the thread is there from the first user to the last, and answers with what is entered.
func TestThread(t *testing.T) {
	var names Names[int]
	thread := Thread{Handlers: map[proxy.Kind]func(*proxy.Request){proxy.KindName: names.Answer}}
	if _, err := ask(t); err == nil {
		t.Fatal("there is a service thread already")
	}
	if _, ok := thread.Every(func() time.Duration { return 0 }); ok {
		t.Error("calls on a thread that is not there")
	}
	thread.Acquire()
	thread.Acquire()
	names.Add(1, []byte("one"))
	if body, err := ask(t); err != nil || string(body) != "\x03one" {
		t.Errorf("%q, %v", body, err)
	}
	names.Remove(1)
	thread.Release()
	if body, err := ask(t); err != nil || len(body) != 0 {
		t.Errorf("with one user left: %q, %v", body, err)
	}
	thread.Release()
	if _, err := ask(t); err == nil {
		t.Error("the thread is there after the last user")
	}
}

// TestEvery: what is called again and again, on the thread or not, is not called after its end.
func TestEvery(t *testing.T) {
	var thread Thread
	thread.Acquire()
	defer thread.Release()
	for what, every := range map[string]func(func() time.Duration) func(){
		"goroutine": Every,
		"thread": func(f func() time.Duration) func() {
			stop, ok := thread.Every(f)
			if !ok {
				t.Fatal("no thread")
			}
			return stop
		},
	} {
		var calls atomic.Int64
		stop := every(func() time.Duration {
			calls.Add(1)
			return time.Millisecond
		})
		for end := time.Now().Add(time.Minute); calls.Load() < 3; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d calls", what, calls.Load())
			}
		}
		stop()
		n := calls.Load()
		if time.Sleep(20 * time.Millisecond); calls.Load() != n {
			t.Errorf("%s: called after the end", what)
		}
	}
}

// TestNames: endpoints are found as long as they are entered; an answer holds whole names.
func TestNames(t *testing.T) {
	var names Names[int]
	names.Add(1, []byte("12345678"))
	names.Add(2, []byte("abcdefgh"))
	names.Add(3, make([]byte, 256)) // the length is one byte
	if body := names.body(100); len(body) != 18 || !bytes.Contains(body, []byte("\x0812345678")) ||
		!bytes.Contains(body, []byte("\x08abcdefgh")) {
		t.Errorf("%q", body)
	}
	if body := names.body(17); len(body) != 9 {
		t.Errorf("one fits: %q", body)
	}
	is := func(want int) func(int) bool { return func(e int) bool { return e == want } }
	if e, ok := names.Find(is(2)); !ok || e != 2 {
		t.Errorf("%d, %v", e, ok)
	}
	names.Remove(2)
	if _, ok := names.Find(is(2)); ok {
		t.Error("found after it was removed")
	}
}
