package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/vocab/profile"
)

func sortedKeys(k keys) []string { return slices.Sorted(maps.Keys(k)) }

// planKeys are the keys of a plan file.
func (d *decoder) planKeys(p *Plan) keys {
	return keys{
		"apiVersion":     d.constant(APIVersion),
		"kind":           d.constant("Plan"),
		"name":           d.text(&p.Name),
		"environment":    d.word(&p.Environment, environments),
		"profiles":       d.profiles(p),
		"paths":          d.paths(&p.Paths),
		"workloads":      d.workloads(&p.Workloads),
		"baseline":       d.text(&p.Baseline),
		"twin":           d.truth(&p.Twin),
		"repetitions":    d.whole(&p.Repetitions),
		"maxRepetitions": d.whole(&p.MaxRepetitions),
		"precision":      d.number(&p.Precision),
		"budget":         d.span(&p.Budget),
		"duration":       d.window(&p.Duration),
		"warmup":         d.span(&p.Warmup),
		"seed":           d.seed(&p.Seed),
		"kubernetes":     func(field string, n *yaml.Node) { d.mapping(n, field+".", d.clusterKeys(&p.Cluster)) },
		"lab":            func(field string, n *yaml.Node) { d.mapping(n, field+".", d.labKeys(&p.Lab)) },
	}
}

func (d *decoder) clusterKeys(c *Cluster) keys {
	return keys{
		"contexts":            d.texts(&c.Contexts),
		"clientNode":          d.text(&c.ClientNode),
		"serverNode":          d.text(&c.ServerNode),
		"nodeSelector":        d.labels(&c.NodeSelector),
		"tolerations":         d.texts(&c.Tolerations),
		"image":               d.text(&c.Image),
		"pullSecrets":         d.texts(&c.PullSecrets),
		"cpuRequest":          d.text(&c.CPURequest),
		"memoryRequest":       d.text(&c.MemoryRequest),
		"cpuLimit":            d.text(&c.CPULimit),
		"cpus":                readAs(d, &c.CPUs, ParseCPUs),
		"sessionAffinity":     d.truth(&c.SessionAffinity),
		"loadBalancerClass":   d.text(&c.LoadBalancerClass),
		"serviceAnnotations":  d.labels(&c.ServiceAnnotations),
		"loadBalancerTimeout": d.span(&c.LoadBalancerTimeout),
		"inspect":             d.truth(&c.Inspect),
		"install":             d.truth(&c.Install),
		"ttl":                 d.span(&c.TTL),
	}
}

// labels reads a mapping of texts.
func (d *decoder) labels(at *map[string]string) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		*at = map[string]string{}
		n = resolve(n)
		if n.Kind != yaml.MappingNode {
			d.fault(n, field, "want a mapping of names to values")
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, okName := d.scalar(field, n.Content[i])
			value, okValue := d.scalar(field, n.Content[i+1])
			if okName && okValue {
				(*at)[name] = value
				d.lines[field+"."+name] = n.Content[i].Line
			}
		}
	}
}

// contextOf is the context that a profile names: whether it is one of the plan's is seen when the whole plan is read.
func contextOf(name string) []string {
	_, context := CutContext(name)
	return []string{context}
}

func (d *decoder) texts(at *[]string) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		*at = nil
		d.list(field, n, func(item *yaml.Node) {
			if s, ok := d.scalar(field, item); ok {
				*at = append(*at, s)
			}
		})
	}
}

func (d *decoder) labKeys(l *Lab) keys {
	return keys{
		"nodes":              d.whole(&l.Nodes),
		"podsPerNode":        d.whole(&l.PodsPerNode),
		"nic":                d.text(&l.NIC),
		"cpu":                d.text(&l.CPU),
		"mtu":                d.whole(&l.MTU),
		"lineRate":           readAs(d, &l.LineRate, ParseRate),
		"delay":              readAs(d, &l.Delay, parseDuration),
		"loss":               readAs(d, &l.Loss, ParseLoss),
		"services":           d.whole(&l.Services),
		"iptables":           d.text(&l.Iptables),
		"serviceProxy":       d.text(&l.ServiceProxy),
		"family":             d.whole(&l.Family),
		"trafficPolicy":      d.text(&l.TrafficPolicy),
		"policies":           d.whole(&l.Policies),
		"policiesUnselected": d.whole(&l.PoliciesUnselected),
	}
}

// readAs reads one value through parse into at.
func readAs[T any](d *decoder, at *T, parse func(string) (T, error)) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		s, ok := d.scalar(field, n)
		if !ok {
			return
		}
		v, err := parse(s)
		if err != nil {
			d.fault(n, field, "%s", err)
			return
		}
		*at = v
	}
}

func (d *decoder) constant(want string) func(string, *yaml.Node) {
	var ignored string
	return readAs(d, &ignored, func(s string) (string, error) {
		if s != want {
			return "", fmt.Errorf("%q is not %q, which is all that this version reads", s, want)
		}
		return s, nil
	})
}

func (d *decoder) text(at *string) func(string, *yaml.Node) {
	return readAs(d, at, func(s string) (string, error) { return s, nil })
}

// word reads one of a few words.
func (d *decoder) word(at *string, allowed []string) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		s, ok := d.scalar(field, n)
		if !ok {
			return
		}
		*at = s
		var fs Faults
		if fs.oneOf(field, s, allowed...); len(fs) > 0 {
			d.fault(n, field, "%s", fs[0].Message)
		}
	}
}

func (d *decoder) truth(at *bool) func(string, *yaml.Node) { return readAs(d, at, parseBool) }

func (d *decoder) whole(at *int) func(string, *yaml.Node) {
	return readAs(d, at, func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		return v, nil
	})
}

func (d *decoder) number(at *float64) func(string, *yaml.Node) {
	return readAs(d, at, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", s)
		}
		return v, nil
	})
}

func (d *decoder) span(at *time.Duration) func(string, *yaml.Node) {
	return readAs(d, at, parseDuration)
}

// window reads the duration, whose 0 means "choose" inside a plan but is a mistake when somebody writes it.
func (d *decoder) window(at *time.Duration) func(string, *yaml.Node) {
	return readAs(d, at, ParseWindow)
}

// ParseWindow reads the length of a measurement window: a duration from MinWindow to MaxWindow.
func ParseWindow(s string) (time.Duration, error) {
	v, err := parseDuration(s)
	if err == nil && (v < MinWindow || v > MaxWindow) {
		err = fmt.Errorf("%s is out of range: want %s to %s", s, MinWindow, MaxWindow)
	}
	return v, err
}

func (d *decoder) seed(at *uint64) func(string, *yaml.Node) {
	return readAs(d, at, func(s string) (uint64, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
		}
		return v, nil
	})
}

// profiles reads names; each is checked here, where its line is known.
func (d *decoder) profiles(p *Plan) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		at := &p.Profiles
		*at = nil
		d.list(field, n, func(item *yaml.Node) {
			s, ok := d.scalar(field, item)
			if !ok {
				return
			}
			if s == profile.Raw && !d.said {
				*at = append(*at, s) // the file is for the lab, too; a cluster is not asked for it
				return
			}
			var fs Faults
			if fs.validProfileOf(Plan{Environment: p.Environment, Cluster: Cluster{Contexts: contextOf(s)}}, field, s); len(fs) > 0 {
				d.fault(item, field, "%s", fs[0].Message)
				return
			}
			*at = append(*at, s)
		})
	}
}

func (d *decoder) paths(at *[]Path) func(string, *yaml.Node) {
	return func(field string, n *yaml.Node) {
		*at = nil
		d.list(field, n, func(item *yaml.Node) {
			s, ok := d.scalar(field, item)
			if !ok {
				return
			}
			p, err := ParsePath(s)
			if err != nil {
				d.fault(item, field, "%s", err)
				return
			}
			*at = append(*at, p)
		})
	}
}
