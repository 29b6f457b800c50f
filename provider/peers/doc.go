// Package peers has who peers are: the addresses by which transports know their interfaces ([Address]), and the
// identities by which matching knows them ([Identities]).
package peers
