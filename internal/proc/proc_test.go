package proc

import (
	"os"
	"os/exec"
	"testing"
)

// FuzzStat parses arbitrary /proc/<pid>/stat contents.
func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 4 0 55 1 2"))
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(b) })
}

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		text  string
		ok    bool
		want  State
		ended bool
	}{
		{"7 (sh) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 123456 1 2\n", true, State{'S', 4194560, 1, 123456}, false},
		{"7 (a) b) ) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9 1 2\n", true, State{'Z', 4194560, 1, 9}, true},
		{"7 (threads) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 3 0 9 1 2\n", true, State{'Z', 4194560, 3, 9}, false},
		{"7 (x) X 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 0 0 9 1 2\n", true, State{'X', 4194560, 0, 9}, true},
		{"7 (short) S 1 1", false, State{}, false},
		{"", false, State{}, false},
		{"7 (words) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 one 0 two 1 2\n", false, State{}, false},
	} {
		got, ok := parseStat([]byte(c.text))
		if ok != c.ok || ok && (got != c.want || got.Ended() != c.ended) {
			t.Errorf("%q: %+v, %v", c.text, got, ok)
		}
	}
}

func TestAlive(t *testing.T) {
	h, err := This()
	if err != nil {
		t.Fatal(err)
	}
	if h.Self.PID != uint32(os.Getpid()) || h.BootID == [2]uint64{} || h.PIDNS == 0 || h.NetNS == 0 {
		t.Errorf("%+v", h)
	}
	if !h.Self.Alive() || !(Process{PID: h.Self.PID}).Alive() {
		t.Error("this process is not alive")
	}
	for _, p := range []Process{{}, {h.Self.PID, h.Self.Start + 1}, {1<<22 + 1, 0}, {1 << 31, 0}} {
		if p.Alive() {
			t.Errorf("%+v is alive", p)
		}
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s, err := Read(uint32(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	p := Process{uint32(cmd.Process.Pid), s.Start}
	if !p.Alive() {
		t.Error("a running child is not alive")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if p.Alive() || !p.Ending() {
		t.Error("an ended child is alive")
	}
}
