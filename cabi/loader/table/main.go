// Table writes what libweft-fi.so, which has no Go in it, must know of the tables of weft's Go
// packages: which hints can be met at all, and the FI_WEFT_* variables.
//
//	table > cabi/loader/table_gen.h
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/version"
	"github.com/weft-fabric/weft/provider/info"
)

const head = `/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Written by "make man" from internal/config and provider/info: do not edit.
 */
#ifndef WEFT_LOADER_TABLE_GEN_H
#define WEFT_LOADER_TABLE_GEN_H

#include <stdint.h>

`

// write writes the header file.
func write(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(head)
	major, minor := version.Numbers()
	fmt.Fprintf(&b, "/* The build says it, but for checks of single files. */\n#ifndef WEFT_PROV_VERSION\n#define WEFT_PROV_VERSION FI_VERSION(%d, %d)\n#endif\n\n", major, minor)
	known, utility := info.Flags()
	fmt.Fprintf(&b, "/* Flags of fi_getinfo that are known, and that by which utility providers ask. */\n"+
		"#define WEFT_GETINFO_FLAGS %#xull\n#define WEFT_GETINFO_UTILITY %#xull\n\n", known, utility)
	fmt.Fprintf(&b, "/* Capabilities whose bits meant something else before API 2.0. */\n#define WEFT_CAPS_2_0 %#xull\n\n", info.Caps20())
	b.WriteString("/* The endpoint types that are offered, and the capabilities of each. */\n" +
		"static const struct {\n\tint type; /* enum fi_ep_type */\n\tuint64_t caps;\n} weft_ep_types[] = {\n")
	for _, t := range info.Types() {
		fmt.Fprintf(&b, "\t{ %d, %#xull },\n", t.Type, t.Caps)
	}
	b.WriteString("};\n\n/* The address formats that hints may ask for. */\nstatic const uint32_t weft_addr_formats[] = {\n")
	for _, f := range info.AddrFormats() {
		fmt.Fprintf(&b, "\t%d,\n", f)
	}
	b.WriteString("};\n\n/* The names of FI_WEFT_NAME beside weft's own. */\nstatic const struct {\n\tconst char *name;\n} weft_aliases[] = {\n")
	for _, name := range info.Aliases() {
		fmt.Fprintf(&b, "\t{ %s },\n", strconv.QuoteToASCII(name))
	}
	b.WriteString("};\n\n/* The variables: names as fi_param_define takes them, and help. All are registered as\n" +
		" * strings: libfabric turns a number that it cannot parse into 0 without a word, while\n" +
		" * weft must name what is wrong. So the type stands in the help. */\n" +
		"static const struct {\n\tconst char *name;\n\tconst char *help;\n} weft_params[] = {\n")
	for _, v := range config.Table() {
		fmt.Fprintf(&b, "\t{ %s,\n\t  %s },\n", strconv.QuoteToASCII(v.Name), strconv.QuoteToASCII(v.Text()))
	}
	b.WriteString("};\n\n#endif\n")
	_, err := w.Write(b.Bytes())
	if err != nil {
		return fmt.Errorf("table of the loader: %w", err)
	}
	return nil
}

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}
