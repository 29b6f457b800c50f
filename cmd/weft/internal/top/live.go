package top

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/nic"
)

// Escape sequences (ECMA-48, xterm's control sequences).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// terminal is the user's, in raw mode while the screen is shown.
type terminal struct {
	in, out *os.File
	saved   *term.State
}

func (t *terminal) enter() error {
	saved, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	t.saved = saved
	_, err = t.out.WriteString(enterScreen)
	return err
}

func (t *terminal) leave() {
	_, _ = t.out.WriteString(leaveScreen) // the terminal may be gone
	if t.saved != nil {
		_ = term.Restore(int(t.in.Fd()), t.saved)
		t.saved = nil
	}
}

// draw writes the screen.
func (t *terminal) draw(m *model) error {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	_, err = t.out.WriteString(home + strings.Join(m.view(width, height), clearLine+"\r\n") + clearLine + clearRest)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// suspend gives the terminal back and stops this process, as ctrl-Z does.
func (t *terminal) suspend() error {
	t.leave()
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP) // returns when the process is continued
	return t.enter()
}

// live shows the screen until the user quits, the context ends or the terminal
// is gone.
func live(ctx context.Context, in, out *os.File, watcher *watch.Watcher, o *options, by int) error {
	m := &model{style: text.StyleFor(out), by: by, reverse: o.reverse, filter: o.filter, interval: o.interval,
		threads: state, here: watcher.Here, nics: nics{host: nic.ThisHost()}}
	t := &terminal{in: in, out: out}
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH, unix.SIGCONT)
	defer signal.Stop(resized)
	keys := make(chan []string)
	go readKeys(in, keys)
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	m.update(watcher.Read())
	for {
		if err := t.draw(m); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-tick.C:
			if !m.paused {
				m.update(watcher.Read())
			}
		case list, ok := <-keys:
			if !ok {
				return nil // the terminal is gone
			}
			for _, k := range list {
				if k == "ctrl-z" {
					if err := t.suspend(); err != nil {
						return err
					}
				} else if m.key(k) {
					return nil
				}
			}
		}
	}
}

// readKeys sends the keys that are typed until the input ends. A read of the
// terminal cannot be stopped, so it lives as long as the process.
func readKeys(in *os.File, keys chan<- []string) {
	defer close(keys)
	var buf [64]byte
	for {
		n, err := in.Read(buf[:])
		if err != nil {
			return
		}
		keys <- parseKeys(string(buf[:n]))
	}
}

// named are the keys that are not themselves.
var named = []struct{ code, name string }{
	{"\x1b[A", "up"}, {"\x1b[B", "down"}, {"\x1b[C", "right"}, {"\x1b[D", "left"},
	{"\x1bOA", "up"}, {"\x1bOB", "down"}, {"\x1bOC", "right"}, {"\x1bOD", "left"},
	{"\x1b[5~", "pgup"}, {"\x1b[6~", "pgdn"},
	{"\r", "enter"}, {"\n", "enter"}, {"\x7f", "backspace"}, {"\b", "backspace"},
	{"\x03", "ctrl-c"}, {"\x1a", "ctrl-z"},
}

// parseKeys splits what a terminal sent. Sequences that are not known are
// dropped.
func parseKeys(s string) []string {
	var list []string
next:
	for s != "" {
		for _, k := range named {
			if rest, ok := strings.CutPrefix(s, k.code); ok {
				list = append(list, k.name)
				s = rest
				continue next
			}
		}
		switch {
		case s == "\x1b":
			list = append(list, "esc")
			return list
		case s[0] == '\x1b' && len(s) > 1 && (s[1] == '[' || s[1] == 'O'):
			i := strings.IndexFunc(s[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if i < 0 {
				return list
			}
			s = s[i+3:]
		case s[0] == '\x1b':
			list = append(list, "esc")
			s = s[1:]
		default:
			if s[0] >= ' ' && s[0] < 0x7f {
				list = append(list, s[:1])
			}
			s = s[1:]
		}
	}
	return list
}
