package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// writeComponents keeps the schemas of built-in types (names under io.k8s.) and drops what is
// prose. Equal names hold equal schemas; the last one read wins.
func writeComponents(out string, documents []string) error {
	components := map[string]any{}
	for _, path := range documents {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var document struct {
			Components struct {
				Schemas map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(data, &document); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for name, schema := range document.Components.Schemas {
			if strings.HasPrefix(name, "io.k8s.") {
				dropProse(schema)
				components[name] = schema
			}
		}
	}
	var text bytes.Buffer
	text.WriteString("{\n")
	for i, name := range keys(components) {
		line, err := json.Marshal(components[name])
		if err != nil {
			return err
		}
		if i > 0 {
			text.WriteString(",\n")
		}
		fmt.Fprintf(&text, "%q: %s", name, line)
	}
	text.WriteString("\n}\n")
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// dropProse removes descriptions; a property that is named so is a schema and stays.
func dropProse(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if _, isText := node["description"].(string); isText {
			delete(node, "description")
		}
		for _, child := range node {
			dropProse(child)
		}
	case []any:
		for _, child := range node {
			dropProse(child)
		}
	}
}
