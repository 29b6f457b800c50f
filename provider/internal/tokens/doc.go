// Package tokens makes tokens of memory regions of this process, and opens those of peers.
//
//	token    a token in its serialised form, and its text
//	make     tokens of own regions
//	host     what is needed of the endpoint that opens tokens
//	opened   the regions that an endpoint has opened, and keys of devices that reach them
//	remote   one of them
//	ways     which ways elements of lists do not take to it, and why
//
// What tokens say, and in which form, is package token's; reading and writing are package list's, to which a [Remote]
// is a region.
//
// # Threads
//
// All may be called from any thread. A [Remote] has no state that changes, but its users and the keys that its owner's
// devices have not refused.
//
// # Peers
//
// A token may be forged. What it says is checked when it is opened, as far as this side can; what it gives right to
// only its owner checks, at each access. A device's key in it is used over a connection to the interface alone that it
// names.
//
// # Limits
//
// The package knows no endpoint and no transport: these are interfaces ([Endpoint], [Device]).
package tokens
