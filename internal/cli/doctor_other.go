//go:build !linux

package cli

import "context"

func (p *program) doctor(context.Context, string) error { return errNotLinux }
