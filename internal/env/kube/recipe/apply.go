package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// first are the kinds of objects that other objects require. They are applied before all others, in this order.
var first = []string{"CustomResourceDefinition", "Namespace"}

// apply applies objects in order, but CustomResourceDefinitions and Namespaces first. It waits until the definitions are
// served. It adds each object to the inventory before it applies the object. With DryRunClient it only prints the objects.
func (i *Installer) apply(ctx context.Context, inv *inventory, objects []object) error {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b object) int { return kindRank(a) - kindRank(b) })
	if i.DryRun == DryRunClient {
		return i.printObjects(objects)
	}
	// Objects of a kind need its definition to be served.
	of := slices.IndexFunc(objects, func(o object) bool { return o.GetKind() != first[0] })
	if of < 0 {
		of = len(objects)
	}
	for n, o := range objects {
		if n == of {
			if err := i.awaitDefinitions(ctx, objects[:of]); err != nil {
				return err
			}
		}
		if err := i.applyObject(ctx, inv, o); err != nil {
			return err
		}
	}
	return i.awaitDefinitions(ctx, objects[:of])
}

func kindRank(o object) int {
	if at := slices.Index(first, o.GetKind()); at >= 0 {
		return at
	}
	return len(first)
}

// printObjects writes objects to Out as one YAML stream.
func (i *Installer) printObjects(objects []object) error {
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(i.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) applyObject(ctx context.Context, inv *inventory, o object) error {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = inv.Profile
	o.SetLabels(labels)
	to, err := i.resourceClient(ctx, o)
	if meta.IsNoMatchError(err) && i.DryRun == DryRunServer {
		i.Say("%s cannot be checked: an earlier step brings its definition", objectName(o))
		return nil
	}
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if i.DryRun == DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	} else if err := i.recordObject(ctx, inv, to, o); err != nil {
		return err
	}
	if _, err := to.Apply(ctx, o.GetName(), o, options); err != nil {
		if i.DryRun == DryRunServer && apierrors.IsNotFound(err) && o.GetNamespace() != "" {
			i.Say("%s cannot be checked: an earlier step creates namespace %s", objectName(o), o.GetNamespace())
			return nil
		}
		return fmt.Errorf("%s: %w", objectName(o), err)
	}
	if i.DryRun == DryRunServer {
		fmt.Fprintf(i.Out, "%s accepted\n", objectName(o))
	}
	return nil
}

// recordObject adds an object to the inventory and saves the inventory. An object that exists already counts as existing
// before the installation, unless it has cnibench's label.
func (i *Installer) recordObject(ctx context.Context, inv *inventory, at dynamic.ResourceInterface, o object) error {
	was, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", objectName(o), err)
	}
	existed := false
	if err == nil {
		_, ours := was.GetLabels()[label]
		existed = !ours
	}
	inv.add(item{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Existed: existed})
	return i.saveInventory(ctx, inv)
}

// resourceClient returns the client for objects of o's kind. If the kind is unknown, it resets the mapper and tries once more,
// because the definition may be new. It sets o's namespace: to "default" if it is "", and to "" if the kind is
// cluster-scoped.
func (i *Installer) resourceClient(ctx context.Context, o object) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	at, namespaced, err := i.mapper.Resource(ctx, kind)
	if meta.IsNoMatchError(err) {
		i.mapper.Reset()
		at, namespaced, err = i.mapper.Resource(ctx, kind)
	}
	if err != nil {
		return nil, err
	}
	if !namespaced {
		o.SetNamespace("")
		return i.dynamic.Resource(at), nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return i.dynamic.Resource(at).Namespace(o.GetNamespace()), nil
}

// awaitDefinitions waits until the API server serves the CustomResourceDefinitions in objects. A dry run does not wait.
func (i *Installer) awaitDefinitions(ctx context.Context, objects []object) error {
	if i.DryRun != "" {
		return nil
	}
	for _, o := range objects {
		at, err := i.resourceClient(ctx, o)
		if err != nil {
			return err
		}
		err = i.pollUntil(ctx, objectName(o)+" is served", func(ctx context.Context) (string, error) {
			now, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			if !isConditionTrue(now, "Established") {
				return "not established", nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	if len(objects) > 0 {
		i.mapper.Reset()
	}
	return nil
}

// isConditionTrue reports whether the condition of the type kind in an object's status is True.
func isConditionTrue(o object, kind string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // an object of another shape has no such condition
	for _, c := range list {
		fields, _ := c.(map[string]any)
		if fields["type"] == kind && fields["status"] == "True" {
			return true
		}
	}
	return false
}

// pollUntil calls ask every pause until ask returns "" without an error. After Timeout it fails with the last text or error
// that ask returned. It fails earlier only if a right is missing or ctx ends. what completes the message "waited 10m until
// ...".
func (i *Installer) pollUntil(ctx context.Context, what string, ask func(context.Context) (missing string, err error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, pause, i.Timeout, true, func(ctx context.Context) (bool, error) {
		missing, err := ask(ctx)
		switch {
		case err == nil:
			last = missing
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			return false, err
		case last == "" || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown: // not the end of the wait itself
			last = err.Error()
		}
		return err == nil && missing == "", nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("waited %s until %s: %s", i.Timeout, what, last)
	}
	return fmt.Errorf("until %s: %w", what, err)
}
