package root

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
)

// poll is the part of weft top --json that the tests ask for.
type poll struct {
	Processes []struct {
		PID       int
		UID       int
		Command   string
		Ended     bool
		Problem   string
		Seconds   float64
		Totals    map[string]float64
		Rates     map[string]float64
		Endpoints []struct {
			Name     string
			Counters map[string]float64
			Peers    []struct {
				Name     string
				Up       bool
				Counters map[string]float64
			}
		}
	}
	Problems []string
}

func topJSON(t *testing.T, env ...string) poll {
	t.Helper()
	r := run(t, env, "top", "--json", "-i", "300ms")
	var l poll
	if err := json.Unmarshal([]byte(r.Out), &l); err != nil || r.Status != 0 {
		t.Fatalf("%v: %+v", err, r)
	}
	return l
}

func TestTopJSON(t *testing.T) {
	dir, env := shm(t)
	if l := topJSON(t, env); len(l.Processes) != 0 {
		t.Errorf("%+v", l)
	}
	load := tooltest.Load(t, dir)
	l := topJSON(t, env)
	if len(l.Processes) != 1 || len(l.Processes[0].Endpoints) != 2 {
		t.Fatalf("%+v", l)
	}
	p := l.Processes[0]
	if p.PID != load.Process.Pid || !strings.HasPrefix("root.test", p.Command) || p.Seconds < 0.25 {
		t.Errorf("%+v", p)
	}
	for name, least := range map[string]float64{"tx_inline": 10, "tx_rendezvous": 1, "rx_direct": 10,
		"rx_rendezvous": 1, "tx_rendezvous_bytes": 65536} {
		if p.Rates[name] < least || p.Totals[name] < least {
			t.Errorf("%s: %g, %g/s", name, p.Totals[name], p.Rates[name])
		}
	}
	checkFlow(t, p.Totals, topJSON(t, env).Processes[0].Totals)
	peers, elements, bytes := 0, 0.0, 0.0
	for _, e := range p.Endpoints {
		for _, peer := range e.Peers {
			peers++
			elements += peer.Counters["peer_list_ipc"] + peer.Counters["peer_list_message"]
			bytes += peer.Counters["peer_list_ipc_bytes"] + peer.Counters["peer_list_message_bytes"]
			if !peer.Up || !strings.HasPrefix(peer.Name, "127.0.0.1:") {
				t.Errorf("%+v", peer)
			}
		}
	}
	if peers < 1 {
		t.Error("no peers")
	}
	if elements < 6 || bytes != 64*elements {
		t.Errorf("%g elements of lists of %g bytes", elements, bytes)
	}
	r := run(t, []string{env}, "top", "--once", "--peers", "-i", "100ms")
	for _, want := range []string{"PEER ", "LIST_", "endpoint 127.0.0.1:"} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q in %+v", want, r)
		}
	}
	if r := run(t, []string{env}, "top", "--once", "-i", "100ms", "--filter",
		strconv.Itoa(p.PID)); !strings.Contains(r.Out, strconv.Itoa(p.PID)) || strings.Contains(r.Out, "\x1b") {
		t.Errorf("%+v", r)
	}
	if r := run(t, []string{env}, "top", "--once", "-i", "100ms", "-f", "nothing like it"); !strings.Contains(r.Out,
		"no process") {
		t.Errorf("%+v", r)
	}
}

// checkFlow compares the counters of a process that sends to itself, of which two may be under way, in two readings, of
// which the counters are read one after the other while it runs: nothing is received that was not sent later, and what
// was sent before is received.
func checkFlow(t *testing.T, before, after map[string]float64) {
	t.Helper()
	sent := func(c map[string]float64) float64 { return c["tx_eager"] + c["tx_inline"] }
	received := func(c map[string]float64) float64 { return c["rx_eager"] + c["rx_direct"] }
	if sent, got := sent(after), received(before); got > sent {
		t.Errorf("%g received, later %g sent", got, sent)
	}
	if sent, got := sent(before), received(after); got < sent-2 {
		t.Errorf("%g sent, later %g received", sent, got)
	}
}

// TestTopScreen uses top as a person does: two processes, one of which dies
// while it is watched.
func TestTopScreen(t *testing.T) {
	dir, env := shm(t)
	stays, dies := tooltest.Load(t, dir), tooltest.Load(t, dir)
	stay, die := strconv.Itoa(stays.Process.Pid), strconv.Itoa(dies.Process.Pid)
	term := tooltest.Start(t, 140, 20, []string{env}, "top", "-i", "200ms", "--sort", "pid")
	screen := term.WaitText("2 processes")
	for _, want := range []string{"COMMAND", stay, die, "q quit", "TX msg/s"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q on the screen:\n%s", want, screen)
		}
	}
	if !strings.Contains(term.Screen(true), "\x1b[") {
		t.Error("no colours on a terminal")
	}
	term.Wait("rates", func(s string) bool { return strings.Contains(s, "k  ") && strings.Contains(s, "MiB") })

	term.Keys("/")
	term.Keys(die, "Enter")
	term.Wait("the filtered list", func(s string) bool {
		return strings.Contains(s, die) &&
			!strings.Contains(s, " "+stay+" ")
	})
	term.Keys("Escape")
	term.WaitText(" " + stay + " ")

	term.Keys("Down", "Up", "Down", "Enter")
	screen = term.WaitText("weft ")
	if !strings.Contains(screen, "tx_inline") {
		term.WaitText("tx_inline")
	}
	term.Resize(60, 12)
	screen = term.Wait("a smaller screen", func(s string) bool {
		lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
		return len(lines) <= 12 && strings.Contains(lines[len(lines)-1], "Esc back")
	})
	for _, line := range strings.Split(screen, "\n") {
		if len([]rune(line)) > 60 {
			t.Errorf("a line is too long: %q", line)
		}
	}
	term.Keys("PageDown", "PageDown", "PageDown", "PageDown", "PageDown", "PageDown")
	term.WaitText("127.0.0.1:")
	term.Resize(140, 20)
	term.Keys("Escape", "h")
	term.WaitText("suspend")
	term.Keys("Escape")
	term.WaitText("COMMAND")

	if err := dies.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	term.WaitText("1 process ")
	if screen := term.Screen(false); !strings.Contains(screen, stay) || strings.Contains(screen, die) {
		t.Errorf("after the death:\n%s", screen)
	}
	term.Keys("q")
	if screen = term.WaitText("status 0"); strings.Contains(screen, "COMMAND") {
		t.Errorf("the screen was not restored:\n%s", screen)
	}
	sweep(t, env)
}

// sweep removes what killed processes left.
func sweep(t *testing.T, env string) {
	t.Helper()
	if r := run(t, []string{env}, "doctor", "--fix", "--only", "leftovers"); !strings.Contains(r.Out, "removed") {
		t.Errorf("doctor --fix: %+v", r)
	}
}

// TestTopEnded sees the row of a process in the moment of its death.
func TestTopEnded(t *testing.T) {
	dir, env := shm(t)
	load := tooltest.Load(t, dir)
	term := tooltest.Start(t, 120, 10, []string{env, "NO_COLOR=1"}, "top", "-i", "2s")
	term.WaitText(strconv.Itoa(load.Process.Pid))
	if s := term.Screen(true); strings.Contains(s, "\x1b[3") || strings.Contains(s, "\x1b[1m") {
		t.Errorf("colours with NO_COLOR:\n%q", s)
	}
	if err := load.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	term.WaitText("ended")
	term.WaitText("no process uses weft here")
	term.Keys("C-c")
	term.WaitText("status 0")
	sweep(t, env)
}

// TestTopSignals interrupts top between its two polls.
func TestTopSignals(t *testing.T) {
	dir, env := shm(t)
	tooltest.Load(t, dir)
	// The second poll would be in an hour. A signal that comes before weft takes any ends it
	// like every process: then it gets more time.
	for delay := 500 * time.Millisecond; ; delay *= 2 {
		cmd := tooltest.Weft([]string{env}, "top", "--once", "-i", "1h")
		time.AfterFunc(delay, func() { _ = cmd.Process.Signal(os.Interrupt) })
		r := tooltest.Run(t, cmd)
		if r.Status == 130 {
			return
		}
		if r.Status != -1 || delay > 10*time.Second {
			t.Fatalf("interrupted after %v: %+v", delay, r)
		}
	}
}

// TestTopRoot: root sees the processes of all users, others their own.
func TestTopRoot(t *testing.T) {
	dir, env := shm(t)
	if err := os.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	own := tooltest.Load(t, dir)
	cmd := tooltest.LoadCommand(dir)
	asNobody(t, cmd)
	other := tooltest.StartLoad(t, cmd)
	if l := topJSON(t, env); len(l.Processes) != 2 || l.Processes[0].UID == l.Processes[1].UID {
		t.Errorf("root sees %+v", l.Processes)
	}
	cmd = tooltest.Weft([]string{env}, "top", "--json", "-i", "100ms")
	asNobody(t, cmd)
	r := tooltest.Run(t, cmd)
	var l poll
	if err := json.Unmarshal([]byte(r.Out), &l); err != nil || len(l.Processes) != 1 ||
		l.Processes[0].PID != other.Process.Pid {
		t.Errorf("nothing sees %+v, %v, not %d", r, err, other.Process.Pid)
	}
	r = run(t, []string{env}, "top", "--once", "-i", "100ms", "--filter", "nobody")
	if !strings.Contains(r.Out, strconv.Itoa(other.Process.Pid)) ||
		strings.Contains(r.Out, strconv.Itoa(own.Process.Pid)) {
		t.Errorf("of user nobody: %+v", r)
	}
}

// TestTopNoRights: another user's process is not shown, and its page cannot be
// read.
func TestTopNoRights(t *testing.T) {
	dir, env := shm(t)
	tooltest.Load(t, dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := tooltest.Weft([]string{env}, "top", "--json", "-i", "100ms")
	asNobody(t, cmd)
	if r := tooltest.Run(t, cmd); r.Status != 0 || !strings.Contains(r.Out, `"processes": []`) {
		t.Errorf("%+v", r)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = tooltest.Weft([]string{env}, "top", "--once", "-i", "100ms")
	asNobody(t, cmd)
	if r := tooltest.Run(t, cmd); r.Status != 1 || !strings.Contains(r.Err, "permission denied") {
		t.Errorf("%+v", r)
	}
}

// TestTopThreads asks a process with a progress thread what its threads are at
// and when they were active, and one without.
func TestTopThreads(t *testing.T) {
	dir, env := shm(t)
	manual := strconv.Itoa(tooltest.Load(t, dir).Process.Pid)
	t.Setenv("FI_WEFT_PROGRESS_THREAD", "yes")
	auto := strconv.Itoa(tooltest.Load(t, dir).Process.Pid)

	r := run(t, []string{env}, "top", "--dump", auto)
	for _, want := range []string{"weft-progress: thread ",
		"weft-progress: engine endpoint fi_sockaddr_in://127.0.0.1:", "weft-service: thread ", "active "} {
		if r.Status != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("no %q: %+v", want, r)
		}
	}
	for _, flag := range []string{"--dump", "--events"} {
		if r := run(t, []string{env}, "top", flag, manual); r.Status != 1 ||
			!strings.Contains(r.Err, "has no service thread") {
			t.Errorf("%s without threads: %+v", flag, r)
		}
	}
	if r := run(t, []string{env}, "top", "--dump", auto, "--events", auto); r.Status != 2 {
		t.Errorf("both: %+v", r)
	}

	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			TS       float64
			PID, TID int
			Args     map[string]string
		}
	}
	r = run(t, []string{env}, "top", "--events", auto)
	if err := json.Unmarshal([]byte(r.Out), &trace); err != nil || r.Status != 0 || len(trace.TraceEvents) < 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	if e := trace.TraceEvents[0]; e.Ph != "M" || e.Args["name"] != "weft-progress" || strconv.Itoa(e.PID) != auto ||
		e.TID == e.PID {
		t.Errorf("%+v", e)
	}
	last := 0.0
	for i, e := range trace.TraceEvents[1:] {
		if want := [...]string{"B", "E"}[i%2]; e.Ph != want || e.Name != "active" || e.TS < last ||
			e.TID != trace.TraceEvents[0].TID {
			t.Fatalf("event %d, to be %s behind %f: %+v", i, want, last, e)
		}
		last = e.TS
	}

	if l := topJSON(t, env); len(l.Processes) != 2 ||
		l.Processes[0].Totals["thread_activations"]+l.Processes[1].Totals["thread_activations"] < 1 {
		t.Errorf("%+v", l)
	}
	term := tooltest.Start(t, 140, 20, []string{env}, "top", "-i", "200ms", "--filter", auto)
	term.WaitText(" " + auto + " ")
	term.Keys("d")
	term.WaitText("weft-progress: thread ")
	term.Keys("Escape")
	term.WaitText("COMMAND")
}
