package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// findProgram returns the measuring program: what the user says, that of a
// checkout that make has built, or that of the installation this command is of.
func findProgram(flag, self string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	candidates := []string{"build/bench/weft_bench"}
	if self != "" {
		dir := filepath.Dir(self)
		candidates = append(candidates, filepath.Join(dir, "../libexec/weft/weft_bench"),
			filepath.Join(dir, "../bench/weft_bench"))
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && info.Mode()&0o111 != 0 {
			return c, nil
		}
	}
	if path, err := exec.LookPath("weft_bench"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("no measuring program weft_bench in %s; make bench-program builds it",
		strings.Join(candidates, ", "))
}

// findProvider returns the folder of libweft-fi.so, empty to leave it to
// libfabric.
func findProvider(flag string) (string, error) {
	if flag == "" {
		if _, err := os.Stat("build/lib/libweft-fi.so"); err != nil {
			return "", nil
		}
		flag = "build/lib"
	}
	path, err := filepath.Abs(flag)
	if err != nil {
		return "", fmt.Errorf("provider path: %w", err)
	}
	return path, nil
}

// chooseCores reads "A,B", or takes the first two processors that this process may
// use and that are not of one core.
func chooseCores(flag, sys string) ([2]int, error) {
	var cores [2]int
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return cores, fmt.Errorf("processors of this process: %w", err)
	}
	if flag != "" {
		a, b, ok := strings.Cut(flag, ",")
		for i, s := range []string{a, b} {
			n, err := strconv.Atoi(s)
			if !ok || err != nil || n < 0 {
				return cores, fmt.Errorf("cores %q are not two numbers, as in 0,1", flag)
			}
			if !allowed.IsSet(n) {
				return cores, fmt.Errorf("this process may not use processor %d", n)
			}
			cores[i] = n
		}
		return cores, nil
	}
	found, core := 0, ""
	for n := 0; n < 8*len(allowed)*8 && found < 2; n++ {
		if !allowed.IsSet(n) {
			continue
		}
		siblings := readLine(filepath.Join(sys, fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list",
			n)))
		if found == 1 && siblings != "" && siblings == core {
			continue
		}
		cores[found], core = n, siblings
		found++
	}
	switch found {
	case 0:
		return cores, fmt.Errorf("this process may use no processor")
	case 1:
		cores[1] = cores[0]
	}
	return cores, nil
}

// readLine is a file's first line, empty if it cannot be read.
func readLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
