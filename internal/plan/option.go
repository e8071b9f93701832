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

// option is one setting of a workload: its name in a plan file and on the command line, and how its text is read. Both
// readers and both writers go through this table, so a setting is added here once.
type option struct {
	// key is the name in a plan file, word that on the command line.
	key, word string
	// kinds are the workloads that have it; proto is the transport that it needs, "" for any.
	kinds []Kind
	proto Protocol
	// protoOf confines proto to one kind, "" for all.
	protoOf Kind
	set     func(w *Workload, text string) error
	// spread turns a text that stands for several values, such as a range, into them. (optional)
	spread func(text string) ([]string, error)
}

var options = []option{
	{key: "protocol", word: "protocol", kinds: []Kind{Stream, RR, CRR, Ping, HTTP, Throughput}, set: setProtocol},
	{key: "flows", word: "flows", kinds: []Kind{Stream, RR, CRR, Ping, Throughput}, set: func(w *Workload, s string) error {
		return setInt(&w.Flows, s, 1, MaxFlows)
	}},
	{key: "messageSize", word: "message", kinds: []Kind{Stream, Ping, Throughput}, set: func(w *Workload, s string) error {
		if s == IMIX {
			w.Mix = s
			return nil
		}
		return setSize(&w.MessageSize, s, MaxMessage)
	}},
	{key: "rate", word: "rate", kinds: []Kind{Stream, RR, CRR, HTTP, Throughput}, proto: UDP, protoOf: Stream, set: func(w *Workload, s string) (err error) {
		w.Rate, err = ParseRate(s)
		return err
	}},
	{key: "loss", word: "loss", kinds: []Kind{Throughput}, set: func(w *Workload, s string) (err error) {
		w.Loss, err = ParseLoss(s)
		return err
	}},
	{key: "load", word: "load", kinds: []Kind{RR, CRR, HTTP}, spread: spreadLoads, set: func(w *Workload, s string) (err error) {
		w.Load, err = ParseLoad(s)
		return err
	}},
	{key: "arrival", word: "arrival", kinds: []Kind{RR, CRR, HTTP}, set: func(w *Workload, s string) error {
		return setWord(&w.Arrival, s, Constant, Poisson, Saturate)
	}},
	{key: "burst", word: "burst", kinds: []Kind{RR}, set: func(w *Workload, s string) error {
		return setInt(&w.Burst, s, 1, MaxBurst)
	}},
	{key: "wait", word: "wait", kinds: []Kind{RR, CRR}, set: func(w *Workload, s string) error {
		err := setWord(&w.Wait, s, "sleep", Spin)
		if s == "sleep" {
			w.Wait = ""
		}
		return err
	}},
	{key: "under", word: "under", kinds: []Kind{RR}, proto: TCP, set: func(w *Workload, s string) error {
		return setWord(&w.Under, s, string(Stream))
	}},
	{key: "requestSize", word: "request", kinds: []Kind{RR, CRR}, set: func(w *Workload, s string) error {
		return setSize(&w.RequestSize, s, MaxRequest)
	}},
	{key: "responseSize", word: "response", kinds: []Kind{RR, CRR, HTTP}, set: func(w *Workload, s string) error {
		return setSize(&w.ResponseSize, s, MaxRequest)
	}},
	{key: "mode", word: "mode", kinds: []Kind{Stream, Throughput}, set: func(w *Workload, s string) error {
		return setWord(&w.Mode, s, "copy", "sendfile", "trunc", GSO)
	}},
	{key: "buffer", word: "buffer", kinds: []Kind{Stream, Throughput}, set: func(w *Workload, s string) error {
		return setSize(&w.Buffer, s, MaxBuffer)
	}},
	{key: "close", word: "close", kinds: []Kind{CRR}, set: func(w *Workload, s string) error {
		return setWord(&w.Close, s, "rst", "fin")
	}},
	{key: "threads", word: "threads", kinds: []Kind{HTTP}, set: func(w *Workload, s string) error {
		return setInt(&w.Threads, s, 1, MaxThreads)
	}},
	{key: "connections", word: "connections", kinds: []Kind{HTTP}, set: func(w *Workload, s string) error {
		return setInt(&w.Connections, s, 1, MaxConnections)
	}},
	{key: "connection", word: "connection", kinds: []Kind{HTTP}, set: func(w *Workload, s string) error {
		return setWord(&w.Connection, s, "keep-alive", "close")
	}},
	{key: "backends", word: "backends", kinds: []Kind{HTTP}, set: func(w *Workload, s string) error {
		return setInt(&w.Backends, s, 1, MaxBackends)
	}},
	{key: "roll", word: "roll", kinds: []Kind{HTTP}, set: func(w *Workload, s string) (err error) {
		w.Roll, err = parseBool(s)
		return err
	}},
	{key: "drain", word: "drain", kinds: []Kind{HTTP}, set: setDrain},
	{key: "interval", word: "interval", kinds: []Kind{Ping}, set: setInterval},
	{key: "congestion", word: "congestion", kinds: []Kind{Stream, RR, CRR, HTTP}, proto: TCP, set: setCongestion},
	{key: "tool", word: "tool", kinds: Kinds, set: func(w *Workload, s string) error {
		err := setWord(&w.Tool, s, append([]string{Own}, ToolNames()...)...)
		if s == Own {
			w.Tool = ""
		}
		return err
	}},
	{key: "bidirectional", word: "bidirectional", kinds: []Kind{Stream}, set: func(w *Workload, s string) error {
		v, err := parseBool(s)
		w.Bidirectional = v
		return err
	}},
	{key: "reverse", word: "reverse", kinds: []Kind{Stream}, set: func(w *Workload, s string) error {
		v, err := parseBool(s)
		w.Reverse = v
		return err
	}},
}

// Kinds are the workloads in report order.
var Kinds = []Kind{Stream, RR, CRR, Ping, HTTP, Throughput}

func findOption(word string) (option, bool) {
	for _, o := range options {
		if o.word == word {
			return o, true
		}
	}
	return option{}, false
}

// optionWords returns the command line's names of the options of a kind.
func optionWords(k Kind) []string {
	var names []string
	for _, o := range options {
		if slices.Contains(o.kinds, k) {
			names = append(names, o.word)
		}
	}
	return names
}

// parseKind reads a workload's kind.
func parseKind(s string) (Kind, error) {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		if string(k) == s {
			return k, nil
		}
		names[i] = string(k)
	}
	return "", fmt.Errorf("unknown workload %q%s (there are %s)", s, advice.DidYouMean(s, names), strings.Join(names, ", "))
}

// ParseWorkload reads what Workload.String writes: a kind, or a kind with options in parentheses, for example "rr" or
// "stream(udp,rate=1G,flows=4)". The result is normalized and valid.
func ParseWorkload(s string) (Workload, error) {
	name, rest, has := strings.Cut(strings.TrimSpace(s), "(")
	kind, err := parseKind(name)
	if err != nil {
		return Workload{}, err
	}
	w := Workload{Kind: kind}
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
	switch {
	case has:
	case part == string(TCP) || part == string(UDP) || part == string(ICMP):
		word, value = "protocol", part
	case part == "reverse" || part == "bidirectional" || part == "roll":
		value = "true"
	}
	o, ok := findOption(word)
	if !ok {
		return fmt.Errorf("unknown option %q%s", word, advice.DidYouMean(word, optionWords(w.Kind)))
	}
	if given[o.key] {
		return fmt.Errorf("%s is given twice", word)
	}
	given[o.key] = true
	if err := o.set(w, value); err != nil {
		return fmt.Errorf("%s: %w", word, err)
	}
	return nil
}

// check refuses settings that the kind or the transport does not have, which Normalize would silently drop. given has
// the keys that were said.
func (w Workload) check(given map[string]bool) error {
	var errs []error
	n := w.Normalize()
	if given["protocol"] && w.Protocol != n.Protocol {
		errs = append(errs, fmt.Errorf("%s runs over %s, not %s", w.Kind, n.Protocol, w.Protocol))
	}
	if w.Protocol == ICMP && w.Kind != Ping {
		errs = append(errs, fmt.Errorf("%s runs over tcp or udp, not icmp", w.Kind))
	}
	for _, o := range options {
		switch {
		case !given[o.key]:
		case !slices.Contains(o.kinds, w.Kind):
			errs = append(errs, fmt.Errorf("%s has no %s (it has %s)", w.Kind, o.word, strings.Join(optionWords(w.Kind), ", ")))
		case o.proto != "" && n.Protocol != o.proto && (o.protoOf == "" || o.protoOf == w.Kind):
			errs = append(errs, fmt.Errorf("%s is for %s, and this is %s", o.word, o.proto, n.Protocol))
		}
	}
	return errors.Join(append(errs, n.checkSizes(), w.checkStream(), n.checkArrival(), w.checkRoll(), n.checkTool())...)
}

// checkSizes bounds the sizes that depend on the transport. w is normalized.
func (w Workload) checkSizes() error {
	var errs []error
	bound := func(name string, v, low, high int) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("%s %d is out of range for %s: want %d to %d bytes", name, v, w.Protocol, low, high))
		}
	}
	switch {
	case w.Kind == Ping:
		bound("message", w.MessageSize, MinDatagram, MaxDatagram)
	case w.Kind == Throughput, w.Kind == Stream && w.Protocol == UDP:
		bound("message", w.MessageSize, MinDatagram, MaxDatagram)
	case w.Kind == RR && w.Protocol == UDP:
		bound("request", w.RequestSize, MinDatagram, MaxDatagram)
		bound("response", w.ResponseSize, MinDatagram, MaxDatagram)
	case w.Kind == HTTP && w.Connections < w.Threads:
		errs = append(errs, fmt.Errorf("connections %d are fewer than the %d threads: want one for each thread at least", w.Connections, w.Threads))
	}
	return errors.Join(errs...)
}

// Validate says what is wrong with a workload that was built in code; those that ParseWorkload and Parse return are
// valid.
func (w Workload) Validate() error {
	if _, err := parseKind(string(w.Kind)); err != nil {
		return err
	}
	q, err := ParseWorkload(w.String())
	if err != nil {
		return err
	}
	if q != w.Normalize() {
		return fmt.Errorf("workload %s has a setting out of range", w)
	}
	return nil
}

func setProtocol(w *Workload, s string) error {
	var word string
	if err := setWord(&word, s, string(TCP), string(UDP), string(ICMP)); err != nil {
		return err
	}
	w.Protocol = Protocol(word)
	return nil
}

func setInterval(w *Workload, s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	if d < 0 || d > time.Minute {
		return fmt.Errorf("%s is out of range: want 0 to 1m", s)
	}
	w.Interval = d
	return nil
}

// setCongestion takes the name of an algorithm; which there are is the kernel's to say (TCP_CA_NAME_MAX is 16).
func setCongestion(w *Workload, s string) error {
	if s == "" || len(s) > 15 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return fmt.Errorf("%q is not a congestion control: want a name such as cubic, reno or bbr", s)
	}
	w.Congestion = s
	return nil
}

func setInt(at *int, s string, low, high int) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	if v < low || v > high {
		return fmt.Errorf("%d is out of range: want %d to %d", v, low, high)
	}
	*at = v
	return nil
}

func setSize(at *int, s string, high int) error {
	v, err := parseSize(s)
	if err != nil {
		return err
	}
	if v < 1 || v > high {
		return fmt.Errorf("%s is out of range: want 1 to %d bytes", s, high)
	}
	*at = v
	return nil
}

func setWord(at *string, s string, allowed ...string) error {
	if !slices.Contains(allowed, s) {
		return fmt.Errorf("%q is not one of %s%s", s, strings.Join(allowed, ", "), advice.DidYouMean(s, allowed))
	}
	*at = s
	return nil
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

// About says in a few words what a workload sends.
func (k Kind) About() string {
	switch k {
	case Stream:
		return "bulk data, TCP or UDP"
	case RR:
		return "requests and responses over standing flows"
	case CRR:
		return "a connection for each request and response"
	case Ping:
		return "ICMP echoes"
	case HTTP:
		return "HTTP/1.1 requests"
	case Throughput:
		return "UDP datagrams at the highest rate without loss"
	}
	return "nothing known"
}

// Options returns the names of the options that the command line's form of a workload takes, as one line.
func (k Kind) Options() string { return strings.Join(optionWords(k), ", ") }
