package bench

import (
	"context"
	"fmt"
	"math"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// tokenGroup is measured on one host, and between network namespaces where they can be made.
const tokenGroup = "token"

// Of the lists of pieces: how many they have, and the rounds between namespaces, at most.
const (
	tokenElements  = 20_000
	tokenNetRounds = 5
)

// tokenUDP is how figures between namespaces begin.
const tokenUDP = "udp_"

// tokenRows are the figures on one host, of the first provider alone.
var tokenRows = []row{
	{name: "token_bytes", title: "token of a region, bytes", target: 512, absolute: true},
	{name: "token_pack_us", title: "making a token, us", target: 2, absolute: true},
	{name: "token_open_us", title: "opening one, us", target: 2, absolute: true},
	{name: "list_strides_kib", title: "memory of a list of 10^6 elements in strides, KiB", target: 4, absolute: true},
	{name: "list_prepare_ns", title: "preparing a list of scattered pieces, ns for each", target: 150, absolute: true},
	{name: "list_each_ns", title: "posting a prepared list of pieces of 8 B until it is done, ns for each",
		target: math.NaN()},
	{name: "list_kernel_ns", title: "of which the kernel's copies alone take", target: math.NaN()},
	{name: "list_post_ns", title: "and the post of the list the rest", target: 100, absolute: true},
	{name: "list_first_ns", title: "from its post until the first byte is there, ns for each",
		target: 30, absolute: true},
	{name: "list_4096_mbps", title: "list of scattered pieces of 4 KiB, MB/s, beside one write as long",
		target: math.NaN(), by: "list_whole_4096_mbps"},
	{name: "list_16384_mbps", title: "the same, 16 KiB", target: 0.9, atLeast: true, by: "list_whole_16384_mbps"},
	{name: "list_65536_mbps", title: "the same, 64 KiB", target: 0.9, atLeast: true, by: "list_whole_65536_mbps"},
	{name: "list_4096_mbps", title: "list of pieces of 4 KiB, MB/s, beside fi_writemsg with 4 pieces each",
		target: 2, atLeast: true, by: "list_msg_4096_mbps"},
	{name: "list_16384_mbps", title: "the same, 16 KiB", target: 2, atLeast: true, by: "list_msg_16384_mbps"},
	{name: "list_65536_mbps", title: "the same, 64 KiB", target: 2, atLeast: true, by: "list_msg_65536_mbps"},
	aloneRow("", 8, "write"), aloneRow("", 4096, "write"), aloneRow("", 65536, "write"), aloneRow("", 1<<20, "write"),
	aloneRow("", 8, "read"), aloneRow("", 4096, "read"), aloneRow("", 65536, "read"), aloneRow("", 1<<20, "read"),
	{name: "note_write_4096_us", target: 1.25, by: "note_pingpong_4096_us", title: "write of 4 KiB with a " +
		"notification of 32 B, until a target that polls has both, us, beside half a tagged ping-pong of 4 KiB"},
	{name: "note_alone_ns", title: "notification of 32 B, ns, beside a tagged message",
		target: 1.25, by: "note_message_ns"},
}

// tokenNetRows are those between namespaces.
var tokenNetRows = []row{
	{name: tokenUDP + "list_4096_mbps",
		title:  "list of scattered pieces of 4 KiB over UDP, MB/s, beside one write as long",
		target: 0.95, atLeast: true, by: tokenUDP + "list_whole_4096_mbps"},
	{name: tokenUDP + "list_16384_mbps", title: "the same, 16 KiB",
		target: 0.95, atLeast: true, by: tokenUDP + "list_whole_16384_mbps"},
	{name: tokenUDP + "list_65536_mbps", title: "the same, 64 KiB",
		target: 0.95, atLeast: true, by: tokenUDP + "list_whole_65536_mbps"},
	{name: tokenUDP + "list_each_ns", target: math.NaN(),
		title: "posting a prepared list of pieces of 8 B over UDP until it is done, ns for each"},
	aloneRow(tokenUDP, 8, "write"), aloneRow(tokenUDP, 4096, "write"),
	aloneRow(tokenUDP, 65536, "write"), aloneRow(tokenUDP, 1<<20, "write"),
	aloneRow(tokenUDP, 8, "read"), aloneRow(tokenUDP, 4096, "read"),
	aloneRow(tokenUDP, 65536, "read"), aloneRow(tokenUDP, 1<<20, "read"),
}

// aloneRow is of a list of one element beside an operation without a list: 0.97 of its rate is to be reached.
func aloneRow(prefix string, bytes int, op string) row {
	list, over := "alone_list", ""
	if op == "read" {
		list = "alone_list_read"
	}
	if prefix != "" {
		over = " over UDP"
	}
	size := fmt.Sprintf("%d B", bytes)
	switch {
	case bytes >= 1<<20:
		size = fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10:
		size = fmt.Sprintf("%d KiB", bytes>>10)
	}
	return row{
		name: fmt.Sprintf("%s%s_%d_ns", prefix, list, bytes), target: 1.03,
		by:    fmt.Sprintf("%salone_%s_%d_ns", prefix, op, bytes),
		title: fmt.Sprintf("list of one element of %s%s beside fi_%s, ns", size, over, op),
	}
}

// listArgs have lists as many pieces as the table says.
func (o *options) listArgs() []string {
	if !o.has(tokenGroup) {
		return nil
	}
	return []string{"-e", fmt.Sprint(tokenElements)}
}

// tokenNetSteps is how often tokensBetween says what it does.
func (o *options) tokenNetSteps() int { return min(o.rounds, tokenNetRounds) }

// tokensBetween measures lists between two namespaces. Where none can be made that is noted.
func (r *run) tokensBetween() error {
	if err := labPossible(); err != nil {
		r.note("lists are measured on one host only: %v", err)
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	c := r.contenders[0]
	return r.between(ctx, (*lab).pair, func(hosts [2]string) {
		for round := range r.tokenNetSteps() {
			r.step("lists over UDP, round %d of %d: %s", round+1, r.tokenNetSteps(), c.text)
			args := append([]string{"-n", hosts[0] + "," + hosts[1]}, r.listArgs()...)
			found := newFigures()
			addLines(found, c.text, r.figuresOf(ctx, c, r.perFigure, append(args, "token")))
			for name, values := range found.values[c.text] {
				for _, v := range values {
					r.found.add(c.text, tokenUDP+name, v)
				}
			}
		}
	})
}

const tokenIntroduction = `Memory tokens and lists of %s (docs/token.md), two processes that poll on a core each, of
one host and of two network namespaces. %s. Lists have %s pieces, scattered on both sides. Medians (quartiles) of %d
rounds, of up to %d between namespaces; ratios are the median of the rounds', of operations that take turns.%s

`

// tokenSection writes a table of the first provider that has figures of tokens.
func tokenSection(res *result, found *figures) string {
	at := slices.IndexFunc(res.Providers, func(p string) bool { return found.has(p, "token_") })
	provider := res.Providers[max(at, 0)]
	var b strings.Builder
	fmt.Fprintf(&b, "## Memory tokens and lists, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, tokenIntroduction, provider, res.Machine, "20,000", res.Rounds, tokenNetRounds, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench token`, as root for what is between namespaces\n\n")
	b.WriteString("| what | measured | ratio | to reach | reached |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range slices.Concat(tokenRows, tokenNetRows) {
		if found.of(provider, r.name).count == 0 {
			continue
		}
		v, text := r.judge(found, []string{provider})
		own := found.of(provider, r.name)
		fmt.Fprintf(&b, "| %s | %v | %s | %s | %s |\n", r.title, own, text, r.goal(), r.reached(v))
	}
	tokenGPUTable(&b, found, provider, "/dev", res.date())
	b.WriteString("Where elements of GPU and host memory take turns, `tests/c/token_gpu.c` (`cells`) fails unless\n" +
		"each is copied without a bounce buffer; the driver stands in for CUDA's there.\n\n")
	return b.String()
}
