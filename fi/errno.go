package fi

import (
	"errors"
	"fmt"
	"syscall"
)

// Errno is a libfabric error number: a positive number, either of the system
// or, from 256 upwards, of libfabric itself.
//
// The constants convert to error without allocating. A number that is known
// only at run time does so through [Errno.Err].
type Errno int

// Success is the absence of an error.
const Success Errno = 0

// Error numbers that are the system's.
const (
	EPERM         = Errno(syscall.EPERM)
	ENOENT        = Errno(syscall.ENOENT)
	EINTR         = Errno(syscall.EINTR)
	EIO           = Errno(syscall.EIO)
	E2BIG         = Errno(syscall.E2BIG)
	EBADF         = Errno(syscall.EBADF)
	EAGAIN        = Errno(syscall.EAGAIN)
	ENOMEM        = Errno(syscall.ENOMEM)
	EACCES        = Errno(syscall.EACCES)
	EFAULT        = Errno(syscall.EFAULT)
	EBUSY         = Errno(syscall.EBUSY)
	ENODEV        = Errno(syscall.ENODEV)
	EINVAL        = Errno(syscall.EINVAL)
	EMFILE        = Errno(syscall.EMFILE)
	ENOSPC        = Errno(syscall.ENOSPC)
	ENOSYS        = Errno(syscall.ENOSYS)
	EWOULDBLOCK   = Errno(syscall.EWOULDBLOCK)
	ENOMSG        = Errno(syscall.ENOMSG)
	ENODATA       = Errno(syscall.ENODATA)
	EOVERFLOW     = Errno(syscall.EOVERFLOW)
	EPROTO        = Errno(syscall.EPROTO)
	EMSGSIZE      = Errno(syscall.EMSGSIZE)
	ENOPROTOOPT   = Errno(syscall.ENOPROTOOPT)
	EOPNOTSUPP    = Errno(syscall.EOPNOTSUPP)
	EADDRINUSE    = Errno(syscall.EADDRINUSE)
	EADDRNOTAVAIL = Errno(syscall.EADDRNOTAVAIL)
	ENETDOWN      = Errno(syscall.ENETDOWN)
	ENETUNREACH   = Errno(syscall.ENETUNREACH)
	ECONNABORTED  = Errno(syscall.ECONNABORTED)
	ECONNRESET    = Errno(syscall.ECONNRESET)
	ENOBUFS       = Errno(syscall.ENOBUFS)
	EISCONN       = Errno(syscall.EISCONN)
	ENOTCONN      = Errno(syscall.ENOTCONN)
	ESHUTDOWN     = Errno(syscall.ESHUTDOWN)
	ETIMEDOUT     = Errno(syscall.ETIMEDOUT)
	ECONNREFUSED  = Errno(syscall.ECONNREFUSED)
	EHOSTDOWN     = Errno(syscall.EHOSTDOWN)
	EHOSTUNREACH  = Errno(syscall.EHOSTUNREACH)
	EALREADY      = Errno(syscall.EALREADY)
	EINPROGRESS   = Errno(syscall.EINPROGRESS)
	EREMOTEIO     = Errno(syscall.EREMOTEIO)
	ECANCELED     = Errno(syscall.ECANCELED)
	EKEYREJECTED  = Errno(syscall.EKEYREJECTED)
)

// Error numbers that are libfabric's. ENOMR and EFIREWALLADDR came after 1.17.
const (
	EOTHER        Errno = 256
	ETOOSMALL     Errno = 257
	EOPBADSTATE   Errno = 258
	EAVAIL        Errno = 259
	EBADFLAGS     Errno = 260
	ENOEQ         Errno = 261
	EDOMAIN       Errno = 262
	ENOCQ         Errno = 263
	ECRC          Errno = 264
	ETRUNC        Errno = 265
	ENOKEY        Errno = 266
	ENOAV         Errno = 267
	EOVERRUN      Errno = 268
	ENORX         Errno = 269
	ENOMR         Errno = 270
	EFIREWALLADDR Errno = 271
)

// ErrnoOffset is the first error number that is libfabric's own.
const ErrnoOffset = 256

// ownText holds the texts of libfabric's own error numbers, by number minus
// ErrnoOffset.
var ownText = [...]string{
	EOTHER - ErrnoOffset:        "unspecified error",
	ETOOSMALL - ErrnoOffset:     "provided buffer is too small",
	EOPBADSTATE - ErrnoOffset:   "operation not permitted in this state",
	EAVAIL - ErrnoOffset:        "an error is waiting to be read",
	EBADFLAGS - ErrnoOffset:     "flags not supported",
	ENOEQ - ErrnoOffset:         "no event queue is bound or available",
	EDOMAIN - ErrnoOffset:       "object belongs to another domain",
	ENOCQ - ErrnoOffset:         "no completion queue is bound or available",
	ECRC - ErrnoOffset:          "checksum mismatch",
	ETRUNC - ErrnoOffset:        "message was truncated",
	ENOKEY - ErrnoOffset:        "required key not available",
	ENOAV - ErrnoOffset:         "no address vector is bound or available",
	EOVERRUN - ErrnoOffset:      "queue was overrun",
	ENORX - ErrnoOffset:         "receiver not ready, no receive buffer posted",
	ENOMR - ErrnoOffset:         "no memory registration left",
	EFIREWALLADDR - ErrnoOffset: "address is behind a firewall",
}

// errs holds every Errno below its length as an error, so that converting one
// at run time allocates nothing. Immutable after package initialisation.
var errs = func() (t [ErrnoOffset + len(ownText)]error) {
	for i := 1; i < len(t); i++ {
		t[i] = Errno(i)
	}
	return t
}()

// Error returns a text in lower case. It allocates only for unknown numbers.
func (e Errno) Error() string {
	switch {
	case e == Success:
		return "success"
	case e > 0 && e < ErrnoOffset:
		return syscall.Errno(e).Error()
	case e >= ErrnoOffset && int(e-ErrnoOffset) < len(ownText):
		return ownText[e-ErrnoOffset]
	}
	return fmt.Sprintf("unknown error %d", int(e))
}

// Code returns the value a C function returns for e: its negative.
func (e Errno) Code() int { return -int(e) }

// Err returns e as an error, nil for Success. It does not allocate for the
// numbers that libfabric or the system define.
func (e Errno) Err() error {
	if e >= 0 && int(e) < len(errs) {
		return errs[e]
	}
	return e
}

// Is reports whether target is the same number as a [syscall.Errno], so that
// errors.Is(fi.EAGAIN, unix.EAGAIN) holds.
func (e Errno) Is(target error) bool {
	s, ok := target.(syscall.Errno)
	return ok && e > 0 && e < ErrnoOffset && s == syscall.Errno(e)
}

// ErrnoOf returns the error number that err carries: an [Errno], else a
// [syscall.Errno] (golang.org/x/sys/unix uses the same type) anywhere in its
// tree. It returns Success for nil and EOTHER for errors that carry none.
func ErrnoOf(err error) Errno {
	switch e := err.(type) { //nolint:errorlint // one that is not wrapped costs no search
	case nil:
		return Success
	case Errno:
		return e
	case syscall.Errno:
		return fromSystem(e)
	}
	var own Errno
	if errors.As(err, &own) {
		return own
	}
	var sys syscall.Errno
	if errors.As(err, &sys) {
		return fromSystem(sys)
	}
	return EOTHER
}

// fromSystem converts a system error number. Numbers that would be read as
// libfabric's own become EOTHER.
func fromSystem(e syscall.Errno) Errno {
	if e >= ErrnoOffset {
		return EOTHER
	}
	return Errno(e)
}
