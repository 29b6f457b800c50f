// Package hot is the plain-word tables and the layouts that C and Go share: include/weft/ring_layout.h, segment.h,
// message.h, hot.h, delivery.h, post.h and poll.h are generated from it ("make generate", package
// internal/hot/headers).
//
// All objects of these types live off the Go heap (package internal/mem); pointers between them are C pointers. Fields
// that several threads use (_Atomic in C) are accessed only through sync/atomic, or by the data plane, which has the
// same instructions; their comments say which side writes, which reads, and with which order.
//
// # What the generator reads
//
// The C name of a type stands in its comment (//weft:name), that of a field or constant is the Go name in snake case,
// with WEFT_ before constants. A field's tag says what C knows beyond the Go type: _Atomic, the type of a pointer, or
// the whole declaration of a pointer to a function. What a C structure has behind it (a flexible array) is //weft:tail.
// A block of constants with //weft:enum is an enumeration in C, others are macros. In comments names of this package,
// and [Name], become C's.
package hot
