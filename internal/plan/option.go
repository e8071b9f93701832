package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// option is one setting of a workload. Plan files, the command line, result files and the reference page all derive
// from it.
type option struct {
	// Key is the name in a plan file, Word the name on the command line.
	Key, Word string
	// Help describes what the option sets, Values which values it takes.
	Help, Values string
	// Needs is the only transport that the option applies to, "" for any.
	Needs Protocol
	// bare is true if the word may stand without a value, which means true.
	bare bool
	set  func(w *Workload, text string) error
	// text returns the value in the format of set, "" for none.
	text func(w Workload) string
	// schema is the JSON Schema of one value in a plan file.
	schema map[string]any
	// spread splits a text that stands for several values, such as a range, into one text for each value. (optional)
	spread func(text string) ([]string, error)
}

// protocolKey is the key of the option for the transport. The text form has only its value, without its word.
const protocolKey = "protocol"

// restrictedTo returns a copy of the option that applies only to the transport p.
func (o option) restrictedTo(p Protocol) option {
	o.Needs = p
	return o
}

// Default returns the value that the option has in workloads of the kind k if it is left out. It returns "" for no
// value.
func (o option) Default(k Kind) string {
	found := k.entry()
	w := Workload{Spec: found.zero}
	if o.Needs == UDP {
		w, _ = w.With(protocolKey, string(UDP)) // a kind that is UDP alone refuses nothing here
	}
	return o.text(w.Normalize())
}

// fieldOption returns the option for a field of a spec. at returns a pointer to the field. The text of a zero value is
// "".
func fieldOption[S Spec, T comparable](key, word, help string, v values[T], at func(s *S) *T) option {
	return option{Key: key, Word: word, Help: help, Values: v.describe(), schema: v.schema,
		set: func(w *Workload, text string) error {
			read, err := v.parseValid(text)
			if err != nil {
				return err
			}
			s := w.Spec.(S)
			*at(&s) = read
			w.Spec = s
			return nil
		},
		text: func(w Workload) string {
			s := w.Spec.(S)
			stored := *at(&s)
			if stored == *new(T) {
				return ""
			}
			return v.format(stored)
		},
	}
}

// boolOption returns the option for a field that is true or false. The text form has only its word.
func boolOption[S Spec](key, help string, at func(s *S) *bool) option {
	o := fieldOption(key, key, help, trueOrFalse, at)
	o.bare = true
	return o
}

// transportOption returns the option for the transport of a kind that supports the transports among.
func transportOption[S Spec](at func(s *S) *Protocol, among ...Protocol) option {
	v := wordValues(among...)
	v.parse = func(s string) (Protocol, error) {
		name, err := parseWord(s, string(TCP), string(UDP), string(icmp))
		if err == nil && !slices.Contains(among, Protocol(name)) {
			err = fmt.Errorf("%s runs over %s, not %s", (*new(S)).kindEntry().name, strings.Join(Texts(among), " or "), name)
		}
		return Protocol(name), err
	}
	return fieldOption(protocolKey, protocolKey, "transport", v, at)
}

// singleTransportOption returns the option for the transport of a kind that supports only p. The spec does not store the
// transport, so the text form never has it.
func singleTransportOption[S Spec](p Protocol) option {
	return transportOption(func(*S) *Protocol { return new(Protocol) }, p)
}

// byTool is the option for the program that sends the workload. Its values are ownEngine and ToolNames.
var byTool = option{Key: "tool", Word: "tool", Help: "program that sends the workload", Values: "own, or the name of a supported program", schema: position.Enum(append([]string{ownEngine}, ToolNames()...)...),
	set: func(w *Workload, s string) error {
		name, err := parseWord(s, append([]string{ownEngine}, ToolNames()...)...)
		if name == ownEngine {
			name = ""
		}
		w.Tool = name
		return err
	},
	text: func(w Workload) string { return w.Tool },
}

// byWindow is the option for a measurement window that only this workload has.
var byWindow = func() option {
	v := durationValues(minWindow, maxWindow)
	return option{Key: "window", Word: "window", Help: "measurement window of this workload; otherwise that of the plan", Values: v.describe(), schema: v.schema,
		set: func(w *Workload, s string) (err error) {
			w.Window, err = v.parseValid(s)
			return err
		},
		text: func(w Workload) string {
			if w.Window == 0 {
				return ""
			}
			return v.format(w.Window)
		},
	}
}()

// findOption returns the option with this key. It returns false if the kind does not have it.
func (k *kind) findOption(key string) (option, bool) {
	return each.First(k.options, func(o option) bool { return o.Key == key })
}

// Words returns the names that the options of a kind of workload have on the command line.
func (k Kind) Words() []string { return k.entry().optionWords() }

func (k *kind) optionWords() []string {
	return each.Of(k.options, func(o option) string { return o.Word })
}

// ParseWorkload parses the format of Workload.String: a kind, or a kind with options in parentheses, for example "rr"
// or "stream(udp,rate=1G,flows=4)". The result is normalized and valid. The error lists every wrong option.
func ParseWorkload(s string) (Workload, error) {
	name, rest, has := strings.Cut(strings.TrimSpace(s), "(")
	k, err := findKind(name)
	if err != nil {
		return Workload{}, err
	}
	w := Workload{Spec: k.zero}
	given := map[string]bool{}
	var faults []error
	if has {
		inner, closed := strings.CutSuffix(rest, ")")
		if !closed {
			return Workload{}, fmt.Errorf("workload %q lacks its closing parenthesis", s)
		}
		for part := range strings.SplitSeq(inner, ",") {
			faults = append(faults, w.applyOptionText(strings.TrimSpace(part), given))
		}
	}
	if err := errors.Join(append(faults, w.checkOptions(given))...); err != nil {
		return Workload{}, fmt.Errorf("workload %q: %w", s, err)
	}
	return w.Normalize(), nil
}

// applyOptionText sets one option of w from its text on the command line: "udp", the word of a boolean such as "reverse", or
// "word=value". It adds the key of the option to given. It fails for an unknown option, one that given has already, and
// an invalid value.
func (w *Workload) applyOptionText(part string, given map[string]bool) error {
	word, value, has := strings.Cut(part, "=")
	if !has && slices.Contains([]Protocol{TCP, UDP, icmp}, Protocol(part)) {
		word, value = protocolKey, part
	}
	k := w.Spec.kindEntry()
	i := slices.Index(k.optionWords(), word)
	if i < 0 {
		return k.unknownOptionError(word)
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

// unknownOptionError returns the error for a word that is not an option of the kind.
func (k *kind) unknownOptionError(word string) error {
	for _, other := range kinds {
		if slices.Contains(other.optionWords(), word) {
			return fmt.Errorf("%s has no %s (it has %s)", k.name, word, strings.Join(k.optionWords(), ", "))
		}
	}
	return fmt.Errorf("unknown option %q%s", word, advice.DidYouMean(word, k.optionWords()))
}

// checkOptions returns an error that lists the contradictions in a workload. Call it before Normalize, which silently
// drops some of them. given has the keys of the options that the input sets.
func (w Workload) checkOptions(given map[string]bool) error {
	var errs []error
	n := w.Normalize()
	for _, o := range w.Spec.kindEntry().options {
		if over := n.Spec.Traits().Protocol; given[o.Key] && o.Needs != "" && over != o.Needs {
			errs = append(errs, fmt.Errorf("%s is for %s, and this is %s", o.Word, o.Needs, over))
		}
	}
	return errors.Join(append(errs, w.checkContradictions())...)
}

// checkContradictions returns an error that lists the contradictions between options, and what the workload's tool does not
// support. For rr sent by a tool, it accepts sizes below MinDatagram, which bounds our own engine only.
func (w Workload) checkContradictions() error {
	var f faultList
	spec := w.Spec
	if rr, ok := w.Normalize().Spec.(RR); ok && w.Tool != "" {
		rr.RequestSize, rr.ResponseSize = max(rr.RequestSize, MinDatagram), max(rr.ResponseSize, MinDatagram)
		spec = rr
	}
	spec.addFaults(&f)
	why := w.Beyond()
	f.refuseIf(why != "", "tool %s: %s", w.Tool, why)
	return errors.Join(f...)
}

// faultList collects what is wrong with one workload.
type faultList []error

// refuseIf adds a fault if wrong is true.
func (f *faultList) refuseIf(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// checkDatagramSize adds a fault if v is not a possible payload of a datagram in bytes. name is the name of the option
// in the fault.
func (f *faultList) checkDatagramSize(name string, v int, p Protocol) {
	f.refuseIf(v < MinDatagram || v > MaxDatagram, "%s %d is out of range for %s: want %d to %d bytes", name, v, p, MinDatagram, MaxDatagram)
}

func parseWord(s string, allowed ...string) (string, error) {
	if !slices.Contains(allowed, s) {
		return "", fmt.Errorf("%q is not one of %s%s", s, strings.Join(allowed, ", "), advice.DidYouMean(s, allowed))
	}
	return s, nil
}
