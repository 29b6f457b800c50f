package config

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/cpuset"
)

// The constructors of table entries. Each joins a parser, a check and the text
// of the range, so that the three cannot disagree.

func intVar(name, unit, def string, lo, hi int, field func(*Config) *int, help string) Var {
	return numberVar(name, Int, unit, def, lo, hi, field, help, parseInt)
}

func sizeVar(name, unit, def string, lo, hi int, field func(*Config) *int, help string) Var {
	return numberVar(name, Size, unit, def, lo, hi, field, help, parseSize)
}

// Measured is the value of a size that is measured where it is used.
const Measured = -1

// autoWord is the default that stands for Measured.
const autoWord = "auto"

// autoSizeVar is a size that is measured unless it is set.
func autoSizeVar(name, unit string, lo, hi int, field func(*Config) *int, help string) Var {
	v := sizeVar(name, unit, autoWord, lo, hi, field, help)
	v.Range = autoWord + ", " + v.Range
	inner := v.parse
	v.parse = func(c *Config, s string) error {
		if strings.EqualFold(s, autoWord) {
			*field(c) = Measured
			return nil
		}
		return inner(c, s)
	}
	return v
}

// powerVar is a size that must be a power of two.
func powerVar(name, unit, def string, lo, hi int, field func(*Config) *int, help string) Var {
	v := sizeVar(name, unit, def, lo, hi, field, help)
	v.Range += ", a power of two"
	inner := v.parse
	v.parse = func(c *Config, s string) error {
		if err := inner(c, s); err != nil {
			return err
		}
		if n := *field(c); n&(n-1) != 0 {
			return errors.New("not a power of two")
		}
		return nil
	}
	return v
}

func numberVar(name string, kind Kind, unit, def string, lo, hi int,
	field func(*Config) *int, help string, parse func(string) (int, error)) Var {
	show := strconv.Itoa
	if kind == Size {
		show = formatSize
	}
	return Var{
		Name: name, Kind: kind, Unit: unit, Default: def, Help: help,
		Range: show(lo) + " to " + show(hi),
		parse: func(c *Config, s string) error {
			n, err := parse(s)
			if err != nil {
				return err
			}
			if n < lo || n > hi {
				return errors.New("out of range")
			}
			*field(c) = n
			return nil
		},
	}
}

func boolVar(name, def string, field func(*Config) *bool, help string) Var {
	return Var{
		Name: name, Kind: Bool, Default: def, Help: help,
		Range: "0, 1, no, yes, off, on, false, true",
		parse: func(c *Config, s string) error {
			b, err := parseBool(s)
			if err == nil {
				*field(c) = b
			}
			return err
		},
	}
}

func triVar(name, def string, field func(*Config) *Tri, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: "auto, yes, no",
		parse: func(c *Config, s string) error {
			for _, t := range []Tri{Auto, Yes, No} {
				if strings.EqualFold(s, t.String()) {
					*field(c) = t
					return nil
				}
			}
			return errors.New("not one of the words")
		},
	}
}

// nativeVar is a triVar with a fourth word, native.
func nativeVar(name, def string, field func(*Config) *Tri, help string) Var {
	v := triVar(name, def, field, help)
	v.Range += ", native"
	inner := v.parse
	v.parse = func(c *Config, s string) error {
		if strings.EqualFold(s, Native.String()) {
			*field(c) = Native
			return nil
		}
		return inner(c, s)
	}
	return v
}

// choiceVar is one of several words.
func choiceVar(name, def string, words []string, field func(*Config) *string, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: strings.Join(words, ", "),
		parse: func(c *Config, s string) error {
			for _, w := range words {
				if strings.EqualFold(s, w) {
					*field(c) = w
					return nil
				}
			}
			return errors.New("not one of the words")
		},
	}
}

// shareVar is a number above 0 and up to 1.
func shareVar(name, def string, field func(*Config) *float64, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: "above 0, at most 1",
		parse: func(c *Config, s string) error {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return errors.New("not a number")
			}
			if !(v > 0 && v <= 1) { // also what is not a number
				return errors.New("out of range")
			}
			*field(c) = v
			return nil
		},
	}
}

func durationVar(name, def string, lo, hi time.Duration, field func(*Config) *time.Duration, help string) Var {
	return Var{
		Name: name, Kind: Duration, Unit: "ns, us, ms, s, m or h", Default: def, Help: help,
		Range: formatDuration(lo) + " to " + formatDuration(hi),
		parse: func(c *Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil {
				return errors.New("not a number with a unit")
			}
			if d < lo || d > hi {
				return errors.New("out of range")
			}
			*field(c) = d
			return nil
		},
	}
}

// secondsVar is a time: a number of seconds, or one with a unit.
func secondsVar(name, def string, lo, hi float64, field func(*Config) *time.Duration, help string) Var {
	v := Var{
		Name: name, Kind: Duration, Unit: "s, or with a unit ns, us, ms, s, m or h", Default: def, Help: help,
		Range: strconv.FormatFloat(lo, 'f', -1, 64) + " to " + strconv.FormatFloat(hi, 'f', -1, 64),
	}
	v.parse = func(c *Config, s string) error {
		seconds, err := strconv.ParseFloat(s, 64)
		if err != nil {
			d, err := time.ParseDuration(s)
			if err != nil {
				return errors.New("neither a number of seconds nor one with a unit")
			}
			seconds = d.Seconds()
		}
		if !(seconds >= lo && seconds <= hi) { // also what is not a number
			return errors.New("out of range")
		}
		*field(c) = time.Duration(seconds * float64(time.Second))
		return nil
	}
	return v
}

// numberOfVar is a number from lo to hi, which need not be whole.
func numberOfVar(name, unit, def string, lo, hi float64, field func(*Config) *float64, help string) Var {
	return Var{
		Name: name, Kind: String, Unit: unit, Default: def, Help: help,
		Range: strconv.FormatFloat(lo, 'f', -1, 64) + " to " + strconv.FormatFloat(hi, 'f', -1, 64),
		parse: func(c *Config, s string) error {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return errors.New("not a number")
			}
			if !(v >= lo && v <= hi) { // also what is not a number
				return errors.New("out of range")
			}
			*field(c) = v
			return nil
		},
	}
}

// millisecondsVar is a number of milliseconds.
func millisecondsVar(name, def string, lo, hi float64, field func(*Config) *time.Duration, help string) Var {
	v := numberOfVar(name, "ms", def, lo, hi, nil, help)
	v.parse = func(c *Config, s string) error {
		var ms float64
		number := numberOfVar(name, "ms", def, lo, hi, func(*Config) *float64 { return &ms }, help)
		if err := number.parse(c, s); err != nil {
			return err
		}
		*field(c) = time.Duration(ms * float64(time.Millisecond))
		return nil
	}
	return v
}

// deviceVar is a device's file, or empty.
func deviceVar(name, def string, field func(*Config) *string, help string) Var {
	v := pathVar(name, def, field, help)
	v.Range += ", or empty"
	inner := v.parse
	v.parse = func(c *Config, s string) error {
		if s == "" {
			*field(c) = ""
			return nil
		}
		return inner(c, s)
	}
	return v
}

// pathVar is the absolute path of a directory. Whether it exists is for the process that opens it to say.
func pathVar(name, def string, field func(*Config) *string, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: "an absolute path",
		parse: func(c *Config, s string) error {
			if !path.IsAbs(s) {
				return errors.New("not an absolute path")
			}
			*field(c) = path.Clean(s)
			return nil
		},
	}
}

// wordVar is a word of at most limit bytes without spaces or slashes, or empty.
func wordVar(name string, limit int, field func(*Config) *string, help string) Var {
	return Var{
		Name: name, Kind: String, Help: help,
		Range: fmt.Sprintf("empty or up to %d characters without spaces and slashes", limit),
		parse: func(c *Config, s string) error {
			if len(s) > limit || strings.ContainsAny(s, " \t\r\n/") {
				return errors.New("not a name")
			}
			*field(c) = s
			return nil
		},
	}
}

// cpusVar is a list of processors; -1 is the empty set.
func cpusVar(name, def string, field func(*Config) *cpuset.Set, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: fmt.Sprintf("-1, or numbers and ranges from 0 to %d separated by commas", cpuset.Max-1),
		parse: func(c *Config, s string) error {
			if s == "-1" {
				s = ""
			} else if s == "" {
				return cpuset.ErrList
			}
			set, err := cpuset.Parse(s)
			if err == nil {
				*field(c) = set
			}
			return err
		},
	}
}

// waysVar is auto, which is all ways, or a list of some.
func waysVar(name, def string, field func(*Config) *Ways, help string) Var {
	return Var{
		Name: name, Kind: String, Default: def, Help: help,
		Range: "auto, or some of ipc, rdma and message separated by commas",
		parse: func(c *Config, s string) error {
			if strings.EqualFold(s, "auto") {
				*field(c) = Ways{IPC: true, RDMA: true, Message: true}
				return nil
			}
			var w Ways
			for _, word := range strings.Split(s, ",") {
				switch strings.ToLower(strings.TrimSpace(word)) {
				case "ipc":
					w.IPC = true
				case "rdma":
					w.RDMA = true
				case "message":
					w.Message = true
				default:
					return fmt.Errorf("%q is no way", word)
				}
			}
			*field(c) = w
			return nil
		},
	}
}

var errNotNumber = errors.New("not a number")

func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("out of range")
	}
	if err != nil || s[0] == '+' {
		return 0, errNotNumber
	}
	return n, nil
}

// parseSize parses a number with an optional suffix k, m or g in either case.
func parseSize(s string) (int, error) {
	shift := 0
	if s != "" {
		if i := strings.IndexByte("kmg", s[len(s)-1]|0x20); i >= 0 {
			shift = 10 * (i + 1)
			s = s[:len(s)-1]
		}
	}
	n, err := parseInt(s)
	if err != nil {
		return 0, err
	}
	if n<<shift>>shift != n {
		return 0, errors.New("out of range")
	}
	return n << shift, nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "yes", "on", "true":
		return true, nil
	case "0", "no", "off", "false":
		return false, nil
	}
	return false, errors.New("not a boolean")
}

// formatSize writes n with the largest suffix that divides it.
func formatSize(n int) string {
	suffix := ""
	for _, next := range []string{"k", "m", "g"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, suffix = n/1024, next
	}
	return strconv.Itoa(n) + suffix
}

// formatDuration drops the zero parts that Duration.String keeps, and spells
// microseconds in ASCII.
func formatDuration(d time.Duration) string {
	s := strings.Replace(d.String(), "µs", "us", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
