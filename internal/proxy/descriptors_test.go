package proxy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// noRecall has nothing to give up.
func noRecall(int, uint64) <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func startDescriptors(t *testing.T) *Descriptors {
	t.Helper()
	d, err := StartDescriptors(ServiceOptions{Name: "weft-fd", Address: testAddress(), Place: Placement{Node: -1},
		Logf: t.Logf}, noRecall)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(time.Second) })
	return d
}

// memfd returns memory with a text. The caller closes it.
func memfd(t *testing.T, text string) int {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return fd
}

// openFDs counts them, twice: the first time may open some of the runtime's own.
func openFDs(t *testing.T) int {
	t.Helper()
	countFDs(t)
	return countFDs(t)
}

func countFDs(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestDescriptorsToAnotherProcess hands memory to a child, which reads and
// writes it.
func TestDescriptorsToAnotherProcess(t *testing.T) {
	if env := os.Getenv("WEFT_FETCH"); env != "" {
		fetchChild(t, env)
		return
	}
	d := startDescriptors(t)
	fd := memfd(t, "from the parent")
	defer unix.Close(fd)
	token, err := d.Export(fd, DescriptorMemory, 4096)
	if err != nil {
		t.Fatal(err)
	}
	out, err := child(t, "TestDescriptorsToAnotherProcess", 0, fmt.Sprintf("WEFT_FETCH=%s %d", d.Address(), token))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b := make([]byte, 64)
	n, err := unix.Pread(fd, b, 0)
	if err != nil || string(b[:n]) != "FROM the parent" {
		t.Errorf("memory is %q: %v", b[:n], err)
	}
}

func fetchChild(t *testing.T, env string) {
	address, number, _ := strings.Cut(env, " ")
	var token uint64
	if _, err := fmt.Sscan(number, &token); err != nil {
		t.Fatal(err)
	}
	c := dialTest(t, address)
	e, err := c.Fetch(token)
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind != DescriptorMemory || e.Length != 4096 || c.PID() != os.Getppid() {
		t.Errorf("fetched %+v from process %d", e, c.PID())
	}
	flags, err := unix.FcntlInt(uintptr(e.FD), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %#x: %v", flags, err)
	}
	if _, err := unix.Pwrite(e.FD, []byte("FROM"), 0); err != nil {
		t.Error(err)
	}
}

func TestDescriptorsAreRevoked(t *testing.T) {
	d := startDescriptors(t)
	c := dialTest(t, d.Address())
	var status *StatusError
	// The answer says that the service has accepted, so its end is counted too.
	if _, err := c.Fetch(1); !errors.As(err, &status) || status.Status != StatusNone {
		t.Fatalf("fetch of a token that was never given: %v", err)
	}
	before := openFDs(t)
	for range 50 {
		fd := memfd(t, "x")
		token, err := d.Export(fd, DescriptorDMABuf, 1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.Fetch(token)
		if err != nil || e.Kind != DescriptorDMABuf {
			t.Fatalf("%+v %v", e, err)
		}
		unix.Close(e.FD)
		d.Revoke(token)
		d.Revoke(token)
		if _, err := c.Fetch(token); !errors.As(err, &status) || status.Status != StatusNone {
			t.Fatalf("fetch after revoke: %v", err)
		}
		if _, err := c.Fetch(token + 1); !errors.As(err, &status) || status.Status != StatusNone {
			t.Fatalf("fetch of a token that was never given: %v", err)
		}
		unix.Close(fd)
	}
	eventually(t, "no descriptor lost", func() bool { return openFDs(t) <= before })
	if _, err := c.Call(KindDescriptor, []byte("short")); !errors.As(err, &status) || status.Status != StatusBad {
		t.Errorf("bad request: %v", err)
	}
	if _, err := d.Export(-1, DescriptorMemory, 1); !errors.Is(err, unix.EBADF) {
		t.Errorf("export of no descriptor: %v", err)
	}
}

// TestDescriptorsCloseGivesAllBack: those that were never revoked, too.
func TestDescriptorsCloseGivesAllBack(t *testing.T) {
	before := openFDs(t)
	d := startDescriptors(t)
	for range 10 {
		fd := memfd(t, "x")
		if _, err := d.Export(fd, DescriptorMemory, 1); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	}
	d.Close(time.Second)
	if _, err := d.Export(0, DescriptorMemory, 1); !errors.Is(err, ErrStopped) {
		t.Errorf("export after close: %v", err)
	}
	eventually(t, "all given back", func() bool { return openFDs(t) <= before })
}

// TestHandle hands out a handle, which has no descriptor with it.
func TestHandle(t *testing.T) {
	d := startDescriptors(t)
	c := dialTest(t, d.Address())
	token, err := d.ExportHandle([]byte("sixty-four bytes or so"), DescriptorDevice, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Fetch(token)
	if want := (Exported{FD: -1, Kind: DescriptorDevice, Length: 1 << 40,
		Handle: "sixty-four bytes or so"}); err != nil || e != want {
		t.Errorf("%+v, %v", e, err)
	}
	d.Revoke(token)
	if _, err := c.Fetch(token); err == nil {
		t.Error("fetched after it was revoked")
	}
	for _, n := range []int{0, MaxHandle + 1} {
		if _, err := d.ExportHandle(make([]byte, n), DescriptorDevice, 1); err == nil {
			t.Errorf("a handle of %d bytes is exported", n)
		}
	}
}
