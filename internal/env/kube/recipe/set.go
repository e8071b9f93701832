package recipe

import (
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// set merges --set expressions into the values of the chart, which lose their comments.
func (r *Rendered) set(expressions []string) error {
	if len(expressions) == 0 {
		return nil
	}
	for i, a := range r.Actions {
		if a.Kind == InstallChart && a.Text != "" {
			text, err := overlaid(a.Text, expressions)
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

// overlaid returns the YAML document text with the expressions laid over it; a null removes a key. The error lists every
// faulty expression.
func overlaid(text string, expressions []string) (string, error) {
	var values any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return "", err
	}
	given := map[string]any{}
	var errs []error
	for _, e := range expressions {
		if err := strvals.ParseInto(e, given); err != nil {
			errs = append(errs, fmt.Errorf("--set %s: %w", e, err))
		}
	}
	merged, err := yaml.Marshal(over(values, given))
	return string(merged), errors.Join(append(errs, err)...)
}
