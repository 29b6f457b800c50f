package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a side that runs.
type process struct {
	command string
	in      io.WriteCloser
	out     *bufio.Scanner
	cmd     *exec.Cmd
	name    string
	others  []*process
}

func start(command string) (*process, error) {
	p := &process{command: command, cmd: exec.Command("sh", "-c", "exec "+command)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.named()
}

// startBoth starts a command that is two sides, the second by the descriptors 3 and 4. Its last two words are their
// providers.
func startBoth(command string) (first, second *process, err error) {
	var ends [4]*os.File
	for k := 0; k < len(ends) && err == nil; k += 2 {
		ends[k], ends[k+1], err = os.Pipe()
	}
	if err != nil {
		return nil, nil, err
	}
	words := strings.Fields(command)
	first = &process{command: "the first side, " + words[len(words)-2]}
	first.cmd = exec.Command("sh", "-c", "exec "+command)
	first.cmd.Stderr = os.Stderr
	first.cmd.ExtraFiles = []*os.File{ends[0], ends[3]}
	out, err := first.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if first.in, err = first.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	first.out = bufio.NewScanner(out)
	second = &process{command: "the second side, " + words[len(words)-1], in: ends[1]}
	second.out = bufio.NewScanner(ends[2])
	if err = first.cmd.Start(); err == nil {
		ends[0].Close()
		ends[3].Close()
		err = first.named()
	}
	if err == nil {
		err = second.named()
	}
	return first, second, err
}

// named reads the first line of a side.
func (p *process) named() error {
	line, err := p.read()
	name, ok := strings.CutPrefix(line, "name ")
	if err == nil && !ok {
		err = fmt.Errorf("%s says %q", p.command, line)
	}
	p.name = name
	return err
}

func (p *process) read() (string, error) {
	if !p.out.Scan() {
		return "", fmt.Errorf("%s has ended: %w", p.command, errLate)
	}
	return p.out.Text(), nil
}

// say has a side do something once, and returns its answer.
func (p *process) say(line string) (string, error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return "", errors.Join(err, errLate)
	}
	return p.read()
}

// do has a side do something, and returns what follows "ok".
func (p *process) do(format string, args ...any) (string, error) {
	rest, err := p.try(2000, fmt.Sprintf(format, args...))
	if errors.Is(err, errAgain) {
		err = fmt.Errorf("%s: %s: no room", p.command, fmt.Sprintf(format, args...))
	}
	return rest, err
}

// errAgain says that a side has no room for an operation.
var errAgain = errors.New("again")

// try has a side do something, again so often as it has no room for it, with time for all sides in between.
func (p *process) try(tries int, line string) (string, error) {
	said, err := p.say(line)
	for n := 0; err == nil && said == "again" && n < tries; n++ {
		_, err = p.say("rest")
		for _, o := range p.others {
			if err == nil {
				_, err = o.say("rest")
			}
		}
		if err == nil {
			said, err = p.say(line)
		}
	}
	if err == nil && said == "again" {
		return "", errAgain
	}
	rest, ok := strings.CutPrefix(said, "ok")
	if err == nil && !ok {
		err = fmt.Errorf("%s: %s: %s", p.command, line, said)
	}
	return strings.TrimSpace(rest), err
}

// ended lets sides end.
func ended(sides ...*process) (err error) {
	for _, p := range sides {
		p.in.Close()
	}
	for _, p := range sides {
		if p.cmd != nil {
			err = errors.Join(err, p.cmd.Wait())
		}
	}
	return err
}

// crew starts sides that know each other.
func crew(commands []string) (sides []*process, err error) {
	for _, command := range commands {
		p, err := start(command)
		if err != nil {
			abandon(sides)
			return nil, err
		}
		sides = append(sides, p)
	}
	for p, a := range sides {
		for q, b := range sides {
			if p == q {
				continue
			}
			a.others = append(a.others, b)
			if _, err := a.do("peer %s", b.name); err != nil {
				abandon(sides)
				return nil, err
			}
		}
	}
	return sides, nil
}

// abandon ends sides that may be in the middle of something.
func abandon(sides []*process) {
	for _, p := range sides {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
	}
}

// weft reports whether a side is of weft, and so has counters, and discards messages.
func weft(p *process) bool { return ofWeft(p.command) }

// ofWeft reports whether a command runs such a side.
func ofWeft(command string) bool { return !strings.HasSuffix(command, " cxi") }

// ends are those that a side has waited for.
type ends struct {
	list []string
	err  error
}

// await has a side wait for count ends.
func (p *process) await(count int) (e ends) {
	fmt.Fprintf(p.in, "await %d\n", count)
	for {
		line, err := p.read()
		switch {
		case err != nil || line == "late":
			e.err = fmt.Errorf("%s: %q are not all: %w", p.command, e.list, errors.Join(err, errLate))
			return e
		case line == "end":
			return e
		}
		e.list = append(e.list, line)
	}
}

// drain has a side go on until nothing has ended for some milliseconds, and returns what has.
func (p *process) drain(ms int) (lines []string, err error) {
	fmt.Fprintf(p.in, "drain %d\n", ms)
	for {
		line, err := p.read()
		if err != nil || line == "end" {
			return lines, err
		}
		lines = append(lines, line)
	}
}

// gather has sides wait for ends, at the same time, and returns what they are. A side that has all of its own makes
// progress until the others have: what it has sent may have been dropped.
func gather(sides []*process, counts []int) ([][]string, error) {
	lists := make([][]string, len(sides))
	type side struct {
		k int
		ends
	}
	ended := make(chan side, len(sides))
	for k, p := range sides {
		go func() { ended <- side{k, p.await(counts[k])} }()
	}
	var done []*process
	for len(done) < len(sides) {
		var rest <-chan time.Time
		if len(done) > 0 {
			rest = time.After(time.Millisecond)
		}
		select {
		case s := <-ended:
			if lists[s.k] = s.list; s.err != nil {
				return lists, s.err
			}
			done = append(done, sides[s.k])
		case <-rest:
			for _, p := range done {
				if _, err := p.say("rest"); err != nil {
					return lists, err
				}
			}
		}
	}
	return lists, nil
}

// errLate says that a side has waited too long, or has ended: its answers are not in step any more.
var errLate = errors.New("late")
