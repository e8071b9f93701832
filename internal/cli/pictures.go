package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/report/figure"
)

// writePictures writes every figure of d as an SVG file into the directory dir and returns their number. The number before
// each name keeps the files in reading order.
func writePictures(dir string, d report.Document) (int, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, fmt.Errorf("directory of pictures: %w", err)
	}
	all := figure.All(d)
	for i, f := range all {
		if err := writePicture(filepath.Join(dir, fmt.Sprintf("%03d-%s.svg", i+1, f.Name())), f.Drawing); err != nil {
			return i, err
		}
	}
	return len(all), nil
}

func writePicture(name string, d chart.Drawing) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return chart.WriteSVG(f, chart.Framed(d))
}
