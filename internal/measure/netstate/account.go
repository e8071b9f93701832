package netstate

import (
	"encoding/json"
	"fmt"
)

// Account is what the kernel has counted in one place, and what may slow or drop packets there (`cnibench look --count`).
type Account struct {
	// Counters are those of the protocols ("Tcp.InCsumErrors"), of connection tracking ("conntrack.insert_failed"), of receive
	// backlogs ("softnet.dropped") and of devices ("eth0.rx_dropped"), since the place was made.
	Counters map[string]int64 `json:"counters,omitempty"`
	// Tracked is how many connections are tracked here, of at most TrackedMax; 0 is unknown.
	Tracked    int64 `json:"tracked,omitempty"`
	TrackedMax int64 `json:"trackedMax,omitempty"`
	// SpeedMbit is that of the devices which are hardware, by name.
	SpeedMbit map[string]int `json:"speedMbit,omitempty"`
	// Shapers are queueing disciplines that limit, delay or lose, Filters rules that drop.
	Shapers []Shaper `json:"shapers,omitempty"`
	Filters []Filter `json:"filters,omitempty"`
	// Proxies are the modes of kube-proxy whose rules are here, nil if unknown.
	Proxies []string `json:"proxies"`
	// Unproven is what could not be seen.
	Unproven []Unproven `json:"unproven,omitempty"`
}

// Shaper is a queueing discipline that changes what passes a device.
type Shaper struct {
	Device string `json:"device"`
	Kind   string `json:"kind"`
	// Rate is its limit in bit/s, 0 for none; Says describes the rest of what it does.
	Rate float64 `json:"rate,omitempty"`
	Says string  `json:"says,omitempty"`
}

// Filter is a rule of netfilter that drops or refuses packets, with those that have met it.
type Filter struct {
	// Chain is "table chain", Place the rule's position there from 1.
	Chain   string `json:"chain"`
	Place   int    `json:"place"`
	Verdict string `json:"verdict"`
	Packets int64  `json:"packets"`
	// Invalid says that it is for packets that connection tracking calls invalid.
	Invalid bool `json:"invalid,omitempty"`
}

// ParseAccount reads a document.
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

// Since returns the account of what happened after before: the counters' changes that are not zero, the packets that filters
// met since then, and the rest as it is now.
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

// Dialled is what connections to one address came to (`cnibench look --dial`).
type Dialled struct {
	To string `json:"to"`
	// Times are the connect times in ns, in order of size; Failed counts the others by reason.
	Times  []int64        `json:"times,omitempty"`
	Failed map[string]int `json:"failed,omitempty"`
}
