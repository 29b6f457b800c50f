// Package wire has the messages of weft's own protocol: active message ids, the heads that go in front of payloads,
// and the bounds that both ends hold to. One file is one message; the layouts that the data plane writes too
// are those of package hot.
//
// Each head has Put, which encodes it at the start of a buffer that is long enough and returns the bytes used, and
// Parse, which decodes what a peer sent and reports whether it is valid. Parse checks all that can be checked without
// the endpoint's state: lengths, flags, sums, and addresses that wrap. Numbers are little endian.
package wire
