package netstate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Account is the document of `cnibench look --count`: the kernel's counters in one place, and what may slow or drop
// packets there.
type Account struct {
	// Counters are the counters of protocols ("Tcp.InCsumErrors"), of connection tracking ("conntrack.insert_failed"),
	// of receive backlogs ("softnet.dropped") and of devices ("eth0.rx_dropped"), since the place was created.
	Counters map[string]int64 `json:"counters,omitempty"`
	// Tracked is the number of tracked connections, of at most TrackedMax; 0 is unknown.
	Tracked    int64 `json:"tracked,omitempty"`
	TrackedMax int64 `json:"trackedMax,omitempty"`
	// SpeedMbit is the speed of hardware devices, by name.
	SpeedMbit map[string]int `json:"speedMbit,omitempty"`
	// Shapers are queueing disciplines that limit, delay or lose packets, Filters rules that drop packets.
	Shapers []Shaper `json:"shapers,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	// Proxies are the modes of kube-proxy with rules here, nil if unknown.
	Proxies []string `json:"proxies"`
	// Unproven lists what could not be read.
	Unproven []Unproven `json:"unproven,omitempty"`
}

// Shaper is a queueing discipline that affects the packets of a device.
type Shaper struct {
	Device string `json:"device"`
	Kind   string `json:"kind"`
	// Rate is its limit in bit/s, 0 for none. Says describes its other effects.
	Rate float64 `json:"rate,omitempty"`
	Says string  `json:"says,omitempty"`
}

// Filter is a netfilter rule that drops or rejects packets, with the number of packets that it matched.
type Filter struct {
	// Chain is "table chain", Place the rule's position there from 1.
	Chain   string `json:"chain"`
	Place   int    `json:"place"`
	Verdict string `json:"verdict"`
	Packets int64  `json:"packets"`
	// Invalid means that it applies to packets that connection tracking calls invalid.
	Invalid bool `json:"invalid,omitempty"`
}

// ParseAccount reads the document of `cnibench look --count`. It fails if the document has no counters or is too large.
func ParseAccount(b []byte) (Account, error) {
	var a Account
	if len(b) > maxDocument {
		return a, fmt.Errorf("document of look has %d bytes, more than %d", len(b), maxDocument)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("document of look: %w", err)
	}
	if len(a.Counters) == 0 {
		return a, fmt.Errorf("document of look has no counters")
	}
	return a, nil
}

// Since returns the account of what happened after before: the counters' nonzero changes, the packets that filters
// matched since then, and the present values of the rest.
func (a Account) Since(before Account) Account {
	changed := map[string]int64{}
	for name, now := range a.Counters {
		if was, known := before.Counters[name]; known && now != was {
			changed[name] = now - was
		}
	}
	a.Counters = changed
	met := map[string]int64{}
	for _, f := range before.Filters {
		met[f.key()] += f.Packets
	}
	var filters []Filter
	for _, f := range a.Filters {
		if f.Packets -= met[f.key()]; f.Packets > 0 {
			filters = append(filters, f)
		}
	}
	a.Filters = filters
	return a
}

func (f Filter) key() string { return fmt.Sprint(f.Chain, f.Place, f.Verdict) }

// Dialled has the results of connections to one address (`cnibench look --dial`).
type Dialled struct {
	To string `json:"to"`
	// Times are the connect times in ns, sorted; Failed counts the failures by reason.
	Times  []int64        `json:"times,omitempty"`
	Failed map[string]int `json:"failed,omitempty"`
}

// Timeout is the reason for a failed connection attempt without an answer.
const Timeout = "timeout"

// Failures returns how many connections failed, and the reasons.
func (d Dialled) Failures() (n int, why string) {
	for _, k := range d.Failed {
		n += k
	}
	return n, strings.Join(slices.Sorted(maps.Keys(d.Failed)), ", ")
}
