package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/report/chart/raster"
	"github.com/cnibench/cnibench/internal/report/figure"
)

// writeCharts writes every figure of d into the directory dir, as SVG and as PNG, and says how many there are. The
// number before each name keeps them in reading order and apart.
func writeCharts(dir string, d report.Document) (int, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("directory of charts: %w", err)
	}
	all := figure.All(d)
	for i, f := range all {
		drawing := chart.Framed(f.Drawing)
		stem := filepath.Join(dir, fmt.Sprintf("%03d-%s", i+1, f.Name()))
		svg := func(w io.Writer) error { return chart.WriteSVG(w, drawing) }
		png := func(w io.Writer) error { return raster.PNG(w, drawing, raster.Options{}) }
		if err := errors.Join(writeChart(stem+".svg", svg), writeChart(stem+".png", png)); err != nil {
			return i, err
		}
	}
	return len(all), nil
}

// writeChart makes one file.
func writeChart(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}
