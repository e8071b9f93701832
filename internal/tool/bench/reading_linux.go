package main

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// reading has the numbers of one run of one tool.
type reading struct {
	rate float64 // units/s
	cost float64 // CPU ns per unit of work, both ends
}

// readingOf returns the numbers of a trial of t.
func readingOf(t task, client, server *sample.Observation) (reading, error) {
	of := ours
	if client.Tool != nil {
		of = theirs
	}
	r := of(t, client, server)
	if !(r.rate > 0 && r.cost > 0) {
		return r, fmt.Errorf("%s: %v %s at %v ns", t.name, r.rate, t.unit, r.cost)
	}
	return r, nil
}

// ours returns the reading of our engine. The cost of each end is per unit of its own count, because each has its own
// window.
func ours(t task, client, server *sample.Observation) reading {
	switch t.name {
	case "stream":
		return reading{
			rate: perSecond(float64(server.BytesReceived)*8, server),
			cost: perUnit(client, float64(client.BytesSent)/1000) + perUnit(server, float64(server.BytesReceived)/1000),
		}
	case "udp":
		received := float64(server.Datagrams.Received)
		// What was lost is part of the cost of what arrived.
		arrived := received / float64(max(server.Datagrams.Expected, 1))
		return reading{rate: perSecond(received, server), cost: perUnit(client, float64(client.Operations)*arrived) + perUnit(server, received)}
	}
	return reading{
		rate: perSecond(float64(client.Operations), client),
		cost: perUnit(client, float64(client.Operations)) + perUnit(server, float64(server.Operations)),
	}
}

// theirs returns the reading of a tool, whose work covers its whole lifetime. A server of our engine has its own count.
func theirs(t task, client, server *sample.Observation) reading {
	m, work := client.Tool.Metrics, client.Tool.Work
	r := reading{rate: m[metric.TransactionRate] + m[metric.RequestRate]}
	switch t.name {
	case "stream":
		r.rate = m[metric.Goodput]
	case "udp":
		r.rate = m[metric.PacketRate]
		work *= 1 - m[metric.FrameLossRate]
	}
	r.cost = perUnit(client, work)
	if server.Tool == nil {
		work = float64(server.Operations)
	}
	r.cost += perUnit(server, work)
	return r
}

func perSecond(units float64, o *sample.Observation) float64 {
	return units * 1e9 / float64(o.ElapsedNs)
}

func perUnit(o *sample.Observation, units float64) float64 {
	if units <= 0 {
		return 0
	}
	return float64(o.CPU.ProcessNs) / units
}

// transactions returns the number that a client made under strace, those before its window included.
func transactions(client *sample.Observation) float64 {
	if client.Tool != nil {
		return client.Tool.Work
	}
	var n float64
	for _, row := range client.Intervals {
		n += float64(row.Operations)
	}
	return n
}
