package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// These are the namespace, the prefix of the name, the key and the label of the ConfigMap that stores an inventory.
const (
	inventoryNamespace = "kube-system"
	inventoryPrefix    = "cnibench-recipe-"
	inventoryKey       = "inventory.json"
	inventoryLabel     = "cnibench.dev/inventory"
)

// inventory is the record of an installation: the objects that were applied, in order. Uninstall removes them.
type inventory struct {
	Profile  string   `json:"profile"`
	Variant  string   `json:"variant"`
	Versions []string `json:"versions,omitempty"`
	// Source is the Source of Options, whose version may differ from Versions.
	Source string `json:"source,omitempty"`
	// Wait lists the workloads that the installation waits for, such as "DaemonSet namespace/name".
	Wait  []string `json:"wait,omitempty"`
	Items []item   `json:"items,omitempty"`
	// ProxyStopped means that the DaemonSet kube-proxy was stopped.
	ProxyStopped bool `json:"proxyStopped,omitempty"`
}

// item is one applied object.
type item struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Existed is true if the object existed before the installation. Uninstall then keeps it.
	Existed bool `json:"existed,omitempty"`
}

// object returns an object with only the item's kind, namespace and name.
func (it item) object() object {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(it.APIVersion)
	o.SetKind(it.Kind)
	o.SetNamespace(it.Namespace)
	o.SetName(it.Name)
	return o
}

func (it item) String() string { return objectName(it.object()) }

// add adds an item unless the inventory has it already. If an object is applied again, its Existed does not change.
func (inv *inventory) add(it item) {
	if !slices.ContainsFunc(inv.Items, func(known item) bool { return known.String() == it.String() }) {
		inv.Items = append(inv.Items, it)
	}
}

// copyEarlierRecord copies two records of an earlier installation of the profile: the applied objects, and whether
// kube-proxy was stopped. Without an earlier installation it does nothing.
func (inv *inventory) copyEarlierRecord(ctx context.Context, i *Installer) error {
	old, err := i.findInventory(ctx, inv.Profile)
	var absent *NotInstalledError
	switch {
	case errors.As(err, &absent):
		return nil
	case err != nil:
		return err
	}
	inv.Items, inv.ProxyStopped = old.Items, old.ProxyStopped
	return nil
}

// saveInventory writes the inventory to the cluster.
func (i *Installer) saveInventory(ctx context.Context, inv *inventory) error {
	text, err := json.Marshal(inv)
	if err != nil {
		return err
	}
	record, err := json.Marshal(corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: inventoryNamespace, Name: inventoryPrefix + inv.Profile,
			Labels: map[string]string{inventoryLabel: "true", label: inv.Profile, api.LabelManagedBy: api.ManagedBy},
		},
		Data: map[string]string{inventoryKey: string(text)},
	})
	if err != nil {
		return err
	}
	_, err = i.client.ConfigMaps(inventoryNamespace).Patch(ctx, inventoryPrefix+inv.Profile, types.ApplyPatchType, record,
		metav1.PatchOptions{FieldManager: fieldManager, Force: new(true)})
	if err != nil {
		return fmt.Errorf("installation record ConfigMap %s/%s: %w", inventoryNamespace, inventoryPrefix+inv.Profile, err)
	}
	return nil
}

// inventories returns all inventories of the cluster.
func (i *Installer) inventories(ctx context.Context) ([]*inventory, error) {
	list, err := i.client.ConfigMaps(inventoryNamespace).List(ctx, metav1.ListOptions{LabelSelector: inventoryLabel + "=true"})
	if err != nil {
		return nil, fmt.Errorf("list installation records: %w", err)
	}
	var all []*inventory
	for _, m := range list.Items {
		var inv inventory
		if err := json.Unmarshal([]byte(m.Data[inventoryKey]), &inv); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s is not an installation record: %w", m.Namespace, m.Name, err)
		}
		all = append(all, &inv)
	}
	return all, nil
}

// forgetInventory deletes the inventory of a profile from the cluster, if it exists.
func (i *Installer) forgetInventory(ctx context.Context, profile string) error {
	err := i.client.ConfigMaps(inventoryNamespace).Delete(ctx, inventoryPrefix+profile, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
