package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// TestCommitted holds the committed header to the tables that it is made from.
func TestCommitted(t *testing.T) {
	var want bytes.Buffer
	if err := write(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../table_gen.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("cabi/loader/table_gen.h is not what the tables make; run make man")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteReportsErrors(t *testing.T) {
	if write(full{}) == nil {
		t.Error("a failure to write is not reported")
	}
}
