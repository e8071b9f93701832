package plan

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

func (d *decoder) constant(want string) position.Read {
	var ignored string
	return position.Value(d.Decoder, &ignored, func(s string) (string, error) {
		if s != want {
			return "", fmt.Errorf("%q is not %q, which is all that this version reads", s, want)
		}
		return s, nil
	})
}

// profiles reads names. It checks each of them, because it knows their lines.
func (d *decoder) profiles(at *[]Variant) position.Read {
	return position.Values(d.Decoder, at, func(s string) (Variant, error) {
		if s == profile.Raw && !d.said {
			return profile.Raw, nil // the file is for the lab too, and a cluster does not measure raw
		}
		v, err := ParseVariant(s)
		if err != nil {
			return v, err
		}
		var fs faults
		// Validate decides whether the plan has the context.
		fs.validProfileOf(Plan{Environment: d.environment, Cluster: Cluster{Contexts: []string{v.Context()}}}, "", v)
		return v, fs.Err()
	})
}
