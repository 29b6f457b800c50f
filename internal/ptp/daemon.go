package ptp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// DaemonSockets are where ptp4l takes questions: the socket that every user may
// ask, and the one for root.
var DaemonSockets = []string{"/var/run/ptp4lro", "/var/run/ptp4l"}

// daemonTimeout is how long an answer may take.
const daemonTimeout = 200 * time.Millisecond

// AskDaemon asks the PTP daemon at the first of sockets that answers.
func AskDaemon(sockets []string) (Daemon, error) {
	var failed error
	for _, path := range sockets {
		d, err := ask(path)
		if err == nil {
			return d, nil
		}
		failed = errors.Join(failed, err)
	}
	return Daemon{}, fmt.Errorf("no PTP daemon answers: %w", failed)
}

// dial connects to the daemon, which answers to an address. That is a file: an
// abstract address would not be seen from another network namespace. It lies
// beside the daemon's own if it may, because the daemon may not see the usual
// place of temporary files.
func dial(path string) (conn *net.UnixConn, done func(), err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, err
	}
	remote := &net.UnixAddr{Name: path, Net: "unixgram"}
	for _, parent := range []string{filepath.Dir(path), ""} {
		dir, failed := os.MkdirTemp(parent, "weft-ptp-")
		if failed != nil {
			err = failed
			continue
		}
		done = func() { os.RemoveAll(dir) }
		conn, err = net.DialUnix("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"}, remote)
		if err == nil {
			return conn, done, nil
		}
		done()
	}
	return nil, nil, err
}

func ask(path string) (Daemon, error) {
	conn, done, err := dial(path)
	if err != nil {
		return Daemon{}, fmt.Errorf("connect to %s: %w", path, err)
	}
	defer done()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(daemonTimeout)); err != nil {
		return Daemon{}, err
	}
	port, err := get(conn, portDataSet, portSize, 1)
	if err != nil {
		return Daemon{}, fmt.Errorf("port data set from %s: %w", path, err)
	}
	status, err := get(conn, timeStatusNP, timeSize, 2)
	if err != nil {
		return Daemon{}, fmt.Errorf("time status from %s: %w", path, err)
	}
	return decode(port, status), nil
}

// get asks for one data set. Answers that are none, of a daemon with several
// ports for instance, are passed over until the deadline.
func get(conn net.Conn, id uint16, size int, sequence uint16) ([]byte, error) {
	if _, err := conn.Write(request(nil, id, size, sequence)); err != nil {
		return nil, err
	}
	buffer := make([]byte, 1500)
	var refused error
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, errors.Join(refused, err)
		}
		data, err := response(buffer[:n], id, size, sequence)
		if err == nil {
			return data, nil
		}
		refused = err
	}
}
