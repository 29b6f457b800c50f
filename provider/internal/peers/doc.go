// Package peers has what an endpoint knows of its peers: the addresses by which transports know their interfaces
// ([Address]), the identities by which matching knows them ([Identities]), the addresses that completions report of
// these ([Reported]), the table of links to them ([Table]), and the attempts to connect to one ([Attempts]).
package peers
