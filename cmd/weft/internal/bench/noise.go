package bench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds beyond which a figure is not to be relied on.
const (
	maxSteal     = 0.01 // of a core's time
	maxFrequency = 1.1  // highest over lowest of a core
)

// noise is what else happened on the machine while it was measured. The files are
// those of the kernel below root.
type noise struct {
	root        string
	cores       [2]int
	load        float64 // of a minute, before
	began       map[int]coreTime
	slow, quick map[int]float64 // frequencies, MHz
}

// coreTime is what a core did since the machine started, in ticks.
type coreTime struct{ all, steal float64 }

// watchNoise begins to watch.
func watchNoise(root string, cores [2]int) *noise {
	n := &noise{root: root, cores: cores, slow: map[int]float64{}, quick: map[int]float64{}}
	first, _, _ := strings.Cut(readLine(filepath.Join(root, "proc/loadavg")), " ")
	n.load, _ = strconv.ParseFloat(first, 64) // 0 where it is not known
	n.began = n.times()
	return n
}

// times reads /proc/stat: user nice system idle iowait irq softirq steal.
func (n *noise) times() map[int]coreTime {
	times := map[int]coreTime{}
	f, err := os.Open(filepath.Join(n.root, "proc/stat"))
	if err != nil {
		return times
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		core, err := strconv.Atoi(fields[0][3:])
		if err != nil {
			continue // of all processors
		}
		var t coreTime
		for i, s := range fields[1:9] {
			v, _ := strconv.ParseFloat(s, 64)
			t.all += v
			if i == 7 {
				t.steal = v
			}
		}
		times[core] = t
	}
	return times
}

// sample reads the frequencies; to be called now and then.
func (n *noise) sample() {
	for _, c := range n.cores {
		khz, err := strconv.ParseFloat(readLine(n.cpufreq(c, "scaling_cur_freq")), 64)
		if err != nil || khz <= 0 {
			continue // virtual machines have none
		}
		mhz := khz / 1e3
		if n.slow[c] == 0 || mhz < n.slow[c] {
			n.slow[c] = mhz
		}
		n.quick[c] = max(n.quick[c], mhz)
	}
}

func (n *noise) cpufreq(core int, file string) string {
	return filepath.Join(n.root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/%s", core, file))
}

// warnings says what makes the figures doubtful.
func (n *noise) warnings() []string {
	list := []string{}
	if n.load > 0.5 {
		list = append(list, fmt.Sprintf("other programs were running: load average %.2f before the first round",
			n.load))
	}
	now := n.times()
	for i, c := range n.cores {
		if i > 0 && c == n.cores[0] {
			list = append(list, fmt.Sprintf("both processes shared core %d", c))
			continue
		}
		if all := now[c].all - n.began[c].all; all > 0 {
			if steal := (now[c].steal - n.began[c].steal) / all; steal > maxSteal {
				list = append(list, fmt.Sprintf("the hypervisor took %.1f %% of core %d", 100*steal, c))
			}
		}
		if n.slow[c] > 0 && n.quick[c] > maxFrequency*n.slow[c] {
			list = append(list, fmt.Sprintf("core %d ran at %.0f to %.0f MHz", c, n.slow[c], n.quick[c]))
		}
		if g := readLine(n.cpufreq(c, "scaling_governor")); g != "" && g != "performance" {
			list = append(list, fmt.Sprintf("the frequency governor of core %d is %q, not \"performance\"", c, g))
		}
	}
	return list
}
