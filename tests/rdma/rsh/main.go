// Program rsh runs commands on another virtual machine of tests/rdma/vm, as
// mpirun wants it done to start its daemons:
//
//	rsh serve ADDRESS              on the other: until it is asked to end
//	rsh ADDRESS COMMAND [WORD...]  the words go to a shell, joined by spaces
//	rsh ADDRESS -end               ends the other's serve
//
// Output and exit status come back. There is no authentication: the wire between
// two such machines leads nowhere else.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	port = "7077"
	end  = "-end"
	// patience is how long a client waits for the other machine to serve: an
	// emulated one needs minutes to come up where processors are short.
	patience = 3 * time.Minute
	// ended is where tests/rdma/vm says that the other machine has ended.
	ended = "/run/ctl/ended"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: rsh serve ADDRESS | rsh ADDRESS COMMAND [WORD...]")
		os.Exit(2)
	}
	var status int
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2])
	} else {
		status, err = call(os.Args[1], strings.Join(os.Args[2:], " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rsh:", err)
		status = 1
	}
	os.Exit(status)
}

// serve runs what is asked for, a connection for each command: a line with the
// command comes, its output goes, and last a line with 0 byte and exit status.
func serve(address string) error {
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for {
		c, err := l.Accept()
		if err != nil {
			running.Wait()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		running.Go(func() {
			defer func() { _ = c.Close() }()
			line, err := bufio.NewReader(c).ReadString('\n')
			if line = strings.TrimSuffix(line, "\n"); err != nil || line == end {
				_ = l.Close()
				return
			}
			cmd := exec.Command("/bin/bash", "-c", line)
			cmd.Stdout, cmd.Stderr = c, c
			status := 0
			if err := cmd.Run(); err != nil {
				status = 1
				if x := new(exec.ExitError); errors.As(err, &x) {
					status = x.ExitCode()
				}
			}
			_, _ = fmt.Fprintf(c, "\x00%d\n", status)
		})
	}
}

// dial waits for the other machine to serve, but not for one that the file over says has ended.
func dial(address, over string) (net.Conn, error) {
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err == nil {
			return c, nil
		}
		if status, read := os.ReadFile(over); read == nil {
			return nil, fmt.Errorf("the other machine has ended with status %s: %w", status, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("waited for %v: %w", patience, err)
		}
	}
}

// call has a command run and returns its exit status.
func call(address, command string) (int, error) {
	c, err := dial(net.JoinHostPort(address, port), ended)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintln(c, command); err != nil || command == end {
		return 0, err
	}
	r := bufio.NewReader(c)
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", address, err)
		}
		if b == 0 {
			rest, err := io.ReadAll(r)
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(strings.TrimSpace(string(rest)))
		}
		if _, err := os.Stdout.Write([]byte{b}); err != nil {
			return 0, err
		}
	}
}
