package plan

import (
	"fmt"
	"time"

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

// word reads one of a few words.
func (d *decoder) word(at *string, allowed []string) position.Read {
	return func(field string, n *position.Node) {
		s, ok := d.Scalar(field, n)
		if !ok {
			return
		}
		*at = s
		var fs faults
		if fs.oneOf(field, s, allowed...); len(fs.Faults) > 0 {
			d.Fault(n.Line, field, "%s", fs.Faults[0].Message)
		}
	}
}

// ParseWindow reads the length of a measurement window: a duration from MinWindow to MaxWindow.
func ParseWindow(s string) (time.Duration, error) {
	v, err := parseDuration(s)
	if err == nil && (v < MinWindow || v > MaxWindow) {
		err = fmt.Errorf("%s is out of range: want %s to %s", s, MinWindow, MaxWindow)
	}
	return v, err
}

// profiles reads names; each is checked here, where its line is known.
func (d *decoder) profiles(p *Plan) position.Read {
	return func(field string, n *position.Node) {
		at := &p.Profiles
		*at = nil
		d.Each(field, n, func(item *position.Node) {
			s, ok := d.Scalar(field, item)
			if !ok {
				return
			}
			if s == profile.Raw && !d.said {
				*at = append(*at, profile.Raw) // the file is for the lab, too; a cluster is not asked for it
				return
			}
			v, err := ParseVariant(s)
			if err != nil {
				d.Fault(item.Line, field, "%s", err)
				return
			}
			var fs faults
			// Whether the context is one of the plan's is decided when the whole plan is read.
			if fs.validProfileOf(Plan{Environment: p.Environment, Cluster: Cluster{Contexts: []string{v.Context()}}}, field, v); len(fs.Faults) > 0 {
				d.Fault(item.Line, field, "%s", fs.Faults[0].Message)
				return
			}
			*at = append(*at, v)
		})
	}
}

func (d *decoder) paths(at *[]Path) position.Read {
	return func(field string, n *position.Node) {
		*at = nil
		d.Each(field, n, func(item *position.Node) {
			s, ok := d.Scalar(field, item)
			if !ok {
				return
			}
			p, err := ParsePath(s)
			if err != nil {
				d.Fault(item.Line, field, "%s", err)
				return
			}
			*at = append(*at, p)
		})
	}
}
