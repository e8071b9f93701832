package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// toolPrograms returns the program files of tools on this machine. The error names every tool that is unknown or not
// installed.
func toolPrograms(tools []string) ([]string, error) {
	var files []string
	var errs []error
	for _, name := range tools {
		tool, known := plan.ToolNamed(name)
		if !known {
			errs = append(errs, fmt.Errorf("unknown tool %q%s: there are %s", name, advice.DidYouMean(name, plan.ToolNames()), strings.Join(plan.ToolNames(), ", ")))
			continue
		}
		for _, program := range allPrograms(tool) {
			file, err := external.Find(name, program)
			if err == nil {
				files = append(files, file)
			}
			errs = append(errs, err)
		}
	}
	return each.Once(files), errors.Join(errs...)
}

// allPrograms returns the names of the programs that a tool uses, over all workloads that it can send.
func allPrograms(tool plan.Tool) []string {
	var all []string
	for _, spec := range tool.Kinds {
		kind := plan.Workload{Spec: spec}.Kind()
		for _, options := range []string{"", "udp,"} {
			w, err := plan.ParseWorkload(fmt.Sprintf("%s(%stool=%s)", kind, options, tool.Name))
			if err == nil && w.Beyond() == "" { // the tool may not send this over UDP
				all = append(all, external.Programs(w)...)
			}
		}
	}
	return each.Once(all)
}

// uninstalledTools returns those of the given tools that have a program which is not installed here.
func uninstalledTools(tools []string) []string {
	return each.Where(tools, func(name string) bool {
		_, err := toolPrograms([]string{name})
		return err != nil
	})
}
