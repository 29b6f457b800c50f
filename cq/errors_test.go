package cq

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

func TestErrors(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 8}, Options{})
	_, err := q.ReadErr()
	wantErr(t, err, fi.EAGAIN)
	q.Complete(entry(1))
	_, err = q.ReadErr() // not next
	wantErr(t, err, fi.EAGAIN)
	info := ErrorInfo{Err: fi.ETRUNC, ProvErrno: -7, OLen: 55, ErrData: []byte("where it came from")}
	q.CompleteError(entry(2), info)
	q.CompleteError(entry(3), ErrorInfo{Err: fi.ECANCELED})
	q.Complete(entry(4))

	wantRead(t, q, 1) // stops at the error
	for range 2 {
		_, err = q.Read(make([]Entry, 4))
		wantErr(t, err, fi.EAVAIL)
	}
	e, err := q.ReadErr()
	if err != nil || e.Entry != entry(2) || e.Err != fi.ETRUNC || e.ProvErrno != -7 || e.OLen != 55 ||
		string(e.ErrData) != string(info.ErrData) {
		t.Fatalf("%+v %v", e, err)
	}
	e, err = q.ReadErr()
	if err != nil || e.Entry != entry(3) || e.Err != fi.ECANCELED || e.ProvErrno != int32(fi.ECANCELED) ||
		e.OLen != 0 || e.ErrData != nil {
		t.Fatalf("%+v %v", e, err)
	}
	_, err = q.ReadErr()
	wantErr(t, err, fi.EAGAIN)
	wantRead(t, q, 4)

	q.CompleteError(entry(5), ErrorInfo{Err: fi.EIO, ErrData: make([]byte, 500)})
	if e, err = q.ReadErr(); err != nil || len(e.ErrData) != MaxErrData {
		t.Fatalf("%d bytes of data %v", len(e.ErrData), err)
	}
	bare := Entry{Context: 6, Flags: fi.Recv | fi.Tagged, Tag: 7, Src: fi.AddrNotAvail}
	q.CompleteError(bare, ErrorInfo{Err: fi.ENOMSG})
	if n := q.errors.slab.Live(); n != 0 {
		t.Errorf("%d records of an error of which the entry says all", n)
	}
	if e, err = q.ReadErr(); err != nil || e.Entry != bare || e.Err != fi.ENOMSG || e.ProvErrno != int32(fi.ENOMSG) {
		t.Fatalf("%+v %v", e, err)
	}
	if n := q.errors.slab.Live(); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// TestErrorsReadAtOnce has two threads read errors into buffers of their own: each gets the data of its error.
func TestErrorsReadAtOnce(t *testing.T) {
	const each = 500
	q := open(t, fi.CQAttr{Size: 64}, Options{})
	var group sync.WaitGroup
	var left atomic.Int64
	left.Store(2 * each)
	for range 2 {
		group.Go(func() {
			for left.Load() > 0 {
				var own [MaxErrData]byte
				e, err := q.ReadErrInto(own[:])
				if err != nil {
					_, _ = q.Read(make([]Entry, 1)) // moves what the ring had no room for
					continue
				}
				left.Add(-1)
				if !bytes.Equal(e.ErrData, bytes.Repeat([]byte{byte(e.Context)}, 16)) || &e.ErrData[0] != &own[0] {
					t.Errorf("error %d has data % x", e.Context, e.ErrData)
				}
			}
		})
	}
	for n := range uint64(2 * each) {
		q.CompleteError(entry(n), ErrorInfo{Err: fi.EIO, ErrData: bytes.Repeat([]byte{byte(n)}, 16)})
	}
	group.Wait()
}

func TestErrorWithoutMemory(t *testing.T) {
	q := open(t, fi.CQAttr{}, Options{})
	bare := Entry{Context: 3, Flags: fi.Send | hot.CQEError, Src: fi.Addr(uint64(fi.EIO)<<32 | 0xfffffff9)}
	got := q.errors.take(bare, q.last)
	if got.Err != fi.EIO || got.ProvErrno != -7 || got.Context != 3 || got.Flags != fi.Send ||
		got.Src != fi.AddrNotAvail {
		t.Errorf("%+v", got)
	}
}

func TestErrorTurn(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 8}, Options{Stripes: 1})
	q.CompleteError(entry(1), ErrorInfo{Err: fi.EIO})
	for n := range uint64(4) {
		q.TryComplete(1, entry(n))
	}
	dst := make([]Entry, 1)
	for i := 0; ; i++ {
		if _, err := q.Read(dst); err != nil {
			wantErr(t, err, fi.EAVAIL)
			break
		}
		if i > 2 {
			t.Fatal("the error's turn does not come")
		}
	}
	if e, err := q.ReadErr(); err != nil || e.Context != 1 {
		t.Fatalf("%+v %v", e, err)
	}
}
