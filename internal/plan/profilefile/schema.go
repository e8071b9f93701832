package profilefile

import (
	"reflect"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/shape"
)

// key is one key of a profile file, for documents.
type key struct {
	// Key is its path; [] stands after the key of a list.
	Key, Help string
	// Values says which values it has, Usual the default.
	Values, Usual string
	Need          bool
}

// Keys returns the keys of profile files in the order of the documents.
func Keys() []key {
	keys := []key{
		{Key: "apiVersion", Help: "version of the format", Values: plan.APIVersion, Need: true},
		{Key: "kind", Help: "kind of the file", Values: kindProfile, Need: true},
	}
	return append(keys, keysOf("", reflect.TypeFor[Profile]())...)
}

func keysOf(prefix string, t reflect.Type) []key {
	var keys []key
	for i := range t.NumField() {
		f := t.Field(i)
		name, inner := f.Tag.Get("yaml"), f.Type
		if f.Anonymous {
			keys = append(keys, keysOf(prefix, inner)...)
			continue
		}
		if name == "-" {
			continue
		}
		k := key{Key: prefix + name, Help: f.Tag.Get("help"), Usual: f.Tag.Get("usual"), Need: f.Tag.Get("need") != "", Values: valuesOf(f)}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
			if inner.Kind() == reflect.Struct {
				k.Key += "[]"
			}
		}
		keys = append(keys, k)
		if inner.Kind() == reflect.Struct {
			keys = append(keys, keysOf(k.Key+".", inner)...)
		}
	}
	return keys
}

// valuesOf says which values a key has.
func valuesOf(f reflect.StructField) string {
	if words := f.Tag.Get("words"); words != "" {
		return strings.ReplaceAll(words, ",", ", ")
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return "mapping"
	case reflect.Map:
		return "mapping of names to texts"
	case reflect.Slice:
		return map[reflect.Kind]string{reflect.Struct: "list of mappings", reflect.String: "list of texts", reflect.Int: "list of numbers"}[t.Elem().Kind()]
	case reflect.Bool:
		return "true, false"
	case reflect.Int:
		return "whole number"
	case reflect.Int64:
		return "duration, such as 500ms"
	}
	return "text"
}

// Schema returns the JSON Schema of profile files.
func Schema() map[string]any {
	s := schemaOf(reflect.TypeFor[Profile]())
	keys := s["properties"].(map[string]any)
	keys["apiVersion"], keys["kind"] = map[string]any{"const": plan.APIVersion}, map[string]any{"const": kindProfile}
	s["required"] = []string{"apiVersion", "kind", "name"}
	return s
}

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return shape.Labels
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Int64:
		return shape.Duration
	case reflect.String:
		return shape.Text
	}
	keys, required := map[string]any{}, []string{}
	addProperties(t, keys, &required)
	s := map[string]any{"type": "object", "properties": keys, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func addProperties(t reflect.Type, keys map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if f.Anonymous {
			addProperties(f.Type, keys, required)
			continue
		}
		if name == "-" {
			continue
		}
		inner := schemaOf(f.Type)
		if words := f.Tag.Get("words"); words != "" {
			inner = shape.Enum(strings.Split(words, ",")...)
		}
		keys[name] = shape.Described(inner, f.Tag.Get("help"), "", f.Tag.Get("usual"))
		if f.Tag.Get("need") != "" {
			*required = append(*required, name)
		}
	}
}
