package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// addresses counts the sockets of the tests of a process.
var addresses atomic.Int64

func testAddress() string {
	return fmt.Sprintf("@weft-test/%d/%d", os.Getpid(), addresses.Add(1))
}

func startService(t *testing.T, handlers map[Kind]func(*Request)) *Service {
	t.Helper()
	s, err := StartService(ServiceOptions{
		Name: "weft-service", Address: testAddress(), Place: Placement{Node: -1}, Handlers: handlers, Logf: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abort)
	return s
}

func dialTest(t *testing.T, address string) *Client {
	t.Helper()
	c, err := Dial(address, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// readPacket reads from a socket that has a time limit, where a signal to the
// thread ends the call (signal(7)).
func readPacket(fd int, b []byte) (int, error) {
	for {
		if n, err := unix.Read(fd, b); err != unix.EINTR {
			return n, err
		}
	}
}

func TestServiceAnswers(t *testing.T) {
	s := startService(t, map[Kind]func(*Request){
		KindName:       func(r *Request) { r.Reply(StatusOK, append([]byte("name of "), r.Body...)) },
		KindDescriptor: func(r *Request) { go r.Reply(StatusNone, nil) },
	})
	c := dialTest(t, s.Address())
	h, err := c.Hello()
	if err != nil || h.PID != uint32(os.Getpid()) || h.StartTime == 0 || c.PID() != os.Getpid() {
		t.Errorf("hello %+v: %v", h, err)
	}
	for i := range 100 {
		body := bytes.Repeat([]byte{byte(i)}, i*500)
		b, err := c.Call(KindName, body)
		if err != nil || string(b) != "name of "+string(body) {
			t.Fatalf("name: %d bytes, %v", len(b), err)
		}
	}
	var status *StatusError
	if _, err := c.Call(KindDescriptor, nil); !errors.As(err, &status) || status.Status != StatusNone {
		t.Errorf("key: %v", err)
	}
	if _, err := c.Call(99, nil); !errors.As(err, &status) || status.Status != StatusUnknown {
		t.Errorf("unknown request: %v", err)
	}
	if _, err := c.Call(KindName, make([]byte, MaxBody)); !errors.As(err, &status) || status.Status != StatusBad {
		t.Errorf("answer too long: %v", err)
	}
	if _, err := c.Call(KindName, make([]byte, MaxBody+1)); err == nil {
		t.Error("a request that is too long was sent")
	}
	text, err := c.Call(KindState, nil)
	if err != nil || !strings.Contains(string(text), "weft-service: thread ") ||
		!strings.Contains(string(text), "connections 1") {
		t.Errorf("state %q: %v", text, err)
	}
	if _, err := StartService(ServiceOptions{Name: "x", Address: s.Address()}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("second service: %v", err)
	}
}

// TestCloseBesideRequest: a connection that is closed while a request is under way is closed when that is answered, and
// the caller of Close does not wait.
func TestCloseBesideRequest(t *testing.T) {
	begun := make(chan *Request, 2)
	s := startService(t, map[Kind]func(*Request){KindName: func(r *Request) { begun <- r }})
	c := dialTest(t, s.Address())
	call := func() <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := c.Call(KindName, nil)
			answer <- err
		}()
		return answer
	}
	first := call()
	r := <-begun
	second := call() // waits for the first
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Close waits for an answer")
	}
	r.Reply(StatusOK, nil)
	if err := <-first; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := <-second; !errors.Is(err, unix.EBADF) {
		t.Errorf("the one behind it: %v", err)
	}
	eventually(t, "the connection ends", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.fd < 0
	})
}

// TestServiceManyPeers has more peers at once than any table of the source's
// had room for; each gets its own answers, given late and out of order.
func TestServiceManyPeers(t *testing.T) {
	peers := 300
	if testing.Short() {
		peers = 60
	}
	var mu sync.Mutex
	var waiting []*Request
	s := startService(t, map[Kind]func(*Request){KindName: func(r *Request) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, r); len(waiting) == peers {
			for i := len(waiting) - 1; i >= 0; i-- {
				go waiting[i].Reply(StatusOK, waiting[i].Body)
			}
			waiting = nil
		}
	}})
	var wg sync.WaitGroup
	for i := range peers {
		wg.Go(func() {
			c, err := Dial(s.Address(), time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for round := range 3 {
				want := fmt.Sprint(i, round)
				if b, err := c.Call(KindName, []byte(want)); err != nil || string(b) != want {
					t.Errorf("peer %d: %q, %v", i, b, err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "connections closed", func() bool { return strings.Contains(s.State(), "connections 0") })
}

func TestServiceTimesOut(t *testing.T) {
	kept := make(chan *Request, 1)
	s := startService(t, map[Kind]func(*Request){KindName: func(r *Request) { kept <- r }})
	c, err := Dial(s.Address(), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(KindName, nil); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Call(KindHello, nil); !errors.Is(err, unix.EBADF) {
		t.Errorf("after a time-out: %v", err)
	}
	(<-kept).Reply(StatusOK, nil) // nothing is there: nothing happens
	if _, err := dialTest(t, s.Address()).Hello(); err != nil {
		t.Errorf("another peer: %v", err)
	}
}

// TestServiceSurvivesBadPeers sends what is no message, breaks off, and sends
// more than is allowed.
func TestServiceSurvivesBadPeers(t *testing.T) {
	s := startService(t, map[Kind]func(*Request){KindName: func(*Request) {}})
	for name, packets := range map[string][][]byte{
		"nothing":     {},
		"short":       {{1, 2, 3}},
		"bad magic":   {make([]byte, 16)},
		"bad version": {append([]byte("weft\x07\x00\x01\x00"), make([]byte, 8)...)},
		"too many":    nil,
	} {
		fd, _, err := dial(s.Address(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if packets == nil {
			m := message{kind: KindName}
			for range maxWaiting + 1 {
				packets = append(packets, m.put(nil))
			}
		}
		for _, p := range packets {
			if err := unix.Sendmsg(fd, p, nil, nil, unix.MSG_NOSIGNAL); err != nil && err != unix.EPIPE {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if len(packets) > 0 {
			if n, err := readPacket(fd, make([]byte, 64)); n > 0 || errors.Is(err, unix.EAGAIN) {
				t.Errorf("%s: not cut off: %d %v", name, n, err)
			}
		}
		unix.Close(fd)
	}
	if _, err := dialTest(t, s.Address()).Hello(); err != nil {
		t.Error(err)
	}
}

// TestServicePeerThatDoesNotRead: answers wait without holding up others.
func TestServicePeerThatDoesNotRead(t *testing.T) {
	big := make([]byte, MaxBody)
	s := startService(t, map[Kind]func(*Request){KindName: func(r *Request) { r.Reply(StatusOK, big) }})
	fd, _, err := dial(s.Address(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m := message{kind: KindName}
	for range 20 {
		m.id++
		if err := unix.Sendmsg(fd, m.put(nil), nil, nil, unix.MSG_NOSIGNAL); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dialTest(t, s.Address()).Hello(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, headerBytes+MaxBody)
	for id := uint32(1); id <= 20; id++ { // and then all come, in order
		n, err := readPacket(fd, buf)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseMessage(buf[:n]); err != nil || got.id != id || len(got.body) != MaxBody {
			t.Fatalf("answer %d is %d: %v", id, got.id, err)
		}
	}
}

func TestServiceStop(t *testing.T) {
	requests := make(chan *Request, 1)
	s := startService(t, map[Kind]func(*Request){KindName: func(r *Request) { requests <- r }})
	c := dialTest(t, s.Address())
	answered := make(chan error, 1)
	go func() {
		_, err := c.Call(KindName, nil)
		answered <- err
	}()
	r := <-requests
	stopped := make(chan struct{})
	go func() { s.Stop(10 * time.Second); close(stopped) }()
	select {
	case <-stopped:
		t.Error("stopped with a request that is not answered")
	case <-time.After(20 * time.Millisecond):
	}
	r.Reply(StatusOK, nil)
	if err := <-answered; err != nil {
		t.Errorf("the last answer: %v", err)
	}
	<-stopped
	if _, err := Dial(s.Address(), time.Second); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("dial after stop: %v", err)
	}
	(&Request{service: s}).Reply(StatusOK, nil) // late: nothing happens
	s.Stop(time.Second)
}

// TestServiceAbort ends a service that sleeps for ever, with a request that is
// never answered.
func TestServiceAbort(t *testing.T) {
	asked := make(chan struct{})
	s := startService(t, map[Kind]func(*Request){KindName: func(*Request) { close(asked) }})
	c := dialTest(t, s.Address())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Call(KindName, nil)
		ended <- err
	}()
	<-asked
	s.Abort()
	if err := <-ended; !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the request's end: %v", err)
	}
}

// TestServiceRunsOutOfDescriptors: it goes on when there are some again, and
// does not spin meanwhile.
func TestServiceRunsOutOfDescriptors(t *testing.T) {
	s := startService(t, nil)
	first := dialTest(t, s.Address())
	if _, err := first.Hello(); err != nil {
		t.Fatal(err)
	}
	fd, err := seqpacket(0) // the client's, while there is room
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = uint64(fd) // no number below is free, or soon none
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var fill []int
	for {
		n, err := unix.Dup(s.event)
		if err != nil {
			break
		}
		fill = append(fill, n)
	}
	restore := sync.OnceFunc(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
		closeAll(fill)
	})
	defer restore()
	if err := connect(fd, s.Address()); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Hello(); err != nil {
		t.Error("the service does not answer without descriptors:", err)
	}
	restore()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	m := message{kind: KindHello, id: 5}
	if err := unix.Sendmsg(fd, m.put(nil), nil, nil, unix.MSG_NOSIGNAL); err != nil {
		t.Fatal(err)
	}
	tv := unix.NsecToTimeval(int64(time.Minute))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		t.Fatal(err)
	}
	if n, err := readPacket(fd, make([]byte, 64)); n != headerBytes+helloBytes {
		t.Errorf("answer of %d bytes: %v", n, err)
	}
}

// child runs the named test in another process, as another user if uid is not 0.
func child(t *testing.T, test string, uid uint32, env ...string) (string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if uid != 0 { // it may not reach the file where it is
		b, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "weft")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		exe = dir + "/test"
		if err := os.WriteFile(exe, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), env...)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestOtherUsersAreRefused connects from a process of another user, and to one.
func TestOtherUsersAreRefused(t *testing.T) {
	if address := os.Getenv("WEFT_OTHER_USER"); address != "" {
		c, err := Dial(address, 30*time.Second)
		if err == nil {
			_, err = c.Hello()
		}
		fmt.Println("result:", err, errors.Is(err, ErrPeer))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	s := startService(t, nil)
	out, err := child(t, "TestOtherUsersAreRefused", 65534, "WEFT_OTHER_USER="+s.Address())
	if err != nil || !strings.Contains(out, "result:") || strings.Contains(out, "result: <nil>") ||
		!strings.Contains(out, "true\n") {
		t.Errorf("%v\n%s", err, out)
	}
	eventually(t, "refused", func() bool { return strings.Contains(s.State(), "refused 1") })
}
