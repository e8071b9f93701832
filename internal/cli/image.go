package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kind"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

const imageLong = `Make the container image that the pods of a run are started from: this binary alone, in an archive that containerd,
Docker, Podman, skopeo and kind take. The same binary gives the same digest. Stdout gets the reference with its digest.

--with adds tools that are installed on this machine, with the libraries that they are linked with. A plan on a cluster
that names a tool needs such an image. Its tag says which tools are in it, so a run refuses an image that lacks one before
it makes anything. Without --image a run takes an image that is loaded on the nodes and has all tools of its plan.

Without a registry the image is loaded on every node: by --load on this machine, or by -o and ctr images import there.
With one, --push takes it there with the credentials of docker login. What ctr imports from an archive is known by its
tag alone, so leave the digest out where you name it.

On Linux it is this very binary for its own architecture. Clusters of other or several architectures need a build for
each, of the same version: CGO_ENABLED=0 GOOS=linux GOARCH=arm64 make build.`

const imageExample = `  cnibench image --push registry.example/team/cnibench
  cnibench image --with iperf3,ping --load ctr`

// packaging is one invocation of image.
type packaging struct {
	*program
	output, name, push string
	platforms, loads   []string
	with               []string
	insecure           bool
	// targets and pushed are the parsed values of loads and push.
	targets []image.Target
	pushed  image.Name
}

func imageCommand(p *program) *cobra.Command {
	a := packaging{program: p}
	cmd := &cobra.Command{
		Use: "image", Short: "Make the container image for a cluster", Long: imageLong, Example: imageExample, Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "", "archive `file`, - for stdout (default "+DefaultImage+")")
	f.StringVar(&a.name, "name", "", "`reference` of the image (default "+image.Repository+":VERSION, of a release "+image.ReleaseRepository+":VERSION; with tools "+image.ToolsName("VERSION", []string{"TOOLS"}).String()+")")
	f.StringArrayVar(&a.platforms, "platform", nil, "`platform=file` of a binary, such as linux/arm64=bin/cnibench-arm64; may be repeated")
	f.StringSliceVar(&a.with, "with", nil, "`tools` of this machine to add: "+strings.Join(plan.ToolNames(), ", "))
	f.StringArrayVar(&a.loads, "load", nil, "load it on this machine into `target`: "+strings.Join(image.Targets(), ", ")+"; may be repeated")
	f.StringVar(&a.push, "push", "", "push it to a registry as `reference`")
	f.BoolVar(&a.insecure, "insecure", false, "with --push: allow plain HTTP and certificates that no authority signed")
	completeFlag(cmd, "with", plan.ToolNames)
	completeFlag(cmd, "load", fixedWords(image.Kind, image.Ctr, image.Docker))
	return cmd
}

// DefaultImage is the name of the archive that the command image writes without --output.
const DefaultImage = "cnibench-image.tar"

func (a *packaging) run(ctx context.Context) error {
	spec, err := a.imageSpec()
	if err != nil {
		return usageError(err)
	}
	i, err := image.Build(spec)
	if err != nil {
		return usageError(err)
	}
	reference := i.Reference()
	// Without -o, a file is written only if nothing else is asked for.
	if a.output != "" || len(a.loads) == 0 && a.push == "" {
		if err := a.writeArchive(i); err != nil {
			return err
		}
	}
	story := a.newStory(false, false)
	defer story.eraseLines()
	for _, t := range a.targets {
		story.showStep("loading %s into %s", i.Name(), t.Kind)
		where, err := loadImage(ctx, i, t)
		if err != nil {
			return err
		}
		story.printNote("%s is in %s", i.Name(), where)
	}
	if a.push != "" {
		progress := func(done, total int64) {
			story.drawLines(fmt.Sprintf("pushing %s: %s of %s", a.pushed, formatSize(done), formatSize(total)))
		}
		if reference, err = i.Push(ctx, image.Push{Name: a.pushed, Insecure: a.insecure, Progress: progress}); err != nil {
			return err
		}
		story.printNote("%s is pushed", a.pushed)
	}
	if a.output == "-" { // stdout is the archive
		fmt.Fprintf(a.stderr, "cnibench: %s\n", reference)
		return nil
	}
	_, err = fmt.Fprintln(a.stdout, reference)
	return err
}

// loadImage loads the image into one target and returns where it is now.
func loadImage(ctx context.Context, i *image.Image, t image.Target) (where string, err error) {
	switch t.Kind {
	case image.Kind:
		nodes, err := kind.LoadImage(ctx, t.Name, i)
		return "kind cluster " + t.Name + ": " + strings.Join(nodes, ", "), err
	case image.Ctr:
		return "containerd's namespace " + t.Name, i.LoadCtr(ctx, t.Name)
	}
	return "docker", i.LoadDocker(ctx)
}

// imageSpec returns the image that the flags describe, and parses --load and --push. Its error lists all faults.
func (a *packaging) imageSpec() (image.Spec, error) {
	s := image.Spec{Name: image.DefaultName(buildVersion()), Version: buildVersion()}
	var errs []error
	var err error
	if len(a.with) > 0 {
		s.Name, s.Tools = image.ToolsName(s.Version, a.with), a.with
		s.Programs, err = toolPrograms(a.with)
		errs = append(errs, err)
	}
	tagged := image.ToolsVersion(s.Version, a.with)
	if a.name != "" {
		s.Name, err = image.ParseName(a.name, tagged)
		errs = append(errs, err)
	}
	if a.push != "" {
		a.pushed, err = image.ParseName(a.push, tagged)
		errs = append(errs, err)
	} else if a.insecure {
		errs = append(errs, errors.New("--insecure is for --push"))
	}
	a.targets, err = readAll(a.loads, image.ParseTarget)
	errs = append(errs, err)
	s.Binaries, err = readAll(a.platforms, image.ParseBinary)
	errs = append(errs, err)
	if len(a.platforms) == 0 {
		b, err := ownBinary()
		errs = append(errs, err)
		s.Binaries = append(s.Binaries, b)
	}
	return s, errors.Join(errs...)
}

// ownBinary returns the running program, even if its file has been replaced since it started. It fails unless this program
// is for Linux, as containers need.
func ownBinary() (image.Binary, error) {
	if runtime.GOOS != "linux" {
		return image.Binary{}, advice.With(fmt.Errorf("this cnibench is for %s, and containers need one for Linux", runtime.GOOS),
			"CGO_ENABLED=0 GOOS=linux GOARCH="+runtime.GOARCH+" make build, then --platform linux/"+runtime.GOARCH+"=bin/cnibench")
	}
	return image.ParseBinary("linux/" + runtime.GOARCH + "=/proc/self/exe")
}

// writeArchive writes the image to the file of --output, by default DefaultImage, or to stdout for "-". The file gets its
// name only when it is complete.
func (a *packaging) writeArchive(i *image.Image) error {
	if a.output == "-" {
		return i.WriteOCI(a.stdout)
	}
	file := cmp.Or(a.output, DefaultImage)
	size, err := writeAtomically(file, i.WriteOCI)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "cnibench: %s: %s, %s\n", file, i.Name(), formatSize(size))
	return nil
}

// formatSize formats a size for people.
func formatSize(n int64) string {
	scale := number.Common("B", float64(n))
	return scale.Format(float64(n)) + " " + scale.Unit
}
