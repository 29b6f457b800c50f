package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// posting are the kinds of tables that transfers are posted through.
var posting = []string{"msg", "tagged", "rma", "atomic"}

// family is a set of functions that post, for a set of tables: of FI_EP_RDM, or different in some members.
type family struct {
	name  string
	kinds []string
	// differs reports whether a member is another one than FI_EP_RDM's.
	differs func(o *op) bool
	// dest is the destination if it is not the caller's.
	dest string
	// send is the data plane's function for messages.
	send string
	// device says that buffers may be memory of devices.
	device bool
}

var (
	base     = family{name: "weft", kinds: posting, send: "SEND"}
	families = []family{
		// The one peer, address 0 of the endpoint's own address vector, is in place of the address that the caller
		// gives:
		// fi_msg(3) says that it is ignored. Receives take any source as they are.
		{name: "connected", kinds: posting, send: "SEND", dest: "0",
			differs: func(o *op) bool { return !receives(o) && !valid(o) }},
		// What finds no room is the runtime's, which decides whether to drop it.
		{name: "dgram", kinds: []string{"msg"}, send: "DATAGRAM", differs: func(o *op) bool { return !receives(o) }},
		// Calls without descriptors have buffers of the process's own.
		{name: "hmem", kinds: posting, send: "SEND", device: true,
			differs: func(o *op) bool { return !injects(o) && !valid(o) }},
	}
)

// postsSource defines the functions that post and their tables.
func postsSource(kinds []*kind) []byte {
	var b bytes.Buffer
	file(&b, "Posting: what applications call, on endpoints and contexts of all types (connected.h) and for memory of "+
		"devices, and\n"+
		" * their tables, but for those of FI_EP_RDM. The others are made of these when the library is loaded.",
		"goapi.h", "connected.h", "posting.h", "token.h")
	b.WriteString("\n#define EP(f) WEFT_OBJ(f, struct weft_ep_obj)\n")
	for _, name := range base.kinds {
		k := kindOf(kinds, name)
		for i := range k.ops {
			o := &k.ops[i]
			fmt.Fprintf(&b, "\n%s\n{\n%s}\n", o.declare("weft_"+name+"_"+o.name, true), base.body(k, o))
		}
	}
	collectives(&b, kindOf(kinds, "collective"))
	tokenPosts(&b)
	var set bytes.Buffer
	for _, f := range families {
		for _, name := range f.kinds {
			k := kindOf(kinds, name)
			t := "weft_" + f.name + "_" + name
			fmt.Fprintf(&set, "\n\t%s = weft_ops_%s;\n", t, name)
			for i := range k.ops {
				o := &k.ops[i]
				if !f.differs(o) {
					continue
				}
				function := f.name + "_" + name + "_" + o.name
				fmt.Fprintf(&b, "\nstatic %s\n{\n%s}\n", o.declare(function, true), f.body(k, o))
				fmt.Fprintf(&set, "\t%s.%s = %s;\n", t, o.name, function)
			}
			fmt.Fprintf(&b, "\nstatic %s %s;\n", k.ctype(), t)
		}
	}
	for _, from := range []string{"weft_ops", "weft_hmem"} {
		for _, name := range []string{"msg", "tagged"} {
			oneWay(&b, &set, kindOf(kinds, name), from)
		}
	}
	placedPosts(&b)
	fmt.Fprintf(&b, "\n__attribute__((constructor)) static void make(void)\n{\n%s}\n",
		strings.TrimPrefix(set.String(), "\n"))
	return b.Bytes()
}

// forBarriers are the defaults of a context that mean something for a barrier, the only collective operation that takes
// no flags.
const forBarriers = "EP(ep)->tx_op_flags & (FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)"

// collectives defines the functions that post collective operations, but for the one that takes a structure.
func collectives(b *bytes.Buffer, k *kind) {
	for i := range k.ops {
		o := &k.ops[i]
		if message(o) {
			continue
		}
		name, datatype := strings.ToUpper(strings.TrimSuffix(o.name, "2")), of(o, "datatype", "FI_VOID")
		fmt.Fprintf(b, "\n%s\n{\n\treturn weftGoCollective(EP(ep)->handle, FI_%s, %s, %s, %s, %s, %s, coll_addr, %s, "+
			"%s, %s, %s, context);\n}\n",
			o.declare("weft_"+k.name+"_"+o.name, true), name, cast(o, "buf", "NULL"), of(o, "desc", "NULL"),
			of(o, "count", "0"),
			of(o, "result", "NULL"), of(o, "result_desc", "NULL"), of(o, "root_addr", "FI_ADDR_NOTAVAIL"), datatype,
			of(o, "op", "FI_NOOP"), of(o, "flags", forBarriers))
	}
}

// tokenPosts defines the posts of weft/token.h: of lists, and of notifications alone.
func tokenPosts(b *bytes.Buffer) {
	const note = "const void *note, size_t notelen, uint64_t flags, void *context)"
	const list = "ssize_t weft_token_post(struct weft_list *list, uint32_t op, const void *picks, size_t count, " + note
	const notify = "ssize_t weft_token_notify(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, " + note
	both := []string{"note = note", "note_len = notelen", "flags = flags", "context = (uintptr_t)context"}
	write := func(prototype, object, refused, ep, function string, values ...string) {
		fmt.Fprintf(b, "\n%s\n{\n%s\tstruct weft_post p; /* what is not set here is not read */\n\n\tif (%s)\n"+
			"\t\treturn -FI_EINVAL;\n", prototype, object, refused)
		for _, v := range slices.Concat(values, both) {
			fmt.Fprintf(b, "\tp.%s;\n", v)
		}
		fmt.Fprintf(b, "\treturn weft_post(EP(%s), WEFT_PLANE_%s, &p);\n}\n", ep, function)
	}
	write(list, "\tstruct weft_token_obj *o = weft_token_list_of(list);\n", "!o", "o->ep", "LIST", "kind = 0",
		"list = o->handle", "shape = o->shape", "op = op", "picks = picks", "count = count")
	write(notify, "", "!weft_token_endpoint(ep)", "ep", "NOTE", "kind = WEFT_POST_ALONE", "dest = dest",
		"note_tag = tag")
}

// cast is of for what Go is passed without const.
func cast(o *op, name, without string) string {
	if p := o.has(name); p != nil && strings.HasPrefix(p.typ, "const ") {
		return "(void *)" + name
	}
	return of(o, name, without)
}

// placedPosts writes where the tables are: those of FI_EP_RDM, those for memory of devices, those of other types.
func placedPosts(b *bytes.Buffer) {
	b.WriteString("\n#define POSTS(class, type, caps, member, table) { FI_CLASS_##class, type, caps, offsetof(struct " +
		"fid_ep, member), &table }\n" +
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
func oneWay(b, set *bytes.Buffer, k *kind, from string) {
	prefix := strings.TrimSuffix(from, "_ops")
	send, recv := prefix+"_send_"+k.name, prefix+"_recv_"+k.name
	fmt.Fprintf(b, "\nstatic %s %s, %s;\n", k.ctype(), send, recv)
	fmt.Fprintf(set, "\n\t%s = %s_%s;\n\t%s = weft_nosys_%s;\n", send, from, k.name, recv, k.name)
	for i := range k.ops {
		if o := &k.ops[i]; receives(o) {
			fmt.Fprintf(set, "\t%s.%s = weft_nosys_%s.%s;\n\t%s.%s = %s_%s.%s;\n", send, o.name, k.name, o.name, recv,
				o.name, from, k.name, o.name)
		}
	}
}

func receives(o *op) bool { return strings.HasPrefix(o.name, "recv") }

func injects(o *op) bool { return strings.HasPrefix(o.name, "inject") }

// valid reports whether a call only says whether there is an operation.
func valid(o *op) bool { return strings.HasSuffix(o.name, "valid") }

// message reports whether a call takes a structure.
func message(o *op) bool { return o.has("msg") != nil }

// of is how a call names something: a member of its structure, or an argument; else what stands for it.
func of(o *op, name, without string) string {
	switch {
	case message(o):
		return "msg->" + name
	case o.has(name) != nil:
		return name
	}
	return without
}

// address is the name of the peer's address.
func address(o *op) string {
	for _, p := range o.params {
		if p.typ == "fi_addr_t" {
			return p.name
		}
	}
	return "msg->addr"
}

// body is what a function does: it puts its arguments into a struct weft_post and posts that.
func (f *family) body(k *kind, o *op) string {
	if valid(o) {
		kinds := map[string]string{"write": "PLAIN", "readwrite": "FETCH", "compwrite": "COMPARE"}
		kind := kinds[strings.TrimSuffix(o.name, "valid")]
		return fmt.Sprintf("\treturn weftGoAtomicCount(EP(ep)->handle, WEFT_ATOMIC_%s, datatype, op, count);\n",
			kind)
	}
	var b bytes.Buffer
	b.WriteString("\tstruct weft_post p; /* what is not set here is not read */\n\n")
	for _, p := range o.params {
		if strings.HasSuffix(p.name, "desc") && !f.device || f.dest != "" && p.name == address(o) {
			fmt.Fprintf(&b, "\t(void)%s;\n", p.name)
		}
	}
	if message(o) {
		b.WriteString("\tif (!msg)\n\t\treturn -FI_EINVAL;\n")
	}
	set := func(member, value string) { fmt.Fprintf(&b, "\tp.%s = %s;\n", member, value) }
	buffer, n, _ := vector(o)
	set("buf", buffer)
	set("len", n)
	set("dest", cmp.Or(f.dest, address(o)))
	set("flags", opFlags(k, o))
	set("context", "(uintptr_t)"+of(o, "context", "NULL"))
	call := "weft_post(EP(ep), WEFT_PLANE_" + map[string]string{"rma": "RMA", "atomic": "ATOMIC"}[k.name]
	switch k.name {
	case "rma":
		f.oneSided(set, o)
		set("data", of(o, "data", "0"))
	case "atomic":
		f.oneSided(set, o)
		atomic(set, o)
	default:
		call += f.send
		set("header", tagOf(k, o, "tag"))
		if receives(o) {
			call = "weft_post_recv(EP(ep)"
			set("data", tagOf(k, o, "ignore"))
		} else {
			set("data", of(o, "data", "0"))
		}
	}
	set("kind", strings.Join(f.kind(k, o), " | "))
	if f.device {
		descs(set, o)
	}
	fmt.Fprintf(&b, "\treturn %s, &p);\n", call)
	return b.String()
}

// vector is how a call names its buffers: where they are, how many bytes or elements, and their descriptors.
func vector(o *op) (buffer, n, desc string) {
	switch {
	case message(o):
		return "msg->msg_iov", "msg->iov_count", "msg->desc"
	case o.has("iov") != nil:
		return "iov", "count", "desc"
	case o.has("len") != nil:
		return "buf", "len", "&desc"
	}
	return "buf", "count", "&desc"
}

// tagOf is the tag, or the bits to ignore, of a call.
func tagOf(k *kind, o *op, name string) string {
	if k.name != "tagged" {
		return "0"
	}
	return of(o, name, "")
}

// opFlags are the flags of a call: the context's defaults that mean something for it where it takes none. The fi_inject
// forms complete nowhere, but a counter counts them, and when is the context's to say.
func opFlags(k *kind, o *op) string {
	switch {
	case message(o):
		return "flags"
	case injects(o):
		return "EP(ep)->tx_op_flags & FI_DELIVERY_COMPLETE"
	case receives(o):
		return "EP(ep)->rx_op_flags"
	case k.name == "msg" || k.name == "tagged":
		return "EP(ep)->tx_op_flags"
	case strings.HasPrefix(o.name, "read") || o.has("result_desc") != nil:
		return "EP(ep)->tx_op_flags & ~(FI_MATCH_COMPLETE | FI_INJECT)"
	}
	return "EP(ep)->tx_op_flags & ~FI_MATCH_COMPLETE"
}

// kind are the bits of a call's kind (post.h).
func (f *family) kind(k *kind, o *op) []string {
	var bits []string
	add := func(bit string, has bool) {
		if has {
			bits = append(bits, bit)
		}
	}
	add("WEFT_POST_TAGGED", k.name == "tagged")
	add("WEFT_POST_READ", k.name == "rma" && strings.HasPrefix(o.name, "read"))
	add("WEFT_POST_DATA", o.has("data") != nil)
	add("(flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0)", message(o) && !receives(o) && k.name != "atomic" &&
		o.name != "readmsg")
	add("WEFT_POST_INJECT", injects(o))
	add("WEFT_POST_VECTOR", message(o) || o.has("iov") != nil)
	add("WEFT_POST_REMOTE", message(o) && (k.name == "rma" || k.name == "atomic"))
	if f.device {
		_, n, desc := vector(o)
		if desc == "&desc" {
			n = "1"
		}
		device := fmt.Sprintf("weft_on_device(%s, %s)", desc, n)
		if receives(o) && message(o) {
			device = "(flags & WEFT_RECV_NO_BUFFER ? 0 : " + device + ")"
		}
		add(device, true)
		for _, what := range []string{"result", "compare"} {
			add(fmt.Sprintf("weft_on_device(%s_desc, %s_count)", what, what), o.has(what+"_count") != nil)
			add(fmt.Sprintf("weft_on_device(&%s_desc, 1)", what), o.has(what+"_desc") != nil &&
				o.has(what+"_count") == nil)
		}
	}
	if len(bits) == 0 {
		return []string{"0"}
	}
	return bits
}

// oneSided sets the remote side.
func (f *family) oneSided(set func(member, value string), o *op) {
	if message(o) {
		set("remote", "msg->rma_iov")
		set("remotes", "msg->rma_iov_count")
		return
	}
	set("header", "addr")
	set("key", "key")
}

// atomic sets what only atomic operations have.
func atomic(set func(member, value string), o *op) {
	kind := "PLAIN"
	for _, what := range []string{"result", "compare"} {
		if o.has(what+"_desc") == nil {
			continue
		}
		kind = map[string]string{"result": "FETCH", "compare": "COMPARE"}[what]
		if o.has(what+"_count") == nil {
			set(what, what)
			continue
		}
		set(what, what+"v")
		set(what+"s", what+"_count")
	}
	set("atomic", "WEFT_ATOMIC_"+kind)
	set("op", of(o, "op", ""))
	set("datatype", of(o, "datatype", ""))
}

// descs sets the descriptors.
func descs(set func(member, value string), o *op) {
	_, _, desc := vector(o)
	set("desc", desc)
	for _, what := range []string{"result", "compare"} {
		switch {
		case o.has(what+"_count") != nil:
			set(what+"_desc", what+"_desc")
		case o.has(what+"_desc") != nil:
			set(what+"_desc", "&"+what+"_desc")
		}
	}
}
