package cli

// The import registers the workload idle.
import _ "github.com/cnibench/cnibench/internal/conduct/idle"
