// Command typetables prints the Rust tables of crates/objects/fp-builtin/src/tables from the
// published Go types of Kubernetes: facts only (tags, names, shapes), no code.
//
//	go run . tables DIR          writes one .rs file per API package into DIR
//	go run . samples OUT         writes objects with random content, as bytes and as JSON
//	go run . openapi OUT DOC...  collects the schemas of OpenAPI v3 documents, without
//	                             descriptions, into one JSON file, a component per line
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "tables":
		err = writeTables(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "samples":
		err = writeSamples(os.Args[2])
	case len(os.Args) > 3 && os.Args[1] == "openapi":
		err = writeComponents(os.Args[2], os.Args[3:])
	default:
		err = fmt.Errorf("usage: typetables tables DIR | samples OUT | openapi OUT DOC...")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "typetables:", err)
		os.Exit(1)
	}
}
