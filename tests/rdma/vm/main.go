// Program vm runs a command in a virtual machine with a real kernel's RDMA
// stack: Debian's kernel with soft-RoCE (rdma_rxe).
//
//	vm [flags] run -- COMMAND...    in one machine
//	vm [flags] pair -- COMMAND...   in two machines joined by a wire
//
// The machine sees the host's root, and the current folder wherever it is, read-only under a throw-away layer, so
// programs of the host and what was built on it run at the same paths. The command finds NODE (0 or 1), OWN and OTHER
// (IP addresses) and NETDEV in its environment, its RDMA device is rxe0. A command that makes /run/ctl/kill has its
// machine killed at once; one whose other machine has ended finds the status in /run/ctl/ended. Output and exit status
// come back; 124: timed out, 125: the machine failed, 137: it was killed as it asked.
//
// The processor is emulated unless KVM is asked for. That /dev/kvm exists does
// not mean that a stock kernel boots under it, so it is not tried unasked.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		status = statusBroken
	}
	os.Exit(status)
}

func run(args []string) (int, error) {
	o := options{}
	f := flag.NewFlagSet("vm", flag.ContinueOnError)
	dir := f.String("dir", "build/rdma", "folder of the kernel and the init program")
	f.StringVar(&o.accel, "accel", "tcg", "tcg (emulated processor) or kvm")
	f.IntVar(&o.memory, "memory", 1024, "memory of a machine in MiB")
	f.IntVar(&o.cpus, "cpus", 2, "processors of a machine")
	f.IntVar(&o.mtu, "mtu", 4200, "of the network interface, in bytes")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "for the whole run")
	f.BoolVar(&o.verbose, "v", false, "show the kernels' logs")
	f.Func("env", "NAME=VALUE for the command; may be repeated", func(s string) error {
		if !strings.Contains(s, "=") {
			return errors.New("no value")
		}
		o.env = append(o.env, s)
		return nil
	})
	if err := f.Parse(args); err != nil {
		return 0, err
	}
	rest := f.Args()
	if len(rest) < 2 || rest[0] != "run" && rest[0] != "pair" && rest[0] != "prepare" {
		return 0, errors.New("usage: vm [flags] run|pair [--] COMMAND [ARGUMENT]")
	}
	if o.accel != "tcg" && o.accel != "kvm" {
		return 0, fmt.Errorf("accelerator %s: tcg or kvm", o.accel)
	}
	o.command = rest[1:]
	if o.command[0] == "--" {
		o.command = o.command[1:]
	}
	img, err := buildImage(*dir, filepath.Join(*dir, "init"))
	if err != nil || rest[0] == "prepare" {
		return 0, err
	}
	return boot(&o, img, rest[0] == "pair")
}

// boot runs the machines and returns the first exit status that is not 0.
func boot(o *options, img image, pair bool) (int, error) {
	wires, err := os.MkdirTemp("", "weft-wire.")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(wires) }()
	var guests []*guest
	defer func() {
		for _, g := range guests {
			g.kill()
			g.discard()
		}
	}()
	count := 1
	if pair {
		count = 2
	}
	for n := range count {
		wire := ""
		if pair {
			wire = fmt.Sprintf("dgram,id=wire,local.type=unix,local.path=%[1]s/%[2]d,remote.type=unix,"+
				"remote.path=%[1]s/%[3]d", wires, n, 1-n)
		}
		g, err := newGuest(o, img, n, wire)
		if err != nil {
			return 0, err
		}
		guests = append(guests, g)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		for _, g := range guests {
			g.kill()
		}
	}()
	return wait(o, guests)
}

// lineWriter keeps the lines of several machines apart.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func wait(o *options, guests []*guest) (int, error) {
	out := &lineWriter{w: os.Stdout}
	deadline := time.Now().Add(o.timeout)
	for _, g := range guests {
		prefix := ""
		if len(guests) > 1 {
			prefix = fmt.Sprintf("[%d] ", g.node)
		}
		if err := g.start(out, prefix); err != nil {
			return 0, err
		}
	}
	statuses := make([]int, len(guests))
	var all sync.WaitGroup
	for n, g := range guests {
		all.Go(func() {
			statuses[n] = g.wait(deadline)
			for _, other := range guests {
				if other != g {
					other.reportEnded(statuses[n])
				}
			}
		})
	}
	all.Wait()
	result := 0
	for n, g := range guests {
		g.explain(os.Stderr, statuses[n], o.verbose)
		if result == 0 && statuses[n] != statusKilled {
			result = statuses[n]
		}
	}
	return result, nil
}
