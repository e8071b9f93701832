//go:build !linux

package cli

import (
	"context"
	"errors"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// errNotLinux is what everything that needs network namespaces says elsewhere.
var errNotLinux = advice.With(errors.New("the lab needs Linux"), "run it there; reports and plans can be read here")

func openLab(context.Context, plan.Plan, func(string, ...any)) (env.Environment, error) {
	return nil, errNotLinux
}
