package ptp

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs a command and fails the test if it fails.
func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
}

// namespaces makes two network namespaces joined by veth and returns their
// names. Their interfaces are called ptp0.
func namespaces(t *testing.T) [2]string {
	t.Helper()
	var names [2]string
	for i := range names {
		name := fmt.Sprintf("weft-ptp-%d-%d", os.Getpid(), i)
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
		names[i] = name
	}
	run(t, "ip", "link", "add", "ptp0", "netns", names[0], "type", "veth", "peer", "name", "ptp0", "netns", names[1])
	for i, name := range names {
		run(t, "ip", "-n", name, "addr", "add", fmt.Sprintf("192.0.2.%d/24", i+1), "dev", "ptp0")
		run(t, "ip", "-n", name, "link", "set", "ptp0", "up")
	}
	return names
}

// ptp4l starts the daemon in a namespace, with software time stamps, and returns
// its socket and a function that ends it. It must not touch this host's clock, so
// it runs without the right to; its servo works all the same.
func ptp4l(t *testing.T, namespace string, slave int) (socket string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "ptp4l")
	config := filepath.Join(dir, "conf")
	text := fmt.Sprintf("[global]\nuds_address %s\nclock_servo pi\npi_proportional_const 0.7\npi_integral_const 0.3\n"+
		"slaveOnly %d\nlogAnnounceInterval -2\nlogSyncInterval -4\n"+
		"logMinDelayReqInterval -4\ntime_stamping software\nsummary_interval 0\nannounceReceiptTimeout 6\n[ptp0]\n",
		socket, slave)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("ip", "netns", "exec", namespace, "setpriv", "--bounding-set=-sys_time", "ptp4l", "-f", config,
		"-m", "-q")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("ptp4l in %s:\n%s", namespace, out.String())
			}
		}
	}
	t.Cleanup(stop)
	return socket, stop
}

// TestPTP4L follows linuxptp's daemon between two network namespaces: a master,
// and a slave that finds it and loses it.
func TestPTP4L(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "ptp4l", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	names := namespaces(t)
	masterSocket, stopMaster := ptp4l(t, names[0], 0)
	slaveSocket, _ := ptp4l(t, names[1], 1)
	ask := func(socket string) func() (Daemon, error) {
		return func() (Daemon, error) { return AskDaemon([]string{socket}) }
	}
	wait := func(socket, what string, good func(Daemon) bool) Daemon {
		t.Helper()
		var d Daemon
		var err error
		for range 150 {
			if d, err = ask(socket)(); err == nil && good(d) {
				return d
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("%s: %+v, %v", what, d, err)
		return d
	}
	master := wait(masterSocket, "the master", func(d Daemon) bool { return d.State == Master })
	slave := wait(slaveSocket, "the slave", func(d Daemon) bool {
		return d.State == Slave && d.Grandmaster != 0 &&
			d.Offset != 0
	})
	t.Logf("master %+v, slave %+v", master, slave)
	if master.Grandmaster == 0 || slave.Grandmaster != master.Grandmaster {
		t.Errorf("the master is %#x, the slave follows %#x", master.Grandmaster, slave.Grandmaster)
	}

	// Both namespaces have one clock, so the slave's offset is what software
	// time stamps get wrong.
	cfg := DefaultConfig()
	cfg.Mode, cfg.RequireSync, cfg.MaxOffset = Yes, true, 100*time.Millisecond
	var log []string
	m, err := NewMonitor(cfg, Sources{Daemon: ask(slaveSocket)}, func(s string) { log = append(log, s) })
	if err != nil {
		t.Fatal(err)
	}
	if s := m.State(); !s.Synchronised || s.Domain == 0 {
		t.Errorf("%+v", s)
	}
	cfg.MaxOffset = 1
	if _, err := NewMonitor(cfg, Sources{Daemon: ask(slaveSocket)}, func(string) {}); err == nil {
		t.Log("the offset was below 1 ns by chance")
	}
	stopMaster()
	wait(slaveSocket, "the slave without a master", func(d Daemon) bool { return d.State != Slave })
	m.Check()
	if s := m.State(); s.Synchronised || len(log) != 2 {
		t.Errorf("without a master: %+v, log %q", s, log)
	}
	t.Logf("log: %q", log)
}
