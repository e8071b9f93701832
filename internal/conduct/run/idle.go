package run

import (
	"context"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
)

const (
	// noRest is why idle is not measured where nodes have no daemons.
	noRest = "idle reads the daemons of a cluster's nodes, and there are none"
	// restLimit bounds the waits for samples before and after the window.
	restLimit = 90 * time.Second
)

// rest reads what the nodes of a path use while nothing is sent. Agents of earlier trials stay and sleep.
func (c *conductor) rest(ctx context.Context, _ control.Ends, j job) (seen, error) {
	client, err := c.env.At(j.Profile).(env.Rester).Rest(ctx, j.Profile, j.Path, j.window)
	if err != nil {
		return seen{}, err
	}
	return seen{client: client, windowNs: client.ElapsedNs}, nil
}
