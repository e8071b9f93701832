package recipe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// applyChart renders the chart of the action a and applies its objects: the pre-install hooks, then the objects that are not
// hooks, then the post-install hooks. It ignores other hooks. Pre-delete hooks are not needed, because Uninstall removes the
// objects in reverse order.
func (i *Installer) applyChart(ctx context.Context, inv *inventory, a Action) error {
	c, err := i.loadChart(ctx, a.Chart)
	if err != nil {
		return err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(a.Text), &values); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	version, err := i.client.Version(ctx)
	if err != nil {
		return fmt.Errorf("version of the API server: %w", err)
	}
	list, err := c.Render(values, chart.Release{
		Name: a.Chart.Release, Namespace: a.Chart.Namespace, KubeVersion: version,
		Serves: func(name string) bool { return i.mapper.Serves(ctx, name) },
	})
	if err != nil {
		return err
	}
	if err := i.ensureNamespace(ctx, inv, a.Chart.Namespace); err != nil {
		return err
	}
	for _, part := range [][]chart.Document{documentsForEvent(list, "pre-install"), documentsForEvent(list, ""), documentsForEvent(list, "post-install")} {
		if err := i.applyDocuments(ctx, inv, a.Chart.Namespace, part); err != nil {
			return err
		}
	}
	return nil
}

// documentsForEvent returns the documents in list that are hooks of an event, such as pre-install. For the event "" it
// returns the documents that are not hooks.
func documentsForEvent(list []chart.Document, moment string) []chart.Document {
	return slices.DeleteFunc(slices.Clone(list), func(d chart.Document) bool {
		if moment == "" {
			return len(d.Hooks) > 0
		}
		return !slices.Contains(d.Hooks, moment)
	})
}

// applyDocuments applies the documents in part, and waits until the Jobs among the hooks are complete. Objects without a
// namespace get the given one. With DryRunClient it only prints the documents.
func (i *Installer) applyDocuments(ctx context.Context, inv *inventory, namespace string, part []chart.Document) error {
	var objects, jobs []object
	for _, d := range part {
		if i.DryRun == DryRunClient {
			if _, err := fmt.Fprintf(i.Out, "---\n%s", d.Text); err != nil {
				return err
			}
		}
		found, err := decodeObjects(d.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Template, err)
		}
		for _, o := range found {
			if o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
			if len(d.Hooks) > 0 && o.GetKind() == "Job" {
				jobs = append(jobs, o)
			}
		}
		objects = append(objects, found...)
	}
	if i.DryRun == DryRunClient {
		return nil
	}
	if err := i.apply(ctx, inv, objects); err != nil || i.DryRun != "" {
		return err
	}
	for _, job := range jobs {
		if err := i.awaitJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// awaitJob waits until a Job is complete. It fails if the Job fails or is not complete after Timeout.
func (i *Installer) awaitJob(ctx context.Context, job object) error {
	at, err := i.resourceClient(ctx, job)
	if err != nil {
		return err
	}
	failed := false
	err = i.pollUntil(ctx, objectName(job)+" is complete", func(ctx context.Context) (string, error) {
		now, err := at.Get(ctx, job.GetName(), metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if failed = isConditionTrue(now, "Failed"); failed || isConditionTrue(now, "Complete") {
			return "", nil
		}
		return "it runs", nil
	})
	if failed {
		return fmt.Errorf("hook %s has failed: kubectl -n %s logs job/%s", objectName(job), job.GetNamespace(), job.GetName())
	}
	return err
}

// ensureNamespace creates the namespace of a chart if it does not exist.
func (i *Installer) ensureNamespace(ctx context.Context, inv *inventory, name string) error {
	if i.DryRun == DryRunClient {
		return nil
	}
	o := item{APIVersion: "v1", Kind: "Namespace", Name: name}.object()
	at, err := i.resourceClient(ctx, o)
	if err != nil {
		return err
	}
	if _, err := at.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return i.applyObject(ctx, inv, o)
}

// loadChart reads a chart from the user's Source. If Source does not have the chart, loadChart downloads it from its
// repository. It fails if the user asked for a version and Source has another one.
func (i *Installer) loadChart(ctx context.Context, c Chart) (*chart.Chart, error) {
	at := i.localPath(c.Chart+"-"+c.Version+".tgz", c.Chart+"-"+c.Version, c.Chart)
	if at == "" {
		return fetchChart(ctx, c)
	}
	loaded, err := chart.Load(at)
	if err != nil {
		return nil, err
	}
	if v := loaded.Metadata.Version; v != c.Version && i.Version != "" {
		return nil, advice.With(fmt.Errorf("%s has version %s, and %s is asked for", at, v, c.Version), "name a directory that has "+c.Chart+"-"+c.Version+".tgz")
	} else if v != c.Version {
		i.Say("%s has version %s, the recipe is for %s", at, v, c.Version)
	}
	return loaded, nil
}

// ConfigChart returns a chart with which package config judges values. source is a directory, an archive, or the name of a
// chart that recipes install. For a name it downloads the chart in the version of the recipes.
func ConfigChart(ctx context.Context, source string) (*config.Chart, error) {
	if _, err := os.Stat(source); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return asConfigChart(chart.Load(source))
	}
	return DownloadChart(ctx, source, "")
}

// ErrNoChart means that there is no file with a given name, and that recipes install no chart with this name.
var ErrNoChart = errors.New("neither a file nor one of")

// DownloadChart downloads a chart that recipes install, for package config. version "" is the version in the recipes. It
// fails with ErrNoChart for any other chart.
func DownloadChart(ctx context.Context, name, version string) (*config.Chart, error) {
	charts, err := chartsByName()
	if err != nil {
		return nil, err
	}
	at, ok := charts[name]
	if !ok {
		names := slices.Sorted(maps.Keys(charts))
		return nil, fmt.Errorf("chart %q is %w %s%s", name, ErrNoChart, strings.Join(names, ", "), advice.DidYouMean(name, names))
	}
	at.Version = cmp.Or(version, at.Version)
	return asConfigChart(fetchChart(ctx, at))
}

var shownValues = pattern.New(`(?m)^# +helm install \S+ (\S+) .*--values THIS$`)

// ShownChart reads the output of cnibench cni show and returns the name of the chart that the printed values are for. It
// returns "" if text is not such an output, or has no values.
func ShownChart(text string) string {
	if m := shownValues.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// chartsByName returns the charts that recipes install, by name. It omits charts that contain only CustomResourceDefinitions,
// because they have no values to judge.
func chartsByName() (map[string]Chart, error) {
	recipes, err := All()
	if err != nil {
		return nil, err
	}
	all := map[string]Chart{}
	for _, r := range recipes {
		for _, c := range r.charts {
			if !strings.Contains(c.Chart, "crd") {
				all[c.Chart] = c
			}
		}
	}
	return all, nil
}

// asConfigChart converts c into the type of chart that package config renders. If err is not nil, it returns err.
func asConfigChart(c *chart.Chart, err error) (*config.Chart, error) {
	if err != nil {
		return nil, err
	}
	render := func(values map[string]any, skip map[string]bool) ([]config.Rendered, error) {
		text, err := json.Marshal(values) // charts expect numbers decoded from JSON
		if err != nil {
			return nil, err
		}
		var given map[string]any
		if err := json.Unmarshal(text, &given); err != nil {
			return nil, err
		}
		objects, err := c.Without(skip).Render(given, chart.Release{Name: c.Metadata.Name, Namespace: "kube-system", NoKeys: true})
		if err != nil {
			return nil, err
		}
		list := each.Of(objects, func(o chart.Document) config.Rendered { return config.Rendered{Template: o.Template, Text: o.Text} })
		return list, nil
	}
	return &config.Chart{Name: c.Metadata.Name, Version: c.Metadata.Version, AppVersion: c.Metadata.AppVersion, Values: c.Defaults(), Render: render}, nil
}
