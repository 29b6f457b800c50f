package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
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
		{"7 (sh) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 123456 1 2 3 4 5 0\n", true,
			State{'S', 4194560, 1, 123456}, false},
		{"7 (sh) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 123456 1 2 3 4 5 99 7\n", true,
			State{'S', 4194560, 1, start(123456, 99)}, false},
		{"7 (a) b) ) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9 1 2 3 4 5 0\n", true, State{'Z', 4194560, 1, 9},
			true},
		{"7 (threads) Z 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 3 0 9 1 2 3 4 5 0\n", true, State{'Z', 4194560, 3, 9},
			false},
		{"7 (x) X 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 0 0 9 1 2 3 4 5 0\n", true, State{'X', 4194560, 0, 9}, true},
		{"7 (stack) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 9 1 2 3 4 5\n", false, State{}, false},
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
	cmd := exec.Command("sh", "-c", "echo; read x")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is another process until it runs
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

func TestMapUID(t *testing.T) {
	const two = "         0     100000      65536\n     65536       1000          1\n"
	for _, c := range []struct {
		text string
		uid  uint32
		want uint32
	}{
		{"         0          0 4294967295\n", 1000, 1000}, {"         0       1000          1\n", 0, 1000},
		{two, 5, 100005}, {two, 65536, 1000}, {two, 65537, 65537}, {"", 7, 7}, {"nonsense\n", 7, 7},
	} {
		if got := mapUID(c.text, c.uid); got != c.want {
			t.Errorf("%q: user %d is %d, want %d", c.text, c.uid, got, c.want)
		}
	}
}

func TestSame(t *testing.T) {
	one, other, hidden := start(1000, 0x7ffc12345680), start(1000, 0x7ffc98765430), start(1000, 0)
	for _, c := range []struct {
		a, b uint64
		want bool
	}{
		{one, one, true}, {one, other, false}, {one, hidden, true}, {hidden, other, true}, {0, one, true},
		{one, start(1001, 0x7ffc12345680), false}, {hidden, 1001, false},
	} {
		if same(c.a, c.b) != c.want || same(c.b, c.a) != c.want {
			t.Errorf("%#x and %#x: want %v", c.a, c.b, c.want)
		}
	}
}

// TestExec: a process that executes another program is not the one that it was.
func TestExec(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo ready; read line; exec sleep 60")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 16)); err != nil { // Start returns while the kernel still sets the shell up
		t.Fatal(err)
	}
	pid := uint32(cmd.Process.Pid)
	s, err := Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	if s.Start>>ticksBits == 0 {
		t.Skip("the kernel does not show where the stack is")
	}
	p := Process{pid, s.Start}
	if !p.Alive() {
		t.Fatal("the shell is not alive")
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); p.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shell counts as alive after it has executed another program")
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // it is still being set up
		if s, err = Read(pid); err == nil && (Process{pid, s.Start}).Alive() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the other program is not alive: %v", err)
		}
	}
}

// TestThisAgain: the identity is read once.
func TestThisAgain(t *testing.T) {
	first, err := This()
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		if h, err := This(); err != nil || h != first {
			t.Errorf("%+v, %v, before %+v", h, err, first)
		}
	}); n != 0 {
		t.Errorf("it is read again: %v allocations", n)
	}
}
