package stats

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Sizes of the page. They are part of the layout that [Version] names.
const (
	MaxEndpoints = 64 // endpoints shown by one process
	MaxPeers     = 64 // peers shown of one endpoint

	// lines of threads and of stripes, the last of which is shared
	//weft:name WEFT_STAT_LINES
	Lines = 64
	// words of a line: the first cache line is for what is frequent
	//weft:name WEFT_STAT_LINE_WORDS
	LineWords = 24

	wordBytes   = 8
	headerBytes = 4096
	processAt   = 2048 // of the process's words in the header
	rxAt        = 64   // of the lease holder's words in a block
	sharedAt    = 1024
	threadsAt   = 4096
	stripesAt   = threadsAt + Lines*LineWords*wordBytes
	peersAt     = stripesAt + Lines*LineWords*wordBytes
	peerBytes   = 320
	peerWordsAt = 64 // in a peer's line
	blockBytes  = peersAt + MaxPeers*peerBytes
	fileBytes   = headerBytes + MaxEndpoints*blockBytes
)

// Version changes with the layout; the table's hash ([hash]) with the table.
const Version = 3

// magic starts every page.
const magic uint64 = 0x746174732d746677 // "wft-stat"

// header is the start of the page. It is written before the file has its name
// and then immutable.
type header struct {
	Magic     uint64
	Version   uint32
	Bytes     uint32 // of the file
	Table     uint64
	PID       uint32
	UID       uint32 // proc.Host.User
	StartTime uint64 // proc.State.Start
	BootID    [2]uint64
	PIDNS     uint64
	Created   int64 // ns since 1970
	Weft      [32]byte
	Command   [32]byte
	Locked    uint32 // 1: the process holds a lock on the file while it lives (lock.go)
	_         uint32
}

// blockHead is the first line of a block. Written by control operations under
// the page's mutex; State last, with release.
type blockHead struct {
	State  uint32 // 0 free, 1 in use
	Name   uint32 // bytes
	Opened int64  // ns since 1970: differs in two endpoints in one block
	Addr   [32]byte
	_      [16]byte
}

// peerHead is the first line of a peer's.
type peerHead struct {
	State uint32 // peerFree, peerUp, peerDown
	Name  uint32
	Addr  [32]byte
	_     [24]byte
}

// States of a peer.
const (
	peerFree = iota
	peerUp
	peerDown
)

// maxAddr is the length of the longest address, bytes: a struct sockaddr_in6 and
// the number of an interface, where several share one.
const maxAddr = 28 + sizeNumber

// Lengths of addresses, bytes.
const (
	sizeIPv4   = 16
	sizeIPv6   = 28
	sizeNumber = 4
)

// FilePrefix starts the names of all pages.
const FilePrefix = "weft-stats."

// fileName is the name of the page of a process.
func fileName(uid uint32, pidns uint64, pid uint32) string {
	return fmt.Sprintf("%s%d.%d.%d", FilePrefix, uid, pidns, pid)
}

// parseFileName is the opposite of fileName.
func parseFileName(name string) (uid uint32, pidns uint64, pid uint32, err error) {
	if len(name) > 128 {
		return 0, 0, 0, errNotOurs
	}
	n, err := fmt.Sscanf(name, FilePrefix+"%d.%d.%d", &uid, &pidns, &pid)
	if err != nil || n != 3 || fileName(uid, pidns, pid) != name {
		return 0, 0, 0, errNotOurs
	}
	return uid, pidns, pid, nil
}

var errNotOurs = errors.New("not the name of a page of counters")

// words is the number of words that the table places in an area.
func (a Area) words() int {
	switch a {
	case Process:
		return (headerBytes - processAt) / wordBytes
	case Thread, Stripe:
		return LineWords
	case Rx:
		return (sharedAt - rxAt) / wordBytes
	case Shared:
		return (threadsAt - sharedAt) / wordBytes
	}
	return (peerBytes - peerWordsAt) / wordBytes
}

// FormatValue writes a value with its unit's habits: bytes with a binary
// suffix, times in µs, the rest plain or in thousands.
func FormatValue(unit string, v float64) string {
	switch unit {
	case unitBytes:
		return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
	case "ns":
		if v == 0 {
			return "-"
		}
		return scaled(v, 1000, []string{"ns", "us", "ms", "s"})
	}
	return scaled(v, 1000, []string{"", "k", "M", "G"})
}

func scaled(v, base float64, units []string) string {
	i := 0
	for math.Abs(v) >= base*0.9995 && i < len(units)-1 {
		v, i = v/base, i+1
	}
	digits := 1
	if i == 0 && v == math.Trunc(v) || math.Abs(v) >= 100 {
		digits = 0
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[i]
}
