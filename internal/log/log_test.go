package log

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// restore puts the process's default sink back.
func restore(t *testing.T) {
	t.Cleanup(func() { UseWriter(os.Stderr, os.LookupEnv) })
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}
}

func TestWriterFilters(t *testing.T) {
	restore(t)
	for _, tc := range []struct {
		env  []string
		want string // the levels and subsystems that get through
	}{
		{nil, ""},
		{[]string{"FI_LOG_LEVEL=warn"}, "warn:av warn:cq"},
		{[]string{"FI_LOG_LEVEL=WARN"}, "warn:av warn:cq"},
		{[]string{"FI_LOG_LEVEL=info"}, "warn:av warn:cq info:av info:cq"},
		{[]string{"FI_LOG_LEVEL=debug"}, "warn:av warn:cq info:av info:cq debug:av debug:cq"},
		{[]string{"FI_LOG_LEVEL=loud"}, ""},
		{[]string{"FI_LOG_LEVEL=warn", "FI_LOG_SUBSYS=av"}, "warn:av"},
		{[]string{"FI_LOG_LEVEL=warn", "FI_LOG_SUBSYS=^av,mr"}, "warn:cq"},
		{[]string{"FI_LOG_LEVEL=warn", "FI_LOG_SUBSYS="}, ""},
	} {
		var buf bytes.Buffer
		UseWriter(&buf, env(tc.env...))
		for _, l := range []Level{Warn, Info, Debug} {
			Printf(l, AV, "message %d", 1)
			Printf(l, CQ, "message %d", 2)
		}
		var got []string
		for line := range strings.Lines(buf.String()) {
			f := strings.Split(line, ":")
			if len(f) != 5 || f[0] != "weft" || f[1] != fmt.Sprint(os.Getpid()) ||
				!strings.HasPrefix(f[4], " message ") {
				t.Fatalf("%v: malformed line %q", tc.env, line)
			}
			got = append(got, f[2]+":"+f[3])
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%v: got %q, want %q", tc.env, s, tc.want)
		}
	}
}

func TestSinkGetsEveryLevelAndSubsystem(t *testing.T) {
	restore(t)
	type key struct {
		l Level
		s Subsys
	}
	var got []key
	SetSink(func(l Level, s Subsys, msg string) {
		if msg != "x7" {
			t.Errorf("message %q, want x7", msg)
		}
		got = append(got, key{l, s})
	})
	SetEnabled(func(l Level, s Subsys) bool { return true })
	for l := range levels {
		for s := range subsystems {
			Printf(l, s, "x%d", 7)
			if n := len(got); n == 0 || got[n-1] != (key{l, s}) {
				t.Fatalf("message of %v %v was not written", l, s)
			}
		}
	}
	Warnf(AV, "x%d", 7)
	Infof(AV, "x%d", 7)
	Debugf(AV, "x%d", 7)
	for i, l := range []Level{Warn, Info, Debug} {
		if k := got[len(got)-3+i]; k != (key{l, AV}) {
			t.Errorf("helper %d wrote %v", i, k)
		}
	}
	n := len(got)
	Printf(levels, AV, "x7")
	Printf(Warn, subsystems, "x7")
	Printf(-1, -1, "x7")
	if len(got) != n {
		t.Error("a level or subsystem that does not exist was written")
	}
}

// TestRefuse: a refusal says once why.
func TestRefuse(t *testing.T) {
	restore(t)
	var buf bytes.Buffer
	UseWriter(&buf, env("FI_LOG_LEVEL=warn"))
	why := os.ErrInvalid
	for _, c := range []struct {
		err  error
		want string
	}{
		{Refuse(AV, why, "open %d", 3), "open 3: invalid argument"},
		{Refuse(AV, why, "open: %v", fmt.Errorf("no name: %w", why)), "open: no name: invalid argument"},
		{Refuse(AV, why, "open: %v", os.ErrExist), "open: file already exists: invalid argument"},
	} {
		if line, _ := buf.ReadString('\n'); c.err.Error() != c.want || !errors.Is(c.err, why) ||
			!strings.HasSuffix(line, " "+c.want+"\n") {
			t.Errorf("%q in %q, want %q", c.err, line, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	if Warn.String() != "warn" || Debug.String() != "debug" || Level(9).String() != "unknown" {
		t.Error("level names")
	}
	if Core.String() != "core" || Cntr.String() != "cntr" || Subsys(-1).String() != "unknown" {
		t.Error("subsystem names")
	}
}

type counter struct{ calls int }

func (c *counter) String() string { c.calls++; return "" }

func TestDisabledFormatsAndAllocatesNothing(t *testing.T) {
	restore(t)
	SetEnabled(func(Level, Subsys) bool { return false })
	SetSink(nil)
	c := &counter{}
	Warnf(AV, "%v", c)
	if c.calls != 0 {
		t.Error("a disabled message was formatted")
	}
	tag := uint64(os.Getpid()) + 1<<40
	if n := testing.AllocsPerRun(100, func() {
		Warnf(CQ, "constant arguments: %d %s", 7, "seven")
		if Enabled(Debug, EPData) {
			Debugf(EPData, "tag %#x", tag)
		}
		tag++
	}); n != 0 {
		t.Errorf("disabled messages allocate %v times", n)
	}
}
