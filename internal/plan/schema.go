package plan

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// variantSchema returns the schema of a variant: the name of a profile, or any text with a context or conditions.
func variantSchema() map[string]any {
	return position.AnyOf(position.Enum(append(profile.Names(), profile.Host, Detected)...), position.Pattern(`[@(]`))
}

// workloadSchema returns the schema of a workload: its text form, or a mapping of one kind to its options.
func workloadSchema() map[string]any {
	names := Texts(Kinds())
	byName := map[string]any{}
	for i, k := range kinds {
		options := map[string]any{}
		for _, o := range k.options {
			options[o.Key] = position.Described(position.AnyOf(o.schema, position.ListOf(o.schema)), o.Help, o.Values, o.Default(k.name))
		}
		byName[names[i]] = map[string]any{
			"description": "It sends " + k.about + ".", "type": []string{"object", "null"}, "properties": options, "additionalProperties": false,
		}
	}
	return position.AnyOf(
		position.Enum(names...),
		position.Pattern(fmt.Sprintf(`^(%s)\(.*\)$`, strings.Join(names, "|"))),
		map[string]any{"type": "object", "properties": byName, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	)
}

// Schema returns the JSON Schema of plan files, derived from the settings and the options of workloads.
func Schema() map[string]any {
	usual := Default()
	mapping := func(prefix string) map[string]any {
		properties := map[string]any{}
		for _, s := range Settings() {
			if key, ok := strings.CutPrefix(s.Key, prefix); ok && !strings.Contains(key, ".") {
				properties[key] = position.Described(s.schema, s.Help, s.Range, s.Text(usual))
			}
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	}
	root := mapping("")
	keys := root["properties"].(map[string]any)
	keys["apiVersion"], keys["kind"] = map[string]any{"const": APIVersion}, map[string]any{"const": "Plan"}
	keys["lab"], keys["kubernetes"] = mapping("lab."), mapping("kubernetes.")
	root["required"] = []string{"apiVersion", "kind"}
	return root
}
