package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(name, value string) *corev1.ConfigMap {
	labels := map[string]string{"by": "clientgo"}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Data:       map[string]string{"value": value},
	}
}

func clientset(config *rest.Config) *kubernetes.Clientset {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	must(err)
	return client
}

// informer tells each event of a dynamic shared informer, and goes on when the server has been
// started again: it says `restart` and waits for a line on stdin.
func informer(ctx context.Context, config *rest.Config, seen *requests) {
	events := make(chan string, 100)
	tell := func(what string, obj any) {
		o := obj.(*unstructured.Unstructured)
		value, _, _ := unstructured.NestedString(o.Object, "data", "value")
		events <- fmt.Sprintf("%s %s=%s", what, o.GetName(), value)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	must(err)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = "by=clientgo" })
	shared := factory.ForResource(configMaps).Informer()
	_, err = shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell("added", obj) },
		UpdateFunc: func(_, obj any) { tell("updated", obj) },
		DeleteFunc: func(obj any) { tell("deleted", obj) },
	})
	must(err)
	client := clientset(config).CoreV1().ConfigMaps(namespace)
	_, err = client.Create(ctx, configMap("a", "1"), metav1.CreateOptions{})
	must(err)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.HasSynced) {
		must(fmt.Errorf("the informer has not synced"))
	}
	fmt.Println(next(ctx, events))
	fmt.Println("began with initial events:", seen.take("watch with initial events") == 1)
	_, err = client.Create(ctx, configMap("b", "1"), metav1.CreateOptions{})
	must(err)
	_, err = client.Update(ctx, configMap("b", "2"), metav1.UpdateOptions{})
	must(err)
	must(client.Delete(ctx, "a", metav1.DeleteOptions{}))
	fmt.Printf("%s, %s, %s\n", next(ctx, events), next(ctx, events), next(ctx, events))

	seen.take("watch from a revision")
	seen.take("get or list")
	fmt.Println("restart")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	must(err)
	_, err = client.Update(ctx, configMap("b", "3"), metav1.UpdateOptions{})
	must(err)
	must(client.Delete(ctx, "b", metav1.DeleteOptions{}))
	fmt.Printf("%s, %s\n", next(ctx, events), next(ctx, events))
	fmt.Println("lists since the restart:", seen.take("watch with initial events")+seen.take("get or list"))
	fmt.Println("watched on from a revision:", seen.take("watch from a revision") > 0)
	fmt.Println("left in the store:", len(shared.GetStore().ListKeys()), "pending events:", len(events))
}

func next(ctx context.Context, events <-chan string) string {
	select {
	case event := <-events:
		return event
	case <-ctx.Done():
		must(fmt.Errorf("no event: %w", ctx.Err()))
		return ""
	}
}

// typed writes and reads through a typed clientset that speaks protobuf.
func typed(ctx context.Context, config *rest.Config, seen *requests) {
	client := clientset(config).CoreV1()
	made, err := client.ConfigMaps(namespace).Create(ctx, configMap("typed", "1"), metav1.CreateOptions{})
	must(err)
	fmt.Println("created", made.Name, made.Data, "with a uid:", made.UID != "")
	_, err = client.ConfigMaps(namespace).Create(ctx, made, metav1.CreateOptions{})
	fmt.Println("with a revision:", err)
	_, err = client.ConfigMaps(namespace).Create(ctx, configMap("typed", "1"), metav1.CreateOptions{})
	fmt.Println("again:", err, apierrors.IsAlreadyExists(err))
	newer := made.DeepCopy()
	newer.Data["value"] = "2"
	newer, err = client.ConfigMaps(namespace).Update(ctx, newer, metav1.UpdateOptions{})
	must(err)
	fmt.Println("updated", newer.Data, "same uid:", newer.UID == made.UID)
	_, err = client.ConfigMaps(namespace).Update(ctx, made, metav1.UpdateOptions{})
	fmt.Println("from an old revision: conflict", apierrors.IsConflict(err))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "typed-"}, StringData: map[string]string{"k": "v"},
	}
	secret, err = client.Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	must(err)
	fmt.Printf("secret %s %s=%s\n", secret.Type, "k", secret.Data["k"])
	list, err := client.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "by=clientgo"})
	must(err)
	fmt.Println("listed", len(list.Items), list.Items[0].Name)
	must(client.ConfigMaps(namespace).Delete(ctx, "typed", metav1.DeleteOptions{}))
	_, err = client.ConfigMaps(namespace).Get(ctx, "typed", metav1.GetOptions{})
	fmt.Println("deleted:", err, apierrors.IsNotFound(err))
	fmt.Println("answers not in protobuf:", seen.take("application/json"))
}

// leases lets two candidates lead one after the other.
func leases(ctx context.Context, config *rest.Config, _ *requests) {
	client := clientset(config)
	for _, name := range []string{"first", "second"} {
		leading, stop := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "clientgo", Namespace: namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(leading, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, Name: name,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				// A candidate that stops while its first renewal is under way cannot release.
				OnStartedLeading: func(context.Context) { fmt.Println(name, "leads:", renewed(ctx, client)); stop() },
				OnStoppedLeading: func() { fmt.Println(name, "stopped") },
			},
		})
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "clientgo", metav1.GetOptions{})
	must(err)
	fmt.Println("released:", holder(lease))
}

// renewed waits for a renewal and answers who holds the lease.
func renewed(ctx context.Context, client *kubernetes.Clientset) string {
	for {
		lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "clientgo", metav1.GetOptions{})
		must(err)
		if lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) {
			return holder(lease)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func holder(lease *coordinationv1.Lease) string {
	return fmt.Sprintf("%q after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
}

// discover maps kinds and resources by what the server says it serves.
func discover(_ context.Context, config *rest.Config, seen *requests) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err)
	lists, err := client.ServerPreferredResources()
	must(err)
	var groups []string
	for _, list := range lists {
		groups = append(groups, list.GroupVersion)
	}
	sort.Strings(groups)
	fmt.Println(strings.Join(groups, "\n"))
	fmt.Println("requests for all groups:", seen.take("get or list"))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	short := restmapper.NewShortcutExpander(mapper, memory.NewMemCacheClient(client), func(string) {})
	for _, kind := range []schema.GroupKind{
		{Kind: "ConfigMap"}, {Group: "tenancy.kcp.io", Kind: "Workspace"}, {Kind: "Unheard"},
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			fmt.Println(kind, "->", err, meta.IsNoMatchError(err))
			continue
		}
		fmt.Println(kind, "->", mapping.Resource, mapping.Scope.Name())
	}
	found, err := short.ResourceFor(schema.GroupVersionResource{Resource: "ws"})
	must(err)
	fmt.Println("ws ->", found)
}

// wait waits for states with watches that begin with what exists.
func wait(ctx context.Context, config *rest.Config, seen *requests) {
	client := clientset(config).CoreV1().ConfigMaps(namespace)
	_, err := client.Create(ctx, configMap("awaited", "0"), metav1.CreateOptions{})
	must(err)
	go func() {
		for _, value := range []string{"1", "2"} {
			_, err := client.Update(ctx, configMap("awaited", value), metav1.UpdateOptions{})
			must(err)
		}
	}()
	source := cache.NewListWatchFromClient(clientset(config).CoreV1().RESTClient(), "configmaps", namespace, fields.OneTermEqualSelector("metadata.name", "awaited"))
	event, err := watchtools.UntilWithSync(ctx, source, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		return event.Object.(*corev1.ConfigMap).Data["value"] == "2", nil
	})
	must(err)
	fmt.Println("until with sync:", event.Object.(*corev1.ConfigMap).Data)
	fmt.Println("by initial events:", seen.take("watch with initial events") > 0)
	must(client.Delete(ctx, "awaited", metav1.DeleteOptions{}))
	_, err = watchtools.UntilWithSync(ctx, source, &corev1.ConfigMap{}, func(store cache.Store) (bool, error) {
		return len(store.ListKeys()) == 0, nil
	}, func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil })
	must(err)
	fmt.Println("gone")
}

// pages lists in chunks, which is one state although objects come between.
func pages(ctx context.Context, config *rest.Config, _ *requests) {
	client := clientset(config).CoreV1().ConfigMaps(namespace)
	for i := range 5 {
		_, err := client.Create(ctx, configMap(fmt.Sprintf("page-%d", i), "1"), metav1.CreateOptions{})
		must(err)
	}
	between := 0
	chunks := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.List(ctx, options)
		must(err)
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		fmt.Println("chunk", names, "continues:", list.Continue != "")
		between++
		_, err = client.Create(ctx, configMap(fmt.Sprintf("page-9-%d", between), "1"), metav1.CreateOptions{})
		must(err)
		return list, nil
	})
	chunks.PageSize, chunks.PageBufferSize = 2, 0
	n := 0
	count := func(runtime.Object) error { n++; return nil }
	must(chunks.EachListItem(ctx, metav1.ListOptions{LabelSelector: "by=clientgo"}, count))
	fmt.Println("objects:", n)
	must(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "by=clientgo"}))
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "by=clientgo"})
	must(err)
	fmt.Println("after deletecollection:", len(list.Items))
}
