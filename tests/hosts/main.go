// SPDX-License-Identifier: BSD-2-Clause

// Command hosts is a Go program as a host of the provider, which has a Go runtime of its own: two
// are in the process. Arguments: the provider, a folder for names, rank, number of ranks. Meanwhile
// this runtime collects garbage, handles signals and recovers from references to nil.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// #cgo LDFLAGS: -lfabric
// #include <stdlib.h>
// #include "host.h"
import "C"

const (
	threads = 3
	rounds  = 40
	longest = 300000
)

var sizes = [...]int{1, 100, 4000, 20000, longest}

// pattern has what every message is a part of: bytes 0 to 250 again and again.
var pattern = func() []byte {
	p := make([]byte, longest+502)
	for i := range p {
		p[i] = byte(i % 251)
	}
	return p
}()

func content(sender, thread, turn int) []byte {
	start := (sender*7 + thread*13 + turn*31) % 251
	return pattern[start : start+sizes[turn%len(sizes)]]
}

// meet exchanges names with the others through files.
func meet(h *C.struct_host, folder string, rank, ranks int) error {
	name := make([]byte, 256)
	n := C.host_name(h, unsafe.Pointer(&name[0]), C.size_t(len(name)))
	hidden := filepath.Join(folder, "."+strconv.Itoa(rank))
	if err := os.WriteFile(hidden, name[:n], 0o600); err != nil {
		return err
	}
	if err := os.Rename(hidden, filepath.Join(folder, strconv.Itoa(rank))); err != nil {
		return err
	}
	for peer := range ranks {
		var its []byte
		for {
			var err error
			if its, err = os.ReadFile(filepath.Join(folder, strconv.Itoa(peer))); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if status := C.host_peer(h, unsafe.Pointer(&its[0])); status != 0 {
			return fmt.Errorf("peer %d: %d", peer, status)
		}
	}
	return nil
}

// exchange sends to and receives from every other rank, in an order that never waits in a circle.
func exchange(h *C.struct_host, rank, ranks, thread int) error {
	buffer := make([]byte, longest)
	for turn := range rounds {
		tag := C.uint64_t(thread<<32 | turn)
		for peer := range ranks {
			if peer == rank {
				continue
			}
			for _, sending := range []bool{rank < peer, rank > peer} {
				if sending {
					data := content(rank, thread, turn)
					if status := C.host_send(h, C.uint64_t(peer), tag, unsafe.Pointer(&data[0]),
						C.size_t(len(data))); status != 0 {
						return fmt.Errorf("send %d to %d: %d", turn, peer, status)
					}
					continue
				}
				n := C.host_receive(h, C.uint64_t(peer), tag, unsafe.Pointer(&buffer[0]), C.size_t(len(buffer)))
				if n < 0 || !bytes.Equal(buffer[:n], content(peer, thread, turn)) {
					return fmt.Errorf("receive %d from %d: %d", turn, peer, n)
				}
			}
		}
	}
	return nil
}

// nothing reads through a nil pointer, which the runtime finds by SIGSEGV.
func nothing(p *int) (recovered bool) {
	defer func() { recovered = recover() != nil }()
	return *p == 0
}

// disturb keeps this runtime's collector and signal handlers busy until stop is closed; it counts
// the signals that have come.
func disturb(stop chan struct{}, signals, faults *atomic.Int64) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGUSR1)
	for {
		select {
		case <-stop:
			return
		case <-ch:
			signals.Add(1)
		case <-time.After(5 * time.Millisecond):
			if nothing(nil) {
				faults.Add(1)
			}
			runtime.GC()
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		}
	}
}

func run(provider, folder string, rank, ranks int) error {
	name := C.CString(provider)
	defer C.free(unsafe.Pointer(name))
	h := C.host_open(name)
	if h == nil {
		return fmt.Errorf("no endpoint of %s", provider)
	}
	defer C.host_close(h)
	var signals, faults atomic.Int64
	stop := make(chan struct{})
	defer close(stop)
	go disturb(stop, &signals, &faults)
	if err := meet(h, folder, rank, ranks); err != nil {
		return err
	}
	errs := make([]error, threads)
	var group sync.WaitGroup
	for t := range threads {
		group.Go(func() { errs[t] = exchange(h, rank, ranks, t) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if signals.Load() == 0 || faults.Load() == 0 {
		return fmt.Errorf("%d signals, %d faults recovered from", signals.Load(), faults.Load())
	}
	return nil
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: hosts PROVIDER FOLDER RANK RANKS")
		os.Exit(2)
	}
	rank, _ := strconv.Atoi(os.Args[3])
	ranks, _ := strconv.Atoi(os.Args[4])
	if err := run(os.Args[1], os.Args[2], rank, ranks); err != nil {
		fmt.Fprintln(os.Stderr, "go:", err)
		os.Exit(1)
	}
	fmt.Printf("go: passed as %d of %d\n", rank, ranks)
}
