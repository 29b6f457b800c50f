// Package pieces has the elements of lists of memory: what is checked and kept when a list is prepared ([Append]),
// which elements a post moves and in which order ([Selection]), and how they are cut for a transport ([Batch]) and for
// a copy that two processes share ([Chunks]).
//
// A list itself is [dataplane.List]: runs of elements at regular distances, which posts by the data plane read, too.
package pieces
