// Package peers has who peers are and what is known of them: the addresses by which transports know their interfaces
// ([Address]), the identities by which matching knows them ([Identities]), and the table of what an endpoint knows of
// each ([Table]).
package peers
