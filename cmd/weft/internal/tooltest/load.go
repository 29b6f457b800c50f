// Package tooltest helps to test weft's commands: a process under load, and
// weft run as a person runs it, in a terminal.
package tooltest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// modeVar says what a copy of the test program is to be.
const modeVar = "WEFT_TOOL_TEST"

// Main runs the tests, or what this copy of the test program is for: weft
// itself, run by execute, or a load.
func Main(m *testing.M, execute func() int) {
	switch os.Getenv(modeVar) {
	case "weft":
		os.Exit(execute())
	case "load":
		if err := load(); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Load starts a process that sends messages to itself, between two endpoints,
// until it is killed or the test ends. Its segments and its page are in dir.
func Load(t testing.TB, dir string) *exec.Cmd {
	t.Helper()
	return StartLoad(t, LoadCommand(dir))
}

// LoadCommand is the command of [Load], for [StartLoad].
func LoadCommand(dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"=load", "FI_WEFT_SHM_DIR="+dir)
	return cmd
}

// StartLoad starts a load's command and waits until it is at work.
func StartLoad(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Stderr = os.Stderr
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
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // the test may have killed it
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the load says %q, %v", line, err)
	}
	return cmd
}

// side is one of the two endpoints.
type side struct {
	ep  *provider.Endpoint
	cq  *cq.Queue
	av  *provider.AV
	to  fi.Addr
	buf []byte
}

func load() error {
	infos, err := provider.GetInfo(fi.Version(1, 17), "127.0.0.1", "0", fi.Source, nil)
	if err != nil {
		return err
	}
	fabric, err := provider.OpenFabric(infos[0].Fabric)
	if err != nil {
		return err
	}
	domain, err := fabric.OpenDomain(infos[0])
	if err != nil {
		return err
	}
	a, err := open(domain, infos[0])
	if err != nil {
		return err
	}
	b, err := open(domain, infos[0])
	if err != nil {
		return err
	}
	if err := a.know(b); err != nil {
		return err
	}
	if err := b.know(a); err != nil {
		return err
	}
	list, closeList, err := a.list(b)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for n := 0; ; n++ {
		if err := a.pass(b, n); err != nil {
			return err
		}
		if n%32 == 0 {
			if err := a.write(list, b); err != nil {
				return err
			}
		}
		if n == 100 {
			fmt.Println("ready")
		}
		select {
		case <-ended:
			closeList()
			a.close()
			b.close()
			return nil
		default:
		}
		if n%16 == 0 {
			time.Sleep(100 * time.Microsecond) // others have work too
		}
	}
}

func open(d *provider.Domain, info *fi.Info) (*side, error) {
	s := &side{buf: make([]byte, 128<<10)}
	var err error
	if s.av, err = d.OpenAV(&fi.AVAttr{Type: fi.AVTable}); err != nil {
		return nil, err
	}
	if s.cq, err = d.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged}, nil); err != nil {
		return nil, err
	}
	if s.ep, err = d.OpenEndpoint(info); err != nil {
		return nil, err
	}
	if err = s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv); err != nil {
		return nil, err
	}
	if err = s.ep.BindAV(s.av, 0); err != nil {
		return nil, err
	}
	return s, s.ep.Enable()
}

func (s *side) know(o *side) error {
	raw, err := o.ep.Name()
	if err != nil {
		return err
	}
	addrs := make([]fi.Addr, 1)
	if _, err := s.av.Insert(raw, 1, &provider.Insertion{Addrs: addrs}); err != nil {
		return err
	}
	s.to = addrs[0]
	return nil
}

// pass sends one message from s to o, every 32nd a long one.
func (s *side) pass(o *side, n int) error {
	length := uint64(8)
	if n%32 == 0 {
		length = uint64(len(s.buf))
	}
	if err := o.ep.PostRecv(&provider.RecvArgs{IOV: vector(o.buf), Src: fi.AddrUnspec, Context: 1}); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	for {
		err := s.ep.Send(&provider.SendArgs{IOV: vector(s.buf[:length]), Dest: s.to, Context: 2})
		if err == nil {
			break
		}
		if !errors.Is(err, fi.EAGAIN) {
			return fmt.Errorf("send: %w", err)
		}
		o.ep.Progress()
	}
	if err := o.wait(s); err != nil {
		return err
	}
	return s.wait(o)
}

// list prepares a list of two pieces of o's memory.
func (s *side) list(o *side) (l *provider.List, closeAll func(), err error) {
	m, err := o.ep.Domain().RegMR(&fi.MRAttr{IOV: vector(o.buf), Access: fi.RemoteWrite, RequestedKey: 1}, 0)
	if err != nil {
		return nil, nil, err
	}
	t, err := m.Token(nil)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.ep.OpenToken(t)
	if err != nil {
		return nil, nil, err
	}
	l, err = s.ep.NewList([]provider.Piece{{
		Local: vector(s.buf)[0].Base, Remote: r, Addr: r.Info().Base, Len: 64, LocalStride: 128,
		RemoteStride: 128, Count: 2,
	}})
	return l, func() {
		_ = l.Close()
		_ = r.Close()
		_ = m.Close()
	}, err
}

// write writes a list to o's memory.
func (s *side) write(l *provider.List, o *side) error {
	for {
		switch err := l.Write(3); fi.ErrnoOf(err) {
		case fi.Success:
			return s.wait(o)
		case fi.EAGAIN:
			o.ep.Progress()
		default:
			return fmt.Errorf("write a list: %w", err)
		}
	}
}

func (s *side) wait(o *side) error {
	var e [1]cq.Entry
	for spins := 0; ; spins++ {
		switch _, err := s.cq.Read(e[:]); fi.ErrnoOf(err) {
		case fi.Success:
			return nil
		case fi.EAGAIN:
			s.ep.Progress()
			o.ep.Progress()
		default:
			return fmt.Errorf("completion: %w", err)
		}
	}
}

func (s *side) close() {
	_ = s.ep.Close()
	_ = s.cq.Close()
	_ = s.av.Close()
}
