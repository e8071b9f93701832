package html

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

var (
	ids   = regexp.MustCompile(` id="([^"]+)"`)
	hrefs = regexp.MustCompile(`href="#([^"]+)"`)
)

func pageOf(t *testing.T, r reporttest.Result) string {
	t.Helper()
	return string(reporttest.Render(t, r, Render))
}

func found(of *regexp.Regexp, page string) []string {
	var out []string
	for _, m := range of.FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// Every cell and table has an address, no two have the same, every link has its place, and an address does not change
// when another profile is measured too.
func TestPermalinks(t *testing.T) {
	few := reporttest.NinePaths(2)
	for _, r := range []reporttest.Result{few, reporttest.Hostile(), reporttest.Small(3)} {
		page := pageOf(t, r)
		all := found(ids, page)
		slices.Sort(all)
		if unique := slices.Compact(slices.Clone(all)); len(unique) != len(all) {
			t.Errorf("%d addresses, %d different", len(all), len(unique))
		}
		for _, to := range found(hrefs, page) {
			if _, ok := slices.BinarySearch(all, to); !ok {
				t.Errorf("a link to %q leads nowhere", to)
			}
		}
	}
	cell := "t-service-demand-rr-pod-to-pod-cross-node-canal"
	page := pageOf(t, few)
	if !strings.Contains(page, `<td id="`+cell+`"`) || !strings.Contains(page, `<a href="#`+cell+`">`) {
		t.Errorf("no cell %s", cell)
	}
	before := found(ids, page)
	more := few
	more.Header.Plan.Profiles = append(slices.Clone(few.Header.Plan.Profiles), plan.VariantOf("calico-ebpf"))
	for _, rec := range few.Records {
		if rec.Profile == plan.VariantOf("canal") {
			rec.Profile = plan.VariantOf("calico-ebpf")
			more.Records = append(more.Records, rec)
		}
	}
	after := found(ids, pageOf(t, more))
	for _, id := range before {
		if strings.HasPrefix(id, "t-") && !slices.Contains(after, id) {
			t.Errorf("%s has gone", id)
		}
	}
}

// The page has what to paste and an image to share; the run's name is in both, and in every report of the result.
func TestMethods(t *testing.T) {
	page := pageOf(t, reporttest.NinePaths(6))
	id := regexp.MustCompile(`run ([0-9a-f]{12}),`).FindStringSubmatch(page)
	if id == nil {
		t.Fatal("no run is cited")
	}
	for _, want := range []string{
		`download="cnibench-` + id[1] + `.svg" href="data:image/svg&#43;xml;base64,`, "We measured 8 profiles in the lab",
		"2026-03-04 05:06 UTC", "kernel 6.18.44", "MTU 1500", `<dd data-copy>cnibench `, `class="glance"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if again := pageOf(t, reporttest.NinePaths(6)); again != page {
		t.Error("the same result has another page")
	}
}
