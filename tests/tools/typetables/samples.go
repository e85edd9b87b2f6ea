package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
)

const (
	samplesPerRoot = 3
	maxDepth       = 6
)

// writeSamples prints objects of every root with random content: the message's name, its wire form
// in base64 and its JSON, separated by tabs. The same seed gives the same objects.
func writeSamples(out string) error {
	var text bytes.Buffer
	fill := filler(rand.New(rand.NewSource(1)))
	for _, root := range append(schemas, roots...) {
		t := reflect.TypeOf(root)
		for range samplesPerRoot {
			object := reflect.New(t)
			fill.Fill(object.Interface())
			if typeMeta := object.Elem().FieldByName("TypeMeta"); typeMeta.IsValid() {
				typeMeta.SetZero()
			}
			wire, err := object.Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
			if err != nil {
				return fmt.Errorf("%s: %w", typeName(t), err)
			}
			// What was nil and what was empty may be one on the wire: what comes back is the sample.
			again := reflect.New(t)
			if err := again.Interface().(interface{ Unmarshal([]byte) error }).Unmarshal(wire); err != nil {
				return fmt.Errorf("%s: %w", typeName(t), err)
			}
			if wire, err = again.Interface().(interface{ Marshal() ([]byte, error) }).Marshal(); err != nil {
				return fmt.Errorf("%s: %w", typeName(t), err)
			}
			printed, err := json.Marshal(again.Interface())
			if err != nil {
				return fmt.Errorf("%s: %w", typeName(t), err)
			}
			name := packages[t.PkgPath()].prefix + t.Name()
			fmt.Fprintf(&text, "%s\t%s\t%s\n", name, base64.StdEncoding.EncodeToString(wire), printed)
		}
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// schemas are filled on their own: a random CRD seldom reaches its schema.
var schemas = []any{v1.JSONSchemaProps{}, v1beta1.JSONSchemaProps{}}

func filler(random *rand.Rand) *randfill.Filler {
	anyJSON := func() []byte { return fmt.Appendf(nil, `{"a":[%d,null],"b":"x"}`, random.Intn(1000)) }
	return randfill.New().RandSource(random).NilChance(0.5).NumElements(0, 2).MaxDepth(maxDepth).Funcs(
		func(s *string, c randfill.Continue) { *s = texts[random.Intn(len(texts))] },
		func(b *[]byte, c randfill.Continue) { *b = []byte{byte(random.Intn(256)), 0xff} },
		func(t *meta.Time, c randfill.Continue) { *t = meta.NewTime(time.Unix(1+random.Int63n(4e9), 0).UTC()) },
		func(t *meta.MicroTime, c randfill.Continue) {
			*t = meta.NewMicroTime(time.Unix(1+random.Int63n(4e9), random.Int63n(1e6)*1000).UTC())
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(random.Int63n(1000), resource.DecimalSI)
		},
		func(f *meta.FieldsV1, c randfill.Continue) { f.Raw = anyJSON() },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = anyJSON() },
		func(j *v1.JSON, c randfill.Continue) { j.Raw = anyJSON() },
		func(j *v1beta1.JSON, c randfill.Continue) { j.Raw = anyJSON() },
		func(f *float64, c randfill.Continue) { *f = float64(random.Intn(4000))/4 - 500 },
		func(s *v1.JSONSchemaPropsOrBool, c randfill.Continue) { s.Allows = random.Intn(2) == 0 },
		func(s *v1.JSONSchemaPropsOrArray, c randfill.Continue) {
			s.Schema = &v1.JSONSchemaProps{Type: "string"}
		},
		func(s *v1.JSONSchemaPropsOrStringArray, c randfill.Continue) { s.Property = []string{"a", "b"} },
		func(s *v1beta1.JSONSchemaPropsOrBool, c randfill.Continue) {
			s.Allows, s.Schema = true, &v1beta1.JSONSchemaProps{Type: "string"}
		},
		func(s *v1beta1.JSONSchemaPropsOrArray, c randfill.Continue) {
			s.JSONSchemas = []v1beta1.JSONSchemaProps{{Type: "string"}, {}}
		},
		func(s *v1beta1.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			s.Schema = &v1beta1.JSONSchemaProps{Format: "byte"}
		},
	)
}

var texts = []string{"", "a", "default", "x.example.dev", "<b> & é\u2028", "line\nbreak", "0"}
