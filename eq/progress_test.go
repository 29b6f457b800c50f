package eq

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestProgress shows that reads and sleeps make the progress that an event waits
// for, and that they do no longer when it has ended.
func TestProgress(t *testing.T) {
	q, err := Open(&fi.EQAttr{WaitObj: fi.WaitUnspec}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	calls := 0
	var a *Progress
	a = q.AddProgress(func() {
		if calls++; calls == 5 {
			q.Post(Event{Number: 7, Entry: []byte{1}})
			a.End()
		}
	})
	buf := make([]byte, 8)
	if _, _, err := q.Read(buf, 0); err != fi.EAGAIN || calls != 1 {
		t.Fatalf("read: %v after %d calls", err, calls)
	}
	if err := q.TryWait(); err != fi.EAGAIN || calls != 2 {
		t.Fatalf("trywait: %v after %d calls", err, calls)
	}
	if n, _, err := q.SRead(buf, -1, 0); err != nil || n != 7 || calls != 5 {
		t.Fatalf("event %d, %v after %d calls", n, err, calls)
	}
	a.End()
	a.Wait()
	if _, _, err := q.Read(buf, 0); err != fi.EAGAIN || calls != 5 {
		t.Fatalf("read: %v after %d calls", err, calls)
	}
}
