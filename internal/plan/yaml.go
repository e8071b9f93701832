package plan

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Parse parses a plan file, and settles and validates the plan. name is the name of the file in faults. Settings that
// the file leaves out have the values of Default. Parse fails with Faults, which have every mistake with its line.
func Parse(name string, r io.Reader) (Plan, error) {
	p, f, err := Read(name, r, "")
	if err != nil {
		return p, err
	}
	p = p.Settle()
	all := append(f.Faults(), f.Place(p.Validate())...)
	all.Sort()
	return p, all.Err()
}

// Read reads a plan file whose settings the caller may still change, for example by flags. The plan is neither settled
// nor validated. The decoder has the faults and the lines of the file. environment applies if the file does not name
// its environment; "" means the default. Read fails if the file cannot be read, and with Faults if it is not a mapping.
func Read(name string, r io.Reader, environment string) (Plan, position.Decoder, error) {
	src, err := io.ReadAll(io.LimitReader(r, position.MaxFile+1))
	if err != nil {
		return Plan{}, position.Decoder{}, fmt.Errorf("read plan: %w", err)
	}
	p := Default()
	f, root := position.NewDecoder(name, string(src), "apiVersion, kind and what to measure")
	if root == nil {
		return p, *f, f.Faults()
	}
	d := &decoder{Decoder: f, dir: filepath.Dir(name)}
	p.Environment = cmp.Or(environment, p.Environment)
	d.readEnvironment(root, &p.Environment)
	d.environment = p.Environment
	d.Mapping("", root, d.planKeys(&p))
	for _, must := range []string{"apiVersion", "kind"} {
		if d.Line(must) == 0 {
			d.Fault(root.Line, must, "is missing")
		}
	}
	if d.Line("baseline") != 0 {
		p.Baseline = d.resolveFile(p.Baseline)
	}
	if d.Line("warmup") == 0 && p.OnCluster() {
		p.Warmup = ClusterWarmup
	}
	d.rejectLabFields(p)
	return p, *f, nil
}

// readEnvironment reads the environment before the other keys, because the environment determines which profiles exist.
// It accepts a misspelled key too, so that the file has one fault and not one for every profile.
func (d *decoder) readEnvironment(root *position.Node, at *string) {
	for i, key := range root.Keys {
		switch {
		case key.Name == "environment":
			d.said = true
		case advice.DidYouMean(key.Name, []string{"environment"}) == "":
			continue
		}
		*at = root.Items[i].Text
		if !slices.Contains(environments, *at) {
			d.Spoil("environment") // Mapping reports the fault
		}
		if d.said {
			return
		}
	}
}

// decoder reads a plan file.
type decoder struct {
	*position.Decoder
	// dir is the directory of the plan file, to which the paths of profile files are relative.
	dir string
	// environment is the environment of the plan.
	environment string
	// said is true if the file names its environment. Otherwise the file is for every environment.
	said bool
}

// rejectLabFields adds faults for settings of the lab in a file for a cluster, where they would have no effect. A file
// that does not name its environment may have them.
func (d *decoder) rejectLabFields(p Plan) {
	if !p.OnCluster() || !d.said {
		return
	}
	for _, field := range d.Fields() {
		if isLabOnly(field) && !d.Spoiled(field) {
			d.Fault(d.Line(field), field, "applies to the lab only, and this file is for a cluster: "+
				"remove it, or remove environment and give --env with each run")
		}
	}
}

// profilesReader returns a Read for a list of variants. The Read also checks each variant, because its line is known
// then.
func (d *decoder) profilesReader(at *[]Variant) position.Read {
	return position.Values(d.Decoder, at, func(s string) (Variant, error) {
		if s == profile.Raw && !d.said {
			return VariantOf(profile.Raw), nil // the file is also for the lab, and a cluster does not measure raw
		}
		v, err := ParseVariant(s)
		if err != nil {
			return v, err
		}
		v = d.resolveFile(v)
		var fs faults
		// Validate decides whether the plan has the context.
		fs.checkVariant(Plan{Environment: d.environment, Cluster: Cluster{Contexts: []string{v.Context()}}}, "", v)
		return v, fs.Err()
	})
}

// resolveFile returns v with the path of its profile file relative to the working directory. In a plan the path is
// relative to the plan file. A variant without a profile file, or with an absolute path, is returned unchanged.
func (d *decoder) resolveFile(v Variant) Variant {
	file := v.File()
	if file == "" || filepath.IsAbs(file) {
		return v
	}
	return v.Named(filepath.Join(d.dir, file))
}
