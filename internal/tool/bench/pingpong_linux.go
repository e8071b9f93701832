package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// pingpong is the plain C program as a tool, in addition to those of package external.
const pingpong = "pingpong"

//go:embed peer/pingpong.c
var pingpongSource []byte

func init() {
	argv := func(side string, a adapter.Ask) []string {
		t := a.Workload
		return []string{pingpong, side, string(t.Kind()), a.Address, a.PortText(), strconv.Itoa(t.Traits().Request), strconv.Itoa(t.Traits().Response)}
	}
	external.Add(adapter.Tool{
		Formats: []adapter.Format{{Name: pingpong, About: "TRANSACTIONS SECONDS", Decode: decodePingpong}},
		Sender: &adapter.Sender{
			Tool:   plan.Tool{Name: pingpong, Kinds: []plan.Spec{plan.RR{}, plan.CRR{}}, Lacks: plan.Workload.OneFlow, WholeSeconds: true, Ports: 1},
			Client: func(a adapter.Ask) []string { return append(argv("client", a), a.Seconds()) },
			Server: func(a adapter.Ask) []string { return argv("server", a) },
		},
	})
}

// decodePingpong reads "TRANSACTIONS SECONDS".
func decodePingpong(b []byte) (adapter.Batch, error) {
	words := strings.Fields(string(b))
	if len(words) != 2 {
		return adapter.Batch{}, fmt.Errorf("%s is not TRANSACTIONS SECONDS", adapter.Quoted(string(b)))
	}
	n, err := adapter.Amount(words[0])
	if err != nil {
		return adapter.Batch{}, err
	}
	s, err := adapter.Amount(words[1])
	if err != nil || n == 0 || s == 0 {
		return adapter.Batch{}, fmt.Errorf("%s transactions in %s s: %w", words[0], words[1], err)
	}
	r := adapter.Reading{Window: adapter.Seconds(s), Work: n}
	r.Put(metric.TransactionRate, n/s)
	return adapter.Batch{Tool: pingpong, Readings: []adapter.Reading{r}}, nil
}
