package drive

import (
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/cnibench/cnibench/internal/plan"
)

// usual are the directories that are looked at where the search path has no program.
var usual = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// Find returns the path of a program. The error is an *Error of KindMissing.
func Find(tool, program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range usual {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", Errorf(KindMissing, tool, "the program %s is not there: install it, or leave the tool out", program)
}

// asks are the arguments by which a tool says its version, and how it does.
var asks = map[string]struct {
	argv []string
	says *regexp.Regexp
}{
	plan.Iperf3:   {[]string{"--version"}, regexp.MustCompile(`(?m)^iperf (\S+)`)},
	plan.Netperf:  {[]string{"-V"}, regexp.MustCompile(`(?i)netperf version (\S+)`)},
	plan.Wrk:      {[]string{"-v"}, regexp.MustCompile(`(?m)^wrk (\S+)`)},
	plan.PingTool: {[]string{"-V"}, regexp.MustCompile(`(?m)^ping from (.+)$`)},
	plan.Sockperf: {[]string{"--version"}, regexp.MustCompile(`(?m)^sockperf, version (\S+)`)},
	plan.Neper:    {[]string{"--version"}, regexp.MustCompile(`(?m)^\S*?(\d[\w.-]*)\s*$`)},
}

// parseVersion picks the version of a tool out of what it says.
func parseVersion(tool string, out []byte) string {
	m := asks[tool].says.FindSubmatch(out)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// Environment is that of every tool: numbers in the C locale, and programs where they usually are.
var Environment = []string{"LC_ALL=C", "LANG=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
