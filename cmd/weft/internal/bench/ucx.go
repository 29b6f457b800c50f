package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ucxName is what UCX without an MPI is called in results: its own ucx_perftest, beside the measuring program.
const ucxName = "UCX"

const ucxProgram = "ucx_perftest"

// ucxTest is one figure: a test of ucx_perftest, a column of its table, and what that is multiplied by.
type ucxTest struct {
	figure, test string
	bytes, times int
	column       int
	scale        float64
}

// Columns of ucx_perftest -f -v: iterations, latency in us (the 50 % percentile, average, overall), bandwidth in
// MiB/s and messages a second (average, overall).
const (
	ucxMedianLatency = 1
	ucxBandwidth     = 5
	ucxRate          = 7
)

var ucxTests = []ucxTest{
	{"pingpong_8_us", "tag_lat", 8, 100000, ucxMedianLatency, 1},
	{"pingpong_4096_us", "tag_lat", 4096, 50000, ucxMedianLatency, 1},
	{"pingpong_65536_us", "tag_lat", 65536, 5000, ucxMedianLatency, 1},
	{"pingpong_1048576_us", "tag_lat", 1 << 20, 500, ucxMedianLatency, 1},
	{"rate_8_mps", "tag_bw", 8, 500000, ucxRate, 1e-6},
	{"bandwidth_65536_mbps", "tag_bw", 65536, 10000, ucxBandwidth, 1.048576},
	{"bandwidth_1048576_mbps", "tag_bw", 1 << 20, 1000, ucxBandwidth, 1.048576},
}

// ucxTries is how many ports are tried for a test: one may be taken.
const ucxTries = 5

// ucx measures each test once; false where ucx_perftest is not installed.
func (r *run) ucx() bool {
	if _, err := exec.LookPath(ucxProgram); err != nil {
		r.note("no %s: %v", ucxProgram, err)
		return false
	}
	for _, t := range ucxTests {
		value, err := r.ucxOnce(t)
		if err != nil {
			r.note("%s %s of %d bytes: %v", ucxProgram, t.test, t.bytes, err)
			continue
		}
		r.found.add(ucxName, t.figure, value)
	}
	return true
}

// ucxOnce runs server and client, a processor for each.
func (r *run) ucxOnce(t ucxTest) (float64, error) {
	var problem error
	for range ucxTries {
		port := strconv.Itoa(10000 + rand.IntN(20000)) // below those that the kernel hands out
		server := exec.Command("timeout", "60", ucxProgram, "-p", port, "-c", strconv.Itoa(r.cpus[0]))
		if err := server.Start(); err != nil {
			return 0, fmt.Errorf("start the server: %w", err)
		}
		value, err := r.ucxClient(t, port)
		if err != nil {
			_ = server.Process.Signal(unix.SIGTERM) // which timeout gives the server, too
		}
		_ = server.Wait()
		if err == nil {
			return value, nil
		}
		problem = err
	}
	return 0, problem
}

// ucxClient connects once the server listens, which takes it a moment.
func (r *run) ucxClient(t ucxTest, port string) (float64, error) {
	var err error
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		cmd := exec.Command("timeout", "60", ucxProgram, "localhost", "-p", port, "-c", strconv.Itoa(r.cpus[1]), "-t",
			t.test,
			"-s", strconv.Itoa(t.bytes), "-n", strconv.Itoa(t.times), "-w", strconv.Itoa(t.times/50), "-f", "-v")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		var out []byte
		if out, err = cmd.Output(); err == nil {
			return t.value(string(out))
		}
		err = fmt.Errorf("%w: %s", err, lastLine(errs.Bytes()))
	}
	return 0, err
}

// value takes the figure out of the table that the client prints: a head and a line.
func (t ucxTest) value(out string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(lines[len(lines)-1], ",")
	if len(lines) < 2 || len(fields) <= t.column {
		return 0, errors.New("no line of figures")
	}
	v, err := strconv.ParseFloat(fields[t.column], 64)
	if err != nil {
		return 0, fmt.Errorf("figures: %w", err)
	}
	return v * t.scale, nil
}
