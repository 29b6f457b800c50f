package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unused is an address at which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestLate: a machine that comes up later is waited for.
func TestLate(t *testing.T) {
	address := unused(t)
	go func() {
		time.Sleep(300 * time.Millisecond)
		if l, err := net.Listen("tcp", address); err == nil {
			_, _ = l.Accept()
			_ = l.Close()
		}
	}()
	c, err := dial(address, filepath.Join(t.TempDir(), "absent"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestEnded: one that has ended is not.
func TestEnded(t *testing.T) {
	over := filepath.Join(t.TempDir(), "ended")
	if err := os.WriteFile(over, []byte("125"), 0o644); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err := dial(unused(t), over)
	if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "status 125") || took > patience/2 {
		t.Errorf("%v after %v", err, took)
	}
}
