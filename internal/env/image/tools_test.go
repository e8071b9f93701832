package image

import (
	"net/http/httptest"
	"slices"
	"testing"
)

// TestToolsOf: the tag says which tools an image has, or the registry does; else it is not known.
func TestToolsOf(t *testing.T) {
	s := httptest.NewServer(quietRegistry())
	defer s.Close()
	push := func(reference string, tools ...string) string {
		i, err := Build(Spec{Name: mustName(t, reference), Version: testVersion, Binaries: []Binary{binary(t, "amd64")}, Tools: tools})
		if err == nil {
			_, err = i.Push(t.Context(), Push{Name: i.Name()})
		}
		if err != nil {
			t.Fatal(err)
		}
		return reference
	}
	for _, tt := range []struct {
		reference string
		want      []string
		known     bool
	}{
		{ToolsName("v1.2.3", []string{"wrk", "hey", "wrk"}).String(), []string{"hey", "wrk"}, true},
		{"registry.example/a-with-b/cnibench:1-with-ping@sha256:" + string(slices.Repeat([]byte("a"), 64)), []string{"ping"}, true},
		{push(host(s)+"/cnibench:a", "iperf3", "ping"), []string{"iperf3", "ping"}, true},
		{push(host(s) + "/cnibench:b"), nil, true},
		{host(s) + "/cnibench:none", nil, false},
		{Repository + ":loaded", nil, false},
		{"not a reference", nil, false},
	} {
		got, known := ToolsOf(t.Context(), tt.reference)
		if !slices.Equal(got, tt.want) || known != tt.known {
			t.Errorf("%s: %v, %v; want %v, %v", tt.reference, got, known, tt.want, tt.known)
		}
	}
}

// TestServing: of the images on a node that have all tools, that with the fewest is taken; without one the name stays.
func TestServing(t *testing.T) {
	name := func(version string, tools ...string) string { return ToolsName(version, tools).String() }
	wanted := name("1", "iperf3")
	all := []string{name("1", "hey", "iperf3", "ping"), name("1", "iperf3", "ping"), name("2", "iperf3"), name("1", "hey"), Repository + ":1", "cnibench.local/cnibench@sha256:0"}
	for _, tt := range []struct {
		wanted  string
		present []string
		want    string
	}{
		{wanted, all, name("1", "iperf3", "ping")},
		{wanted, append(all, wanted), wanted},
		{wanted, all[2:], wanted},
		{Repository + ":1", all, Repository + ":1"},
	} {
		if got := Serving(tt.wanted, tt.present); got != tt.want {
			t.Errorf("%s among %v: %s, want %s", tt.wanted, tt.present, got, tt.want)
		}
	}
}
