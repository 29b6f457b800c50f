package fi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestErrnoText(t *testing.T) {
	for e, want := range map[Errno]string{
		Success:   "success",
		EAGAIN:    "resource temporarily unavailable",
		ENODATA:   "no data available",
		ETRUNC:    "message was truncated",
		Errno(-3): "unknown error -3",
		272:       "unknown error 272",
	} {
		if got := e.Error(); got != want {
			t.Errorf("Errno(%d) is %q, want %q", int(e), got, want)
		}
	}
	for e := EOTHER; e <= EFIREWALLADDR; e++ {
		if s := e.Error(); s == "" || strings.HasPrefix(s, "unknown") || s != strings.ToLower(s) {
			t.Errorf("text of %d: %q", int(e), s)
		}
	}
}

func TestErrnoCode(t *testing.T) {
	if ETRUNC.Code() != -265 || Success.Code() != 0 || EAGAIN.Code() != -11 {
		t.Error("codes are not the negative numbers")
	}
}

func TestErrnoOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Errno
	}{
		{nil, Success},
		{ETRUNC, ETRUNC},
		{syscall.ENOMEM, ENOMEM},
		{syscall.Errno(300), EOTHER},
		{io.EOF, EOTHER},
		{fmt.Errorf("open: %w", EBUSY), EBUSY},
		{&os.PathError{Op: "open", Path: "/", Err: syscall.EACCES}, EACCES},
		{fmt.Errorf("resolve: %w: %w", syscall.ECONNREFUSED, ENODATA), ENODATA},
		{errors.Join(io.EOF, EINVAL), EINVAL},
	} {
		if got := ErrnoOf(tc.err); got != tc.want {
			t.Errorf("ErrnoOf(%v) = %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestErrnoIs(t *testing.T) {
	if !errors.Is(fmt.Errorf("x: %w", EAGAIN), syscall.EAGAIN) {
		t.Error("EAGAIN is not the system's")
	}
	if errors.Is(ETRUNC, syscall.Errno(265)) || errors.Is(EAGAIN, syscall.EINVAL) || errors.Is(EAGAIN, EINVAL) {
		t.Error("different numbers are equal")
	}
}

var sinkError error

func TestErrorsDoNotAllocate(t *testing.T) {
	n := 0
	all := []Errno{EAGAIN, EOTHER, ETRUNC, EFIREWALLADDR, Success, EINVAL}
	if a := testing.AllocsPerRun(100, func() {
		sinkError = ETRUNC
		sinkError = all[n%len(all)].Err()
		n++
	}); a != 0 {
		t.Errorf("converting to error allocates %v times", a)
	}
	for _, e := range all {
		if err := e.Err(); e == Success != (err == nil) || e != Success && !errors.Is(err, error(e)) {
			t.Errorf("Err of %d is %v", e, err)
		}
	}
	if !errors.Is(Errno(5000).Err(), error(Errno(5000))) || !errors.Is(Errno(-1).Err(), error(Errno(-1))) {
		t.Error("an unknown number is lost")
	}
}

func TestErrnoOfDoesNotAllocate(t *testing.T) {
	var err error = ETRUNC
	if a := testing.AllocsPerRun(100, func() { sinkErrno = ErrnoOf(err) }); a != 0 {
		t.Errorf("ErrnoOf allocates %v times", a)
	}
}

var sinkErrno Errno
