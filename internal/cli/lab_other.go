//go:build !linux

package cli

import (
	"context"

	"github.com/cnibench/cnibench/internal/plan"
)

func (p *program) labTest(context.Context, plan.Plan, []int, bool) error { return errNotLinux }
func (p *program) labUp(context.Context, string, plan.Plan, bool) error  { return errNotLinux }
func (p *program) labExec(context.Context, string, []string) error       { return errNotLinux }
