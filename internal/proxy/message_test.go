package proxy

import (
	"bytes"
	"errors"
	"testing"
)

func TestMessageRoundTrip(t *testing.T) {
	for _, m := range []message{
		{kind: KindHello, id: 1},
		{kind: 0xffff, id: 0xffffffff, status: StatusRefused, body: bytes.Repeat([]byte{7}, MaxBody)},
	} {
		got, err := parseMessage(m.put(nil))
		if err != nil || got.kind != m.kind || got.id != m.id || got.status != m.status ||
			!bytes.Equal(got.body, m.body) {
			t.Errorf("%d bytes: %v", len(m.body), err)
		}
	}
	good := (&message{kind: KindName}).put(nil)
	for name, b := range map[string][]byte{
		"empty": nil, "short": good[:15], "long": make([]byte, headerBytes+MaxBody+1),
		"magic": change(good, 0), "version": change(good, 4), "no kind": (&message{}).put(nil),
		"status": (&message{kind: 1, status: statuses}).put(nil),
	} {
		if _, err := parseMessage(b); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := Hello{5, 1 << 40}
	if got, err := parseHello(h.put(nil)); err != nil || got != h {
		t.Errorf("hello %+v: %v", got, err)
	}
	if _, err := parseHello(make([]byte, 11)); !errors.Is(err, errMessage) {
		t.Errorf("short hello: %v", err)
	}
	for s := range statuses + 1 {
		if s.String() == "" {
			t.Errorf("status %d has no name", s)
		}
	}
}

func change(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at]++
	return c
}

// FuzzMessage: what parses is what would be sent.
func FuzzMessage(f *testing.F) {
	f.Add((&message{kind: KindName, id: 3, body: []byte("x")}).put(nil))
	f.Add([]byte("weft"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.put(nil), b) {
			t.Errorf("%q gives %+v", b, m)
		}
		_, _ = parseHello(m.body)
	})
}
