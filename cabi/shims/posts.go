package main

import (
	"bytes"
	"fmt"
	"strings"
)

// posting are the kinds of tables that transfers are posted through.
var posting = []string{"msg", "tagged", "rma", "atomic"}

// family is a set of tables that differ from those of FI_EP_RDM in some members.
type family struct {
	name  string
	kinds []string
	// body writes the statements of a member; false: the member is as it is.
	body func(b *bytes.Buffer, k *kind, o *op) bool
}

var families = []family{
	{"connected", posting, connected},
	{"dgram", []string{"msg"}, dgram},
	{"hmem", posting, hmem},
}

// postsSource defines the tables of posting functions beside those of FI_EP_RDM.
func postsSource(kinds []*kind) []byte {
	var b bytes.Buffer
	file(&b, "Posting through endpoints of other types (connected.h) and for memory of devices (hmem.h), and the tables of\n"+
		" * contexts, which have one direction. All are made of the tables of FI_EP_RDM when the library is loaded.",
		"connected.h", "hmem.h", "hotpath.h", "rma.h")
	b.WriteString("\n#define EP(f) WEFT_OBJ(f, struct weft_ep_obj)\n")
	var make bytes.Buffer
	for _, f := range families {
		for _, name := range f.kinds {
			k := kindOf(kinds, name)
			t := "weft_" + f.name + "_" + name
			fmt.Fprintf(&make, "\n\t%s = weft_ops_%s;\n", t, name)
			for i := range k.ops {
				o := &k.ops[i]
				var body bytes.Buffer
				if !f.body(&body, k, o) {
					continue
				}
				function := f.name + "_" + name + "_" + o.name
				fmt.Fprintf(&b, "\nstatic %s\n{\n%s}\n", o.declare(function, true), body.String())
				fmt.Fprintf(&make, "\t%s.%s = %s;\n", t, o.name, function)
			}
			fmt.Fprintf(&b, "\nstatic %s %s;\n", k.ctype(), t)
		}
	}
	for _, from := range []string{"weft_ops", "weft_hmem"} {
		for _, name := range []string{"msg", "tagged"} {
			oneWay(&b, &make, kindOf(kinds, name), from)
		}
	}
	placedPosts(&b)
	fmt.Fprintf(&b, "\n__attribute__((constructor)) static void make(void)\n{\n%s}\n", strings.TrimPrefix(make.String(), "\n"))
	return b.Bytes()
}

// placedPosts writes where the tables are: those of FI_EP_RDM, those for memory of devices, those of other types.
func placedPosts(b *bytes.Buffer) {
	b.WriteString("\n#define POSTS(class, type, caps, member, table) { FI_CLASS_##class, type, caps, offsetof(struct fid_ep, member), &table }\n" +
		"\nconst struct weft_posts weft_posts[] = {\n")
	row := func(class, typ, caps, member, table string) {
		fmt.Fprintf(b, "\tPOSTS(%s, %s, %s, %s, weft_%s),\n", class, typ, caps, member, table)
	}
	for _, from := range []struct{ prefix, one, caps string }{{"ops_", "", ""}, {"hmem_", "hmem_", " | FI_HMEM"}} {
		for _, name := range posting {
			caps := "FI_" + strings.ToUpper(name) + from.caps
			send, recv := from.prefix+name, ""
			if name == "msg" || name == "tagged" {
				send, recv = from.one+"send_"+name, from.one+"recv_"+name
			}
			row("EP", "FI_EP_UNSPEC", caps, name, from.prefix+name)
			row("TX_CTX", "FI_EP_UNSPEC", caps, name, send)
			if recv != "" {
				row("RX_CTX", "FI_EP_UNSPEC", caps, name, recv)
				row("SRX_CTX", "FI_EP_UNSPEC", caps, name, recv)
			}
		}
	}
	row("EP", "FI_EP_UNSPEC", "FI_COLLECTIVE", "collective", "ops_collective")
	row("EP", "FI_EP_DGRAM", "FI_MSG", "msg", "dgram_msg")
	row("EP", "FI_EP_MSG", "0", "cm", "connected_cm")
	for _, name := range posting {
		row("EP", "FI_EP_MSG", "FI_"+strings.ToUpper(name), name, "connected_"+name)
	}
	b.WriteString("};\n\nconst size_t weft_posts_count = count_of(weft_posts);\n")
}

// oneWay makes tables of the sends and of the receives of one.
func oneWay(b, make *bytes.Buffer, k *kind, from string) {
	prefix := strings.TrimSuffix(from, "_ops")
	send, recv := prefix+"_send_"+k.name, prefix+"_recv_"+k.name
	fmt.Fprintf(b, "\nstatic %s %s, %s;\n", k.ctype(), send, recv)
	fmt.Fprintf(make, "\n\t%s = %s_%s;\n\t%s = weft_nosys_%s;\n", send, from, k.name, recv, k.name)
	for i := range k.ops {
		if o := &k.ops[i]; receives(o) {
			fmt.Fprintf(make, "\t%s.%s = weft_nosys_%s.%s;\n\t%s.%s = %s_%s.%s;\n", send, o.name, k.name, o.name, recv, o.name, from, k.name, o.name)
		}
	}
}

func receives(o *op) bool { return strings.HasPrefix(o.name, "recv") }

// message returns the structure that the message form of a call takes, "" for other forms.
func message(o *op) string {
	if p := o.has("msg"); p != nil {
		return strings.TrimSuffix(strings.TrimPrefix(p.typ, "const "), " *")
	}
	return ""
}

// address is the name of the peer's address among the parameters.
func address(o *op) string {
	for _, p := range o.params {
		if p.typ == "fi_addr_t" {
			return p.name
		}
	}
	return ""
}

// or is name if a call has such a parameter, else what stands for it.
func or(o *op, name, without string) string {
	if o.has(name) != nil {
		return name
	}
	return without
}

// same is the call of the same member of FI_EP_RDM's table.
func same(k *kind, o *op, with map[string]string) string {
	return fmt.Sprintf("weft_ops_%s.%s(%s)", k.name, o.name, o.args(with))
}

// connected puts the one peer, address 0 of the endpoint's own address vector, in place of the address that the caller
// gives: fi_msg(3) says that it is ignored. Receives take any source as they are.
func connected(b *bytes.Buffer, k *kind, o *op) bool {
	to := address(o)
	switch {
	case receives(o):
		return false
	case message(o) != "":
		fmt.Fprintf(b, "\t%s to_peer;\n\n\tif (!msg)\n\t\treturn -FI_EINVAL;\n\tto_peer = *msg;\n\tto_peer.addr = 0;\n\treturn %s;\n",
			message(o), same(k, o, map[string]string{"msg": "&to_peer"}))
		return true
	case to == "":
		return false
	}
	fmt.Fprintf(b, "\t(void)%s;\n\treturn %s;\n", to, same(k, o, map[string]string{to: "0"}))
	return true
}

// dgram gives to Go what finds no room, which decides whether to drop it.
func dgram(b *bytes.Buffer, k *kind, o *op) bool {
	switch {
	case receives(o):
		return false
	case message(o) != "":
		fmt.Fprintf(b, "\tssize_t rc = %s;\n\n\tif (rc != -FI_EAGAIN || msg->iov_count != 1)\n\t\treturn rc;\n"+
			"\treturn weft_dgram_again(ep, msg->msg_iov, msg->addr, msg->data, flags, msg->context, %s);\n", same(k, o, nil), sendKind(k, o))
		return true
	case o.has("buf") == nil: // of one element, or Go's already
		fmt.Fprintf(b, "\tif (count == 1 && iov)\n\t\treturn dgram_msg_send(ep, iov->iov_base, iov->iov_len, NULL, dest_addr, context);\n"+
			"\treturn %s;\n", same(k, o, nil))
		return true
	}
	flags, kind := "EP(ep)->tx_op_flags", sendKind(k, o)
	elements, _, _ := vector(o)
	if strings.HasPrefix(o.name, "inject") {
		flags = "0"
	}
	fmt.Fprintf(b, "\tssize_t rc = %s;\n\n\treturn rc == -FI_EAGAIN ? weft_dgram_again(ep, %s, dest_addr, %s, %s, %s, %s) : rc;\n",
		same(k, o, nil), elements, or(o, "data", "0"), flags, or(o, "context", "NULL"), kind)
	return true
}

// sendKind is the kind of a send (hotpath.h).
func sendKind(k *kind, o *op) string {
	var bits []string
	if k.name == "tagged" {
		bits = append(bits, "WEFT_POST_TAGGED")
	}
	if o.has("data") != nil {
		bits = append(bits, "WEFT_POST_DATA")
	}
	if message(o) != "" {
		bits = append(bits, "(flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0)")
	}
	if strings.HasPrefix(o.name, "inject") {
		bits = append(bits, "WEFT_POST_INJECT")
	}
	if len(bits) == 0 {
		return "0"
	}
	return strings.Join(bits, " | ")
}

// vector is how a call names its buffers to the functions of hmem.h: elements, descriptors, their number.
func vector(o *op) (elements, descs, count string) {
	switch {
	case message(o) != "":
		return "msg->msg_iov", "msg->desc", "msg->iov_count"
	case o.has("iov") != nil:
		return "iov", "desc", "count"
	case o.has("len") != nil:
		return "&(struct iovec){ (void *)buf, len }", "&desc", "1"
	}
	return "&(struct fi_ioc){ (void *)buf, count }", "&desc", "1"
}

// hmem is the call of any endpoint if no descriptor says that a buffer is memory of a device.
func hmem(b *bytes.Buffer, k *kind, o *op) bool {
	if strings.HasPrefix(o.name, "inject") || strings.HasSuffix(o.name, "valid") {
		return false // no descriptors: the buffers are the process's own
	}
	elements, descs, count := vector(o)
	if k.name == "atomic" {
		hmemAtomic(b, k, o, descs, count)
		return true
	}
	plain := fmt.Sprintf("!weft_hmem_special(%s, %s)", descs, count)
	if message(o) != "" {
		plain = "!msg || " + plain
		if receives(o) {
			plain += " || flags & WEFT_RECV_PRIVATE"
		}
	}
	if k.name != "rma" {
		b.WriteString("\tstruct iovec room[WEFT_HMEM_LIMIT];\n\tint rc;\n\n")
	}
	fmt.Fprintf(b, "\tif (%s)\n\t\treturn %s;\n", plain, same(k, o, nil))
	if k.name != "rma" {
		fmt.Fprintf(b, "\trc = weft_hmem_translate(ep, room, %s, %s, %s);\n\treturn rc ? rc : ", elements, descs, count)
	}
	tag, to, data, context := tagOf(k, o, "tag"), address(o), ofMessage(o, "data", "0"), ofMessage(o, "context", "")
	if message(o) != "" {
		to = "msg->addr"
	}
	switch {
	case k.name == "rma":
		kind := sendKind(k, o)
		if strings.HasPrefix(o.name, "read") {
			kind = "WEFT_POST_READ"
		}
		if message(o) != "" {
			fmt.Fprintf(b, "\treturn weftGoRMA(EP(ep)->handle, (%s *)msg, flags, WEFT_POST_DEVICE | %s);\n", message(o), kind)
			break
		}
		fmt.Fprintf(b, "\treturn weft_rma_vec(ep, %s,\n\t\tweft_rma_flags(EP(ep), %t), WEFT_POST_DEVICE | %s);\n",
			rmaMessage(o, elements, count, ", .desc = ", descs), kind == "WEFT_POST_READ", kind)
	case receives(o):
		flags := "EP(ep)->rx_op_flags"
		if message(o) != "" {
			flags = "flags"
		}
		if k.name == "tagged" {
			flags += " | WEFT_RECV_TAGGED"
		}
		fmt.Fprintf(b, "weft_recv_slow(EP(ep), room, %s, %s, %s, %s, %s, %s);\n", count, to, tag, tagOf(k, o, "ignore"), flags, context)
	default:
		fmt.Fprintf(b, "weft_post_slow(EP(ep), room, %s, &%s, %s, %s, %s, %s, %s);\n", count, to, tag, data, transmitFlags(k, o), context,
			sendKind(k, o))
	}
	return true
}

// hmemAtomic writes the same for an atomic, which may have three vectors.
func hmemAtomic(b *bytes.Buffer, k *kind, o *op, descs, count string) {
	fetch, compare := atomicVectors(o)
	special := []string{fmt.Sprintf("!weft_hmem_special(%s, %s)", descs, count)}
	for _, what := range []string{"result", "compare"} {
		switch {
		case o.has(what+"_count") != nil:
			special = append(special, fmt.Sprintf("!weft_hmem_special(%s_desc, %s_count)", what, what))
		case o.has(what+"_desc") != nil:
			special = append(special, fmt.Sprintf("!weft_hmem_special(&%s_desc, 1)", what))
		}
	}
	plain := strings.Join(special, " &&\n\t    ")
	if message(o) != "" {
		fmt.Fprintf(b, "\tif (!msg || (%s))\n\t\treturn %s;\n\treturn weft_atomic_slow(ep, msg, %s, %s, flags, WEFT_POST_DEVICE);\n", plain, same(k, o, nil), fetch, compare)
		return
	}
	fmt.Fprintf(b, "\tif (%s)\n\t\treturn %s;\n\treturn weft_atomic_at(ep, %s, %s, %s, WEFT_POST_DEVICE);\n", plain, same(k, o, nil), atomicMessage(o), fetch, compare)
}
