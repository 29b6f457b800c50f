// Package token is the serialised form of a memory token: what a process that owns
// a memory region gives to others, which read and write the region with it.
//
// A token is at most [MaxLen] bytes, little-endian:
//
//	 0  magic "wtok"
//	 4  version:2, 1
//	 6  length:2 of the whole token
//	 8  parts:2, where the first part begins
//	10  rights:2
//	12  kind:1 of memory
//	13  agent:1, length of the agent's name
//	14  flags:1, bit 0: the seal has a key
//	15  seals:1 of keys, when there are several; else 0
//	16  family:2 | port:2 | scope:4 | address:16 of the owner
//	40  incarnation:8 of the owner
//	48  key:8 | base:8 | length:8 of the region
//	72  device:16
//	88  the agent's name, then parts: type:2 | length:2 | body
//	    seals:8 each of several keys, of what precedes the first of them
//	    seal:16
//
// There is at most one part of each type, but of PartRDMA one for each device.
//
// A reader of a token skips parts whose type it does not know, and so does not
// need to be of the version that wrote it. What precedes the parts may grow: the
// bytes between the agent's name and the first part mean nothing to this version.
//
// The seal is the beginning of a SHA-256 sum of all that precedes it, or, under an
// authorisation key, of the HMAC with that key. So a token that was changed on its
// way does not parse, and a process without the key makes none. It is no secret
// and no right: a holder of a token may do what the key of the region allows. A token under several
// keys, any of which opens it, has the beginning of an HMAC for each, and then a sum without a key.
//
// Functions of this package may be called from any goroutine.
package token
