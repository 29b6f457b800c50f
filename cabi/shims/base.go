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

// unused says that the descriptors are not looked at: weft registers by itself.
func unused(b *bytes.Buffer, o *op) {
	for _, p := range o.params {
		if strings.HasSuffix(p.name, "desc") {
			fmt.Fprintf(b, "\t(void)%s;\n", p.name)
		}
	}
}

// ofMessage is how a call names something that its message form has in the structure.
func ofMessage(o *op, name, without string) string {
	if message(o) != "" {
		return "msg->" + name
	}
	return or(o, name, without)
}

// tagOf is the tag, or the bits to ignore, of a call.
func tagOf(k *kind, o *op, name string) string {
	if k.name != "tagged" {
		return "0"
	}
	return ofMessage(o, name, "")
}

// transmitFlags are the flags of a call that transmits.
func transmitFlags(k *kind, o *op) string {
	switch {
	case message(o) != "":
		return "flags"
	case strings.HasPrefix(o.name, "inject"):
		return fmt.Sprintf("weft_inject_flags(EP(ep), %t)", k.name == "msg" || k.name == "tagged")
	}
	return "EP(ep)->tx_op_flags"
}

// sends are the bodies of post.c.
func sends(b *bytes.Buffer, k *kind, o *op) bool {
	if receives(o) {
		return false
	}
	unused(b, o)
	to := ofMessage(o, address(o), "")
	if message(o) != "" {
		b.WriteString("\tif (!msg)\n\t\treturn -FI_EINVAL;\n")
		to = "msg->addr"
	}
	elements, _, count := vector(o)
	what := fmt.Sprintf("send_vector(ep, %s, %s", elements, count)
	if o.has("buf") != nil {
		what = "send_one(ep, buf, len"
	}
	fmt.Fprintf(b, "\treturn %s, %s, %s, %s, %s, %s, %s);\n", what, to, tagOf(k, o, "tag"), ofMessage(o, "data", "0"), transmitFlags(k, o),
		ofMessage(o, "context", "NULL"), sendKind(k, o))
	return true
}

// recvs are the bodies of recv.c.
func recvs(b *bytes.Buffer, k *kind, o *op) bool {
	if !receives(o) {
		return false
	}
	unused(b, o)
	from, flags := address(o), "EP(ep)->rx_op_flags"
	if message(o) != "" {
		b.WriteString("\tif (!msg || (!msg->msg_iov && msg->iov_count))\n\t\treturn -FI_EINVAL;\n" +
			"\tif (flags & WEFT_RECV_PRIVATE)\n\t\treturn -FI_EBADFLAGS;\n")
		from, flags = "msg->addr", "flags"
	}
	if k.name == "tagged" {
		flags += " | WEFT_RECV_TAGGED"
	}
	elements, _, count := vector(o)
	what := fmt.Sprintf("recv_vector(EP(ep), %s, %s", elements, count)
	if o.has("buf") != nil {
		what = "post_recv(EP(ep), buf, len"
	}
	fmt.Fprintf(b, "\treturn %s, %s, %s, %s, %s, %s);\n", what, from, tagOf(k, o, "tag"), tagOf(k, o, "ignore"), flags, ofMessage(o, "context", ""))
	return true
}

// oneSided are the bodies of rma.c.
func oneSided(b *bytes.Buffer, k *kind, o *op) bool {
	unused(b, o)
	kind, flags := sendKind(k, o), transmitFlags(k, o)
	if strings.HasPrefix(o.name, "read") {
		kind = "WEFT_POST_READ"
	}
	if message(o) != "" {
		fmt.Fprintf(b, "\treturn post_message(ep, msg, flags, %s);\n", kind)
		return true
	}
	if flags == "EP(ep)->tx_op_flags" {
		flags = fmt.Sprintf("weft_rma_flags(EP(ep), %t)", kind == "WEFT_POST_READ")
	}
	if o.has("iov") != nil {
		fmt.Fprintf(b, "\treturn weft_rma_vec(ep, %s,\n\t\t%s, %s);\n", rmaMessage(o, "iov", "count"), flags, kind)
		return true
	}
	elements, _, _ := vector(o)
	fmt.Fprintf(b, "\treturn post_one(ep, %s, %s, addr, key, %s, %s, %s, %s);\n", elements, address(o), or(o, "data", "0"),
		or(o, "context", "NULL"), flags, kind)
	return true
}

// rmaMessage is the structure that a call of another form is, but for the length of the remote side. more follows.
func rmaMessage(o *op, elements, count string, more ...string) string {
	return fmt.Sprintf("&(struct fi_msg_rma){ .msg_iov = %s, .iov_count = %s, .addr = %s,\n"+
		"\t\t.rma_iov = &(struct fi_rma_iov){ .addr = addr, .key = key }, .context = %s, .data = %s%s }",
		elements, count, address(o), or(o, "context", "NULL"), or(o, "data", "0"), strings.Join(more, ""))
}

// atomicVectors are the results and comparands of an atomic, as structures or NULL.
func atomicVectors(o *op) (fetch, compare string) {
	vec := func(what, typ string) string {
		switch {
		case o.has(what+"_desc") == nil:
			return "NULL"
		case o.has(what+"_count") != nil:
			return fmt.Sprintf("&(struct %s){ %sv, %s_desc, %s_count }", typ, what, what, what)
		}
		return fmt.Sprintf("&(struct %s){ &(struct fi_ioc){ (void *)%s, count }, &%s_desc, 1 }", typ, what, what)
	}
	return vec("result", "fi_msg_fetch"), vec("compare", "fi_msg_compare")
}

// atomicMessage is the structure that a call of another form is.
func atomicMessage(o *op) string {
	elements, descs, count := vector(o)
	desc := ".desc = " + descs + ", "
	if o.has("desc") == nil {
		desc = ""
	}
	return fmt.Sprintf("&(struct fi_msg_atomic){ .msg_iov = %s, %s.iov_count = %s, .addr = dest_addr,\n"+
		"\t\t.rma_iov = &(struct fi_rma_ioc){ .addr = addr, .key = key }, .datatype = datatype, .op = op, .context = %s }",
		elements, desc, count, or(o, "context", "NULL"))
}

// atomics are the bodies of atomic.c.
func atomics(b *bytes.Buffer, _ *kind, o *op) bool {
	fetch, compare := atomicVectors(o)
	switch {
	case strings.HasSuffix(o.name, "valid"):
		kind := map[string]string{"write": "PLAIN", "readwrite": "FETCH", "compwrite": "COMPARE"}[strings.TrimSuffix(o.name, "valid")]
		fmt.Fprintf(b, "\t(void)ep;\n\treturn weftGoAtomicCount(WEFT_ATOMIC_%s, datatype, op, count);\n", kind)
	case message(o) != "":
		fmt.Fprintf(b, "\treturn weft_atomic_slow(ep, msg, %s, %s, flags, 0);\n", fetch, compare)
	default:
		fmt.Fprintf(b, "\treturn post_at(ep, %s, %s, %s, %s);\n", atomicMessage(o), fetch, compare, sendKind(&kind{}, o))
	}
	return true
}

// collectives are the bodies of collective.c that are alike.
func collectives(b *bytes.Buffer, _ *kind, o *op) bool {
	if o.has("buf") == nil {
		return false
	}
	fmt.Fprintf(b, "\treturn post(ep, FI_%s, buf, desc, count, %s, %s, coll_addr, %s, datatype, %s, flags, context);\n", strings.ToUpper(o.name),
		or(o, "result", "NULL"), or(o, "result_desc", "NULL"), or(o, "root_addr", "FI_ADDR_NOTAVAIL"), or(o, "op", "FI_NOOP"))
	return true
}
