package fi

// Datatype is the type of an element of an atomic or collective operation.
type Datatype int32

// Datatypes. Int128 and Uint128 came with libfabric 1.11, the 16-bit floats
// with 2.1.
const (
	Int8 Datatype = iota
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float
	Double
	FloatComplex
	DoubleComplex
	LongDouble
	LongDoubleComplex
	Int128
	Uint128
	Float16
	BFloat16

	// Void is the datatype of collective operations without data.
	Void Datatype = 256
)

// datatypeSizes are for the System V ABIs of x86-64 and arm64.
var datatypeSizes = [...]int{
	Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, Int64: 8, Uint64: 8,
	Float: 4, Double: 8, FloatComplex: 8, DoubleComplex: 16, LongDouble: 16, LongDoubleComplex: 32,
	Int128: 16, Uint128: 16, Float16: 2, BFloat16: 2,
}

// Size is the datatype's size in bytes, 0 if it has none or is unknown.
func (d Datatype) Size() int {
	if d < 0 || int(d) >= len(datatypeSizes) {
		return 0
	}
	return datatypeSizes[d]
}

// Op is what an atomic or collective operation does with each element.
type Op int32

// Operations. OpDiff came with libfabric 2.2.
const (
	OpMin Op = iota
	OpMax
	OpSum
	OpProd
	OpLOr
	OpLAnd
	OpBOr
	OpBAnd
	OpLXor
	OpBXor
	OpRead
	OpWrite
	OpCSwap
	OpCSwapNE
	OpCSwapLE
	OpCSwapLT
	OpCSwapGE
	OpCSwapGT
	OpMSwap
	OpDiff

	// OpNone is the operation of collectives that move data and do no arithmetic.
	OpNone Op = 256
)
