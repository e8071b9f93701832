package cli

// Workloads that are a folder each.
import _ "github.com/cnibench/cnibench/internal/conduct/idle"
