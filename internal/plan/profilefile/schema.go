package profilefile

import (
	"reflect"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
)

// key describes one key of a profile file, for the reference page.
type key struct {
	// Key is the path of the key. A [] follows the key of a list of mappings.
	Key, Help string
	// Values describes the possible values. Usual is the default.
	Values, Usual string
	Need          bool
}

// Keys returns the keys of profile files in the order in which documents list them.
func Keys() []key {
	keys := []key{
		{Key: "apiVersion", Help: "version of the format", Values: plan.APIVersion, Need: true},
		{Key: "kind", Help: "kind of the file", Values: kindProfile, Need: true},
	}
	return append(keys, keysOf("", reflect.TypeFor[Profile]())...)
}

func keysOf(prefix string, t reflect.Type) []key {
	var keys []key
	for _, f := range keyFields(t) {
		inner := f.Type
		k := key{Key: prefix + f.Tag.Get("yaml"), Help: f.Tag.Get("help"), Usual: f.Tag.Get("usual"), Need: f.Tag.Get("need") != "", Values: describeValues(f)}
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

// keyFields returns the fields of a struct type that are keys of a profile file, including fields of embedded structs.
func keyFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous || f.Tag.Get("yaml") == "-" })
}

// describeValues returns a text that describes the possible values of a key.
func describeValues(f reflect.StructField) string {
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
		return position.Labels
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Int64:
		return position.Duration
	case reflect.String:
		return position.Text
	}
	keys, required := map[string]any{}, []string{}
	for _, f := range keyFields(t) {
		name, inner := f.Tag.Get("yaml"), schemaOf(f.Type)
		if words := f.Tag.Get("words"); words != "" {
			inner = position.Enum(strings.Split(words, ",")...)
		}
		keys[name] = position.Described(inner, f.Tag.Get("help"), "", f.Tag.Get("usual"))
		if f.Tag.Get("need") != "" {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": keys, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
