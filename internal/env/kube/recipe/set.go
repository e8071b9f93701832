package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/strvals"
)

// set merges --set expressions into the values of the chart. Other values keep their comments.
func (r *Rendered) set(expressions []string) error {
	if len(expressions) == 0 {
		return nil
	}
	given := map[string]any{}
	var errs []error
	for _, e := range expressions {
		if err := strvals.ParseInto(e, given); err != nil {
			errs = append(errs, fmt.Errorf("--set %s: %w", e, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i, a := range r.Actions {
		if a.Kind == InstallChart && a.Text != "" {
			text, err := overlaid(a.Text, given)
			r.Actions[i].Text = text
			return err
		}
	}
	with := r.Recipe.names(func(v Variant) bool { return v.has(InstallChart) })
	advice := ""
	if len(with) > 0 {
		advice = ": choose --for " + strings.Join(with, " or --for ")
	}
	return fmt.Errorf("--set is for the values of a chart, and %s for %s has none%s", r.Recipe.Profile, r.Variant.Name, advice)
}

// overlaid returns the YAML document text with values merged into it.
func overlaid(text string, values map[string]any) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("values are not a mapping")
	}
	if err := overlay(doc.Content[0], values); err != nil {
		return "", err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return "", err
	}
	return b.String(), e.Close()
}

// overlay sets values in a mapping: mappings merge, a null removes a key, anything else replaces.
func overlay(into *yaml.Node, values map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := -1
		for i := 0; i < len(into.Content); i += 2 {
			if into.Content[i].Value == key {
				at = i
			}
		}
		if values[key] == nil {
			if at >= 0 {
				into.Content = slices.Delete(into.Content, at, at+2)
			}
			continue
		}
		if inner, ok := values[key].(map[string]any); ok && at >= 0 && into.Content[at+1].Kind == yaml.MappingNode {
			if err := overlay(into.Content[at+1], inner); err != nil {
				return err
			}
			continue
		}
		var value yaml.Node
		if err := value.Encode(values[key]); err != nil {
			return err
		}
		if at >= 0 {
			into.Content[at+1] = &value
			continue
		}
		into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &value)
	}
	return nil
}
