package export

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// job is what a batch system and a container's surroundings say of a process. What is not known is empty.
type job struct {
	id        string // of the batch system's job
	rank      string // in it
	pod       string // Kubernetes' name of the pod
	namespace string // Kubernetes', of the pod
	container string // the first 12 digits of its id, as its runtime shows it
}

// jobLabels are the labels of a job, in the order of labels.
var jobLabels = []string{"job_id", "rank", "pod", "pod_namespace", "container"}

func (j job) labels() []string { return []string{j.id, j.rank, j.pod, j.namespace, j.container} }

// Variables that name the job, the first that is set counts. Launchers within a job come before its batch system.
var (
	idVariables   = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"}
	rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"}
)

var (
	slurmGroup     = regexp.MustCompile(`/job_([0-9]+)(?:/|$)`)
	containerGroup = regexp.MustCompile(`[/:-]([0-9a-f]{64})(?:\.scope)?$`)
)

// jobOf reads the environment that process pid was started with, and its control groups, below the
// folder proc. What may not be read is not known.
func jobOf(proc string, pid uint32) job {
	dir := filepath.Join(proc, strconv.FormatUint(uint64(pid), 10))
	env := map[string]string{}
	text, _ := os.ReadFile(filepath.Join(dir, "environ"))
	for v := range bytes.SplitSeq(text, []byte{0}) {
		if name, value, ok := strings.Cut(string(v), "="); ok {
			env[name] = strings.ToValidUTF8(value, "?") // as Prometheus wants it
		}
	}
	first := func(names []string) string {
		for _, n := range names {
			if env[n] != "" {
				return env[n]
			}
		}
		return ""
	}
	j := job{id: first(idVariables), rank: first(rankVariables), pod: env["POD_NAME"], namespace: env["POD_NAMESPACE"]}
	if j.pod == "" && env["KUBERNETES_SERVICE_HOST"] != "" {
		j.pod = env["HOSTNAME"]
	}
	groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	for line := range strings.SplitSeq(string(groups), "\n") {
		if m := slurmGroup.FindStringSubmatch(line); m != nil && j.id == "" {
			j.id = m[1]
		}
		if m := containerGroup.FindStringSubmatch(line); m != nil && j.container == "" {
			j.container = m[1][:12]
		}
	}
	return j
}

// pidHere gives the number, in the pid namespace of the folder proc, of the process that is pid in
// the pid namespace with inode ns: a container's process as its host numbers it. 0 if there is none.
func pidHere(proc string, ns uint64, pid uint32) uint32 {
	entries, _ := os.ReadDir(proc)
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(filepath.Join(proc, e.Name(), "ns/pid"), &st) != nil || st.Ino != ns {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(proc, e.Name(), "status"))
		for line := range strings.SplitSeq(string(status), "\n") {
			if list, ok := strings.CutPrefix(line, "NSpid:"); ok {
				pids := strings.Fields(list)
				if len(pids) > 0 && pids[len(pids)-1] == strconv.FormatUint(uint64(pid), 10) {
					return uint32(n)
				}
			}
		}
	}
	return 0
}
