// Package names determines the queries of a program that resolves a name: which names in which order, which servers,
// and which timeouts.
//
//	Shape (a workload) and Config (resolv.conf) ──► Names to ask for, one after the other
//
// It is pure, and follows getaddrinfo of the GNU C library.
package names

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Values of Shape.Server other than an address.
const (
	// own is a server of cnibench itself at the far end of the path.
	own = "own"
	// Cluster is the server in the pod's /etc/resolv.conf.
	Cluster = "cluster"
)

// Values of Shape.Queries: the record types that are queried for a name.
const (
	both  = "both" // A and AAAA, by one thread
	onlyA = "a"
	race  = "race" // A and AAAA, by two threads at the same instant
)

// Default names, and the defaults of resolv.conf(5).
const (
	defaultName     = "www.example.com"
	clusterName     = "kubernetes.default.svc.cluster.local"
	defaultNdots    = 1
	defaultTimeout  = 5 * time.Second
	defaultAttempts = 2
)

// Bounds of a Shape.
const (
	MaxNdots    = 15
	MaxAttempts = 5
	MinTimeout  = 10 * time.Millisecond
	MaxTimeout  = 30 * time.Second
	// port is the port of name servers.
	port = 53
)

// inKubernetes is the search list of a pod in the namespace "default" of Kubernetes.
var inKubernetes = []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}

// Queries returns the possible values of Shape.Queries, the default first.
func Queries() []string { return []string{both, onlyA, race} }

// Shape describes how a workload resolves a name. The zero value resolves nothing.
type Shape struct {
	// Name is the name to resolve, Queries the record types to query.
	Name, Queries string
	// Server is own, Cluster or an address. With Cluster, values in resolv.conf replace an Ndots, Timeout or Attempts
	// of 0.
	Server string
	// Ndots is the number of dots from which a name is queried as it is before the search list is tried.
	Ndots int
	// Timeout is how long to wait for an answer before the query is sent again. Attempts bounds how often it is sent.
	Timeout  time.Duration
	Attempts int
}

// Given reports whether s is the Shape of a workload that resolves names.
func (s Shape) Given() bool { return s.Name != "" }

// Elsewhere reports whether the answers come from a server other than our own.
func (s Shape) Elsewhere() bool { return s.Given() && s.Server != own }

// Pair reports whether both A and AAAA are queried.
func (s Shape) Pair() bool { return s.Queries != onlyA }

// Races reports whether two threads send the two queries at the same instant. Two CPUs then look up the connection of
// the first packet.
func (s Shape) Races() bool { return s.Queries == race }

// WithDefaults returns s with the defaults of its zero fields. With Cluster, Ndots, Timeout and Attempts may remain 0,
// because Config takes them from resolv.conf.
func (s Shape) WithDefaults() Shape {
	s.Server, s.Queries = cmp.Or(s.Server, own), cmp.Or(s.Queries, both)
	if s.Server == Cluster {
		s.Name = cmp.Or(s.Name, clusterName)
		return s
	}
	s.Name = cmp.Or(s.Name, defaultName)
	s.Ndots, s.Timeout, s.Attempts = cmp.Or(s.Ndots, defaultNdots), cmp.Or(s.Timeout, defaultTimeout), cmp.Or(s.Attempts, defaultAttempts)
	return s
}

// Longest returns the longest time of a resolution that waits for late or missing answers. A resolution may take longer
// if the servers answer each name just before the timeout.
func (s Shape) Longest() time.Duration {
	return time.Duration(cmp.Or(s.Attempts, defaultAttempts)+afterHalf) * cmp.Or(s.Timeout, defaultTimeout)
}

// afterHalf is how many timeouts a resolution may take in addition to its attempts if only one of two answers arrives.
const afterHalf = 2

// BadServer returns what is wrong with text as a value of Shape.Server. It returns "" if nothing is wrong.
func BadServer(text string) string {
	if _, err := netip.ParseAddr(text); err != nil && text != own && text != Cluster {
		return fmt.Sprintf("%q is neither %s, %s nor an address", text, own, Cluster)
	}
	return ""
}

// BadName returns what is wrong with a name, "" if nothing is wrong. A name has letters, digits, hyphens and
// underscores between dots, and may end with a dot.
func BadName(name string) string {
	whole := strings.TrimSuffix(name, ".")
	if len(whole) > 253 {
		return fmt.Sprintf("a name has at most 253 characters, and this has %d", len(whole))
	}
	for label := range strings.SplitSeq(whole, ".") {
		strange := strings.ContainsFunc(label, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		})
		if label == "" || len(label) > 63 || strange {
			return fmt.Sprintf("%q is not a name: want parts of 1 to 63 letters, digits and hyphens between dots", name)
		}
	}
	return ""
}

// Config is the configuration of a resolver.
type Config struct {
	// Servers are queried in this order.
	Servers  []netip.AddrPort
	Search   []string
	Ndots    int
	Timeout  time.Duration
	Attempts int
}

// parseResolvConf parses the text of a resolv.conf(5) as the GNU C library does. It takes at most three servers and
// ignores unknown lines.
func parseResolvConf(text string) Config {
	c := Config{Ndots: defaultNdots, Timeout: defaultTimeout, Attempts: defaultAttempts}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			if a, err := netip.ParseAddr(f[1]); err == nil && len(c.Servers) < 3 {
				c.Servers = append(c.Servers, netip.AddrPortFrom(a, port))
			}
		case "search", "domain":
			c.Search = f[1:]
		case "options":
			for _, o := range f[1:] {
				c.applyOption(o)
			}
		}
	}
	return c
}

// applyOption applies one option of a resolv.conf, limited to the bounds of resolv.conf(5). It ignores unknown options.
func (c *Config) applyOption(text string) {
	name, value, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < 0:
	case name == "ndots":
		c.Ndots = min(n, MaxNdots)
	case name == "timeout":
		c.Timeout = min(time.Duration(max(n, 1))*time.Second, MaxTimeout)
	case name == "attempts":
		c.Attempts = min(max(n, 1), MaxAttempts)
	}
}

// Config returns the configuration of a resolution. at is the address of our own server. text is the content of
// resolv.conf. With Cluster, text gives the servers, the search list, and the values of zero fields.
func (s Shape) Config(at netip.AddrPort, text string) Config {
	c := Config{Servers: []netip.AddrPort{at}, Search: inKubernetes}
	switch {
	case s.Server == Cluster:
		c = parseResolvConf(text)
	case s.Server != own:
		address, _ := netip.ParseAddr(s.Server) // which BadServer has read
		c.Servers = []netip.AddrPort{netip.AddrPortFrom(address, port)}
	}
	c.Ndots, c.Timeout, c.Attempts = cmp.Or(s.Ndots, c.Ndots), cmp.Or(s.Timeout, c.Timeout), cmp.Or(s.Attempts, c.Attempts)
	return c
}

// Names returns the names that are queried in turn until one exists, each with its final dot. itself is the index of
// the name without a domain of the search list.
func (c Config) Names(name string) (all []string, itself int) {
	whole, absolute := strings.CutSuffix(name, ".")
	if absolute {
		return []string{name}, 0
	}
	for _, domain := range c.Search {
		if with := whole + "." + strings.TrimSuffix(domain, ".") + "."; BadName(with) == "" {
			all = append(all, with)
		}
	}
	if strings.Count(whole, ".") < c.Ndots {
		itself = len(all)
	}
	return slices.Insert(all, itself, whole+"."), itself
}
