// Package tool holds what the packages of the commands share.
package tool

import "errors"

// Exit is an error that says with which status the command ends. Err may be
// nil: then all has been said.
type Exit struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e Exit) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e Exit) Unwrap() error { return e.Err }

// Usage marks an error as one of usage: status 2.
func Usage(err error) error { return Exit{2, err} }

// Status returns the exit status of an error, 0 for none.
func Status(err error) int {
	if err == nil {
		return 0
	}
	var e Exit
	if errors.As(err, &e) {
		return e.Code
	}
	return 1
}
