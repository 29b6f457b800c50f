// Package log is weft's logging sink: libfabric's levels and subsystems, one
// sink for the process.
//
// In a host library the sink is the host's fi_log ([SetSink], [SetEnabled]).
// Before a sink is set, messages go to standard error if FI_LOG_LEVEL asks for
// their level; without that variable nothing is written.
//
// Each message is written once, where the error is first decided. It states
// facts in lower case, without a newline at the end:
//
//	log.Warnf(log.AV, "%v is not on this host", name)
//
// The arguments of a call are built before the call, also when the level is
// off. Code that must not allocate asks first:
//
//	if log.Enabled(log.Debug, log.EPData) {
//		log.Debugf(log.EPData, "tag %#x matched", tag)
//	}
package log

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// Level is the importance of a message, with the values of enum fi_log_level.
type Level int32

// Levels, the most important first.
const (
	Warn Level = iota
	Trace
	Info
	Debug
	levels
)

// String returns the name that FI_LOG_LEVEL takes.
func (l Level) String() string {
	return nameOf(int(l), "warn", "trace", "info", "debug")
}

// Subsys is the part of weft that writes, with the values of enum
// fi_log_subsys.
type Subsys int32

// Subsystems.
const (
	Core Subsys = iota
	Fabric
	Domain
	EPCtrl
	EPData
	AV
	CQ
	EQ
	MR
	Cntr
	subsystems
)

// String returns the name that FI_LOG_SUBSYS takes.
func (s Subsys) String() string {
	return nameOf(int(s), "core", "fabric", "domain", "ep_ctrl", "ep_data",
		"av", "cq", "eq", "mr", "cntr")
}

func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}

// Sink writes one message. It is called from any goroutine, at most once per
// message, and only for enabled levels. msg has no newline at the end.
type Sink func(level Level, subsys Subsys, msg string)

// sink is the current sink, never nil. Written by SetSink, read by every
// message with acquire order (the atomic's own).
var sink atomic.Pointer[Sink]

// enabled has bit 16*level+subsys set for what the sink wants. Written by
// SetEnabled, read by every message; its order against sink does not matter, a
// message that races with a change goes to either sink.
var enabled atomic.Uint64

// The default sink is in place before any package that logs is initialised.
func init() { UseWriter(os.Stderr, os.LookupEnv) }

// SetSink sends messages to s. A nil s drops them.
func SetSink(s Sink) {
	if s == nil {
		s = func(Level, Subsys, string) {}
	}
	sink.Store(&s)
}

// SetEnabled asks once for every level and subsystem whether its messages are
// wanted, and keeps the answers.
func SetEnabled(want func(Level, Subsys) bool) {
	var mask uint64
	for l := range levels {
		for s := range subsystems {
			if want(l, s) {
				mask |= bit(l, s)
			}
		}
	}
	enabled.Store(mask)
}

// UseWriter sends messages to w as lines, filtered as FI_LOG_LEVEL and
// FI_LOG_SUBSYS say. FI_LOG_LEVEL is a level's name: that level and the more
// important ones are on; unset or another word, all are off. FI_LOG_SUBSYS is
// a list of subsystems, separated by commas: unset means all, a ^ in front
// means all but those listed. lookup is os.LookupEnv or like it.
func UseWriter(w io.Writer, lookup func(string) (string, bool)) {
	SetSink(func(l Level, s Subsys, msg string) {
		// A log that cannot be written has nowhere to say so.
		_, _ = fmt.Fprintf(w, "weft:%d:%s:%s: %s\n", os.Getpid(), l, s, msg)
	})
	highest := Level(-1)
	if name, ok := lookup("FI_LOG_LEVEL"); ok {
		for l := range levels {
			if strings.EqualFold(name, l.String()) {
				highest = l
			}
		}
	}
	list, filtered := lookup("FI_LOG_SUBSYS")
	list, inverted := strings.CutPrefix(list, "^")
	SetEnabled(func(l Level, s Subsys) bool {
		if l > highest {
			return false
		}
		return !filtered || listed(list, s.String()) != inverted
	})
}

// listed reports whether name is an element of list.
func listed(list, name string) bool {
	for e := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(e), name) {
			return true
		}
	}
	return false
}

// Enabled reports whether messages of a level and subsystem are written. It is
// one atomic load.
func Enabled(l Level, s Subsys) bool { return enabled.Load()&bit(l, s) != 0 }

// bit returns the bit of a level and subsystem in enabled, 0 for values that
// do not exist.
func bit(l Level, s Subsys) uint64 {
	if uint32(l) >= uint32(levels) || uint32(s) >= uint32(subsystems) {
		return 0
	}
	return 1 << (uint(l)<<4 | uint(s))
}

// Printf writes a message if its level is enabled; otherwise it formats
// nothing.
func Printf(l Level, s Subsys, format string, args ...any) {
	if Enabled(l, s) {
		(*sink.Load())(l, s, fmt.Sprintf(format, args...))
	}
}

// Warnf writes a message of level Warn: something failed or was ignored that
// the user should know about.
func Warnf(s Subsys, format string, args ...any) { Printf(Warn, s, format, args...) }

// Infof writes a message of level Info: a decision, such as why an attribute
// was refused.
func Infof(s Subsys, format string, args ...any) { Printf(Info, s, format, args...) }

// Debugf writes a message of level Debug.
func Debugf(s Subsys, format string, args ...any) { Printf(Debug, s, format, args...) }

// Refuse logs at warn level why a call fails, and returns an error with that text which wraps errno.
func Refuse(s Subsys, errno error, format string, args ...any) error {
	err := &refusal{text: fmt.Sprintf(format, args...), errno: errno}
	if why := errno.Error(); !strings.HasSuffix(err.text, why) { // it does where an error with errno is last
		err.text += ": " + why
	}
	Warnf(s, "%s", err.text)
	return err
}

// refusal is an error of Refuse.
type refusal struct {
	text  string
	errno error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.errno }

// Reject logs at warn level why a call fails, and returns err as it is: [Refuse] puts the text and err into one error.
func Reject(s Subsys, err error, format string, args ...any) error {
	Warnf(s, format, args...)
	return err
}
