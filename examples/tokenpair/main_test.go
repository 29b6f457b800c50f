package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain is the command itself in the processes that TestPair starts.
func TestMain(m *testing.M) {
	if os.Getenv("TOKENPAIR") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestPair runs the example's two processes.
func TestPair(t *testing.T) {
	owner := command(t)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	owner.Stderr = os.Stderr
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	token, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal("no token", err, owner.Wait())
	}
	text, err := command(t, strings.TrimSpace(token)).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(text), "owner has 8192 bytes of host memory, reached by ") {
		t.Errorf("%v, %s", err, text)
	}
	const want = "writer wrote all\nwriter wrote two more\nblock 0\nblock 2, changed\nblock 7, changed\n"
	if said, err := io.ReadAll(lines); err != nil || string(said) != want {
		t.Errorf("%v, %q", err, said)
	}
	if err := owner.Wait(); err != nil {
		t.Error(err)
	}
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TOKENPAIR=1")
	return cmd
}
