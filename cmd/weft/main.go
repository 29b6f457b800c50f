// Weft is the command line of the weft provider: what it offers here, what it
// does, how fast it is, and what is in its way.
package main

import (
	"fmt"
	"os"

	"github.com/weft-fabric/weft/cmd/weft/internal/root"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
)

func main() {
	err := root.Command().Execute()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "weft:", err)
	}
	os.Exit(tool.Status(err))
}
