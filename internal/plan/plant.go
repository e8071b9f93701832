package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// plantValues returns the values of the setting lab.plants: known faults of named nodes and links.
func plantValues() values[[]mesh.Plant] {
	v := values[[]mesh.Plant]{rang: "NODE=delay:TIME, NODE=loss:SHARE, NODE=rate:RATE or NODE/NODE=loss:SHARE, separated by commas", schema: position.Text}
	v.parse = func(s string) ([]mesh.Plant, error) {
		if s == "" {
			return nil, nil
		}
		return parseList(s, parsePlant)
	}
	v.format = func(all []mesh.Plant) string { return strings.Join(each.Of(all, formatPlant), ",") }
	return v
}

func parsePlant(s string) (p mesh.Plant, err error) {
	at, what, ok := strings.Cut(s, "=")
	kind, text, also := strings.Cut(what, ":")
	if !ok || !also {
		return p, fmt.Errorf("%q: want NODE=delay:2ms, NODE=rate:100M or NODE/NODE=loss:1%%", s)
	}
	p.Node, p.Peer, _ = strings.Cut(at, "/")
	switch kind {
	case "delay":
		if p.Delay, err = position.ParseDuration(text); err == nil && (p.Delay <= 0 || p.Delay > maxDelay) {
			err = errors.New(text + " is out of range: want more than 0, at most " + maxDelay.String())
		}
	case "loss":
		if p.Loss, err = parseShare(text, "loss", 0, maxLoss); err == nil && p.Loss == 0 {
			err = errors.New("want a loss of more than 0")
		}
	case "rate":
		if p.Rate, err = parseBitRate(text); err == nil {
			_, wrong := rangeCheck(1e5, MaxRate, formatRate)
			if fault := wrong(p.Rate); fault != "" {
				err = errors.New(fault)
			}
		}
	default:
		err = fmt.Errorf("unknown fault %q: want delay, loss or rate", kind)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", at, err)
	}
	return p, nil
}

// formatPlant formats a fault as on the command line: "node-3=delay:2ms".
func formatPlant(p mesh.Plant) string {
	switch {
	case p.Delay > 0:
		return p.At() + "=delay:" + p.Delay.String()
	case p.Loss > 0:
		return p.At() + "=loss:" + FormatShare(p.Loss)
	}
	return p.At() + "=rate:" + formatRate(p.Rate)
}
