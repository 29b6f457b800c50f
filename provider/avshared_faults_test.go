package provider

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// TestAVSharedChild is not a test but what child processes run.
func TestAVSharedChild(t *testing.T) {
	what, rest, ok := strings.Cut(os.Getenv(childVariable), ":")
	if !ok {
		t.Skip("for child processes")
	}
	dir, number, _ := strings.Cut(rest, ":")
	base, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	a := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x"})
	fmt.Println("ready")
	switch what {
	case "insert": // 200 names of our own
		for i := range 200 {
			insertAll(t, a, testName(base+i))
		}
		fmt.Println("done")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has polled
	case "churn": // until killed
		rng := rand.New(rand.NewPCG(uint64(base), 1))
		for {
			at := insertAll(t, a, testName(base+rng.IntN(10)), testName(base+rng.IntN(10)))
			if err := a.Remove(at, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// child is a running child process.
type child struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

func startChild(t testing.TB, what, dir string, number int) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAVSharedChild$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%s:%d", childVariable, what, dir, number))
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
	c := &child{cmd, in, bufio.NewScanner(out)}
	c.expect(t, "ready")
	return c
}

// expect waits for a line of output.
func (c *child) expect(t testing.TB, line string) {
	t.Helper()
	for c.out.Scan() {
		if c.out.Text() == line {
			return
		}
	}
	t.Fatalf("the child ended before %q", line)
}

// Several processes insert at once: all is there, once, and for all the same.
func TestAVSharedProcesses(t *testing.T) {
	dir := t.TempDir()
	a := openTestAV(t, openTestDomainWith(t, testInfo(), sharedConfig(dir)), fi.AVAttr{Name: "x"})
	var children []*child
	for i := range 3 {
		children = append(children, startChild(t, "insert", dir, 1000*i))
	}
	for i := range 200 {
		insertAll(t, a, testName(3000+i))
	}
	for _, c := range children {
		c.expect(t, "done")
	}
	seen := map[fi.Addr]bool{}
	for i := range 4 {
		for j := range 200 {
			n := testName(1000*i + j)
			at := a.Find(n)
			if got, ok := a.Name(at); !ok || got != n || at >= 800 || seen[at] {
				t.Fatalf("%v is at %d, where %v %v is", n, at, got, ok)
			}
			seen[at] = true
		}
	}
	for _, c := range children {
		c.in.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
}

// Processes are killed while they change the table. The survivor goes on, what
// it put there stays, and at the end nothing is left.
func TestAVSharedKill(t *testing.T) {
	dir := t.TempDir()
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	a, err := d.OpenAV(&fi.AVAttr{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	mine := insertAll(t, a, testName(1), testName(2), testName(3))
	for i := range rounds {
		c := startChild(t, "churn", dir, 1000+100*i)
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.cmd.Wait() // killed
		at := insertAll(t, a, testName(10), testName(11))
		for j, m := range mine {
			if got, ok := a.Name(m); !ok || got != testName(1+j) {
				t.Fatalf("round %d: address %d is %v %v", i, m, got, ok)
			}
		}
		if a.Find(testName(10)) != at[0] || a.Find(testName(11)) != at[1] {
			t.Fatalf("round %d: the survivor's insertions are not found", i)
		}
		wantErrno(t, a.Remove(at, 0), fi.Success, "remove")
	}
	wantErrno(t, a.Close(), fi.Success, "close")
	if files := sharedFiles(t, dir); len(files) != 0 {
		t.Errorf("files %v are left", files)
	}
}

// What a process that was killed leaves behind is no address vector any more,
// and goes when the next one is opened, of whatever name.
func TestAVSharedStale(t *testing.T) {
	dir := t.TempDir()
	d := openTestDomainWith(t, testInfo(), sharedConfig(dir))
	leave := func() {
		c := startChild(t, "churn", dir, 1)
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.cmd.Wait() // killed
		if files := sharedFiles(t, dir); len(files) != 1 {
			t.Fatalf("files %v", files)
		}
	}
	leave()
	_, err := d.OpenAV(&fi.AVAttr{Name: "x", Flags: fi.Read})
	wantErrno(t, err, fi.ENOENT, "read-only open of what a dead process left")
	leave()
	left := sharedFiles(t, dir)[0]
	a, err := d.OpenAV(&fi.AVAttr{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if files := sharedFiles(t, dir); len(files) != 1 || files[0] == left {
		t.Errorf("files %v", files)
	}
	wantErrno(t, a.Close(), fi.Success, "close")
	leave()
	a, err = d.OpenAV(&fi.AVAttr{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := a.Name(0); ok {
		t.Error("a dead process's addresses are there")
	}
	wantErrno(t, a.Close(), fi.Success, "close")
}
