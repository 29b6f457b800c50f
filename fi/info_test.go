package fi

import (
	"reflect"
	"testing"
)

// fill sets every field below v to something that is not zero, and makes
// every pointer and slice distinct.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
	case reflect.Interface:
		v.Set(reflect.ValueOf(new(int)))
	case reflect.String:
		v.SetString("x")
	default:
		v.Set(reflect.ValueOf(7).Convert(v.Type()))
	}
}

// shares reports the path of a pointer or slice that a and b share. Interfaces
// are references by contract.
func shares(path string, a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice:
		if a.Pointer() == b.Pointer() {
			return path
		}
		if a.Kind() == reflect.Pointer {
			return shares(path, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if s := shares(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); s != "" {
				return s
			}
		}
	}
	return ""
}

func TestClone(t *testing.T) {
	a := &Info{}
	fill(reflect.ValueOf(a).Elem())
	b := a.Clone()
	if !reflect.DeepEqual(a, b) {
		t.Error("the clone differs")
	}
	if s := shares("Info", reflect.ValueOf(a), reflect.ValueOf(b)); s != "" {
		t.Errorf("the clone shares %s", s)
	}
	if a.Handle != b.Handle || a.Domain.Domain != b.Domain.Domain || a.Fabric.Fabric != b.Fabric.Fabric {
		t.Error("a reference to an object was not kept")
	}
	empty := (&Info{}).Clone()
	if !reflect.DeepEqual(empty, &Info{}) {
		t.Errorf("clone of nothing: %+v", empty)
	}
	if (*Info)(nil).Clone() != nil {
		t.Error("clone of nil is not nil")
	}
}

func TestVersion(t *testing.T) {
	v := Version(1, 17)
	if v != 0x10011 || Major(v) != 1 || Minor(v) != 17 {
		t.Errorf("version 1.17 is %#x, %d.%d", v, Major(v), Minor(v))
	}
}
