package json

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
)

// writeStruct writes a struct as JSON: a line for each member, and within lists a line for each element.
func writeStruct(w io.Writer, document any) error {
	var b bytes.Buffer
	err := encodeStruct(&b, reflect.ValueOf(document), "\n  ", func(v reflect.Value) error {
		if v.Kind() == reflect.Slice {
			return encodeList(&b, v, "\n    ", "\n  ")
		}
		return encodeValue(&b, v)
	})
	if err != nil {
		return fmt.Errorf("report as JSON: %w", err)
	}
	b.WriteString("\n")
	_, err = w.Write(b.Bytes())
	return err
}

// encodeValue encodes v as encoding/json does, except that a nil list is empty and a number that is not finite is null.
func encodeValue(b *bytes.Buffer, v reflect.Value) error {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return encodeUnescaped(b, v)
	}
	switch v.Kind() {
	case reflect.Float64:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			b.WriteString("null")
			return nil
		}
	case reflect.Struct:
		return encodeStruct(b, v, "", func(v reflect.Value) error { return encodeValue(b, v) })
	case reflect.Slice:
		return encodeList(b, v, "", "")
	}
	err := encodeUnescaped(b, v)
	if unsupported := (*json.UnsupportedValueError)(nil); errors.As(err, &unsupported) && v.Kind() == reflect.Pointer {
		return encodeValue(b, v.Elem())
	}
	return err
}

// encodeStruct encodes a struct. indent precedes each member; value encodes the value of a member. A field of type
// []report.Subject becomes one member for each subject whose value is not nil.
func encodeStruct(b *bytes.Buffer, v reflect.Value, indent string, value func(reflect.Value) error) error {
	b.WriteString("{")
	separator := ""
	var err error
	add := func(name string, member reflect.Value, omitempty bool) {
		if err == nil && !(omitempty && member.IsZero()) {
			fmt.Fprintf(b, "%s%s%q:%s", separator, indent, name, strings.Repeat(" ", min(1, len(indent))))
			separator, err = ",", value(member)
		}
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, omitempty := strings.CutSuffix(f.Tag.Get("json"), ",omitempty")
		member := v.FieldByIndex(f.Index)
		if f.Type == reflect.TypeFor[[]report.Subject]() {
			for i := range member.Len() {
				s := member.Index(i).Interface().(report.Subject)
				add(s.Key, reflect.ValueOf(s.Value), true)
			}
		} else if !f.Anonymous && f.IsExported() && name != "-" {
			add(name, member, omitempty)
		}
	}
	b.WriteString(strings.TrimRight(indent, " ") + "}")
	return err
}

// encodeList encodes a list. indent precedes each element. end precedes the closing bracket, unless the list is empty.
func encodeList(b *bytes.Buffer, v reflect.Value, indent, end string) error {
	b.WriteString("[")
	for i := range v.Len() {
		b.WriteString(strings.Repeat(",", min(1, i)) + indent)
		if err := encodeValue(b, v.Index(i)); err != nil {
			return err
		}
	}
	b.WriteString(strings.Repeat(end, min(1, v.Len())) + "]")
	return nil
}

// encodeUnescaped encodes v as encoding/json does, without a line break at the end and without escapes for HTML.
func encodeUnescaped(b *bytes.Buffer, v reflect.Value) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(v.Interface())
	b.Truncate(len(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
	return err
}
