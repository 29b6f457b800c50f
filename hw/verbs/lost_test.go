package verbs

import (
	"errors"
	"testing"
	"time"
)

// TestDeviceLostWhileClosing: an interface that closes waits for the thread that ends its connections because the
// device is lost, before it frees what that one uses.
func TestDeviceLostWhileClosing(t *testing.T) {
	b := newBench(t)
	b.cfg.Logf = t.Logf
	d := b.d
	d.add(b.Iface)
	b.todoMu.Lock() // stops the thread where the endpoint has failed and its holder has not been notified
	lost, removed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(lost)
		d.each(func(i *Iface) { i.deviceLost(errors.New("the device is lost")) })
	}()
	for b.e.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	go func() {
		defer close(removed)
		d.remove(b.Iface)
	}()
	select {
	case <-removed:
		t.Error("the interface has left the domain while a thread is at it")
	case <-time.After(50 * time.Millisecond):
	}
	b.todoMu.Unlock()
	<-lost
	<-removed
	d.each(func(*Iface) { t.Error("the interface is still there") })
}
