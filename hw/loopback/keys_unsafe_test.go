package loopback

import (
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// claimsOf opens an interface with a region, and returns the region, and a live and a dead process of another program.
func claimsOf(t *testing.T) (i *Iface, m *region, live, dead uint64) {
	d := NewMemoryDomain()
	i = open(t, Config{Dir: shmDir(t), KeyCount: 64, Memory: d})
	memory := make([]byte, 64)
	about, err := d.Register(hw.Region{Addr: unsafe.Pointer(&memory[0]), Len: len(memory), Access: hw.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	ended, runs := exec.Command("true"), exec.Command("sleep", "60")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if err := runs.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = runs.Process.Kill(), runs.Wait() })
	return i, about.(*region), uint64(runs.Process.Pid), uint64(ended.Process.Pid)
}

// TestClaimsOfTheDead frees the claim of a dead process. The next process has stored no time of its start yet: it keeps
// the claim.
func TestClaimsOfTheDead(t *testing.T) {
	i, _, live, dead := claimsOf(t)
	c := i.seg.claim(0)
	*c = hot.Claim{Word: dead<<32 | 1, StartTime: 1}
	i.CheckPeers()
	if c.Word != 0 {
		t.Fatalf("the claim of a dead process is %#x", c.Word)
	}
	c.Word = live<<32 | 1
	i.CheckPeers()
	if c.Word != live<<32|1 {
		t.Error("a process lost its claim before it had stored the time of its start")
	}
	c.Word = 0
}

// TestClaimsEndTogether ends a region at which a live process keeps several claims: it waits once.
func TestClaimsEndTogether(t *testing.T) {
	defer func(was time.Duration) { claimPatience = was }(claimPatience)
	claimPatience = 200 * time.Millisecond
	i, m, live, _ := claimsOf(t)
	for n := range uint32(5) {
		i.seg.claim(n).Word = live<<32 | uint64(m.places[i]+1)
	}
	began := time.Now()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < claimPatience || took > 3*claimPatience {
		t.Errorf("waited for %v", took)
	}
}
