package tooltest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Result is what a command did.
type Result struct {
	Out, Err string
	Status   int
}

// Weft returns the command that runs weft with arguments. env has more
// variables; colours are off but for terminals.
func Weft(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), modeVar+"=weft")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// Run runs a command from Weft for at most two minutes.
func Run(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// Terminal is weft in a terminal, which is tmux's.
type Terminal struct {
	t      testing.TB
	socket string
}

// Start runs weft in a terminal of a size, with more environment variables. It
// skips the test where there is no tmux.
func Start(t testing.TB, width, height int, env []string, args ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux: the screen cannot be read")
	}
	term := &Terminal{t, fmt.Sprintf("weft-test-%d-%d", os.Getpid(), time.Now().UnixNano())}
	line := "env " + modeVar + "=weft " + strings.Join(env, " ") + " " + os.Args[0] + " " + strings.Join(args, " ") +
		"; echo status $?; exec cat" // the shell's screen stays
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), line)
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", term.socket, "kill-server").Run() })
	return term
}

func (term *Terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// Keys types keys, named as tmux names them.
func (term *Terminal) Keys(keys ...string) { term.tmux(append([]string{"send-keys"}, keys...)...) }

// Resize changes the terminal's size.
func (term *Terminal) Resize(width, height int) {
	term.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// Screen is what the terminal shows; with colors its escape sequences too.
func (term *Terminal) Screen(colors bool) string {
	args := []string{"capture-pane", "-p"}
	if colors {
		args = append(args, "-e")
	}
	return term.tmux(args...)
}

// Wait waits until the screen is as it should be, and returns it.
func (term *Terminal) Wait(what string, ok func(screen string) bool) string {
	term.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		screen := term.Screen(false)
		if ok(screen) {
			return screen
		}
		if time.Now().After(end) {
			term.t.Fatalf("the screen does not show %s:\n%s", what, screen)
		}
	}
}

// WaitText waits until the screen has a text.
func (term *Terminal) WaitText(text string) string {
	term.t.Helper()
	return term.Wait(text, func(s string) bool { return strings.Contains(s, text) })
}
