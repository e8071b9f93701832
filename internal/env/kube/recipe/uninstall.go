package recipe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
)

// Uninstall removes what Install applied for a profile, in reverse order, and waits until each object is gone, because an
// operator must outlive its objects. It keeps objects that existed before, and starts a kube-proxy again that Install
// stopped. It fails with a *NotInstalledError if there is no inventory.
func (i *Installer) Uninstall(ctx context.Context, profile string) error {
	inv, err := i.findInventory(ctx, profile)
	if err != nil {
		return err
	}
	for _, it := range slices.Backward(inv.Items) {
		if it.Existed {
			i.Say("%s existed before and is kept", it)
			continue
		}
		if err := i.remove(ctx, it); err != nil {
			return fmt.Errorf("%s: %w", profile, err)
		}
	}
	if inv.ProxyStopped {
		if err := i.startProxy(ctx); err != nil {
			return err
		}
	}
	return i.forgetInventory(ctx, inv.Profile)
}

// findInventory returns the inventory of a profile. Without one it fails with a *NotInstalledError.
func (i *Installer) findInventory(ctx context.Context, profile string) (*inventory, error) {
	all, err := i.inventories(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, inv := range all {
		if inv.Profile == profile {
			return inv, nil
		}
		names = append(names, inv.Profile)
	}
	return nil, &NotInstalledError{Profile: profile, There: cmp.Or(strings.Join(names, ", "), "nothing") + " is"}
}

// NotInstalledError means that the profile has no installation record.
type NotInstalledError struct {
	Profile string
	// There says which profiles are installed. It ends the message: "cilium, multus is", "nothing is".
	There string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s was not installed by cnibench on this cluster; %s", e.Profile, e.There)
}

// remove deletes an object and waits until it is gone.
func (i *Installer) remove(ctx context.Context, it item) error {
	at, err := i.resourceClient(ctx, it.object())
	if meta.IsNoMatchError(err) {
		return nil // it was removed with its definition
	}
	if err != nil {
		return err
	}
	i.Say("removing %s", it)
	err = at.Delete(ctx, it.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", it, err)
	}
	return i.awaitRemoval(ctx, it.String(), func(ctx context.Context) (metav1.Object, error) { return at.Get(ctx, it.Name, metav1.GetOptions{}) })
}

// awaitRemoval waits until get fails with NotFound. The error after the timeout names the object's finalizers.
func (i *Installer) awaitRemoval(ctx context.Context, name string, get func(context.Context) (metav1.Object, error)) error {
	return i.pollUntil(ctx, name+" is gone", func(ctx context.Context) (string, error) {
		now, err := get(ctx)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		held := "it is still there"
		if f := now.GetFinalizers(); len(f) > 0 {
			held += ", held by " + strings.Join(f, ", ")
		}
		return held, nil
	})
}

// stopProxy records in the inventory that kube-proxy is stopped, and gives kube-proxy's DaemonSet a node selector that
// matches no node. It waits until kube-proxy's pods are gone and calls sweepProxyRules to remove the rules. Without such a
// DaemonSet it only saves the inventory.
func (i *Installer) stopProxy(ctx context.Context, inv *inventory) error {
	i.Say("stopping kube-proxy: %s replaces it", inv.Profile)
	inv.ProxyStopped = true
	if err := i.saveInventory(ctx, inv); err != nil {
		return err
	}
	err := i.patchProxy(ctx, `{"spec":{"template":{"spec":{"nodeSelector":{"`+proxySelector+`":"true"}}}}}`)
	if apierrors.IsNotFound(err) {
		inv.ProxyStopped = false
		return i.saveInventory(ctx, inv)
	}
	if err != nil {
		return err
	}
	err = i.pollUntil(ctx, "kube-proxy's pods are gone", func(ctx context.Context) (string, error) {
		pods, err := i.client.Pods(proxyNamespace).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-proxy"})
		if err != nil || len(pods.Items) == 0 {
			return "", err
		}
		return fmt.Sprintf("there are %d", len(pods.Items)), nil
	})
	if err != nil {
		return err
	}
	return i.sweepProxyRules(ctx)
}

// sweepProxyRules removes the rules that kube-proxy leaves on the nodes when it stops, because they would still cost time per
// packet. If Image is not set, it only reports that the rules stay.
func (i *Installer) sweepProxyRules(ctx context.Context) error {
	if i.Image == "" {
		i.Say("kube-proxy's rules stay on the nodes: they cannot be removed without an image")
		return nil
	}
	s, err := i.Survey(ctx)
	if err != nil {
		return err
	}
	return i.Sweep(ctx, slices.DeleteFunc(s.Left, func(l residue.Leftover) bool { return l.Owner != residue.KubeProxy }))
}

// startProxy removes the node selector of stopProxy, and waits until kube-proxy has rolled out. It does nothing if kube-proxy
// was removed meanwhile.
func (i *Installer) startProxy(ctx context.Context) error {
	i.Say("starting kube-proxy again")
	err := i.patchProxy(ctx, `{"spec":{"template":{"spec":{"nodeSelector":{"`+proxySelector+`":null}}}}}`)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return i.awaitRollout(ctx, "DaemonSet "+proxyNamespace+"/"+proxyName)
}
