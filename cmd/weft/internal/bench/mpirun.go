package bench

import (
	"os"
	"os/exec"
)

// mpiPath is a way on which Open MPI carries messages.
type mpiPath struct {
	name string // as in the table
	args []string
}

func overMTL(provider string) mpiPath {
	return mpiPath{provider, []string{"--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include",
		provider}}
}

func overBTL(btl string) mpiPath {
	return mpiPath{"btl " + btl, []string{"--mca", "pml", "ob1", "--mca", "btl", "self," + btl}}
}

// overUCX lets UCX use what it has without an RDMA device, too.
var overUCX = mpiPath{"ucx", []string{"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices",
	"any"}}

// mpirun runs 2 ranks for a minute at most and returns what they print. args are
// further options, the program and its arguments; provider is whose environment
// they get.
func (r *run) mpirun(provider string, args ...string) ([]byte, error) {
	all := []string{"60", "mpirun", "-n", "2", "--mca", "btl_base_warn_component_unused", "0"}
	if os.Geteuid() == 0 {
		all = append(all, "--allow-run-as-root")
	}
	cmd := exec.Command("timeout", append(all, args...)...)
	cmd.Env = r.environ(provider)
	return cmd.CombinedOutput()
}
