// Package libcxi is libcxi for Go: the library that opens the NICs of HPE
// Slingshot and gives out their queues.
//
// The library is loaded at run time by [Load]; without it every program still
// starts, and Load says what is missing. Functions that came later are optional.
// Nothing of it is needed to build: its structures are declared here, with the
// offsets of its ABI checked.
//
// Objects are the library's own: their maker destroys them, once, after
// everything made from them. Errors are errno values (unix.Errno), wrapped with
// the step that failed. All of this is for control operations; what moves data is
// memory, in package nic.
package libcxi
