package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Whether one process may read another's memory depends on what they are to each
// other (ptrace(2)): a parent may where siblings may not. Ranks of an MPI
// program are siblings, so the check starts two processes, one of which reads
// the other's memory.

const (
	ownerCommand  = "doctor-attach-owner"
	readerCommand = "doctor-attach-reader"
)

// secret is what the reader must find. Process memory holds it in a variable,
// because constants are the same in every process of the program.
func secret(pid int) []byte { return fmt.Appendf(nil, "weft doctor %d", pid) }

// Peers are the hidden commands of the two processes.
func Peers() []*cobra.Command {
	owner := &cobra.Command{
		Use: ownerCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := secret(os.Getpid())
			fmt.Fprintf(cmd.OutOrStdout(), "%d %d %d\n", os.Getpid(), address(b), len(b))
			_, err := io.Copy(io.Discard, os.Stdin) // until the check is over
			keep(b)
			return err
		},
	}
	reader := &cobra.Command{
		Use: readerCommand + " PID ADDRESS LENGTH", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			var n [3]int
			for i, a := range args {
				v, err := strconv.Atoi(a)
				if err != nil || v < 0 || i == 2 && v > 1<<20 {
					return fmt.Errorf("%q is no number here", a)
				}
				n[i] = v
			}
			b := make([]byte, n[2])
			var errno unix.Errno
			got, err := unix.ProcessVMReadv(n[0], []unix.Iovec{iovec(b)},
				[]unix.RemoteIovec{{Base: uintptr(n[1]), Len: n[2]}}, 0)
			switch {
			case errors.As(err, &errno):
				fmt.Fprintf(cmd.OutOrStdout(), "%d\n", errno)
			case got != n[2] || string(b) != string(secret(n[0])):
				fmt.Fprintf(cmd.OutOrStdout(), "%d\n", unix.EIO)
			default:
				fmt.Fprintln(cmd.OutOrStdout(), 0)
			}
			return nil
		},
	}
	return []*cobra.Command{owner, reader}
}

// tryAttach has one process read another's memory. The error is what the kernel
// says, or why the processes could not be started.
func tryAttach(ctx context.Context, self string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	owner := exec.CommandContext(ctx, self, ownerCommand)
	stdin, err := owner.StdinPipe()
	if err != nil {
		return err
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		return err
	}
	if err := owner.Start(); err != nil {
		return err
	}
	defer func() { stdin.Close(); _ = owner.Wait() }() // its status does not matter
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the first process: %w", err)
	}
	answer, err := exec.CommandContext(ctx, self, append([]string{readerCommand}, strings.Fields(line)...)...).Output()
	if err != nil {
		return fmt.Errorf("the second process: %w", err)
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(answer)))
	if err != nil {
		return fmt.Errorf("the second process says %q", answer)
	}
	if code != 0 {
		return unix.Errno(code)
	}
	return nil
}

func checkAttach(ctx context.Context, h *host) []Finding {
	scope := ptraceScope(h.proc)
	err := tryAttach(ctx, h.self)
	var errno unix.Errno
	switch {
	case err == nil:
		return good("memory attach", "a process reads another's memory (%s): large messages take one copy", scope)
	case errors.As(err, &errno) && (errno == unix.EPERM || errno == unix.ENOSYS || errno == unix.EACCES):
		return []Finding{{"memory attach", Warn, fmt.Sprintf("a process may not read another's memory: %v (%s): "+
			"large messages take two copies", err, scope),
			"sysctl kernel.yama.ptrace_scope=0; in containers --cap-add=SYS_PTRACE, or a seccomp profile that allows " +
				"process_vm_readv"}}
	}
	return note("memory attach", "could not be tried: %v", err)
}

// ptraceScope describes Yama's setting.
func ptraceScope(proc string) string {
	b, err := os.ReadFile(filepath.Join(proc, "sys/kernel/yama/ptrace_scope"))
	if err != nil {
		return "no Yama"
	}
	return "ptrace_scope " + strings.TrimSpace(string(b))
}
