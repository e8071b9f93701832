package external

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// format is one kind of output.
type format struct {
	name, about string
	// match says whether b, the whole input, looks like it.
	match  func(b []byte) bool
	decode func(b []byte) (Batch, error)
}

// formats are in the order in which they are tried.
var formats = []format{
	{"csv", "plain numbers with declared units, see docs/format.md", matchCSV, decodeCSV},
	{"knb-data", "a .knbdata archive of knb", matchKnbData, decodeKnbData},
	{"knb", "knb -o json, -o yaml", matchKnb, decodeKnb},
	{"knb-text", "what knb prints", matchKnbText, decodeKnbText},
	{folderFormat, "a results folder of InfraBuilder's benchmark-k8s-cni-2024-01", func([]byte) bool { return false }, decodeNoFolder},
	{"k8s-netperf", "k8s-netperf --json", matchK8sNetperfJSON, decodeK8sNetperfJSON},
	{"k8s-netperf-csv", "the result file of k8s-netperf --csv", matchK8sNetperfCSV, decodeK8sNetperfCSV},
	{"cilium-perf", "the report of cilium connectivity perf --report-dir", matchCiliumJSON, decodeCiliumJSON},
	{"cilium-perf-text", "the tables that cilium connectivity perf prints", matchCiliumTable, decodeCiliumTable},
	{"iperf3", "iperf3 -J, --json-stream", matchIperf3JSON, decodeIperf3JSON},
	{"iperf3-text", "what iperf3 prints", matchIperf3Text, decodeIperf3Text},
	{"netperf", "netperf -k, -o, -O, and its classic tables", matchNetperf, decodeNetperf},
	{"wrk", "what wrk and wrk2 print, best with --latency", matchWrk, decodeWrk},
	{"hey", "what hey prints", matchHey, decodeHey},
	{"hey-csv", "hey -o csv", matchHeyCSV, decodeHeyCSV},
	{"ping", "what ping prints (iputils, BusyBox, BSD)", matchPing, decodePing},
	{"sockperf", "what sockperf ping-pong prints", matchSockperf, decodeSockperf},
	{"neper", "what tcp_rr, tcp_crr and tcp_stream of neper print", matchNeper, decodeNeper},
}

// Formats returns the names of the formats, with a few words about each.
func Formats() (names, about []string) {
	for _, f := range formats {
		names, about = append(names, f.name), append(about, f.about)
	}
	return names, about
}

// Detect returns the name of the format that b is in.
func Detect(b []byte) (string, error) {
	if ours(b) {
		return "", errors.New("it is a result of cnibench already, which report, compare and check read as it is")
	}
	for _, f := range formats {
		if f.match(b) {
			return f.name, nil
		}
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return "", errors.New("it is empty")
	}
	return "", advice.With(errors.New("it is neither a result of cnibench nor the output of a tool that is known here"), knownFormats())
}

func knownFormats() string {
	names, _ := Formats()
	return "cnibench import --from FORMAT reads it if it is one of: " + strings.Join(names, ", ")
}

// Decode reads b in the format called name; "" detects it.
func Decode(name string, b []byte) (Batch, error) {
	if name == "" {
		var err error
		if name, err = Detect(b); err != nil {
			return Batch{}, err
		}
	}
	for _, f := range formats {
		if f.name != name {
			continue
		}
		batch, err := f.decode(b)
		if err != nil {
			return Batch{}, fmt.Errorf("as %s: %w", f.name, err)
		}
		if err := batch.check(); err != nil {
			return Batch{}, fmt.Errorf("as %s: %w", f.name, err)
		}
		return batch, nil
	}
	return Batch{}, advice.With(fmt.Errorf("unknown format %s", quoted(name)), knownFormats())
}

// check refuses what no result may hold: no trial at all, or a number that is none.
func (b *Batch) check() error {
	if len(b.Readings) == 0 && len(b.LeftOut) > 0 {
		return fmt.Errorf("nothing in it has a word here: %s", number.Few(b.LeftOut))
	}
	if len(b.Readings) == 0 {
		return errors.New("there is no trial in it")
	}
	for i, r := range b.Readings {
		for name, v := range r.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("trial %d: its %s is out of range", i+1, name)
			}
		}
		if r.Failure == nil && len(r.Metrics) == 0 {
			return fmt.Errorf("trial %d: it has neither a number nor a failure", i+1)
		}
	}
	return nil
}

// Open reads the file called name in the format called from; "" detects it.
func Open(name, from string) (Batch, error) {
	batch, err := open(name, from)
	if err != nil {
		return Batch{}, prefixed(name, err)
	}
	return batch, nil
}

func open(name, from string) (Batch, error) {
	f, err := os.Open(name)
	if err != nil {
		return Batch{}, cause(err)
	}
	defer f.Close() // it was only read
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return readFolder(name, from)
	}
	return read(f, from)
}

func readFolder(name, from string) (Batch, error) {
	if from != "" && from != folderFormat {
		return Batch{}, fmt.Errorf("it is a folder, and %s is a file", from)
	}
	b, err := openFolder(name)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return Batch{}, fmt.Errorf("as %s: %w", folderFormat, err)
	}
	return b, nil
}

// Read is Open for what has been opened; name is what errors call it.
func Read(r io.Reader, name, from string) (Batch, error) {
	batch, err := read(r, from)
	if err != nil {
		return Batch{}, prefixed(name, err)
	}
	return batch, nil
}

func read(r io.Reader, from string) (Batch, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return Batch{}, cause(err)
	}
	if len(b) > MaxInput {
		return Batch{}, fmt.Errorf("it is larger than %d MiB", MaxInput>>20)
	}
	return Decode(from, b)
}

// cause is err without the name of the file, which the caller puts in front of it.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// prefixed puts the name of the file before each line of err and keeps its advice.
func prefixed(name string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = name + ": " + lines[i]
	}
	return advice.With(&named{strings.Join(lines, "\n"), err}, advice.Of(err))
}

// named is an error with another text.
type named struct {
	text string
	err  error
}

func (n *named) Error() string { return n.text }
func (n *named) Unwrap() error { return n.err }

// ours says whether a file that begins with b is a result of our own, of any version.
func ours(b []byte) bool {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line[:min(len(line), 4096)], []byte(`"cnibench.result/`))
}
