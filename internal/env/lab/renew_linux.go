package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// errGone is the error of an instance that was removed and is not raised again yet.
var errGone = errors.New("it is being raised anew")

// Renew removes the instances of variants and their processes, and raises new instances in the given order. It waits
// until the kernel has removed the old instances, because the removal takes CPU time. For each variant, the result has the
// reason why it cannot be measured, nil if it can.
func (l *Lab) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	var all sync.WaitGroup
	gone := make([]error, len(names))
	for i, name := range names {
		all.Go(func() { gone[i] = l.removeInstance(ctx, name) })
	}
	all.Wait()
	renewed := l.raiseAll(ctx, names)
	buried := link.Buried(ctx)
	stands := map[plan.Variant]error{}
	for i, inst := range renewed {
		if gone[i] != nil {
			inst.close()
			inst = &Instance{Name: inst.Name, Profile: inst.Profile, Spec: inst.Spec, Err: gone[i]}
		}
		l.replaceInstance(inst)
		stands[inst.Name] = errors.Join(inst.Err, buried)
	}
	return stands
}

// removeInstance ends the processes of an instance, and removes its namespaces and cgroup. An instance with errGone takes its
// place.
func (l *Lab) removeInstance(ctx context.Context, name plan.Variant) error {
	old := l.Instance(name)
	if old == nil {
		return fmt.Errorf("profile %q is not in the lab", name)
	}
	l.replaceInstance(&Instance{Name: name, Profile: old.Profile, Spec: old.Spec, Err: errGone})
	l.endAgents(name.String() + "/")
	left := old.endOwnPrograms()
	old.close()
	if l.groups.tree == nil {
		return left
	}
	return errors.Join(left, cgroup.Remove(ctx, filepath.Join(l.groups.tree.Path(), name.String())))
}

// endAgents ends the agents of an instance, whose names begin with prefix.
func (l *Lab) endAgents(prefix string) {
	var theirs []*agent
	l.mu.Lock()
	for a := range l.agents {
		if strings.HasPrefix(a.name, prefix) {
			theirs = append(theirs, a)
		}
	}
	l.mu.Unlock()
	for _, a := range theirs {
		_ = a.Close() // always nil
	}
}

// replaceInstance puts an instance in place of the one with the same name.
func (l *Lab) replaceInstance(inst *Instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range l.instances {
		if old.Name == inst.Name {
			l.instances[i] = inst
		}
	}
}
