package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mpiJobsGroup is measured between network namespaces, by MPI programs.
const mpiJobsGroup = "mpi-alltoall"

// mpiKind is an MPI, and how it starts ranks on the hosts of a lab.
type mpiKind struct {
	title, name string   // as in the table, and in names of files
	launchers   []string // the first that there is
	env         []string
	args        func(hosts []string, agent string) []string
}

var mpiKinds = []*mpiKind{
	{title: "Open MPI", name: "openmpi", launchers: []string{"mpirun.openmpi", "mpirun"}, args: openMPIArgs},
	{title: "MPICH", name: "mpich", launchers: []string{"mpiexec.mpich", "mpiexec.hydra"}, args: hydraArgs,
		env: []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=" + port}},
}

func openMPIArgs(hosts []string, agent string) []string {
	args := []string{"--allow-run-as-root", "--host", strings.Join(hosts, ","), "-np", strconv.Itoa(len(hosts))}
	for _, option := range [][2]string{
		{"plm_rsh_agent", agent}, {"plm_rsh_no_tree_spawn", "1"}, {"oob_tcp_if_include", port},
		{"btl_tcp_if_include", port}, {"mpi_yield_when_idle", "1"}, {"pml", "ob1"}, {"btl", "self,tcp"},
	} {
		args = append(args, "--mca", option[0], option[1])
	}
	return args
}

func hydraArgs(hosts []string, agent string) []string {
	return []string{"-launcher", "ssh", "-launcher-exec", agent, "-iface", port, "-hosts", strings.Join(hosts, ","),
		"-n", strconv.Itoa(len(hosts))}
}

// launcher is the program that starts ranks of the MPI.
func (k *mpiKind) launcher() (path string, err error) {
	for _, name := range k.launchers {
		c := exec.Command(name)
		if c.Err == nil {
			return c.Path, nil
		}
		err = c.Err
	}
	return "", err
}

// mpiWith and mpiWithout name an MPI with weft's library in front, and alone.
func mpiWith(k *mpiKind, c contender) string { return k.title + " with " + c.text }
func mpiWithout(k *mpiKind) string           { return k.title + " alone" }

// mpiJobNames are all that may be measured.
func (o *options) mpiJobNames() (names []string) {
	for _, k := range mpiKinds {
		for _, c := range o.exchangers() {
			names = append(names, mpiWith(k, c))
		}
		names = append(names, mpiWithout(k))
	}
	return names
}

// mpiLab is a lab in which MPI jobs run, with a folder of their own.
type mpiLab struct {
	*lab
	dir   string
	hosts []string // addresses
}

// agent is a program that runs a command on the host of an address, as ssh does. Each host has a name of its own:
// launchers know hosts, and name files, by that.
func (l *mpiLab) agent() string { return filepath.Join(l.dir, "agent") }

const mpiAgent = `#!/bin/sh
while [ "${1#10.98.0.}" = "$1" ]; do shift; done
number=$((${1#10.98.0.} - 1))
shift
exec ip netns exec "%s$number" unshare --uts sh -c "echo host$number >/proc/sys/kernel/hostname; $*"
`

// newMPILab makes the network.
func newMPILab(ctx context.Context, w *labNetwork) (l *mpiLab, err error) {
	l = &mpiLab{lab: newLab(ctx)}
	if l.dir, err = os.MkdirTemp("", "weft-bench"); err != nil {
		return l, fmt.Errorf("folder of jobs: %w", err)
	}
	if _, err = w.build(l.lab); err != nil {
		return l, err
	}
	for i := range w.hosts {
		l.hosts = append(l.hosts, fmt.Sprintf("10.98.0.%d", i+1))
	}
	names := strings.TrimSuffix(l.lab.hosts[0], "0")
	if err = os.WriteFile(l.agent(), fmt.Appendf(nil, mpiAgent, names), 0o700); err != nil {
		return l, fmt.Errorf("agent: %w", err)
	}
	return l, nil
}

// killAll kills what is left of a job on the hosts.
func (l *mpiLab) killAll() {
	for _, host := range l.lab.hosts {
		out, _ := exec.Command("ip", "netns", "pids", host).Output() // an error: there is no host
		for _, field := range strings.Fields(string(out)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

func (l *mpiLab) close() {
	l.lab.close()
	_ = os.RemoveAll(l.dir)
}

// mpiJobsPlan is what is measured and how often.
type mpiJobsPlan struct {
	networks []string // of labNetworks
	programs []*mpiProgram
}

var mpiJobsRuns = mpiJobsPlan{networks: []string{"alike", "paths"}, programs: mpiPrograms}

// steps is how often mpiJobs says what it does.
func (p *mpiJobsPlan) steps() int { return len(p.networks) * len(mpiKinds) * len(p.programs) }

// mpiJobs runs every program on each network, under each MPI that is here, with weft's library and without in turn.
func (r *run) mpiJobs() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for _, name := range r.jobs.networks {
		i := slices.IndexFunc(labNetworks, func(w labNetwork) bool { return w.name == name })
		w := &labNetworks[i]
		l, err := newMPILab(ctx, w)
		if err != nil {
			l.close()
			return err
		}
		for _, k := range mpiKinds {
			for _, p := range r.jobs.programs {
				r.step("%s, %s, %s", w.title, k.title, p.title)
				if err := r.mpiProgram(l, w, k, p); err != nil {
					r.note("no figures of %s under %s, %s: %v", p.title, k.title, w.title, err)
				}
				r.noise.sample()
			}
		}
		l.close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// mpiProgram runs a program as often as it is to be.
func (r *run) mpiProgram(l *mpiLab, w *labNetwork, k *mpiKind, p *mpiProgram) error {
	if p.of != "" && p.of != k.name {
		return nil
	}
	command, err := p.command(r.options, k)
	if err != nil {
		return err
	}
	library, err := filepath.Abs(filepath.Join(r.providerPath, "libweft-mpi-"+k.name+".so"))
	if err != nil {
		return fmt.Errorf("folder of libraries: %w", err)
	}
	if _, err := os.Stat(library); err != nil {
		return fmt.Errorf("%w; make mpi-lib builds it", err)
	}
	for run := range p.runs {
		ways := r.exchangers()
		if !p.both {
			ways = append(ways, contender{})
		}
		if run%2 == 1 { // as in measure
			slices.Reverse(ways)
		}
		for _, c := range ways {
			provider, env := mpiWithout(k), []string(nil)
			if c.provider != "" {
				provider = mpiWith(k, c)
				env = append([]string{"LD_PRELOAD=" + library, "FI_LOG_LEVEL=info", "FI_LOG_PROV=none"}, c.env...)
			}
			text, err := r.mpiJob(l, k, p, env, command)
			if err == nil {
				err = p.found(r.found, w, provider, mpiWithout(k), text, c.provider != "")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mpiJob runs one job on all hosts and returns what it wrote.
func (r *run) mpiJob(l *mpiLab, k *mpiKind, p *mpiProgram, env, command []string) (string, error) {
	launcher, err := k.launcher()
	if err != nil {
		return "", err
	}
	if p.input != nil {
		if err := p.input(l.dir, len(l.hosts)); err != nil {
			return "", err
		}
	}
	args := []string{"-k", "5", strconv.Itoa(p.limit), "ip", "netns", "exec", l.lab.hosts[0], "unshare", "--uts",
		"sh", "-c", `echo host0 >/proc/sys/kernel/hostname; exec "$@"`, "sh", launcher}
	args = append(append(args, k.args(l.hosts, l.agent())...), "env")
	args = append(append(append(append(args, k.env...), p.env...), env...), command...)
	cmd := exec.CommandContext(l.ctx, "timeout", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // ranks with sessions of their own may keep its output open
	defer l.killAll()
	cmd.Dir, cmd.Env = l.dir, r.environ("")
	var out written
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	text := func() string {
		if p.output == "" {
			return out.text()
		}
		more, _ := os.ReadFile(filepath.Join(l.dir, p.output)) // it may not be there yet
		return out.text() + string(more)
	}
	for since := (time.Time{}); ; {
		select {
		case err := <-done:
			got := text()
			if err == nil || strings.Contains(got, p.until) {
				return got, nil
			}
			return "", fmt.Errorf("%w: %s", err, lastLine([]byte(got)))
		case <-time.After(100 * time.Millisecond):
		}
		switch {
		case !strings.Contains(text(), p.until):
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > mpiEnd:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			l.killAll()
		}
	}
}

// mpiEnd is how long a job may take to end once it has measured. Ranks of MPICH over UCX's TCP wait for each other in
// MPI_Finalize now and then, and HPC Challenge goes on with other things.
const mpiEnd = 2 * time.Second

// written is what a program has written so far.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(b)
}

func (w *written) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}
