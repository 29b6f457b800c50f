package cpuset

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "0": "0", "0,2-5\n": "0,2-5", "5,4,3": "3-5", "7-7": "7", "1023": "1023", "0-1,1-2": "0-2",
	} {
		s, err := Parse(in)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q %v, want %q", in, s.String(), err, want)
		}
	}
	for _, in := range []string{"a", "-1", "1-", "3-2", "1024", ",", "1,,2", "1 2", "99999999999999999999", "0x1",
		"1-2-3"} {
		if s, err := Parse(in); !errors.Is(err, ErrList) || s.Count() != 0 {
			t.Errorf("%q: %q %v", in, s.String(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0,2-5", "1-", "1023", "7,7-9,0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse(in)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || again != s {
			t.Errorf("%q is %q, which gives %q %v", in, s.String(), again.String(), err)
		}
	})
}

func TestOfNode(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "node1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "node1", "cpulist"), []byte("2-3,6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OfNode(root, 1)
	if err != nil || s.String() != "2-3,6" || !s.Has(6) || s.Has(4) || s.Has(-1) || s.Count() != 3 {
		t.Errorf("node 1: %v %v", s, err)
	}
	if _, err := OfNode(root, 2); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("node 2: %v", err)
	}
}

// TestBind binds a thread of its own to each of its processors in turn.
func TestBind(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // ends with the goroutine
		all, err := OfThread()
		if err != nil {
			t.Error(err)
			return
		}
		for n := range all.Count() {
			one := all.Nth(n)
			if before := all.Nth(n - 1); one.Count() != 1 || one == before {
				t.Errorf("processor %d of %v: %v, behind %v", n, &all, &one, &before)
			}
			if err := one.Bind(); err != nil {
				t.Error(err)
			}
			now, err := OfThread()
			if both := now.And(&all); err != nil || now != one || both != one {
				t.Errorf("bound to %v: %v %v", &one, &now, err)
			}
		}
		none := all.Nth(all.Count())
		if err := none.Bind(); !errors.Is(err, unix.EINVAL) {
			t.Errorf("bound to no processor: %v", err)
		}
	}()
	<-done
}
