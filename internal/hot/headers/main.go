// Headers writes the C side of the layouts that package hot describes: the headers of include/weft, the words of
// counters that C adds to (package internal/stats), and what both compilers are asked to confirm.
//
//	headers ROOT
package main

import (
	"fmt"
	"path/filepath"

	"github.com/weft-fabric/weft/internal/generated"
)

// header is one generated header.
type header struct {
	name     string
	includes []string
	text     string   // what its top says, if no file of Go does
	dir      string   // of the Go package
	files    []string // whose declarations it has, in this order
}

var headers = []header{
	{name: "ring_layout.h", includes: []string{"<stdatomic.h>", "<stdbool.h>", "<stddef.h>", "<stdint.h>"},
		dir: "internal/hot", files: []string{"ring.go"}},
	{name: "segment.h", includes: []string{`"ring.h"`}, dir: "internal/hot", files: []string{"segment.go"}},
	{name: "message.h", includes: []string{"<stdint.h>"}, dir: "internal/hot", files: []string{"message.go"}},
	{name: "hot.h", includes: []string{`"key.h"`, `"stats.h"`}, dir: "internal/hot",
		text: "The tables of plain words that let messages be posted, polled for and completed without the Go " +
			"runtime. Go allocates them off its heap and fills them. All of it is private to the process.",
		files: []string{
			"cq.go", "recv.go", "tx.go", "transport.go", "gate.go", "matching.go", "onesided.go", "note.go", "ep.go",
		}},
	{name: "delivery.h", includes: []string{`"hot.h"`}, dir: "internal/hot", files: []string{"delivery.go"}},
	{name: "post.h", includes: []string{`"delivery.h"`}, dir: "internal/hot", files: []string{"post.go"}},
	{name: "poll.h", includes: []string{`"delivery.h"`}, dir: "internal/hot", files: []string{"poll.go"}},
	{name: "stat_words.h", dir: "internal/stats",
		text:  "The words of the counters that C adds to (stats.h), and how many lines of words an endpoint has.",
		files: []string{"layout.go", "table.go"}},
}

// generate returns every output for the repository at root.
func generate(root string) ([]generated.File, error) {
	var all []generated.File
	var structs []structure
	packages := map[string]*source{}
	for _, h := range headers {
		s := packages[h.dir]
		if s == nil {
			var err error
			if s, err = load(filepath.Join(root, h.dir), h.dir); err != nil {
				return nil, fmt.Errorf("package %s: %w", h.dir, err)
			}
			packages[h.dir] = s
		}
		w := writer{source: s}
		if err := w.header(h); err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		all = append(all, generated.File{Path: "include/weft/" + h.name, Text: w.Bytes()})
		structs = append(structs, w.structs...)
	}
	return append(all,
		generated.File{Path: "cabi/layout_gen.c", Text: checkC(structs)},
		generated.File{Path: "internal/hot/layout_gen_test.go", Text: checkGo(structs)}), nil
}

func main() { generated.Main("headers", generate) }
