package cli

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A server ends in order, and with success, when it is told to: that is how it is stopped.
func TestServeEnds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"cnibench", "serve", "--listen", "127.0.0.1:0", t.TempDir()}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	said, err := lines.ReadString('\n')
	address := regexp.MustCompile(`http://\S+/metrics`).FindString(said)
	if err != nil || address == "" {
		t.Errorf("it said %q, %v", said, err)
	} else if r, err := http.Get(address); err != nil {
		t.Error(err)
	} else if body, err := io.ReadAll(r.Body); err != nil || r.Body.Close() != nil || !strings.Contains(string(body), "cnibench_result_files") {
		t.Errorf("%v: %s", err, body)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("%v, and it said %q", err, rest)
	}
}
