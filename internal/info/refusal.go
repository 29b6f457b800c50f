package info

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
)

// refusal says which hint cannot be met and why. As an error it wraps
// fi.ENODATA.
type refusal struct {
	attr string // as in C, for example "tx_attr.msg_order"
	why  string
}

func refuse(attr, format string, args ...any) *refusal {
	return &refusal{attr: attr, why: fmt.Sprintf(format, args...)}
}

// Error returns the text of the log line.
func (r *refusal) Error() string { return "hint " + r.attr + " refused: " + r.why }

// Unwrap returns fi.ENODATA.
func (r *refusal) Unwrap() error { return fi.ENODATA }

// firstRefusal runs checks in order until one refuses.
func firstRefusal(checks ...*refusal) *refusal {
	for _, r := range checks {
		if r != nil {
			return r
		}
	}
	return nil
}

// atMost refuses a value above a limit.
func atMost(attr string, value, limit uint64) *refusal {
	if value > limit {
		return refuse(attr, "%d exceeds %d", value, limit)
	}
	return nil
}

// subset refuses bits outside a supported set.
func subset(attr string, bits, supported uint64) *refusal {
	if bad := bits &^ supported; bad != 0 {
		return refuse(attr, "bits %#x are not supported", bad)
	}
	return nil
}

// trafficClass refuses what is none.
func trafficClass(attr string, class uint32) *refusal {
	if _, ok := fi.DSCP(class); !ok {
		return refuse(attr, "%#x is no traffic class", class)
	}
	return nil
}

// oneOf refuses a value that is none of those supported.
func oneOf[T comparable](attr string, value T, supported ...T) *refusal {
	for _, s := range supported {
		if value == s {
			return nil
		}
	}
	return refuse(attr, "value %v is not supported", value)
}
