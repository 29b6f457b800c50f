package proxy

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxRights is the number of descriptors that one message carries at most.
const maxRights = 4

// receive reads one packet and the descriptors that come with it (unix(7),
// SCM_RIGHTS), which are closed at exec. No packet gives unix.ECONNRESET.
func receive(fd int, buf []byte) (n int, fds []int, err error) {
	oob := make([]byte, unix.CmsgSpace(4*maxRights))
	var oobn, flags int
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return 0, nil, fmt.Errorf("control data: %w", err)
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	switch {
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = fmt.Errorf("a packet was cut: %w", errMessage)
	case n == 0:
		err = unix.ECONNRESET
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
