package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// Lists of a GPU's memory (test gpu of the measuring program), which has figures where there is a CUDA driver with a
// device.

// tokenMessages is how figures begin of a GPU's memory that goes as messages alone.
const tokenMessages = "messages_"

// gpuDevices is how many GPUs the two processes have, 1 or 2: a figure that comes before all others of them.
const gpuDevices = "gpu_devices"

// tokenGPURows are those of a machine with a GPU.
var tokenGPURows = []row{
	gpuRow("gpu", 64<<10), gpuRow("gpu", 1<<20), gpuRow("gpu", 16<<20),
	gpuRow("host", 64<<10), gpuRow("host", 1<<20), gpuRow("host", 16<<20),
	{name: "gpu_gpu_16777216_mbps", title: "GPU to GPU by mapping, 16 MiB, MB/s, beside messages", target: 5,
		atLeast: true, by: tokenMessages + "gpu_gpu_16777216_mbps"},
	{name: "gpu_host_16777216_mbps", title: "GPU to host by mapping, 16 MiB, MB/s, beside messages", target: 5,
		atLeast: true, by: tokenMessages + "gpu_host_16777216_mbps"},
	{name: "gpu_map_first_us", title: "list of 8 B of a GPU's memory that is mapped for it, us", target: math.NaN()},
	{name: "gpu_map_again_us", title: "the same where it is mapped already, us", target: 10, absolute: true},
}

// gpuRow is of memory of a GPU that goes to a GPU or a host by a mapping, beside the copy within one process.
func gpuRow(to string, bytes int) row {
	title, size := "GPU", fmt.Sprintf("%d KiB", bytes>>10)
	if to == "host" {
		title = to
	}
	if bytes >= 1<<20 {
		size = fmt.Sprintf("%d MiB", bytes>>20)
	}
	return row{
		name: fmt.Sprintf("gpu_%s_%d_mbps", to, bytes), target: 0.9, atLeast: true,
		by:    fmt.Sprintf("gpu_%s_copy_%d_mbps", to, bytes),
		title: fmt.Sprintf("GPU to %s by mapping, two processes, %s, MB/s, beside the copy within one", title, size),
	}
}

// tokensByMessages measures the same lists of a GPU's memory, if there is one, as messages, round by round.
func (r *run) tokensByMessages() {
	c := r.contenders[0]
	if !r.found.has(c.text, "gpu_gpu_") {
		return
	}
	c.env = append(slices.Clone(c.env), "FI_WEFT_TOKEN_WAYS=message")
	for range r.rounds {
		found := newFigures()
		addLines(found, c.text, r.figuresOf(context.Background(), c, r.perFigure, []string{"gpu"}))
		for name, values := range found.values[c.text] {
			for _, v := range values {
				r.found.add(c.text, tokenMessages+name, v)
			}
		}
	}
}

// tokenGPUTable writes the rows of a GPU; of those without a figure why, and the day. Where there is one GPU alone they
// say so.
func tokenGPUTable(b *strings.Builder, found *figures, provider, dev, day string) {
	reason := gpuAtHand(dev)
	if found.has(provider, gpuDevices) {
		reason = "the test failed"
	}
	why := fmt.Sprintf("not measured: %s (%s)", reason, day)
	for _, r := range tokenGPURows {
		own, measured := found.of(provider, r.name), "–"
		v, text := r.judge(found, []string{provider})
		reached := r.reached(v)
		if own.count != 0 {
			measured = fmt.Sprint(own)
		} else {
			text, reached = "–", why
		}
		title := r.title
		if found.of(provider, gpuDevices).median == 1 {
			title = strings.Replace(title, "GPU to GPU", "within one GPU", 1)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", title, measured, text, r.goal(), reached)
	}
	b.WriteByte('\n')
}

// gpuAtHand says why there are no figures of a GPU where the test has found none; dev is the folder of devices.
func gpuAtHand(dev string) string {
	if _, err := os.Stat(dev + "/nvidia0"); err == nil {
		return "the CUDA driver gave none"
	}
	return "no GPU was at hand"
}
