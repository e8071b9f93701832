package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
)

// wrk is the usual generator of HTTP load. Its server is ours, the same that our client has.
func wrk(agent []string) *peer {
	return &peer{
		title: "wrk", tasks: []string{taskHTTP, taskHTTPs}, scale: one, agent: agent,
		client: func(t task, port string) []string {
			return []string{
				"wrk", "-t", strconv.Itoa(t.threads), "-c", strconv.Itoa(t.connections), "-d", seconds(t),
				"http://" + net.JoinHostPort(serverAddress, port) + "/",
			}
		},
		parse: func(b []byte, _ task) (count, error) { return parseWrk(b) },
	}
}

// guest runs the client against a server of ours. The server's cost is over its own count in its own window, which lies
// within the client's run but for the moment that the client takes to start. before is put in front of the client's
// command line.
func (p *peer) guest(ctx context.Context, w *world, t task, before []string) (c count, r reading, err error) {
	host, err := dialServer(ctx, w, p.agent)
	if err != nil {
		return c, r, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	ready, err := host.Prepare(ctx, control.Prepare{
		Side: control.SideServer, Workload: workloadOf(t), Address: serverAddress, CPUs: []int{w.cpu},
		Warmup: ourWarmup, Window: max(t.length-2*ourWarmup, ourWarmup), Timeout: time.Second,
	})
	if err != nil {
		return c, r, err
	}
	client, answer, words := command(ctx, append(before, p.client(t, strconv.Itoa(ready.Port))...))
	if err = host.Start(ctx); err != nil {
		return c, r, err
	}
	if err = w.start(w.client, client); err != nil {
		return c, r, err
	}
	if err = client.Wait(); err != nil {
		return c, r, fmt.Errorf("%w: %s", err, strings.TrimSpace(words.String()+" "+answer.String()))
	}
	if c, err = p.parse(answer.Bytes(), t); err != nil {
		return c, r, err
	}
	seen, err := host.Wait(ctx)
	if err != nil {
		return c, r, err
	}
	if seen.Operations == 0 {
		return c, r, errors.New("the server answered nothing in its window")
	}
	if r, err = c.reading(used(client.ProcessState), p.scale(t)); err != nil {
		return c, r, err
	}
	r.cost += perUnit(seen, float64(seen.Operations))
	return c, r, nil
}

// dialServer starts an agent in the server's namespace.
func dialServer(ctx context.Context, w *world, program []string) (*control.Client, error) {
	o := &ours{program: program}
	return o.agent(ctx, w, w.server, nil)
}
