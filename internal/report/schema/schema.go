// Package schema makes the JSON Schemas (draft 2020-12) of plan files, profile files, result files and reports. The schemas
// of results and reports are derived from the Go types that are encoded. Those of plans and profiles are from packages plan
// and profilefile.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

//go:generate go run ../../tool/reference ../../../docs ../../../deploy

const draft = "https://json-schema.org/draft/2020-12/schema"

// Names are the names of the formats that have a schema.
var Names = []string{"plan", "profile", "result", "report"}

// Write writes the schema of a format, one of Names. It fails for another name.
func Write(w io.Writer, name string) error {
	var schema any
	var err error
	switch name {
	case "plan":
		s := plan.Schema()
		s["$schema"], s["title"] = draft, "cnibench plan file, version "+plan.APIVersion
		schema = s
	case "profile":
		s := profilefile.Schema()
		s["$schema"], s["title"] = draft, "cnibench profile file, version "+plan.APIVersion
		schema = s
	case "result":
		schema, err = resultSchema()
	case "report":
		schema, err = reportSchema()
	default:
		err = fmt.Errorf("unknown format %q: want one of %s", name, strings.Join(Names, ", "))
	}
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(schema)
}

// resultSchema returns the schema of one line of a result file: a header, a trial, the cost of an instance's state, or
// an end.
func resultSchema() (*jsonschema.Schema, error) {
	header, err1 := schemaOf[result.Header](nil)
	trial, err2 := schemaOf[result.Record](nil)
	end, err3 := schemaOf[result.EndLine](nil)
	raised, err4 := schemaOf[result.RaisedLine](nil)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	header.Properties["schema"].Const = jsonschema.Ptr[any](result.Schema)
	end.Properties["type"].Const = jsonschema.Ptr[any](result.TypeEnd)
	raised.Properties["type"].Const = jsonschema.Ptr[any](result.TypeRaised)
	trial.Properties["type"].Enum = []any{result.TypeTrial, result.TypeSampled, result.TypeCounted}
	trial.Properties["status"].Enum = []any{result.OK, result.Failed}
	trial.Properties["metrics"].Properties = metricSchemas()
	delete(trial.Properties, "end")
	delete(trial.Properties, "raised")
	return &jsonschema.Schema{
		Schema: draft, Title: "A line of a cnibench result file, " + result.Schema,
		Description: "docs/reference/result-file.md has the meaning of every field.",
		AnyOf:       []*jsonschema.Schema{{Ref: "#/$defs/header"}, {Ref: "#/$defs/trial"}, {Ref: "#/$defs/raised"}, {Ref: "#/$defs/end"}},
		Defs:        map[string]*jsonschema.Schema{"header": header, "trial": trial, "raised": raised, "end": end},
	}, nil
}

// metricSchemas returns the schema of each metric of the catalogue by its name.
func metricSchemas() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{}
	for _, m := range metric.All() {
		all[m.Name] = &jsonschema.Schema{Type: "number", Description: m.Definition + " Unit: " + m.Unit + "."}
	}
	return all
}

func reportSchema() (*jsonschema.Schema, error) {
	unknown := types{reflect.TypeFor[float64](): {Types: []string{"number", "null"}}}
	s, err := schemaOf[report.ReportData](unknown)
	if err != nil {
		return nil, err
	}
	for _, x := range report.Subjects() {
		if s.Properties[x.Key], err = schemaOfType(reflect.TypeOf(x.Value), unknown); err != nil {
			return nil, err
		}
		s.PropertyOrder = append(s.PropertyOrder, x.Key)
	}
	s.Schema, s.Title = draft, "What cnibench report -f json prints, "+report.ReportSchema
	s.Properties["schema"].Const = jsonschema.Ptr[any](report.ReportSchema)
	return s, nil
}

type types = map[reflect.Type]*jsonschema.Schema

// schemaOf returns the schema of T; see schemaOfType.
func schemaOf[T any](more types) (*jsonschema.Schema, error) {
	return schemaOfType(reflect.TypeFor[T](), more)
}

// schemaOfType returns the schema of the JSON of a type. more has schemas that take precedence for their types. It fails for
// a type that JSON cannot encode.
func schemaOfType(t reflect.Type, more types) (*jsonschema.Schema, error) {
	text := &jsonschema.Schema{Type: "string"}
	known := types{
		reflect.TypeFor[plan.Path]():        text,
		reflect.TypeFor[plan.Variant]():     text,
		reflect.TypeFor[plan.Workload]():    text,
		reflect.TypeFor[sample.Histogram](): {Type: "string", Description: "HdrHistogram, V2 compressed encoding"},
		reflect.TypeFor[map[int]map[string]int64](): {Type: "object", AdditionalProperties: &jsonschema.Schema{
			Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}}},
		reflect.TypeFor[map[int]int64](): {Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}},
	}
	maps.Copy(known, more)
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err == nil {
		allowUnknownMembers(s)
	}
	return s, err
}

// allowUnknownMembers allows unknown members in s and below, because later minor versions of a format may add some.
func allowUnknownMembers(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil {
		s.AdditionalProperties = nil
	}
	allowUnknownMembers(s.AdditionalProperties)
	allowUnknownMembers(s.Items)
	for _, member := range s.Properties {
		allowUnknownMembers(member)
	}
}
