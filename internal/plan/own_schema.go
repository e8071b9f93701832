package plan

import (
	"reflect"
	"strings"
)

// ownKey is one key of a profile file, for documents.
type ownKey struct {
	// Key is its path; [] stands after the key of a list.
	Key, Help string
	// Values says which values it has, Usual the default.
	Values, Usual string
	Need          bool
}

// OwnKeys returns the keys of profile files in the order of the documents.
func OwnKeys() []ownKey {
	keys := []ownKey{
		{Key: "apiVersion", Help: "version of the format", Values: APIVersion, Need: true},
		{Key: "kind", Help: "kind of the file", Values: kindProfile, Need: true},
	}
	return append(keys, ownKeys("", reflect.TypeFor[OwnProfile]())...)
}

func ownKeys(prefix string, t reflect.Type) []ownKey {
	var keys []ownKey
	for i := range t.NumField() {
		f := t.Field(i)
		name, inner := f.Tag.Get("yaml"), f.Type
		if f.Anonymous {
			keys = append(keys, ownKeys(prefix, inner)...)
			continue
		}
		if name == "-" {
			continue
		}
		k := ownKey{Key: prefix + name, Help: f.Tag.Get("help"), Usual: f.Tag.Get("usual"), Need: f.Tag.Get("need") != "", Values: ownValues(f)}
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
			keys = append(keys, ownKeys(k.Key+".", inner)...)
		}
	}
	return keys
}

// ownValues says which values a key has.
func ownValues(f reflect.StructField) string {
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

// OwnSchema returns the JSON Schema of profile files.
func OwnSchema() map[string]any {
	s := ownSchema(reflect.TypeFor[OwnProfile]())
	keys := s["properties"].(map[string]any)
	keys["apiVersion"], keys["kind"] = map[string]any{"const": APIVersion}, map[string]any{"const": kindProfile}
	s["required"] = []string{"apiVersion", "kind", "name"}
	return s
}

func ownSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return ownSchema(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": ownSchema(t.Elem())}
	case reflect.Map:
		return labelsSchema
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Int64:
		return durationSchema
	case reflect.String:
		return textSchema
	}
	keys, required := map[string]any{}, []string{}
	ownProperties(t, keys, &required)
	s := map[string]any{"type": "object", "properties": keys, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func ownProperties(t reflect.Type, keys map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if f.Anonymous {
			ownProperties(f.Type, keys, required)
			continue
		}
		if name == "-" {
			continue
		}
		inner := ownSchema(f.Type)
		if words := f.Tag.Get("words"); words != "" {
			inner = enumSchema(strings.Split(words, ",")...)
		}
		keys[name] = described(inner, f.Tag.Get("help"), "", f.Tag.Get("usual"))
		if f.Tag.Get("need") != "" {
			*required = append(*required, name)
		}
	}
}
