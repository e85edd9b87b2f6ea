// clientgo runs scenarios of client-go against a server and prints what a program would see.
//
//	clientgo <kubeconfig> <scenario>
//
// A scenario prints no name, time or revision that differs between two runs.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long a scenario may take.
const patience = 60 * time.Second

const namespace = "default"

var scenarios = map[string]func(context.Context, *rest.Config, *requests){
	"informer":  informer,
	"typed":     typed,
	"leases":    leases,
	"discovery": discover,
	"wait":      wait,
	"pages":     pages,
}

func main() {
	if len(os.Args) != 3 || scenarios[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clientgo <kubeconfig> <scenario>")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	config.QPS = -1
	seen := &requests{counts: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				seen.note(request, response)
			}
			return response, err
		})
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	scenarios[os.Args[2]](ctx, config, seen)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// requests counts what was answered: lists, watches by how they begin, media types.
type requests struct {
	lock   sync.Mutex
	counts map[string]int
}

func (r *requests) note(request *http.Request, response *http.Response) {
	r.lock.Lock()
	defer r.lock.Unlock()
	query := request.URL.Query()
	switch {
	case query.Get("watch") == "":
		if request.Method == http.MethodGet {
			r.counts["get or list"]++
		}
	case query.Get("sendInitialEvents") == "true":
		r.counts["watch with initial events"]++
	default:
		r.counts["watch from a revision"]++
	}
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	r.counts[media]++
}

// take answers a count and sets it to zero.
func (r *requests) take(what string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	defer delete(r.counts, what)
	return r.counts[what]
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(1)
	}
}
