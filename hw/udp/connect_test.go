package udp

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestCheckPeersMeetsConnect: a thread that finds that a peer is gone which it has never connected to does not wait,
// with a stripe's lease, for one in Connect, which asks for the lease.
func TestCheckPeersMeetsConnect(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	pair(t, b, a)
	b.Close()
	s := a.stripes[0]
	dead := func() int {
		if !s.lease.try() {
			return -1
		}
		defer s.leave()
		return len(s.dead)
	}
	eventually(t, "the peer's Close", func() bool { a.Progress(16); return dead() == 1 })
	a.mu.Lock() // as Connect does
	checked := make(chan struct{})
	go func() { a.CheckPeers(); close(checked) }()
	free := false
	for end := time.Now().Add(5 * time.Second); !free && time.Now().Before(end); time.Sleep(time.Millisecond) {
		free = dead() == 0
	}
	a.mu.Unlock()
	<-checked
	if !free {
		t.Error("CheckPeers has the lease while it waits for Connect")
	}
}

// TestConnectMeetsDeath: Connect does not return a connection whose end is found in that moment as that of one which
// nothing has, so that nothing would be notified.
func TestConnectMeetsDeath(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	to := b.Address()
	eventually(t, "a connection that no Connect has returned", func() bool {
		a.mu.Lock()
		c := a.peers[mustParse(t, to)]
		a.mu.Unlock()
		if c == nil {
			_, _ = a.Connect(to)
			return false
		}
		a.Progress(1)
		b.Progress(1)
		return c.at() == up
	})
	s := a.stripes[0]
	s.lease.lock()
	c := a.peers[mustParse(t, to)]
	connected := make(chan error, 1)
	go func() {
		_, err := a.Connect(to)
		connected <- err
	}()
	var err error
	early := false
	select {
	case err = <-connected:
		early = true
	case <-time.After(50 * time.Millisecond):
	}
	c.die("by this test")
	s.reclaim()
	s.leave()
	if !early {
		err = <-connected
	}
	if !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("Connect to one that has died: %v", err)
	}
}

// mustParse is the target that an address names.
func mustParse(t *testing.T, address []byte) target {
	t.Helper()
	a, err := parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
