package cm

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for _, m := range []Message{
		{Kind: Request, Port: 1, Data: []byte{}},
		{Kind: Request, Port: 65535, Data: bytes.Repeat([]byte{7}, MaxData)},
		{Kind: Accept, Port: 9, Data: []byte("yes")},
		{Kind: Reject, Data: []byte("no")},
		{Kind: Reject, Data: []byte{}},
		signed(Message{Kind: Request, Port: 5, Data: []byte("please")}),
		signed(Message{Kind: Reject, Data: []byte{}}),
	} {
		got, err := Read(bytes.NewReader(append(m.Append(nil), 1, 2, 3)))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("sent %+v, got %+v, %v", m, got, err)
		}
	}
}

func signed(m Message) Message {
	m.Sign([]byte("key"), "ends", NewNonce())
	return m
}

// TestProof: whatever of a message is changed, or whatever else says it, it is no proof.
func TestProof(t *testing.T) {
	key, ends := []byte("key"), "a>b"
	m := Message{Kind: Request, Port: 5, Data: []byte("data")}
	if m.Sign(nil, ends, NewNonce()); m.Proof != nil || !m.Shows(nil, ends) || m.Shows(key, ends) {
		t.Errorf("without a key: %+v", m.Proof)
	}
	m.Sign(key, ends, NewNonce())
	if !m.Shows(key, ends) || m.Shows(nil, ends) || m.Shows([]byte("other"), ends) || m.Shows(key, "a>c") {
		t.Error("the proof is not one of the key on this connection")
	}
	for name, change := range map[string]func(m *Message){
		"kind": func(m *Message) { m.Kind = Accept }, "port": func(m *Message) { m.Port++ },
		"data": func(m *Message) { m.Data = []byte("date") }, "less": func(m *Message) { m.Data = m.Data[:3] },
		"nonce": func(m *Message) { m.Proof.Nonce[3]++ }, "mac": func(m *Message) { m.Proof.MAC[31]++ },
	} {
		c, p := m, *m.Proof
		c.Proof = &p
		if change(&c); c.Shows(key, ends) {
			t.Errorf("%s: still a proof", name)
		}
	}
}

func TestMalformed(t *testing.T) {
	good := (&Message{Kind: Request, Port: 5, Data: []byte("ab")}).Append(nil)
	for name, change := range map[string]func([]byte) []byte{
		"magic":   func(b []byte) []byte { b[0]++; return b },
		"version": func(b []byte) []byte { b[4]++; return b },
		"kind":    func(b []byte) []byte { b[5] = 9; return b },
		"no kind": func(b []byte) []byte { b[5] = 0; return b },
		"no port": func(b []byte) []byte { b[6] = 0; return b },
		"port":    func(b []byte) []byte { b[5] = byte(Reject); return b },
		"length":  func(b []byte) []byte { b[9] = 2; return b },
		"rest":    func(b []byte) []byte { b[11] = 1; return b },
	} {
		b := change(append([]byte(nil), good...))
		b = append(b, make([]byte, 1000)...)
		if m, err := Read(bytes.NewReader(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for n := range good {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if _, err := Read(bytes.NewReader(good[:n])); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzRead gives arbitrary bytes: what is accepted encodes to what was read.
func FuzzRead(f *testing.F) {
	f.Add((&Message{Kind: Request, Port: 5, Data: []byte("ab")}).Append(nil))
	f.Add((&Message{Kind: Reject}).Append(nil))
	keyed := signed(Message{Kind: Accept, Port: 7})
	f.Add(keyed.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(m.Data) > MaxData || !bytes.HasPrefix(b, m.Append(nil)) {
			t.Errorf("% x was read as %+v", b, m)
		}
	})
}
