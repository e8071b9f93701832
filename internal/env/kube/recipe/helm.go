package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
	"sigs.k8s.io/yaml"
)

// chart installs a chart as a release, or applies its objects. Helm waits for hooks alone: what must have rolled out is
// asked at the end.
func (i *Installer) chart(ctx context.Context, inv *inventory, a Action) error {
	c, err := i.load(a.Chart)
	if err != nil {
		return err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(a.Text), &values); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	config, err := i.helm(a.Chart.Namespace)
	if err != nil {
		return err
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = a.Chart.Release, a.Chart.Namespace, true
	install.Version, install.Timeout, install.WaitStrategy = a.Chart.Version, i.Timeout, kube.HookOnlyStrategy
	install.Labels = map[string]string{Label: inv.Profile}
	install.DryRunStrategy = strategy(i.DryRun, a.Chart.Apply)
	if install.DryRunStrategy == action.DryRunNone {
		inv.add(item{Name: a.Chart.Release, Namespace: a.Chart.Namespace, Release: true})
		if err := i.save(ctx, inv); err != nil {
			return err
		}
	}
	got, err := install.RunWithContext(ctx, c, values)
	if err != nil {
		return err
	}
	made, err := release.NewAccessor(got)
	if err != nil {
		return err
	}
	switch {
	case a.Chart.Apply:
		objects, err := decoded(made.Manifest())
		if err != nil {
			return err
		}
		return i.apply(ctx, inv, objects)
	case i.DryRun == DryRunClient:
		_, err = io.WriteString(i.Out, made.Manifest())
	case i.DryRun == DryRunServer:
		_, err = fmt.Fprintf(i.Out, "chart %s %s accepted\n", a.Chart.Chart, a.Chart.Version)
	}
	i.getter.forget()
	return err
}

// strategy is how Helm runs: where objects are applied without a release it renders only.
func strategy(dryRun string, apply bool) action.DryRunStrategy {
	switch {
	case apply || dryRun == DryRunClient:
		return action.DryRunClient
	case dryRun == DryRunServer:
		return action.DryRunServer
	}
	return action.DryRunNone
}

// helm returns Helm's configuration for a namespace. It logs nothing: its errors come back.
func (i *Installer) helm(namespace string) (*action.Configuration, error) {
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	return config, config.Init(i.getter.in(namespace), namespace, "secret")
}

// load finds a chart: where the user says, else in its repository.
func (i *Installer) load(c Chart) (chart.Charter, error) {
	at := i.local(c.Chart, c.Chart+"-"+c.Version+".tgz")
	if at == "" {
		options := action.ChartPathOptions{RepoURL: c.Repo, Version: c.Version}
		found, err := options.LocateChart(c.Chart, cli.New())
		if err != nil {
			return nil, fmt.Errorf("%s %s of %s cannot be had: %w (get it where there is a network and give it with --chart)", c.Chart, c.Version, c.Repo, err)
		}
		at = found
	}
	loaded, err := loader.Load(at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if accessor, err := chart.NewAccessor(loaded); err == nil {
		if v, _ := accessor.MetadataAsMap()["Version"].(string); v != c.Version {
			i.Say("%s has version %s, the recipe is for %s", at, v, c.Version)
		}
	}
	return loaded, nil
}

// local returns where the user's source has one of names, or the source itself if it is what is wanted; "" is nowhere.
func (i *Installer) local(names ...string) string {
	if i.Source == "" {
		return ""
	}
	for _, n := range names {
		if at := filepath.Join(i.Source, n); exists(at) {
			return at
		}
	}
	if info, err := os.Stat(i.Source); err == nil && info.IsDir() && !exists(filepath.Join(i.Source, "Chart.yaml")) {
		return "" // a directory with other things
	}
	return i.Source
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

const (
	// manifestLimit bounds a manifest in bytes: Calico's definitions are 1.7 MB.
	manifestLimit = 32 << 20
	fetchLimit    = time.Minute
)

// manifest reads a manifest: where the user says, else from its address.
func (i *Installer) manifest(ctx context.Context, m Manifest) (string, error) {
	if at := i.local(path.Base(m.URL)); at != "" {
		text, err := os.ReadFile(at)
		return string(text), err
	}
	ctx, stop := context.WithTimeout(ctx, fetchLimit)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("manifest cannot be had: %w (get it where there is a network and give it with --chart)", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", m.URL, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, manifestLimit+1))
	if err == nil && len(text) > manifestLimit {
		err = fmt.Errorf("%s: more than %d bytes", m.URL, manifestLimit)
	}
	return string(text), err
}

// uninstallRelease uninstalls a release and waits until its objects are gone.
func (i *Installer) uninstallRelease(ctx context.Context, it item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.Say("uninstalling %s", it)
	config, err := i.helm(it.Namespace)
	if err != nil {
		return err
	}
	u := action.NewUninstall(config)
	u.Timeout, u.WaitStrategy, u.DeletionPropagation = i.Timeout, kube.LegacyStrategy, "foreground"
	if _, err := u.Run(it.Name); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return fmt.Errorf("%s: %w", it, err)
	}
	i.getter.forget()
	return nil
}
