package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// env returns a lookup over pairs "NAME=value", the names without FI_WEFT_.
func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix("FI_WEFT_"+p, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}
}

func TestDefaults(t *testing.T) {
	want := Config{
		Name:      "weft",
		RingSlots: 256, BounceSize: 8 << 10, EagerSize: 8 << 10, AssistSize: 256 << 10,
		RMAAssistSize: 1 << 20, RMADelegateSize: 32 << 10, HugeAfter: 16 << 20,
		InjectSize: 4096, HMEMMapSize: 256 << 10, IPCCache: 1024, IPCCacheSize: 64 << 30, UnexpectedBytes: 64 << 20,
		UnexpectedMemory: 1 << 30,
		MaxPeers:         1024, AVSizeMax: 1 << 20,
		MPIMinSize: 32 << 10, PeerTimeout: 15 * time.Second, ConnectTimeout: 10 * time.Second,
		PeerCheckInterval: 100 * time.Millisecond,
		SHMDir:            "/dev/shm", Stats: true, Direct: true, ProgressBatch: 64, Verbs: Auto, VerbsEagerPeers: 8,
		CXI:      Auto,
		CXIMatch: "hardware", CXIRendezvous: "default", CXIUnexpected: 4096, CXIOverflow: 2 << 20, CXIOverflows: 4,
		CXIRequest: 2 << 20, CXIRequests: 4, CXIEvents: 16 << 10, CXIEager: 18433, CXIFirst: 2048, UDPStripes: 1,
		SHMEagerSize: Measured, NoteBytes: 16 << 20,
		TokenWays: Ways{IPC: true, RDMA: true, Message: true}, UDPEagerSize: 64 << 10, UDPXDP: No, UDPInbox: true,
		CC: "delay", RTTAlpha: 0.125, RTTBeta: 0.25,
		SegmentSize: 256 << 10, MinSegment: 64 << 10, MaxSegment: 1 << 20, InitialCwnd: 4, MaxCwnd: 128,
		ProbeInterval: 100 * time.Millisecond, ProbeSize: 64,
		ProbeStrategy: "round_robin", ProbeDelay: 500 * time.Millisecond, ProbeService: true, PTPMaxOffset: 1000,
		SchedPolicy: "adaptive", SchedThreshold: 100 * time.Microsecond, SchedFactor: 2,
		SchedBackoff: 100 * time.Microsecond, AllToAll: "auto", PercentBW: 100, Relay: "auto", RelaySize: 4 << 20,
		ProgressSpin: 20 * time.Microsecond, ProgressWatch: time.Millisecond, AppendOpFreq: 1, AppendBatch: 16,
	}
	if got := *Default(); got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
}

// TestBounces shares bounce buffers out to stripes: each has a window's, as far as the memory goes.
func TestBounces(t *testing.T) {
	for _, c := range []struct {
		count, stripes int
		fs             uint64
		want           int
	}{
		{0, 1, 1 << 40, 64}, {0, 2, 1 << 40, 128}, {0, 8, 1 << 40, 128}, {0, 16, 1 << 40, 128},
		{0, 1024, 1 << 40, 1024},
		{0, 8, 64 << 20, 16}, {0, 8, 128 << 20, 32}, {0, 8, 0, 16},
		{1, 1, 0, 1}, {13, 4, 1 << 40, 13}, {3, 4, 1 << 40, 4}, {4096, 4, 0, 4096},
	} {
		cfg := *Default()
		cfg.BounceCount = c.count
		if got := cfg.Bounces(c.stripes, c.fs); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	cfg := *Default()
	cfg.SHMEagerSize = 1 << 20
	if got := cfg.Bounces(2, 1<<40); got != 16 {
		t.Errorf("%d of 1 MiB", got)
	}
}

// TestBouncesBounded lowers a number of bounce buffers that would take more memory than an endpoint may allocate, with
// buffers of every size, and says so.
func TestBouncesBounded(t *testing.T) {
	for _, size := range []int{256, 8 << 10, 64 << 10, 1 << 20, 16 << 20} {
		for _, count := range []int{0, 1, 16, 4096, 4097, 65536} {
			cfg, err := Load(env(fmt.Sprintf("BOUNCE_SIZE=%d", size), fmt.Sprintf("BOUNCE_COUNT=%d", count)))
			if err != nil {
				t.Fatal(err)
			}
			want := min(count, bounceMost/size)
			if cfg.BounceCount != want || (cfg.Lowered() != "") != (count > want) {
				t.Errorf("%d buffers of %d bytes: %d, %q", count, size, cfg.BounceCount, cfg.Lowered())
			}
		}
	}
}

// TestMPIDefault holds mpi/settings.c, which reads its variables before weft is opened, to the table.
func TestMPIDefault(t *testing.T) {
	text, err := os.ReadFile("../../mpi/settings.c")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("#define MIN_SIZE %d\n", Default().MPIMinSize); !strings.Contains(string(text), want) {
		t.Errorf("mpi/settings.c has no %q", want)
	}
	if !strings.Contains(string(text), "{ MODE_AUTO, MIN_SIZE") || Default().MPIAlltoall != Auto {
		t.Error("mpi/settings.c does not begin with auto")
	}
}

func TestAccepted(t *testing.T) {
	for _, tc := range []struct {
		env  string
		want func(c *Config) bool
	}{
		{"TX_STRIPES=4", func(c *Config) bool { return c.TxStripes == 4 }},
		{"MPSC_RING_SIZE=64k", func(c *Config) bool { return c.MPSCRingSize == 65536 }},
		{"RING_SLOTS=2K", func(c *Config) bool { return c.RingSlots == 2048 }},
		{"BOUNCE_SIZE=16k", func(c *Config) bool { return c.BounceSize == 16384 && c.EagerSize == 8192 }},
		{"BOUNCE_SIZE=1k", func(c *Config) bool {
			return c.BounceSize == 1024 && c.EagerSize == 1024 && c.InjectSize == 1024
		}},
		{"BOUNCE_COUNT=1", func(c *Config) bool { return c.BounceCount == 1 }},
		{"EAGER_SIZE=0", func(c *Config) bool { return c.EagerSize == 0 }},
		{"BOUNCE_SIZE=32k", func(c *Config) bool { return c.SHMEagerSize == 0 && c.EagerSize == 8192 }},
		{"EAGER_SIZE=4k", func(c *Config) bool { return c.SHMEagerSize == 0 && c.EagerSize == 4096 }},
		{"UDP_EAGER_SIZE=0", func(c *Config) bool { return c.UDPEagerSize == 0 && c.EagerSize == 8192 }},
		{"INJECT_SIZE=8k", func(c *Config) bool { return c.InjectSize == 8192 }},
		{"UNEXPECTED_BYTES=2G", func(c *Config) bool { return c.UnexpectedBytes == 2<<30 }},
		{"MAX_PEERS=7", func(c *Config) bool { return c.MaxPeers == 7 }},
		{"AV_SIZE_MAX=2m", func(c *Config) bool { return c.AVSizeMax == 2<<20 }},
		{"USE_CMA=No", func(c *Config) bool { return c.UseCMA == No }},
		{"USE_CMA=yes", func(c *Config) bool { return c.UseCMA == Yes }},
		{"PROGRESS_CPU=-1", func(c *Config) bool { return c.ProgressCPU.Count() == 0 }},
		{"PROGRESS_CPU=1,4-5", func(c *Config) bool { return c.ProgressCPU.String() == "1,4-5" }},
		{"USE_CMA=auto", func(c *Config) bool { return c.UseCMA == Auto }},
		{"CONNECT_TIMEOUT=1m30s", func(c *Config) bool { return c.ConnectTimeout == 90*time.Second }},
		{"PEER_CHECK_INTERVAL=1ms", func(c *Config) bool { return c.PeerCheckInterval == time.Millisecond }},
		{"SHM_DIR=/tmp//x/", func(c *Config) bool { return c.SHMDir == "/tmp/x" && c.Across() }},
		{"SHM_DIR=/dev/shm/", func(c *Config) bool { return !c.Across() }},
		{"SHM_ACROSS=yes", func(c *Config) bool { return c.SHMDir == "/dev/shm" && c.Across() }},
		{"SHM_ACROSS=no", func(c *Config) bool { c.SHMDir = "/x"; return !c.Across() }},
		{"CXI=Native", func(c *Config) bool { return c.CXI == Native }},
		{"TOKEN_WAYS=AUTO", func(c *Config) bool { return c.TokenWays == Ways{true, true, true} }},
		{"TOKEN_WAYS=ipc", func(c *Config) bool { return c.TokenWays == Ways{IPC: true} }},
		{"TOKEN_WAYS=message, rdma", func(c *Config) bool { return c.TokenWays == Ways{RDMA: true, Message: true} }},
		{"IFACE=eth0.100", func(c *Config) bool { return c.Iface == "eth0.100" }},
		{"IFACE=", func(c *Config) bool { return c.Iface == "" }},
		{"PROGRESS_BATCH=1", func(c *Config) bool { return c.ProgressBatch == 1 }},
	} {
		c, err := Load(env(tc.env))
		if err != nil {
			t.Errorf("%s: %v", tc.env, err)
		} else if !tc.want(c) {
			t.Errorf("%s gives %+v", tc.env, *c)
		}
	}
}

// TestSHMEagerAuto takes the word in any case; buffers are of the most that can be measured.
func TestSHMEagerAuto(t *testing.T) {
	c, err := Load(env("SHM_EAGER_SIZE=Auto", "EAGER_SIZE=4k"))
	if err != nil || c.SHMEagerSize != Measured || c.SHMBounceSize() != SHMEagerMost {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Load(env("SHM_EAGER_SIZE=automatic")); err == nil {
		t.Error("another word is taken")
	}
}

// TestSHMEagerSet has the default give way, and not the value that is set.
func TestSHMEagerSet(t *testing.T) {
	c, err := Load(env("SHM_EAGER_SIZE=24k", "EAGER_SIZE=4k"))
	if err != nil || c.SHMEagerSize != 24<<10 || c.EagerSize != 4096 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		env []string
		why string // and the error names variable, value and range
	}{
		{[]string{"TX_STRIPES=many"}, "not a number"},
		{[]string{"TX_STRIPES="}, "not a number"},
		{[]string{"TX_STRIPES=-1"}, "out of range (range: 0 to 1024)"},
		{[]string{"TX_STRIPES=1025"}, "out of range"},
		{[]string{"TX_STRIPES=1k"}, "not a number"},
		{[]string{"TX_STRIPES=+1"}, "not a number"},
		{[]string{"TX_STRIPES=99999999999999999999"}, "out of range"},
		{[]string{"RING_SLOTS=1000"}, "not a power of two (range: 16 to 1m, a power of two)"},
		{[]string{"RING_SLOTS=8"}, "out of range"},
		{[]string{"TOKEN_WAYS=ipc,tcp"}, `"tcp" is no way`},
		{[]string{"TOKEN_WAYS="}, "is no way (range: auto, or some of ipc, rdma and message separated by commas)"},
		{[]string{"RING_SLOTS=k"}, "not a number"},
		{[]string{"BOUNCE_SIZE=8kb"}, "not a number"},
		{[]string{"BOUNCE_SIZE=8 k"}, "not a number"},
		{[]string{"BOUNCE_SIZE=8t"}, "not a number"},
		{[]string{"BOUNCE_SIZE=9223372036854775807g"}, "out of range"},
		{[]string{"UNEXPECTED_BYTES=1k"}, "out of range (range: 64k to 1024g)"},
		{[]string{"EAGER_SIZE=16k"}, "exceeds FI_WEFT_BOUNCE_SIZE, which is 8192"},
		{[]string{"INJECT_SIZE=2k", "BOUNCE_SIZE=1k"}, "exceeds FI_WEFT_BOUNCE_SIZE, which is 1024"},
		{[]string{"USE_CMA=maybe"}, "not one of the words (range: auto, yes, no)"},
		{[]string{"CONNECT_TIMEOUT=10"}, "not a number with a unit (range: 1ms to 1h)"},
		{[]string{"CONNECT_TIMEOUT=0s"}, "out of range"},
		{[]string{"CONNECT_TIMEOUT=-5s"}, "out of range"},
		{[]string{"PEER_CHECK_INTERVAL=2h"}, "out of range"},
		{[]string{"SHM_DIR=shm"}, "not an absolute path"},
		{[]string{"SHM_DIR="}, "not an absolute path"},
		{[]string{"IFACE=eth0/1"}, "not a name"},
		{[]string{"IFACE=averyveryverylongname"}, "not a name"},
		{[]string{"PROGRESS_BATCH=0"}, "out of range"},
	} {
		c, err := Load(env(tc.env...))
		if err == nil {
			t.Errorf("%v gives %+v", tc.env, *c)
			continue
		}
		name, value, _ := strings.Cut(tc.env[0], "=")
		if value == "16k" {
			value = "16384"
		} else if value == "2k" {
			value = "2048"
		}
		for _, part := range []string{"FI_WEFT_" + name + "=\"" + value + "\"", tc.why, "(range: "} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: error %q does not say %q", tc.env, err, part)
			}
		}
		if !errors.Is(err, fi.EINVAL) {
			t.Errorf("%v: error is no EINVAL", tc.env)
		}
	}
}

func TestWordsAndShares(t *testing.T) {
	for _, bad := range []string{"CC=reno", "CC=", "RTT_ALPHA=0", "RTT_ALPHA=1.1", "RTT_BETA=nan", "RTT_BETA=x",
		"UDP_STRIPES=65",
		"ENABLE_RTT_CONGESTION_CONTROL=1", "INITIAL_CWND=0",
		"RTT_PROBE_INTERVAL=0", "RTT_PROBE_INTERVAL=nan", "RTT_PROBE_INTERVAL=x", "RTT_PROBE_INTERVAL=2h",
		"RTT_PROBE_MSG_SIZE=31",
		"RTT_PROBE_STRATEGY=all", "RTT_PROBE_STARTUP_DELAY=-1", "PTP_CLOCK_DEVICE=ptp0", "PTP_MAX_OFFSET=0"} {
		name, _, _ := strings.Cut(bad, "=")
		if _, err := Load(env(bad)); err == nil || !strings.Contains(err.Error(), "FI_WEFT_"+name) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestOrder has values that bound each other: a default gives way, and what was
// set is an error.
func TestOrder(t *testing.T) {
	for _, good := range []struct {
		set  []string
		want [5]int // least, usual and largest segment, first and largest window
	}{
		{[]string{"RTT_SEGMENT_SIZE=32k"}, [5]int{32 << 10, 32 << 10, 1 << 20, 4, 128}},
		{[]string{"RTT_SEGMENT_SIZE=2m"}, [5]int{64 << 10, 2 << 20, 2 << 20, 4, 128}},
		{[]string{"MAX_SEGMENT_SIZE=32k"}, [5]int{32 << 10, 32 << 10, 32 << 10, 4, 128}},
		{[]string{"MIN_SEGMENT_SIZE=2m"}, [5]int{2 << 20, 2 << 20, 2 << 20, 4, 128}},
		{[]string{"INITIAL_CWND=200"}, [5]int{64 << 10, 256 << 10, 1 << 20, 200, 200}},
		{[]string{"MAX_CWND=2"}, [5]int{64 << 10, 256 << 10, 1 << 20, 2, 2}},
		{[]string{"MAX_CWND=0", "INITIAL_CWND=9"}, [5]int{64 << 10, 256 << 10, 1 << 20, 9, 0}},
	} {
		c, err := Load(env(good.set...))
		if err != nil {
			t.Errorf("%v: %v", good.set, err)
			continue
		}
		if got := [5]int{c.MinSegment, c.SegmentSize, c.MaxSegment, c.InitialCwnd, c.MaxCwnd}; got != good.want {
			t.Errorf("%v: %v, want %v", good.set, got, good.want)
		}
	}
	for _, bad := range [][]string{
		{"RTT_SEGMENT_SIZE=32k", "MIN_SEGMENT_SIZE=33k"}, {"RTT_SEGMENT_SIZE=2m", "MAX_SEGMENT_SIZE=1m"},
		{"MIN_SEGMENT_SIZE=2m", "MAX_SEGMENT_SIZE=1m"}, {"INITIAL_CWND=9", "MAX_CWND=8"},
		{"PTP_REQUIRE_SYNC=yes", "PTP_ENABLE=no"},
	} {
		if _, err := Load(env(bad...)); !errors.Is(err, fi.EINVAL) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestSched holds the numbers that need not be whole to their ranges.
func TestSched(t *testing.T) {
	c, err := Load(env("RTT_SCHED_BACKOFF_MS=0.25", "RTT_SCHED_VARIANCE_FACTOR=1.5", "RTT_SCHED_THRESHOLD=0s",
		"ALLTOALL_PERCENT_BW=30"))
	if err != nil || c.PercentBW != 30 || c.SchedBackoff != 250*time.Microsecond || c.SchedFactor != 1.5 ||
		c.SchedThreshold != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{
		"RTT_SCHED_BACKOFF_MS=0", "RTT_SCHED_BACKOFF_MS=1ms", "RTT_SCHED_BACKOFF_MS=NaN", "RTT_SCHED_BACKOFF_MS=60001",
		"RTT_SCHED_VARIANCE_FACTOR=-1", "RTT_SCHED_VARIANCE_FACTOR=x", "RTT_SCHED_VARIANCE_FACTOR=1001",
		"RTT_SCHED_THRESHOLD=100", "RTT_SCHED_THRESHOLD=2m", "RTT_SCHED_POLICY=fast", "RTT_SCHED_MAX_CONCURRENT=-1",
		"RTT_SCHED_REORDER_WINDOW=x", "RTT_SCHED_ENABLE=maybe", "ALLTOALL_ALGORITHM=ring",
		"ALLTOALL_PERCENT_BW=0", "ALLTOALL_PERCENT_BW=101", "ALLTOALL_PERCENT_BW=50%",
	} {
		name, value, _ := strings.Cut(bad, "=")
		if _, err := Load(env(bad)); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestEveryBadVariableIsReported(t *testing.T) {
	_, err := Load(env("TX_STRIPES=x", "RING_SLOTS=y", "SHM_DIR=z"))
	for _, name := range []string{"FI_WEFT_TX_STRIPES", "FI_WEFT_RING_SLOTS", "FI_WEFT_SHM_DIR"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}

// TestEveryFieldIsInTheTable gives each variable in turn another value and
// sees which field it changes.
func TestEveryFieldIsInTheTable(t *testing.T) {
	other := map[string]string{
		"name": "TCP", "token_ways": "ipc", "note_bytes": "1m",
		"ring_slots": "64", "bounce_size": "32k", "eager_size": "1k", "inject_size": "1k",
		"unexpected_bytes": "1g", "unexpected_memory": "2g",
		"use_cma": "no", "ipc_cache": "3", "ipc_cache_size": "3", "connect_timeout": "3s",
		"stats": "no", "direct": "no", "udp": "no", "udp_xdp": "yes", "udp_inbox": "no", "peer_timeout": "3s",
		"peer_check_interval": "3s", "shm_dir": "/tmp", "shm_across": "yes", "iface": "lo",
		"progress_thread": "yes", "service": "no", "progress_spin": "3us", "progress_watch": "3ms",
		"verbs": "yes", "cxi": "yes", "cxi_match": "hybrid", "cxi_rdzv_proto": "alt_read",
		"cxi_oflow_buf_size": "1m", "cxi_req_buf_size": "1m",
		"cxi_default_cq_size": "64", "cxi_rdzv_threshold": "20000",
		"mpi_alltoall": "no", "cc": "BBR", "rtt_alpha": "0.5", "rtt_beta": "1",
		"enable_rtt_congestion_control": "yes", "rtt_segment_size": "128k", "min_segment_size": "32k",
		"max_segment_size": "2m", "max_cwnd": "0",
		"rtt_probe_enable": "yes", "rtt_probe_interval": "50ms", "rtt_probe_msg_size": "32",
		"rtt_probe_strategy": "adaptive",
		"rtt_sched_enable":   "no", "rtt_sched_policy": "GREEDY", "rtt_sched_threshold": "3us",
		"alltoall_algorithm": "bruck", "alltoall_relay": "no", "alltoall_relay_size": "64k",
		"rtt_probe_use_service_worker": "no", "ptp_enable": "yes", "ptp_require_sync": "yes",
		"ptp_clock_device": "/dev/ptp3",
	}
	changedBy := map[string]string{}
	def := reflect.ValueOf(*Default())
	for _, v := range Table() {
		value, ok := other[v.Name]
		if !ok {
			value = "3"
		}
		set := []string{strings.ToUpper(v.Name) + "=" + value}
		if v.Name != "shm_eager_size" {
			set = append(set, "SHM_EAGER_SIZE=auto") // or it gives way
		}
		c, err := Load(env(set...))
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.ValueOf(*c)
		changed := 0
		for i := range got.NumField() {
			if !got.Field(i).Equal(def.Field(i)) {
				changed++
				name := got.Type().Field(i).Name
				if by, ok := changedBy[name]; ok {
					t.Errorf("%s is set by %s and %s", name, by, v.Name)
				}
				changedBy[name] = v.Name
			}
		}
		if changed != 1 {
			t.Errorf("%s sets %d fields", v.Name, changed)
		}
	}
	for i := range def.NumField() {
		if f := def.Type().Field(i); f.IsExported() && changedBy[f.Name] == "" {
			t.Errorf("no variable sets %s", f.Name)
		}
	}
}

func TestTableIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Table() {
		if v.Name != strings.ToLower(v.Name) || seen[v.Name] || strings.HasPrefix(v.Name, "weft") {
			t.Errorf("name %q", v.Name)
		}
		seen[v.Name] = true
		if v.Range == "" || v.Help == "" || strings.Contains(v.Help, "\n") || !strings.HasSuffix(v.Help, ".") {
			t.Errorf("%s: range %q, help %q", v.Name, v.Range, v.Help)
		}
		if (v.Kind == Int || v.Kind == Size || v.Kind == Duration) && v.Unit == "" {
			t.Errorf("%s has no unit", v.Name)
		}
		if v.Env() != "FI_WEFT_"+strings.ToUpper(v.Name) {
			t.Errorf("%s is %s in the environment", v.Name, v.Env())
		}
	}
	Table()[0].Name = "changed"
	if Table()[0].Name == "changed" {
		t.Error("Table is not a copy")
	}
}

func TestParam(t *testing.T) {
	if got := (&Var{Kind: Size, Default: autoWord}).Param(); got != fi.ParamString {
		t.Errorf("a size that may be %s is registered as %d", autoWord, got)
	}
	for k, want := range map[Kind]fi.Param{Int: fi.ParamInt, Size: fi.ParamSizeT, Bool: fi.ParamBool,
		String: fi.ParamString, Duration: fi.ParamString} {
		if got := (&Var{Kind: k}).Param(); got != want {
			t.Errorf("%v is registered as %d, want %d", k, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	got := Unknown([]string{"PATH=/bin", "FI_WEFT_TX_STRIPES=1", "FI_WEFT_TX_STRIPE=1",
		"FI_WEFT_iface=lo", "FI_WEFT_", "FI_LOG_LEVEL=warn", "odd"})
	want := []string{"FI_WEFT_TX_STRIPE", "FI_WEFT_iface", "FI_WEFT_"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("unknown: %q, want %q", got, want)
	}
}

func TestBool(t *testing.T) {
	var b bool
	v := boolVar("x", "no", func(*Config) *bool { return &b }, "Help.")
	for s, want := range map[string]bool{"1": true, "Yes": true, "on": true, "TRUE": true,
		"0": false, "no": false, "off": false, "false": false} {
		b = !want
		if err := v.parse(nil, s); err != nil || b != want {
			t.Errorf("%q gives %v, %v", s, b, err)
		}
	}
	for _, s := range []string{"", "2", "ja"} {
		if v.parse(nil, s) == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestWriteMan(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMan(&b); err != nil {
		t.Fatal(err)
	}
	man := b.String()
	for _, v := range Table() {
		if !strings.Contains(man, ".B "+v.Env()+"\n") {
			t.Errorf("%s is not in the manual", v.Env())
		}
	}
	if want := ".TP\n.B FI_WEFT_SHM_DIR\n(string)\n"; !strings.Contains(man, want) {
		t.Errorf("manual lacks %q:\n%s", want, man)
	}
	if strings.Contains(man, "cross-memory") || !strings.Contains(man, `cross\-memory`) {
		t.Error("hyphens are not escaped")
	}
	if got := roff(".x\\y"); got != `\&.x\ey` {
		t.Errorf("roff escapes to %q", got)
	}
	t.Run("groff", func(t *testing.T) { formatMan(t, man) })
}

// formatMan sees that groff has nothing to say about the section.
func formatMan(t *testing.T, man string) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	cmd := exec.Command(groff, "-man", "-ww", "-Tascii")
	cmd.Stdin = strings.NewReader(".TH WEFT 7\n" + man)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("groff: %v %s", err, stderr.String())
	}
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, fi.ENOSPC
	}
	return len(p), nil
}

func TestWriteManReportsErrors(t *testing.T) {
	for n := range 3 {
		if err := WriteMan(&failingWriter{left: n}); !errors.Is(err, fi.ENOSPC) {
			t.Errorf("failure of write %d gives %v", n, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, v := range []string{"0", "8k", "64m", "-1", "9223372036854775807g", "10s", "/dev/shm", "auto"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, v := range Table() {
			c, err := Load(env(strings.ToUpper(v.Name) + "=" + value))
			if err != nil {
				if !errors.Is(err, fi.EINVAL) || !strings.Contains(err.Error(), v.Env()) {
					t.Fatalf("%s=%q: %v", v.Env(), value, err)
				}
				continue
			}
			if c.EagerSize > c.BounceSize || c.InjectSize > c.BounceSize || c.EagerSize < 0 ||
				c.RingSlots < 16 || c.RingSlots&(c.RingSlots-1) != 0 || c.BounceCount < 0 ||
				c.UnexpectedBytes < 64<<10 || c.ConnectTimeout <= 0 || c.SHMDir[0] != '/' {
				t.Fatalf("%s=%q gives %+v", v.Env(), value, *c)
			}
		}
	})
}
