package loopback

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

const (
	kills      = 300
	shortKills = 30
	killTime   = 8 * time.Second // for more than the least, however slow the machine
)

// goOn reports whether there is another round of killing.
func goOn(killed int, end time.Time) bool {
	return killed < shortKills || killed < killCount() && time.Now().Before(end)
}

func killCount() int {
	if testing.Short() {
		return shortKills
	}
	return kills
}

// segments counts the files of segments in dir.
func segments(t testing.TB, dir string) int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "weft.") {
			n++
		}
	}
	return n
}

// attached counts the attach entries in use.
func attached(i *Iface) int {
	n := 0
	for k := range i.seg.geo.attachCount {
		if atomic.LoadUint64(attachWord(i.seg.attach(k))) != hot.AttachFree {
			n++
		}
	}
	return n
}

// TestKillSenders kills sending processes at random instants. The receiver
// gets every message whole and in order up to the kill, a live sender goes on,
// and nothing of the dead stays.
func TestKillSenders(t *testing.T) { inNamespaces(t, killSenders) }

func killSenders(t *testing.T) {
	dir := shmDir(t)
	i, live := open(t, Config{Dir: dir, RingLog2: 7, AttachCount: 40}), open(t, Config{Dir: dir})
	check := messages{t: t}
	check.install(i)
	survivor, err := live.Connect(i.Address())
	if err != nil {
		t.Fatal(err)
	}
	var sent uint64
	var count int
	i.SetHandler(2, func(_ hw.Source, n uint64, _, _ []byte) {
		if n != uint64(count) {
			t.Fatalf("the survivor's message %d came as number %d", n, count)
		}
		count++
	})
	steps := 0
	step := func() {
		if steps++; steps%32 == 0 && survivor.AMShort(2, sent, nil, nil) == nil {
			sent++
		}
		if i.Progress(64) == 0 {
			runtime.Gosched()
		}
	}
	killed, had, end := 0, 0, time.Now().Add(killTime)
	var children []*child
	for goOn(killed, end) {
		for len(children) < 4 {
			children = append(children, start(t, "send", dir, i.Address(), nil))
		}
		victim := children[0]
		children = children[1:]
		ready := make(chan string, 1)
		go func() { s, _ := victim.out.ReadString('\n'); ready <- s }()
		for s := ""; s == ""; {
			select {
			case s = <-ready:
				if s != "ready\n" {
					t.Fatalf("child says %q", s)
				}
			default:
				step()
			}
		}
		for until := time.Now().Add(time.Duration(rand.IntN(3000)) * time.Microsecond); time.Now().Before(until); {
			step()
		}
		if sendsFirst(victim.addr) {
			had++
		}
		victim.cmd.Process.Kill()
		go victim.kill() // reaps it, sooner or later than CheckPeers polls
		killed++
		i.CheckPeers()
	}
	for _, c := range children {
		c.kill()
	}
	for end := time.Now().Add(hang); attached(i) > 1 || uint64(count) < sent || segments(t, dir) > 2; {
		if time.Now().After(end) {
			t.Fatalf("%d attach entries, %d files left, %d of %d messages of the survivor", attached(i),
				segments(t, dir), count, sent)
		}
		i.Progress(16)
		i.CheckPeers()
		sweepNow(&i.host)
	}
	s := i.Stats()
	t.Logf("%d killed, %d of them had sent; %+v; survivor sent %d", killed, check.gone, s, sent)
	if check.gone < had {
		t.Errorf("%d killed, %d of them had sent, not %d", killed, check.gone, had)
	}
}

// sweepNow sweeps whatever the time.
func sweepNow(h *host) {
	sweeps.Lock()
	delete(sweeps.next, h.dir)
	sweeps.Unlock()
	sweep(h)
}

// TestKillReceivers kills receiving processes while this one sends to them and
// to a live interface.
func TestKillReceivers(t *testing.T) { inNamespaces(t, killReceivers) }

func killReceivers(t *testing.T) {
	dir := shmDir(t)
	i, live := open(t, Config{Dir: dir, BounceCount: 8}), open(t, Config{Dir: dir})
	events := 0
	i.OnPeerEvent(func(e hw.PeerEvent) {
		if e.Endpoint != nil {
			events++
		}
	})
	live.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	survivor, err := i.Connect(live.Address())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8192)
	send := func(ep hw.Endpoint, n int) error {
		if n%2 == 0 {
			return ep.AMBcopy(1, 0, nil, rand.IntN(len(buf)), func(d []byte) { copy(d, buf) }, 0)
		}
		return ep.AMShort(1, 0, nil, buf[:rand.IntN(104)])
	}
	var children []*child
	killed, end := 0, time.Now().Add(killTime)
	for goOn(killed, end) {
		for len(children) < 4 {
			children = append(children, start(t, "hold", dir, nil, nil))
		}
		victim := children[0]
		children = children[1:]
		if s := victim.line(t); s != "ready" {
			t.Fatalf("child says %q", s)
		}
		ep, err := i.Connect(victim.addr)
		if err != nil {
			t.Fatal(err)
		}
		kill := time.Now().Add(time.Duration(rand.IntN(2000)) * time.Microsecond)
		dead := false
		for n := 0; ; n++ {
			if !dead && time.Now().After(kill) {
				victim.kill() // and wait, so that it is dead for CheckPeers
				dead, killed = true, killed+1
			}
			if err := send(ep, n); err != nil && !errors.Is(err, hw.ErrNoResource) {
				if !errors.Is(err, hw.ErrPeerDead) || !dead {
					t.Fatal(err)
				}
				break
			}
			if dead && n%16 == 0 {
				i.CheckPeers()
			}
		}
		for n := range 20 { // all buffers are back
			if err := send(survivor, n); err != nil {
				t.Fatalf("to the survivor after %d kills: %v", killed, err)
			}
			live.Progress(8)
		}
		if _, err := i.Connect(victim.addr); !errors.Is(err, hw.ErrUnreachable) {
			t.Fatalf("connect to the dead: %v", err)
		}
	}
	for _, c := range children {
		c.kill()
	}
	sweepNow(&i.host)
	t.Logf("%d killed", killed)
	if events != killed {
		t.Errorf("%d killed, %d events", killed, events)
	}
	if n := segments(t, dir); n != 2 {
		t.Errorf("%d segments in place of 2", n)
	}
}
