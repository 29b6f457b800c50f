// Package config holds weft's configuration: one table that declares every
// FI_WEFT_* variable, and the [Config] that [Load] makes from it.
//
// The table in table.go is the only place that names a variable. From it come
// the registrations with the host library (so that "fi_info -e" lists them),
// the manual page's section ([WriteMan]) and the parsing.
//
// To add a variable: add a field to Config, then an entry to the table. To
// retire one: delete both; its name is then reported by [Unknown].
//
// A value that does not parse or is out of range is an error that names the
// variable, the value and the range. It is never silently the default.
package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cpuset"
)

// Tri is a choice that may be left to weft.
type Tri int

// Values of [Tri].
const (
	Auto Tri = iota
	Yes
	No
	// Native: endpoints are those of the device's own protocol. Only some variables take it.
	Native
)

// String returns the word that a variable of this type takes.
func (t Tri) String() string {
	switch t {
	case Yes:
		return "yes"
	case No:
		return "no"
	case Native:
		return "native"
	}
	return "auto"
}

// Ways are those that pieces of a list of memory under tokens may take.
type Ways struct {
	IPC     bool // the initiator reads and writes the memory of the peer's process
	RDMA    bool // an RDMA device does
	Message bool // the peer's process does, by messages
}

// Config holds the value of every variable. It does not change after Load, so
// it may be read from any goroutine.
type Config struct {
	Name              string        // of the provider in answers
	TxStripes         int           // stripes per endpoint, 0: chosen by weft
	MPSCRingSize      int           // completion ring entries, 0: the CQ's size
	RingSlots         int           // slots of each inbound ring, a power of two
	BounceSize        int           // bytes of one bounce buffer
	BounceCount       int           // bounce buffers per endpoint, 0: see Bounces
	lowered           string        // see Lowered
	EagerSize         int           // bytes, at most BounceSize
	SHMEagerSize      int           // bytes, 0: EagerSize, Measured
	AssistSize        int           // bytes, 0: senders never help
	RMAAssistSize     int           // bytes, 0: targets never help
	RMADelegateSize   int           // bytes, 0: nothing is left to targets
	HugeRegionSize    int           // bytes, 0: registering regions leaves them on the pages that they are on
	HugeAfter         int           // bytes, 0: copying leaves memory on the pages that it is on
	InjectSize        int           // bytes, at most BounceSize
	UnexpectedBytes   int           // bytes of unexpected data kept per endpoint
	UnexpectedMemory  int           // bytes that all unexpected messages of an endpoint take
	MaxPeers          int           // entries of an endpoint's attach table
	AVSizeMax         int           // addresses per address vector
	UseCMA            Tri           // cross-memory attach
	HMEMMapSize       int           // bytes, 0: device memory of other processes is never mapped
	IPCCache          int           // mappings of device memory of other processes that are kept unused
	IPCCacheSize      int           // bytes of them
	TokenWays         Ways          // that pieces of lists may take
	NoteBytes         int           // bytes of notifications that wait, of an endpoint, at each end
	UDP               Tri           // other hosts over UDP
	UDPStripes        int           // sockets of an endpoint
	UDPEagerSize      int           // bytes, 0: EagerSize
	UDPXDP            Tri           // datagrams past the kernel's network stack
	UDPInbox          bool          // short datagrams by shared memory
	CC                string        // name of a congestion algorithm
	RTTAlpha          float64       // gain of SRTT
	RTTBeta           float64       // gain of RTTVAR
	RTTControl        Tri           // windows of segments
	SegmentSize       int           // bytes
	MinSegment        int           // bytes, at most SegmentSize
	MaxSegment        int           // bytes, at least SegmentSize
	InitialCwnd       int           // segments
	MaxCwnd           int           // segments, 0: no limit
	Probe             bool          // probes are sent
	ProbeInterval     time.Duration // between probes
	ProbeSize         int           // bytes
	ProbeStrategy     string        // name of a probe strategy
	ProbeDelay        time.Duration // before the first
	ProbeService      bool          // from the service thread
	Sched             Tri           // all-to-alls follow the network
	SchedPolicy       string        // name of a policy
	SchedThreshold    time.Duration // queueing delay
	SchedFactor       float64       // deviations above it
	SchedMost         int           // peers at a time, 0: found
	SchedWindow       int           // places, 0: all
	SchedBackoff      time.Duration // before an idle link is seen to be idle
	AllToAll          string        // name of an algorithm
	PercentBW         int           // of the link, that an all-to-all sends
	Relay             string        // of all-to-alls: auto or no
	RelaySize         int           // bytes kept for others
	PTP               Tri           // find a synchronised clock
	PTPRequire        bool          // refuse to work without
	PTPDevice         string        // path, empty: the interface's
	PTPMaxOffset      int           // ns
	Verbs             Tri           // other hosts over an RDMA device
	VerbsDevice       string        // empty: that of the network interface
	VerbsEagerPeers   int           // peers with a ring for short messages
	CXI               Tri           // other hosts over a NIC of Slingshot
	CXIDevice         string        // empty: that of the network interface
	CXITelemetry      string        // names of counters, separated by commas
	CXIMatch          string        // hardware, software or hybrid
	CXIUnexpected     int           // messages that the NIC keeps, with hybrid
	CXIOverflow       int           // bytes of a buffer for unexpected messages that the NIC keeps
	CXIOverflows      int           // such buffers
	CXIRequest        int           // bytes of a buffer for messages that software matches
	CXIRequests       int           // such buffers
	CXIEvents         int           // of arrivals
	CXIEager          int           // bytes of the longest message that is sent at once
	CXIFirst          int           // bytes of a longer one that are
	CXIRendezvous     string        // how receivers get long messages: default or alt_read
	MPIAlltoall       Tri           // all-to-all operations of MPI programs; read by mpi/settings.c
	MPIMinSize        int           // bytes, likewise
	PeerTimeout       time.Duration // of peers on other hosts
	ConnectTimeout    time.Duration // for a peer's segment to answer
	PeerCheckInterval time.Duration // between checks whether peers are alive
	SHMDir            string        // absolute path
	SHMAcross         Tri           // whether peers of other network namespaces are searched for in SHMDir; see Across
	Stats             bool          // show the page of counters
	Direct            bool          // C calls the data plane without the runtime
	Iface             string        // interface name, empty: all
	ProgressBatch     int           // arrivals per entry into the progress engine
	ProgressThread    Tri           // progress threads: Auto where the application asks for automatic progress
	ProgressEndpoints int           // endpoints per progress thread, 0: a domain has one
	ProgressCPU       cpuset.Set    // of progress threads, empty: any
	ProgressSpin      time.Duration // that a progress thread polls before it sleeps
	ProgressWatch     time.Duration // between checks whether the application polls by itself
	Service           Tri           // service thread: Auto where there are progress threads
	AppendOpFreq      int           // rounds of a busy progress thread between polls of the operations pool
	AppendBatch       int           // operations taken at a poll
	DumpSignal        int           // that writes the threads' state, 0: none
}

// Load returns the configuration that lookup's values make. lookup gets full
// names such as FI_WEFT_TX_STRIPES and reports whether the variable is set;
// os.LookupEnv is one. The error joins one error per bad variable, each of
// which wraps fi.EINVAL.
func Load(lookup func(name string) (string, bool)) (*Config, error) {
	c := &Config{}
	set := map[string]bool{}
	var errs []error
	for i := range table {
		v := &table[i]
		s, ok := lookup(v.Env())
		if ok {
			set[v.Name] = true
		} else {
			s = v.Default
		}
		if err := v.parse(c, s); err != nil {
			errs = append(errs, v.fail(s, err.Error()))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, c.limitToBounce("eager_size", &c.EagerSize, set)...)
		errs = append(errs, c.limitToBounce("inject_size", &c.InjectSize, set)...)
		if !set["shm_eager_size"] && (set["eager_size"] || set["bounce_size"]) {
			c.SHMEagerSize = 0
		}
		errs = append(errs, c.inOrder(set)...)
		c.boundBounces()
	}
	if len(errs) != 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// Default returns the configuration without any variable set.
func Default() *Config {
	c, err := Load(func(string) (string, bool) { return "", false })
	if err != nil {
		panic("config: a default is outside its range: " + err.Error())
	}
	return c
}

// SHMEagerMost is the most bytes that a measured SHMEagerSize can be.
const SHMEagerMost = 64 << 10

// SHMBounceSize is the size in bytes of a bounce buffer between processes of this host, the most where it is measured.
func (c *Config) SHMBounceSize() int {
	if c.SHMEagerSize == Measured {
		return max(c.BounceSize, SHMEagerMost)
	}
	return max(c.BounceSize, c.SHMEagerSize)
}

// Bounce buffers by default: of a stripe, as many as a window of an MPI benchmark, whose sender then has not to wait in
// it; the least of an endpoint; the bytes of an endpoint's, which are allocated when it is opened; and their part of
// the file system, of which a container may have 64 MiB.
const (
	stripeBounces = 64
	leastBounces  = 16
	bounceMemory  = 8 << 20
	bouncePart    = 64
)

// bounceMost is the most bytes that the bounce buffers of FI_WEFT_BOUNCE_COUNT take: an endpoint allocates and clears
// all of them when it is enabled, so that a full file system is an error there.
const bounceMost = 256 << 20

// boundBounces lowers BounceCount to what bounceMost has room for.
func (c *Config) boundBounces() {
	most := bounceMost / c.SHMBounceSize()
	if c.BounceCount <= most {
		return
	}
	c.lowered = fmt.Sprintf("FI_WEFT_BOUNCE_COUNT=%d: lowered to %d, which with buffers of %s take %s", c.BounceCount,
		most, formatSize(c.SHMBounceSize()), formatSize(bounceMost))
	c.BounceCount = most
}

// Lowered says which variable's value was lowered, and why; empty: none was.
func (c *Config) Lowered() string { return c.lowered }

// Bounces is how many bounce buffers of SHMBounceSize an endpoint with a number of stripes, that of progress included,
// has in SHMDir, on a file system of so many bytes: one for each stripe at least.
func (c *Config) Bounces(stripes int, fs uint64) int {
	n := c.BounceCount
	if n == 0 {
		room := int(min(bounceMemory, fs/bouncePart)) / c.SHMBounceSize()
		n = max(leastBounces, min(stripes*stripeBounces, room))
	}
	return max(n, stripes)
}

// defaultSHMDir is where segments are unless FI_WEFT_SHM_DIR says otherwise.
const defaultSHMDir = "/dev/shm"

// Across reports whether peers of other network namespaces are searched for in SHMDir: where that is
// not the default, it has been chosen for the processes that share it.
func (c *Config) Across() bool {
	return c.SHMAcross == Yes || c.SHMAcross == Auto && c.SHMDir != defaultSHMDir
}

// limitToBounce holds *size to the bounce buffers' size: a default is lowered,
// as the table says; a value that was set is an error.
func (c *Config) limitToBounce(name string, size *int, set map[string]bool) []error {
	if *size <= c.BounceSize {
		return nil
	}
	if set[name] {
		return []error{find(name).fail(fmt.Sprint(*size),
			fmt.Sprintf("exceeds FI_WEFT_BOUNCE_SIZE, which is %d", c.BounceSize))}
	}
	*size = c.BounceSize
	return nil
}

// inOrder holds values to those that they are bounded by: of two the default
// gives way, two that were set and contradict each other are an error.
func (c *Config) inOrder(set map[string]bool) (errs []error) {
	if c.PTPRequire && c.PTP == No {
		errs = append(errs, find("ptp_require_sync").fail("yes", "FI_WEFT_PTP_ENABLE is no"))
	}
	most := &c.MaxCwnd
	if c.MaxCwnd == 0 {
		most = &c.InitialCwnd // no limit
	}
	for _, o := range []struct {
		low, high   string
		least, most *int
	}{
		{"rtt_segment_size", "max_segment_size", &c.SegmentSize, &c.MaxSegment},
		{"min_segment_size", "rtt_segment_size", &c.MinSegment, &c.SegmentSize},
		{"min_segment_size", "max_segment_size", &c.MinSegment, &c.MaxSegment},
		{"initial_cwnd", "max_cwnd", &c.InitialCwnd, most},
	} {
		switch {
		case *o.least <= *o.most:
		case set[o.low] && set[o.high]:
			errs = append(errs, find(o.low).fail(fmt.Sprint(*o.least), fmt.Sprintf("exceeds %s, which is %d",
				find(o.high).Env(), *o.most)))
		case set[o.low]:
			*o.most = *o.least
		default:
			*o.least = *o.most
		}
	}
	return errs
}

// fail makes the error for a bad value of v.
func (v *Var) fail(value, why string) error {
	return fmt.Errorf("%s=%q: %s (range: %s): %w", v.Env(), value, why, v.Range, fi.EINVAL)
}

// Unknown returns the names in environ (entries "NAME=value", as os.Environ
// returns them) that start with FI_WEFT_ and are no variable of weft.
func Unknown(environ []string) []string {
	var names []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		short, ours := strings.CutPrefix(name, envPrefix)
		if ours && (find(strings.ToLower(short)) == nil || short != strings.ToUpper(short)) {
			names = append(names, name)
		}
	}
	return names
}
