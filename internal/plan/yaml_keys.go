package plan

import (
	"fmt"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// planKeys are the keys of a plan file.
func (d *decoder) planKeys(p *Plan) position.Keys {
	return position.Keys{
		"apiVersion":     d.constant(APIVersion),
		"kind":           d.constant("Plan"),
		"name":           d.Text(&p.Name),
		"environment":    d.word(&p.Environment, environments),
		"profiles":       d.profiles(p),
		"paths":          d.paths(&p.Paths),
		"workloads":      d.workloads(&p.Workloads),
		"baseline":       position.Value(d.Decoder, &p.Baseline, ParseVariant),
		"twin":           d.truth(&p.Twin),
		"repetitions":    d.whole(&p.Repetitions),
		"maxRepetitions": d.whole(&p.MaxRepetitions),
		"precision":      d.number(&p.Precision),
		"budget":         d.span(&p.Budget),
		"duration":       d.window(&p.Duration),
		"warmup":         d.span(&p.Warmup),
		"seed":           d.seed(&p.Seed),
		"kubernetes":     d.Within(d.clusterKeys(&p.Cluster)),
		"lab":            d.Within(d.labKeys(&p.Lab)),
	}
}

func (d *decoder) clusterKeys(c *Cluster) position.Keys {
	return position.Keys{
		"contexts":            d.Texts(&c.Contexts),
		"clientNode":          d.Text(&c.ClientNode),
		"serverNode":          d.Text(&c.ServerNode),
		"nodeSelector":        d.Labels(&c.NodeSelector),
		"tolerations":         d.Texts(&c.Tolerations),
		"image":               d.Text(&c.Image),
		"pullSecrets":         d.Texts(&c.PullSecrets),
		"cpuRequest":          d.Text(&c.CPURequest),
		"memoryRequest":       d.Text(&c.MemoryRequest),
		"cpuLimit":            d.Text(&c.CPULimit),
		"cpus":                position.Value(d.Decoder, &c.CPUs, ParseCPUs),
		"sessionAffinity":     d.truth(&c.SessionAffinity),
		"loadBalancerClass":   d.Text(&c.LoadBalancerClass),
		"serviceAnnotations":  d.Labels(&c.ServiceAnnotations),
		"loadBalancerTimeout": d.span(&c.LoadBalancerTimeout),
		"inspect":             d.truth(&c.Inspect),
		"install":             d.truth(&c.Install),
		"ttl":                 d.span(&c.TTL),
	}
}

func (d *decoder) labKeys(l *Lab) position.Keys {
	return position.Keys{
		"nodes":              d.whole(&l.Nodes),
		"podsPerNode":        d.whole(&l.PodsPerNode),
		"nic":                d.Text(&l.NIC),
		"cpu":                d.Text(&l.CPU),
		"mtu":                d.whole(&l.MTU),
		"lineRate":           position.Value(d.Decoder, &l.LineRate, ParseRate),
		"delay":              position.Value(d.Decoder, &l.Delay, parseDuration),
		"loss":               position.Value(d.Decoder, &l.Loss, ParseLoss),
		"services":           d.whole(&l.Services),
		"iptables":           d.Text(&l.Iptables),
		"serviceProxy":       d.Text(&l.ServiceProxy),
		"family":             d.whole(&l.Family),
		"trafficPolicy":      d.Text(&l.TrafficPolicy),
		"policies":           d.whole(&l.Policies),
		"policiesUnselected": d.whole(&l.PoliciesUnselected),
	}
}

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

func (d *decoder) truth(at *bool) position.Read { return position.Value(d.Decoder, at, parseBool) }

func (d *decoder) whole(at *int) position.Read {
	return position.Value(d.Decoder, at, func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		return v, nil
	})
}

func (d *decoder) number(at *float64) position.Read {
	return position.Value(d.Decoder, at, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", s)
		}
		return v, nil
	})
}

func (d *decoder) span(at *time.Duration) position.Read {
	return position.Value(d.Decoder, at, parseDuration)
}

// window reads the duration, whose 0 means "choose" inside a plan but is a mistake when somebody writes it.
func (d *decoder) window(at *time.Duration) position.Read {
	return position.Value(d.Decoder, at, ParseWindow)
}

// ParseWindow reads the length of a measurement window: a duration from MinWindow to MaxWindow.
func ParseWindow(s string) (time.Duration, error) {
	v, err := parseDuration(s)
	if err == nil && (v < MinWindow || v > MaxWindow) {
		err = fmt.Errorf("%s is out of range: want %s to %s", s, MinWindow, MaxWindow)
	}
	return v, err
}

func (d *decoder) seed(at *uint64) position.Read {
	return position.Value(d.Decoder, at, func(s string) (uint64, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
		}
		return v, nil
	})
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
