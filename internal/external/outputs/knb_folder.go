package outputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/external/iperf3"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// knbFolderTests are the tests of InfraBuilder's benchmark of 2024: direct or by the Service, TCP or UDP, one stream or
// eight.
var knbFolderTests = []struct {
	name string
	path plan.Path
	work plan.Workload
}{
	{"dts", plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Workload{Spec: plan.Stream{}}},
	{"dtm", plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Workload{Spec: plan.Stream{Flows: 8}}},
	{"dus", plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}},
	{"dum", plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Flows: 8}}},
	{"sts", plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, plan.Workload{Spec: plan.Stream{}}},
	{"stm", plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, plan.Workload{Spec: plan.Stream{Flows: 8}}},
	{"sus", plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}},
	{"sum", plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Flows: 8}}},
}

// knbBareMetal is the profile of the nodes themselves.
const knbBareMetal = "baremetal"

// mostKnbEntries bounds the entries of a folder that are read, deepestKnbFolder its depth.
const (
	mostKnbEntries   = 20_000
	deepestKnbFolder = 3
)

// knbFolder is a results folder of all profiles, of one profile, or of one run.
type knbFolder struct {
	batch adapter.Batch
	files fs.FS
	// name is the name of the folder, above the name of its parent.
	name, above string
	// tests has a key, "PROFILE TEST", for each reading. known has the workload by key, from the runs that report it. total
	// is how many bytes were read.
	tests []string
	known map[string]plan.Workload
	total int64
}

// readKnbFolder reads the results folder of InfraBuilder's benchmark of CNIs of 2024: PROFILE/RUN/TEST-client.stdout,
// the JSON of iperf3, and all.results. Links are not followed and nothing outside the folder is opened.
func readKnbFolder(name string) (adapter.Batch, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return adapter.Batch{}, adapter.Cause(err)
	}
	defer root.Close() // it was only read
	full, err := filepath.Abs(name)
	if err != nil {
		return adapter.Batch{}, err
	}
	return decodeKnbFolder(root.FS(), filepath.Base(full), filepath.Base(filepath.Dir(full)))
}

// decodeKnbFolder reads the results folder in files. name is the name of the folder, above the name of its parent.
func decodeKnbFolder(files fs.FS, name, above string) (adapter.Batch, error) {
	f := &knbFolder{files: files, name: name, above: above, known: map[string]plan.Workload{}}
	f.batch = adapter.Batch{Tool: "iperf3", Environment: "kubernetes", Facts: facts.Facts{}}
	runs, err := f.runFolders()
	if err != nil {
		return adapter.Batch{}, err
	}
	if len(runs) == 0 {
		return adapter.Batch{}, errors.New("the folder holds no run of the benchmark: want PROFILE/RUN/all.results")
	}
	for _, dir := range runs {
		if err := f.readRun(dir); err != nil {
			return adapter.Batch{}, fmt.Errorf("%s: %w", dir, err)
		}
	}
	f.replaceAssumedWorkloads()
	f.batch.LeaveOut("CPU and memory by statexec, which are of the whole nodes and lack softirq and irq in all.results")
	return f.batch, nil
}

// runFolders returns the folders with a run, sorted.
func (f *knbFolder) runFolders() ([]string, error) {
	var runs []string
	entries := 0
	err := fs.WalkDir(f.files, ".", func(p string, d fs.DirEntry, err error) error {
		if entries++; entries > mostKnbEntries {
			return fmt.Errorf("the folder has more than %d entries", mostKnbEntries)
		}
		switch {
		case err != nil:
			return adapter.Cause(err)
		case d.IsDir() && p != "." && strings.Count(p, "/") >= deepestKnbFolder:
			return fs.SkipDir
		case d.Type().IsRegular() && path.Base(p) == "all.results":
			runs = append(runs, path.Dir(p))
		}
		return nil
	})
	return runs, err
}

// profileAndNumber derives a run's profile and number from its path.
func (f *knbFolder) profileAndNumber(dir string) (profile string, run int, err error) {
	parts := strings.Split(path.Join(f.above, f.name, dir), "/")
	last := parts[len(parts)-1]
	if run, err = adapter.Count(last); err != nil || run < 1 {
		return "", 0, fmt.Errorf("folder %s is not the number of a run", adapter.Quoted(last))
	}
	profile = parts[len(parts)-2]
	return profile, run, adapter.CheckProfile(profile)
}

// readRun reads the tests of one run.
func (f *knbFolder) readRun(dir string) error {
	profile, number, err := f.profileAndNumber(dir)
	if err != nil {
		return err
	}
	all, err := f.readFile(path.Join(dir, "all.results"))
	if err != nil {
		return err
	}
	sums := knbSettings(all)
	for _, test := range knbFolderTests {
		r := adapter.Reading{}
		body, err := f.readFile(path.Join(dir, test.name+"-client.stdout"))
		switch {
		case err == nil:
			one, err := iperf3.DecodeJSON(body)
			if err == nil && len(one.Readings) != 1 {
				err = fmt.Errorf("it has %d results, want 1", len(one.Readings))
			}
			if err != nil {
				r.Fail("error", fmt.Sprintf("cannot read the output of iperf3: %v", err))
				break
			}
			r = one.Readings[0]
			f.batch.Tool = one.Tool
			adapter.MergeFacts(f.batch.Facts, one.Facts)
			f.batch.Warmup = max(f.batch.Warmup, one.Warmup)
		case errors.Is(err, fs.ErrNotExist):
			sum, ok := sums[strings.ToUpper(test.name)+"_BW"]
			if !ok {
				continue // a run without Services has no tests of Services
			}
			if err := setKnbBandwidth(&r, "the benchmark", sum, 1); err != nil {
				return fmt.Errorf("%s: %w", test.name, err)
			}
		default:
			return err
		}
		r.Profile, r.Path, r.Repetition = profile, test.path, number
		if profile == knbBareMetal && test.path.To == plan.Pod {
			r.Path = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
		}
		f.completeWorkload(&r, dir, test.name, test.work)
		f.batch.Readings = append(f.batch.Readings, r)
	}
	return nil
}

// completeWorkload completes the workload of r. If r has no workload, because the run failed, it sets work, with a warning.
// If the command of the test had -Z, which the JSON of iperf3 lacks, it sets the mode sendfile.
func (f *knbFolder) completeWorkload(r *adapter.Reading, dir, test string, work plan.Workload) {
	key := r.Profile + " " + test
	f.tests = append(f.tests, key)
	if r.Workload.Spec == nil {
		r.Workload = work.Normalize()
		r.Warn(adapter.Assumed, "the run names neither its message size nor its congestion control")
	}
	command, err := f.readFile(path.Join(dir, test+"-client.cmd"))
	if s, ok := r.Workload.Spec.(plan.Stream); ok && err == nil && knbZeroCopy.Match(command) && s.Protocol == plan.TCP {
		s.Mode = "sendfile"
		r.Workload.Spec = s
	}
	if r.Failure == nil && len(r.Warnings) == 0 {
		f.known[key] = r.Workload
	}
}

var knbZeroCopy = pattern.New(`\siperf3\s.*\s-Z(\s|$)`)

// replaceAssumedWorkloads replaces the assumed workloads of runs by the workload that other runs of their test report.
func (f *knbFolder) replaceAssumedWorkloads() {
	assumed := func(w sample.Warning) bool { return w.ID == adapter.Assumed }
	for i, test := range f.tests {
		r := &f.batch.Readings[i]
		if w, ok := f.known[test]; ok && slices.ContainsFunc(r.Warnings, assumed) {
			r.Workload, r.Warnings = w, slices.DeleteFunc(r.Warnings, assumed)
		}
	}
}

// readFile reads one file of the folder, within the limit for the whole folder.
func (f *knbFolder) readFile(name string) ([]byte, error) {
	file, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", adapter.Quoted(name)))
	}
	left := int64(mostKnbFolder) - f.total
	b, err := io.ReadAll(io.LimitReader(file, min(left, adapter.MaxInput)+1))
	if f.total += int64(len(b)); err == nil && int64(len(b)) > min(left, adapter.MaxInput) {
		err = fmt.Errorf("%s: the files are larger than %d MiB", adapter.Quoted(name), mostKnbFolder>>20)
	}
	return b, err
}

// mostKnbFolder bounds the bytes that are read from a folder. The published folder of 2024 has 170 MB; a third is read.
const mostKnbFolder = 1 << 30

// knbSettings returns the values of NAME=value lines. It ignores other lines and runs nothing.
func knbSettings(b []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[name] = value
		}
	}
	return out
}
