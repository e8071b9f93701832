package number

import (
	"fmt"
	"strings"
)

// measure is a unit as a multiple of the base unit of its dimension.
type measure struct {
	dimension string
	size      float64
}

// words has the known units. It includes prefixes for seconds and for 1; see multiples for bit and B. A byte is 8
// bit, so rates in bits and in bytes convert into each other.
var words = map[string]measure{
	"bit": {"bit", 1}, "B": {"bit", 8},
	"ns": {"s", 1e-9}, "us": {"s", 1e-6}, "µs": {"s", 1e-6}, "μs": {"s", 1e-6}, "ms": {"s", 1e-3}, "s": {"s", 1}, "min": {"s", 60},
	"1": {"", 1}, "k": {"", 1e3}, "M": {"", 1e6}, "G": {"", 1e9}, "ratio": {"", 1}, "%": {"", 0.01},
}

// multiples are the possible prefixes of bit and B.
var multiples = []prefix{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// Convert converts v from one unit to another, such as from "MiB/s" to "bit/s", from "us" to "ns" or from "%" to "ratio".
// Prefixes are decimal except for Ki, Mi, Gi and Ti. It fails for an unknown unit, and for units of different dimensions.
func Convert(v float64, from, to string) (float64, error) {
	a, err := parseUnit(from)
	if err != nil {
		return 0, err
	}
	b, err := parseUnit(to)
	if err != nil {
		return 0, err
	}
	if a.dimension != b.dimension {
		return 0, fmt.Errorf("%q does not measure what %q does", from, to)
	}
	if a.size >= b.size {
		return v * (a.size / b.size), nil
	}
	// A size such as 1e-6 is not exact in binary, but its inverse is.
	return v / (b.size / a.size), nil
}

// parseUnit parses a unit, or two units with a slash between them. After the slash, it also accepts transaction, request and
// packet.
func parseUnit(s string) (measure, error) {
	head, tail, per := strings.Cut(s, "/")
	top, err := parseSingleUnit(head)
	if err != nil || !per {
		return top, err
	}
	// KB after the slash is the catalogue's unit of work, 1000 B.
	if tail == "KB" {
		tail = "kB"
	}
	below, err := parseSingleUnit(tail)
	switch {
	case err == nil && below.dimension != "":
		return measure{top.dimension + "/" + below.dimension, top.size / below.size}, nil
	case tail == "transaction" || tail == "request" || tail == "packet":
		return measure{top.dimension + "/" + tail, top.size}, nil
	}
	return measure{}, unknownUnitError(s)
}

// parseSingleUnit parses one unit, with or without a prefix. It fails for KB, which is ambiguous.
func parseSingleUnit(s string) (measure, error) {
	if m, ok := words[s]; ok {
		return m, nil
	}
	for _, p := range multiples {
		if rest, ok := strings.CutPrefix(s, p.name); ok && (rest == "bit" || rest == "B") {
			return measure{words[rest].dimension, p.size * words[rest].size}, nil
		}
	}
	if s == "KB" {
		return measure{}, fmt.Errorf("%q may be 1000 or 1024 B: say kB or KiB", s)
	}
	return measure{}, unknownUnitError(s)
}

func unknownUnitError(s string) error {
	return fmt.Errorf("unknown unit %q: want for example Mbit/s, MiB/s, us, ms, %%, ratio, 1/s, k/s, kB or 1/GB", s)
}
