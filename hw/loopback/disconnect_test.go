package loopback

import (
	"testing"

	"github.com/weft-fabric/weft/internal/hot"
)

// TestPeersComeAndGo shows that what an interface keeps of peers that are gone
// is bounded, and that nothing is used again while a thread of the data plane is
// posting.
func TestPeersComeAndGo(t *testing.T) {
	dir := shmDir(t)
	requesters := []*hot.EpochReader{hot.EpochReaderAt(0), hot.EpochReaderAt(1)}
	c := Config{Dir: dir, RingLog2: 4, AttachCount: 78} // a size of its own
	sender := open(t, c)
	size := uintptr(newGeometry(new(c.withDefaults())).bytes)
	free := func() int {
		peerRanges.Lock()
		defer peerRanges.Unlock()
		return len(peerRanges.free[size])
	}
	meet := func() {
		t.Helper()
		peer := open(t, c)
		to, err := sender.Connect(peer.Address())
		if err != nil {
			t.Fatal(err)
		}
		if err := to.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		for range 3 {
			sender.CheckPeers()
		}
		if to.Err() == nil || to.AMShort(1, 0, nil, nil) == nil {
			t.Error("the peer is gone and can be sent to")
		}
	}
	for range 50 {
		meet()
	}
	if n := len(*sender.endpoints.Load()); n != 1 || len(sender.connected()) != 0 || free() != 1 {
		t.Errorf("%d numbers, %d endpoints, %d ranges after peers that were there one at a time",
			n, len(sender.connected()), free())
	}
	requesters[1].Posting = 1
	for range 10 {
		meet()
	}
	if n := len(sender.connected()); n != 10 || free() != 0 {
		t.Errorf("%d endpoints, %d ranges while a thread is posting", n, free())
	}
	requesters[1].Posting = 2
	sender.CheckPeers()
	if n := len(*sender.endpoints.Load()); n != 10 || len(sender.connected()) != 0 || free() != 10 {
		t.Errorf("%d numbers, %d endpoints, %d ranges when it has completed", n, len(sender.connected()), free())
	}
}
