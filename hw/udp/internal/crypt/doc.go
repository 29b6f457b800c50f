// Package crypt is what hw/udp needs of cryptography, all of it from the
// standard library: cookies, the authentication of the handshake, and the keys
// of a connection.
//
// # Cookies
//
// A cookie binds a client's address, connection id and nonce to the time, under
// a key that only this interface knows and that lives as long as it. A client
// that returns one has received what was sent to that address; until then nothing
// is kept of it.
//
// # Authorisation keys
//
// Both sides hold the same key. It is never used itself: HKDF (RFC 5869)
// derives from it one key that authenticates handshake packets (HMAC-SHA-256,
// 128 bits kept), and for every connection, from both sides' nonces and
// connection ids, one secret for each direction. Packets are sealed with
// AES-128-GCM; the nonce is the packet number, which is used once. Every 2^22
// packets the key gives way to the next one, long before GCM's limit (RFC 9001,
// section 6.6, allows 2^23), without a message: the packet number says which.
//
// A host that gets to know the authorisation key later can read connections recorded
// earlier: there is no Diffie-Hellman exchange.
package crypt
