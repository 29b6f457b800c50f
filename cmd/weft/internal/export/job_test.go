package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// fake writes process 7 of a made-up /proc.
func fake(t *testing.T, env []string, cgroup string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"environ": strings.Join(env, "\x00") + "\x00", "cgroup": cgroup} {
		if err := os.WriteFile(filepath.Join(dir, "7", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestJobOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		env    []string
		cgroup string
		want   job
	}{
		{"none", []string{"HOME=/", "HOSTNAME=h"}, "0::/user.slice\n", job{}},
		{"slurm", []string{"SLURM_JOB_ID=42", "SLURM_PROCID=3"}, "", job{id: "42", rank: "3"}},
		{"mpirun in slurm", []string{"SLURM_JOB_ID=42", "SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=5"}, "",
			job{id: "42", rank: "5"}},
		{"slurm's group only", nil, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n", job{id: "77"}},
		{"pbs", []string{"PBS_JOBID=9.server", "PMI_RANK=1"}, "", job{id: "9.server", rank: "1"}},
		{"pod", []string{"POD_NAME=a-0", "POD_NAMESPACE=b", "HOSTNAME=c"},
			"0::/kubepods.slice/x.slice/cri-containerd-" + digits + ".scope\n",
			job{pod: "a-0", namespace: "b", container: "0123456789ab"}},
		{"pod without its names", []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=a-1"},
			"4:memory:/kubepods/burstable/podx/" + digits + "\n",
			job{pod: "a-1", container: "0123456789ab"}},
		{"not UTF-8", []string{"SLURM_JOB_ID=\xff", "broken"}, "", job{id: "?"}},
	} {
		if got := jobOf(fake(t, c.env, c.cgroup), 7); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
	if got := jobOf(t.TempDir(), 7); got != (job{}) {
		t.Errorf("no process: %+v", got)
	}
}

// TestPidHere finds a process of another pid namespace.
func TestPidHere(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		t.Skip("no pid namespaces here:", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "ns/pid"), &st); err != nil {
		t.Fatal(err)
	}
	if got := pidHere("/proc", st.Ino, 1); got != uint32(cmd.Process.Pid) {
		t.Errorf("process %d, not %d", got, cmd.Process.Pid)
	}
	if got := pidHere("/proc", st.Ino, 2); got != 0 {
		t.Errorf("process %d, where there is none", got)
	}
}
