package position

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
)

// Struct returns a Read that stores a mapping in the struct that at points to. The names in the yaml tags are the keys.
// Fields may be texts, numbers, booleans, types with UnmarshalText, and mappings of names to texts. They may also be
// structs of, pointers to and lists of these. The fields of an embedded struct are fields of the struct that contains
// it.
func (d *Decoder) Struct(at any) Read { return d.Within(d.Keys(at)) }

// Keys returns the keys of the struct that at points to. A caller can add other keys of the same mapping.
func (d *Decoder) Keys(at any) Keys {
	known, v := Keys{}, reflect.ValueOf(at).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "" && name != "-" && !f.Anonymous {
			known[name] = func(field string, n *Node) { d.readInto(field, n, v.FieldByIndex(f.Index)) }
		}
	}
	return known
}

// readInto reads n into v, or adds a fault. A null leaves v unchanged.
func (d *Decoder) readInto(field string, n *Node, v reflect.Value) {
	if n.Kind == Null {
		return
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := d.Scalar(field, n); ok {
			if err := text.UnmarshalText([]byte(s)); err != nil {
				d.Fault(n.Line, field, "%s", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.readInto(field, n, v.Elem())
	case reflect.Struct:
		d.Struct(v.Addr().Interface())(field, n)
	case reflect.Map:
		labels := map[string]string{}
		d.Labels(&labels)(field, n)
		v.Set(reflect.ValueOf(labels).Convert(v.Type()))
	case reflect.Slice:
		d.Each(field, n, func(item *Node) {
			one := reflect.New(v.Type().Elem()).Elem()
			path := joinPath(field, strconv.Itoa(v.Len()))
			d.lines[path] = item.Line
			d.readInto(path, item, one)
			v.Set(reflect.Append(v, one))
		})
	default:
		d.readScalarInto(field, n, v)
	}
}

func (d *Decoder) readScalarInto(field string, n *Node, v reflect.Value) {
	s, ok := d.Scalar(field, n)
	if !ok {
		return
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(s)
		v.SetBool(b)
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(s, 10, 0)
		v.SetInt(i)
	case reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(s, 64)
		v.SetFloat(f)
	default:
		panic("position: a field of kind " + v.Kind().String() + " cannot be read")
	}
	if err != nil {
		d.Fault(n.Line, field, "%q is not a %s", s, map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Int: "whole number", reflect.Float64: "number"}[v.Kind()])
	}
}
