package text

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTable(t *testing.T) {
	s := Style{Color: true}
	tab := Table{Right: []bool{false, true}}
	tab.Row("name", "rate", "note")
	tab.Row(s.Bold("a"), "1", "")
	tab.Row("höhe", "12345", s.Bad("x"))
	want := []string{
		" name   rate  note",
		" \x1b[1ma\x1b[0m         1",
		" höhe  12345  \x1b[31mx\x1b[0m",
	}
	if got := tab.Lines(" "); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	if err := tab.Write(full, ""); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if err := JSON(full, 1); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
}

func TestClip(t *testing.T) {
	s := Style{Color: true}
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"höhe", 2, "hö"}, {"abc", 0, ""},
		{s.Bad("abc") + "d", 4, s.Bad("abc") + "d"}, {s.Bad("abc") + "d", 2, s.Bad("ab")},
	} {
		if got := Clip(c.in, c.n); got != c.want {
			t.Errorf("%q to %d: %q", c.in, c.n, got)
		}
	}
}

func TestStyle(t *testing.T) {
	var b bytes.Buffer
	if StyleFor(&b).Color || StyleFor(&b).Good("x") != "x" {
		t.Error("a buffer is painted")
	}
	if got := (Style{true}).Good(""); got != "" {
		t.Errorf("%q", got)
	}
	if got := Wrap("one two three four", 9); !reflect.DeepEqual(got, []string{"one two", "three", "four"}) {
		t.Errorf("%q", got)
	}
	if err := JSON(&b, map[string]int{"a": 1}); err != nil || !strings.Contains(b.String(), "\"a\": 1\n") {
		t.Error(b.String(), err)
	}
	if err := JSON(&b, func() {}); err == nil {
		t.Error("a function as JSON")
	}
}
