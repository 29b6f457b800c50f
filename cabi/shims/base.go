package main

import (
	"bytes"
	"fmt"
	"strings"
)

// baseSource writes the posting functions of FI_EP_RDM that take a choice: what is included by the file that has the
// functions which they call.
func baseSource(kinds []*kind, about string, body func(b *bytes.Buffer, k *kind, o *op) bool, of ...string) []byte {
	var b bytes.Buffer
	file(&b, about)
	for _, name := range of {
		k := kindOf(kinds, name)
		for i := range k.ops {
			o := &k.ops[i]
			var text bytes.Buffer
			if body(&text, k, o) {
				fmt.Fprintf(&b, "\n%s\n{\n%s}\n", o.declare("weft_"+name+"_"+o.name, true), text.String())
			}
		}
	}
	return b.Bytes()
}

// collectives are the bodies of collective.c that are alike.
func collectives(b *bytes.Buffer, _ *kind, o *op) bool {
	if o.has("buf") == nil {
		return false
	}
	fmt.Fprintf(b, "\treturn post(ep, FI_%s, buf, desc, count, %s, %s, coll_addr, %s, datatype, %s, flags, context);\n", strings.ToUpper(o.name),
		of(o, "result", "NULL"), of(o, "result_desc", "NULL"), of(o, "root_addr", "FI_ADDR_NOTAVAIL"), of(o, "op", "FI_NOOP"))
	return true
}
