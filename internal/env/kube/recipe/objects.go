package recipe

import (
	"errors"
	"fmt"
	"io"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"maps"
	"slices"
	"strings"
)

// object is a Kubernetes object of any kind.
type object = *unstructured.Unstructured

// decodeObjects returns the objects of a YAML stream. It replaces a List by its items. It fails if a document is not an object
// with apiVersion, kind and name.
func decodeObjects(text string) ([]object, error) {
	var list []object
	d := k8syaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for n := 1; ; n++ {
		var fields map[string]any
		err := d.Decode(&fields)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(fields) == 0 {
			continue // comments alone
		}
		items := []object{{Object: fields}}
		if items[0].GetKind() == "List" {
			of, err := items[0].ToList()
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", n, err)
			}
			items = nil
			for at := range of.Items {
				items = append(items, &of.Items[at])
			}
		}
		for _, o := range items {
			if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
				return nil, fmt.Errorf("document %d: not an object: apiVersion, kind or metadata.name is missing", n)
			}
		}
		list = append(list, items...)
	}
}

// patchedObjects returns the objects of a manifest. Each object in over overrides the object with the same kind and name.
// patchedObjects fails if the manifest lacks an object of over, because the recipe was then written for another manifest.
func patchedObjects(manifest, over string) ([]object, error) {
	objects, err := decodeObjects(manifest)
	if err != nil {
		return nil, err
	}
	patches, err := decodeObjects(over)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range patches {
		found := false
		for i, o := range objects {
			if objectName(o) != objectName(p) {
				continue
			}
			found = true
			objects[i] = overriddenObject(o, p)
		}
		if !found {
			errs = append(errs, fmt.Errorf("the manifest has no %s to change", objectName(p)))
		}
	}
	return objects, errors.Join(errs...)
}

// objectName returns an object's kind and full name, such as "DaemonSet kube-system/cilium".
func objectName(o object) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// overriddenObject returns o overridden by p: mappings merge key by key, a null removes a key, lists of named elements merge
// by their names, and anything else is replaced. Recipes patch containers and variables, which have names.
func overriddenObject(o, p object) object {
	return &unstructured.Unstructured{Object: mergedValue(o.Object, p.Object).(map[string]any)}
}

func mergedValue(was, change any) any {
	switch change := change.(type) {
	case map[string]any:
		fields, _ := was.(map[string]any)
		all := maps.Clone(fields)
		if all == nil {
			all = map[string]any{}
		}
		for key, value := range change {
			if all[key] = mergedValue(all[key], value); value == nil {
				delete(all, key)
			}
		}
		return all
	case []any:
		list, _ := was.([]any)
		list = slices.Clone(list)
		for _, element := range change {
			name := elementName(element)
			if name == nil {
				return change
			}
			if at := slices.IndexFunc(list, func(e any) bool { return elementName(e) == name }); at >= 0 {
				list[at] = mergedValue(list[at], element)
			} else {
				list = append(list, element)
			}
		}
		return list
	}
	return change
}

// elementName returns the name of an element of a list, nil if it has none.
func elementName(element any) any {
	fields, _ := element.(map[string]any)
	return fields["name"]
}
