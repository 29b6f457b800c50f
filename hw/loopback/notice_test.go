package loopback

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// noticeRole writes its notice again and again.
func noticeRole(i *Iface, _ []byte) {
	fmt.Println("ready")
	own := i.OwnNotice()
	for n := uint64(1); ; n++ {
		for k := range own {
			atomic.StoreUint64(&own[k], n<<8|uint64(k))
		}
	}
}

// TestNotice: what an interface says in its notice is what all of its peers read, each word for itself, and it is gone
// when the process of the interface is killed.
func TestNotice(t *testing.T) { inNamespaces(t, notice) }

func notice(t *testing.T) {
	dir := shmDir(t)
	c := start(t, "notice", dir, nil, nil)
	c.line(t)
	var ifaces [2]*Iface
	var read [2]*hw.Notice
	for k := range ifaces {
		ifaces[k] = open(t, Config{Dir: dir})
		ep, err := ifaces[k].Connect(c.addr)
		if err != nil {
			t.Fatal(err)
		}
		read[k] = ep.(hw.NoticeReader).PeerNotice()
		if own := ifaces[k].OwnNotice(); *own != (hw.Notice{}) || own == read[k] {
			t.Fatal("the own notice is not empty, or is the peer's")
		}
	}
	said := func(k int) (word uint64) {
		for n := range read[k] {
			w := atomic.LoadUint64(&read[k][n])
			if w != 0 && w&0xFF != uint64(n) {
				t.Fatalf("word %d is %#x", n, w)
			}
			word = max(word, w>>8)
		}
		return word
	}
	for k := range read {
		first := said(k)
		for end := time.Now().Add(hang); said(k) <= first; {
			if time.Now().After(end) {
				t.Fatal("the peer's notice does not change")
			}
		}
	}
	c.kill()
	for end := time.Now().Add(hang); said(0) != 0 || said(1) != 0; {
		if time.Now().After(end) {
			t.Fatal("the notice of a dead peer stays")
		}
		for _, i := range ifaces {
			i.CheckPeers()
			i.Progress(1)
		}
	}
}
