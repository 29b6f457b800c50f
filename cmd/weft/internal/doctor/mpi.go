package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
)

// launcherNames are what MPI's start programs are called.
var launcherNames = []string{"mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"}

// launchers returns the start programs of MPI installations, each once.
func launchers(path string) []string {
	dirs := filepath.SplitList(path)
	for _, pattern := range []string{"/opt/*/bin", "/usr/lib64/*/bin", "/usr/local/*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, found...)
	}
	var list, seen []string
	for _, d := range dirs {
		for _, n := range launcherNames {
			p := filepath.Join(d, n)
			resolved, err := filepath.EvalSymlinks(p)
			if err != nil || slices.Contains(seen, resolved) {
				continue
			}
			seen = append(seen, resolved)
			list = append(list, p)
		}
	}
	return list
}

var (
	openMPI = regexp.MustCompile(`\(Open MPI\) (\S+)`)
	hydra   = regexp.MustCompile(`HYDRA build details:\s+Version:\s+(\S+)`)
)

// checkMPI lists the MPI installations with the line that runs each on weft.
func checkMPI(ctx context.Context, h *host) []Finding {
	dir, _ := findProvider(h)
	if dir == "" {
		dir = "<directory of " + provider + ">"
	}
	path, _ := h.lookup("PATH")
	var list []Finding
	for _, l := range launchers(path) {
		out, err := fabric.Run(ctx, nil, l, "--version")
		if err != nil {
			list = append(list, note("mpi", "%s --version: %v", l, err)...)
			continue
		}
		switch {
		case openMPI.MatchString(out):
			list = append(list, openMPIFinding(ctx, l, openMPI.FindStringSubmatch(out)[1], dir))
			list = append(list, allToAll(h, l, "libweft-mpi-openmpi.so", asRoot()+" -x LD_PRELOAD=%s")...)
		case hydra.MatchString(out):
			list = append(list, mpichFinding(l, hydra.FindStringSubmatch(out)[1], out, dir))
			list = append(list, allToAll(h, l, "libweft-mpi-mpich.so", " -genv LD_PRELOAD %s")...)
		default:
			first, _, _ := strings.Cut(out, "\n")
			list = append(list, note("mpi", "%s: %s (no MPI that weft doctor knows)", l, first)...)
		}
	}
	if len(list) == 0 {
		return note("mpi", "no MPI installation found")
	}
	return list
}

// openMPIFinding finds whether the installation has the matching layer for
// libfabric.
func openMPIFinding(ctx context.Context, launcher, version, dir string) Finding {
	f := Finding{Check: "mpi", Verdict: Good, What: fmt.Sprintf("Open MPI %s: %s", version, launcher)}
	ompiInfo := filepath.Join(filepath.Dir(launcher), "ompi_info")
	out, err := fabric.Run(ctx, nil, ompiInfo, "--parsable")
	switch {
	case err != nil:
		f.Verdict, f.What = Note, f.What+"; whether it has the mtl for libfabric was not found out ("+ompiInfo+": "+
			err.Error()+")"
	case !strings.Contains(out, "mca:mtl:ofi:"):
		return Finding{"mpi", Warn, f.What + " was built without libfabric", "install an Open MPI that has it " +
			"(Debian: openmpi-bin), or build it with --with-ofi"}
	}
	f.Remedy = fmt.Sprintf("FI_PROVIDER_PATH=%s %s%s -n 2 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "+
		"weft PROGRAM", dir, launcher, asRoot())
	return f
}

// asRoot is the option that Open MPI's start program wants of root.
func asRoot() string {
	if os.Geteuid() == 0 {
		return " --allow-run-as-root"
	}
	return ""
}

// allToAll shows the line by which a start program has the all-to-all operations of its programs
// carried out by weft, if the library for its MPI is there; options have its path at %s.
func allToAll(h *host, launcher, name, options string) []Finding {
	value, _ := h.lookup("FI_PROVIDER_PATH")
	folders := fabric.ProviderFolders(value)
	for _, f := range slices.Clone(folders) {
		folders = append(folders, filepath.Dir(f)) // of the provider's folder libfabric
	}
	path := fabric.FindWeft(name, folders, h.roots)
	if path == "" {
		return nil
	}
	return []Finding{{"mpi", Good, "all-to-all operations alone over weft, whatever network the MPI uses: " + launcher,
		launcher + fmt.Sprintf(options, path) + " -n 2 PROGRAM"}}
}

func mpichFinding(launcher, version, details, dir string) Finding {
	f := Finding{"mpi", Good, fmt.Sprintf("MPICH %s: %s", version, launcher),
		fmt.Sprintf("FI_PROVIDER_PATH=%s FI_PROVIDER=weft %s -n 2 PROGRAM", dir, launcher)}
	if !strings.Contains(details, "ch4:ofi") {
		f.Verdict, f.What = Note, f.What+"; its start program does not say that it was built for libfabric (ch4:ofi)"
	}
	return f
}
