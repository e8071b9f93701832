package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Option is one setting of a workload. Plan files, the command line, result files and the reference page all derive from
// it.
type Option struct {
	// Key is the name in a plan file, Word that on the command line.
	Key, Word string
	// Help says what the option sets, Values which values it takes.
	Help, Values string
	// Needs is the transport that the option is for, "" for any.
	Needs Protocol
	// bare is true if the word alone means true.
	bare bool
	set  func(w *Workload, text string) error
	// text returns the value as set reads it, "" for none.
	text func(w Workload) string
	// spread turns a text that stands for several values, such as a range, into them. (optional)
	spread func(text string) ([]string, error)
}

// protocolKey is the key of the option whose value is an option of the text form by itself.
const protocolKey = "protocol"

// over returns the option for one transport alone.
func (o Option) over(p Protocol) Option {
	o.Needs = p
	return o
}

// Default returns the value that the option has when it is left out, "" for none.
func (o Option) Default(k Kind) string {
	found, err := findKind(string(k))
	if err != nil {
		return ""
	}
	w := Workload{Spec: found.zero}
	if o.Needs == UDP {
		_ = found.option(protocolKey).set(&w, string(UDP)) // a kind that is UDP alone refuses nothing here
	}
	return o.text(w.Normalize())
}

// codec reads and writes the values of one type of setting.
type codec[T comparable] struct {
	values string
	parse  func(text string) (T, error)
	format func(v T) string
}

// field returns the option for a field of a spec. A zero value is written as "".
func field[S Spec, T comparable](key, word, help string, c codec[T], at func(s *S) *T) Option {
	return Option{Key: key, Word: word, Help: help, Values: c.values,
		set: func(w *Workload, text string) error {
			v, err := c.parse(text)
			if err != nil {
				return err
			}
			s := w.Spec.(S)
			*at(&s) = v
			w.Spec = s
			return nil
		},
		text: func(w Workload) string {
			s := w.Spec.(S)
			v := *at(&s)
			if v == *new(T) {
				return ""
			}
			return c.format(v)
		},
	}
}

// truth returns the option for a field that is true or false; the text form has its word alone.
func truth[S Spec](key, help string, at func(s *S) *bool) Option {
	o := field(key, key, help, codec[bool]{"true, false", parseBool, strconv.FormatBool}, at)
	o.bare = true
	return o
}

// transports returns the option for the transport of a kind that has several.
func transports[S Spec](at func(s *S) *Protocol) Option {
	o := field(protocolKey, protocolKey, "transport", codec[Protocol]{"tcp, udp", func(s string) (Protocol, error) {
		name, err := word(s, string(TCP), string(UDP), string(ICMP))
		if err == nil && name == string(ICMP) {
			err = fmt.Errorf("%s runs over tcp or udp, not icmp", (*new(S)).kind().name)
		}
		return Protocol(name), err
	}, func(p Protocol) string { return string(p) }}, at)
	return o
}

// transport returns the option for the only transport of a kind. Its value is never written.
func transport(kind Kind, only Protocol) Option {
	return Option{Key: protocolKey, Word: protocolKey, Help: "transport", Values: string(only),
		set: func(_ *Workload, s string) error {
			name, err := word(s, string(TCP), string(UDP), string(ICMP))
			if err == nil && name != string(only) {
				err = fmt.Errorf("%s runs over %s, not %s", kind, only, name)
			}
			return err
		},
		text: func(Workload) string { return "" },
	}
}

// byTool is the option for the program that sends the workload. Its values are Own and ToolNames.
var byTool = Option{Key: "tool", Word: "tool", Help: "program that sends the workload", Values: "own, or the name of a supported program",
	set: func(w *Workload, s string) error {
		name, err := word(s, append([]string{Own}, ToolNames()...)...)
		if name == Own {
			name = ""
		}
		w.Tool = name
		return err
	},
	text: func(w Workload) string { return w.Tool },
}

// counts reads whole numbers.
func counts(low, high int) codec[int] {
	return codec[int]{fmt.Sprintf("%d to %d", low, high), func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		if v < low || v > high {
			return 0, fmt.Errorf("%d is out of range: want %d to %d", v, low, high)
		}
		return v, nil
	}, strconv.Itoa}
}

// sizes reads numbers of bytes.
func sizes(high int) codec[int] {
	return codec[int]{fmt.Sprintf("1 to %d bytes", high), func(s string) (int, error) {
		v, err := parseSize(s)
		if err != nil {
			return 0, err
		}
		if v < 1 || v > high {
			return 0, fmt.Errorf("%s is out of range: want 1 to %d bytes", s, high)
		}
		return v, nil
	}, strconv.Itoa}
}

// words reads one of a few words.
func words(allowed ...string) codec[string] {
	return codec[string]{strings.Join(allowed, ", "), func(s string) (string, error) { return word(s, allowed...) },
		func(s string) string { return s }}
}

// span reads durations.
func span(high time.Duration) codec[time.Duration] {
	return codec[time.Duration]{fmt.Sprintf("0 to %s", high), func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		if err == nil && (d < 0 || d > high) {
			err = fmt.Errorf("%s is out of range: want 0 to %s", s, high)
		}
		return d, err
	}, time.Duration.String}
}

// rates reads rates in bit/s; loads and losses read shares.
var (
	rates  = codec[float64]{"0 to 1T bit/s", ParseRate, formatRate}
	loads  = codec[float64]{"0.1% to 200%, or a range such as 10%..90%", ParseLoad, FormatLoad}
	losses = codec[float64]{"0 to 50%", ParseLoss, FormatLoss}
)

// algorithms reads the name of a congestion control. The kernel says which there are (TCP_CA_NAME_MAX is 16).
var algorithms = codec[string]{"such as cubic, reno, bbr", func(s string) (string, error) {
	if s == "" || len(s) > 15 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "", fmt.Errorf("%q is not a congestion control: want a name such as cubic, reno or bbr", s)
	}
	return s, nil
}, func(s string) string { return s }}

func (k *kind) option(key string) Option {
	return k.options[slices.IndexFunc(k.options, func(o Option) bool { return o.Key == key })]
}

// words returns the command line's names of the options.
func (k *kind) words() []string {
	names := make([]string, len(k.options))
	for i, o := range k.options {
		names[i] = o.Word
	}
	return names
}

// ParseWorkload reads what Workload.String writes: a kind, or a kind with options in parentheses, for example "rr" or
// "stream(udp,rate=1G,flows=4)". The result is normalized and valid.
func ParseWorkload(s string) (Workload, error) {
	name, rest, has := strings.Cut(strings.TrimSpace(s), "(")
	k, err := findKind(name)
	if err != nil {
		return Workload{}, err
	}
	w := Workload{Spec: k.zero}
	given := map[string]bool{}
	if has {
		inner, closed := strings.CutSuffix(rest, ")")
		if !closed {
			return Workload{}, fmt.Errorf("workload %q lacks its closing parenthesis", s)
		}
		for part := range strings.SplitSeq(inner, ",") {
			if err := w.setPart(strings.TrimSpace(part), given); err != nil {
				return Workload{}, fmt.Errorf("workload %q: %w", s, err)
			}
		}
	}
	if err := w.check(given); err != nil {
		return Workload{}, fmt.Errorf("workload %q: %w", s, err)
	}
	return w.Normalize(), nil
}

// setPart reads one option of the command line's form: "udp", "reverse" (or another that is true or false) or "word=value".
func (w *Workload) setPart(part string, given map[string]bool) error {
	word, value, has := strings.Cut(part, "=")
	if !has && slices.Contains([]Protocol{TCP, UDP, ICMP}, Protocol(part)) {
		word, value = protocolKey, part
	}
	k := w.Spec.kind()
	i := slices.Index(k.words(), word)
	if i < 0 {
		return k.unknown(word)
	}
	o := k.options[i]
	if given[o.Key] {
		return fmt.Errorf("%s is given twice", word)
	}
	given[o.Key] = true
	if o.bare && !has {
		value = "true"
	}
	if err := o.set(w, value); err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	return nil
}

// unknown returns the error for a word that is not an option of the kind.
func (k *kind) unknown(word string) error {
	for _, other := range kinds {
		if slices.Contains(other.words(), word) {
			return fmt.Errorf("%s has no %s (it has %s)", k.name, word, strings.Join(k.words(), ", "))
		}
	}
	return fmt.Errorf("unknown option %q%s", word, advice.DidYouMean(word, k.words()))
}

// check returns what does not fit together, which Normalize would silently drop. given has the keys that were said.
func (w Workload) check(given map[string]bool) error {
	var errs []error
	n := w.Normalize()
	for _, o := range w.Spec.kind().options {
		if over := n.Spec.Traits().Protocol; given[o.Key] && o.Needs != "" && over != o.Needs {
			errs = append(errs, fmt.Errorf("%s is for %s, and this is %s", o.Word, o.Needs, over))
		}
	}
	return errors.Join(append(errs, w.checkSpec(), n.checkTool())...)
}

// checkSpec returns what is wrong with the spec. MinDatagram is the bound of our engine; a tool has its own.
func (w Workload) checkSpec() error {
	spec := w.Spec
	if rr, ok := w.Normalize().Spec.(RR); ok && w.Tool != "" {
		rr.RequestSize, rr.ResponseSize = max(rr.RequestSize, MinDatagram), max(rr.ResponseSize, MinDatagram)
		spec = rr
	}
	return spec.check()
}

// faultList collects what is wrong with one workload.
type faultList []error

// refuse adds a fault if wrong is true.
func (f *faultList) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// datagram refuses a payload that a datagram cannot have.
func (f *faultList) datagram(name string, v int, p Protocol) {
	f.refuse(v < MinDatagram || v > MaxDatagram, "%s %d is out of range for %s: want %d to %d bytes", name, v, p, MinDatagram, MaxDatagram)
}

func word(s string, allowed ...string) (string, error) {
	if !slices.Contains(allowed, s) {
		return "", fmt.Errorf("%q is not one of %s%s", s, strings.Join(allowed, ", "), advice.DidYouMean(s, allowed))
	}
	return s, nil
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is not true or false", s)
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit, such as 500ms, 10s or 2m", s)
	}
	return d, nil
}
