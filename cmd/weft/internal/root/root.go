// Package root joins weft's commands to one.
package root

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/cmd/weft/internal/bench"
	"github.com/weft-fabric/weft/cmd/weft/internal/doctor"
	"github.com/weft-fabric/weft/cmd/weft/internal/export"
	"github.com/weft-fabric/weft/cmd/weft/internal/info"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/cmd/weft/internal/top"
	"github.com/weft-fabric/weft/cmd/weft/internal/trace"
	"github.com/weft-fabric/weft/internal/version"
)

// Command returns "weft" with all that belongs to it.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "weft",
		Short: "Watch and measure the weft libfabric provider",
		Long: `weft shows what the weft libfabric provider offers on this host, what the
processes that use it are doing, how fast it is, and what is in its way.`,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          known,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.SuggestionsMinimumDistance = 2
	c.SetVersionTemplate("weft {{.Version}}\n")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return tool.Usage(err) })
	c.AddCommand(info.Command(), doctor.Command(), top.Command(), trace.Command(), bench.Command(), export.Command(),
		versionCommand())
	c.AddCommand(doctor.Peers()...)
	for _, sub := range c.Commands() {
		usageOfArgs(sub)
	}
	return c
}

// known refuses a word that is no command, with those that are like it.
func known(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if like := c.SuggestionsFor(args[0]); len(like) != 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return tool.Usage(err)
}

// usageOfArgs makes wrong arguments an error of usage.
func usageOfArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return tool.Usage(err)
			}
			return nil
		}
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weft %s (%s, %s/%s)\n",
				version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
