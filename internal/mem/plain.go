package mem

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrPointers is returned, wrapped, for an element type that may hold Go pointers.
var ErrPointers = errors.New("type holds Go pointers")

// checkPlain reports whether t can live off the Go heap: it must be of fixed size and hold nothing that the garbage
// collector follows. The error names the field.
func checkPlain(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return checkPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if err := checkPlain(f.Type); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%s: %w", t, ErrPointers)
}

// checkElem checks that T is plain and not empty, and so can be an element of off-heap memory.
func checkElem[T any]() error {
	t := reflect.TypeFor[T]()
	if err := checkPlain(t); err != nil {
		return fmt.Errorf("off-heap %s: %w", t, err)
	}
	if t.Size() == 0 {
		return fmt.Errorf("off-heap %s: %w", t, ErrSize)
	}
	return nil
}
