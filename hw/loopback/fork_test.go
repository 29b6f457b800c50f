package loopback

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// forkRole forks without exec, uses the interface in the child, and prints
// what the child found wrong (as its exit status) and whether the interface
// still works in the parent.
func forkRole(i *Iface, _ []byte) {
	debug.SetGCPercent(-1) // the child has no threads that could collect
	runtime.LockOSThread()
	ep, err := i.Connect(i.Address())
	if err != nil {
		fatal(err)
	}
	if err := i.EnableWait(); err != nil {
		fatal(err)
	}
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		fatal(err)
	}
	status := -1
	for try := 0; status < 0 && try < 10; try++ {
		status = inFork(func() int { return useAfterFork(i, ep.(*Endpoint)) })
	}
	_, err = os.Lstat(i.seg.path)
	fmt.Println(status, err, i.Progress(1), ep.AMShort(1, 0, nil, nil), i.Progress(8))
	if err := i.Close(); err != nil {
		fatal(err)
	}
	_, err = os.Lstat(i.seg.path)
	fmt.Println(errors.Is(err, os.ErrNotExist))
}

// inFork returns what f returns in a forked child. The child has one thread of the runtime's, and waits for ever if
// another one kept a lock of it when it was forked: then it is killed, and the result is -1.
func inFork(f func() int) int {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		fatal(errno)
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(f()), 0, 0)
	}
	var status unix.WaitStatus
	for range 500 {
		switch got, err := unix.Wait4(int(pid), &status, unix.WNOHANG, nil); {
		case err != nil && err != unix.EINTR:
			fatal(err)
		case got == int(pid):
			return status.ExitStatus()
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = unix.Kill(int(pid), unix.SIGKILL)
	_, _ = unix.Wait4(int(pid), &status, 0, nil)
	return -1
}

// useAfterFork returns the number of the first call that does not refuse.
func useAfterFork(i *Iface, ep *Endpoint) int {
	if _, err := i.Connect(i.Address()); !errors.Is(err, errClosed) {
		return 1
	}
	if !errors.Is(ep.AMShort(1, 0, nil, nil), errClosed) || !errors.Is(ep.AMBcopy(1, 0, nil, 1, nil, 0), errClosed) {
		return 2
	}
	if _, err := ep.ReadPeer(nil, nil); !errors.Is(err, errClosed) {
		return 3
	}
	if i.Progress(1) != 0 || i.Pending() || i.DoorbellFD() != -1 || !errors.Is(i.EnableWait(), errClosed) {
		return 4
	}
	i.SetEagerWindow(false)
	i.Arm()
	i.Disarm()
	i.CheckPeers()
	ep.Wake()
	if i.Close() != nil {
		return 5
	}
	return 0
}

func TestFork(t *testing.T) {
	dir := shmDir(t)
	c := start(t, "fork", dir, nil, nil)
	if s := c.line(t); s != "0 <nil> 1 <nil> 1" {
		t.Errorf("status, file, progress, send, progress: %s", s)
	}
	if s := c.line(t); s != "true" {
		t.Errorf("the file is gone after close: %s", s)
	}
}
