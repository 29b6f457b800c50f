package main

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// TestMain is the command itself in the processes that TestPair starts.
func TestMain(m *testing.M) {
	if os.Getenv("GOPAIR") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestPair runs the example's two processes.
func TestPair(t *testing.T) {
	server := command(t)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("no address", lines.Err(), server.Wait())
	}
	if text, err := command(t, lines.Text()).CombinedOutput(); err != nil {
		t.Error(err, string(text))
	}
	if !lines.Scan() || lines.Text() != "16 blocks, the first bytes add up to 120" {
		t.Error(lines.Text())
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOPAIR=1")
	return cmd
}
