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

// Parse parses a plan file, and settles and validates the plan. name is the name of the file in faults. Settings that the file
// omits have the values of Default. It fails with Faults: every mistake with its line.
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

// Read reads a plan file to which flags may be added. It returns the plan, neither settled nor validated, and the decoder with
// the faults and lines of the file. environment is for a file that does not name its environment; "" means the default. It fails
// if the file cannot be read, and with Faults if it is not a mapping.
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
	d.environmentIn(root, &p.Environment)
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

// environmentIn reads the environment before the other keys, because it determines which profiles exist. It also accepts a
// misspelled key, so that the file has one fault and not one for every profile.
func (d *decoder) environmentIn(root *position.Node, at *string) {
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
	// dir is the directory of the file; its profile files are relative to it.
	dir string
	// environment is the environment of the plan.
	environment string
	// said is true if the file names the environment; otherwise the file is for every environment.
	said bool
}

// rejectLabFields adds faults for the lab's settings in a file for a cluster, where they would have no effect. A file that
// does not name its environment may have them.
func (d *decoder) rejectLabFields(p Plan) {
	if !p.OnCluster() || !d.said {
		return
	}
	for _, field := range d.Fields() {
		if labOnly(field) && !d.Spoiled(field) {
			d.Fault(d.Line(field), field, "applies to the lab only, and this file is for a cluster: "+
				"remove it, or remove environment and give --env with each run")
		}
	}
}

// readProfiles returns a Read for a list of variants. It already checks each of them, because their lines are known here.
func (d *decoder) readProfiles(at *[]Variant) position.Read {
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
		fs.checkProfileOf(Plan{Environment: d.environment, Cluster: Cluster{Contexts: []string{v.Context()}}}, "", v)
		return v, fs.Err()
	})
}

// resolveFile makes the path of v's profile file relative to the working directory; in a plan it is relative to the plan file. It
// returns v unchanged without a profile file, or with an absolute path.
func (d *decoder) resolveFile(v Variant) Variant {
	file := v.File()
	if file == "" || filepath.IsAbs(file) {
		return v
	}
	return v.Named(filepath.Join(d.dir, file))
}
