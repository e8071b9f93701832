package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/engine/agent"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestMain makes the test binary an agent when it is called as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		if err := agent.Serve(context.Background(), os.Stdin, os.Stdout, "test"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestRun makes the whole page with one repetition: every tool that is here does every task of its.
func TestRun(t *testing.T) {
	ns, err := netns.New()
	if err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
	ns.Close()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skipf("needs a C compiler: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	o := options{program: self, repetitions: 1, length: time.Second, only: []string{"rr", "http, many"}}
	if err := run(t.Context(), &b, io.Discard, o); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	for _, want := range []string{`\| rr \| pingpong \| transactions/s \| [0-9]`, `Kernel`} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("the page has no %q", want)
		}
	}
	if _, err := exec.LookPath("wrk"); err == nil {
		for _, want := range []string{`\| http, many \| wrk \| requests/s \| [0-9]`, `\| http, many \| wrk \| ns/request \| [0-9]`} {
			if !regexp.MustCompile(want).MatchString(b.String()) {
				t.Errorf("the page has no %q", want)
			}
		}
	}
	if _, err := exec.LookPath("strace"); err != nil {
		return
	}
	if want := `\| http, many \| cnibench \| client \| recvfrom 1.\d\d, sendto 1.\d\d \| 2.\d\d`; !regexp.MustCompile(want).MatchString(b.String()) {
		t.Errorf("the page has no %q", want)
	}
	// strace makes a transaction so long that the clock of the yardstick, read each ms, can be seen.
	if want := `\| rr \| cnibench \| client \| (clock_gettime \d.\d\d, )?recvfrom 1.0\d, sendto 1.0\d \| \d.\d\d`; !regexp.MustCompile(want).MatchString(b.String()) {
		t.Errorf("the page has no %q", want)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]options{
		"part of a second": {program: "x", repetitions: 1, length: 1500 * time.Millisecond},
		"no repetition":    {program: "x", length: time.Second},
	} {
		if err := run(t.Context(), io.Discard, io.Discard, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
