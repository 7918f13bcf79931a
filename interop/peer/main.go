// Command peer measures controller-runtime as `cargo xtask bench operator` measures our framework: with the same
// server, the same objects and an empty reconciler. It takes a kubeconfig and the number of objects, and prints
// six numbers: seconds until the cache has synced, processor seconds of that, bytes of memory for each object,
// reconciles a second, and the latency from a write to its reconcile in milliseconds (median, 99th percentile).
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// As many as our own measurement has.
	workers = 8
	writes  = 1000
	pause   = 2 * time.Millisecond
	// Something is broken if nothing has happened for so long.
	patience = 5 * time.Minute
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: peer KUBECONFIG OBJECTS"))
	}
	objects, err := strconv.Atoi(os.Args[2])
	check(err)
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	// No limit of its own: the server is measured along.
	config.QPS = -1
	ctrl.SetLogger(logr.Discard())

	// Connect before measuring: connection and discovery are not part of the cache.
	direct, err := client.New(config, client.Options{})
	check(err)
	check(direct.Get(context.Background(), keyOf(0), &corev1.ConfigMap{}))

	synced := measureSync(config, objects)
	notes := &notes{objects: objects, all: make(chan struct{}), came: make(chan time.Time, 1)}
	stop := startController(config, notes)
	wait(notes.all)
	latencies := measureLatencies(direct, notes)
	stop()

	percentile := func(share float64) float64 { return latencies[int(float64(len(latencies)-1)*share)] }
	fmt.Println(synced.seconds, synced.processor, synced.bytes, notes.perSecond(), percentile(0.5), percentile(0.99))
}

type syncFigures struct{ seconds, processor, bytes float64 }

// measureSync fills a cache with all objects and drops it again.
func measureSync(config *rest.Config, objects int) syncFigures {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	debug.FreeOSMemory()
	memory, work, begin := resident(), busy(), time.Now()
	informers, err := cache.New(config, cache.Options{})
	check(err)
	_, err = informers.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	check(err)
	go func() { check(informers.Start(ctx)) }()
	if !informers.WaitForCacheSync(ctx) {
		fail(fmt.Errorf("the cache has not synced"))
	}
	figures := syncFigures{seconds: time.Since(begin).Seconds(), processor: (busy() - work).Seconds()}
	var list corev1.ConfigMapList
	check(informers.List(ctx, &list, client.UnsafeDisableDeepCopy))
	if len(list.Items) < objects {
		fail(fmt.Errorf("%d of %d objects are in the cache", len(list.Items), objects))
	}
	list.Items = nil
	// Without garbage: the figure that favours Go.
	debug.FreeOSMemory()
	figures.bytes = float64(resident()-memory) / float64(objects)
	return figures
}

// notes is what the empty reconciler records.
type notes struct {
	objects int
	all     chan struct{}
	came    chan time.Time

	mutex       sync.Mutex
	calls       int
	first, last time.Time
	awaited     string
}

func (n *notes) Reconcile(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.calls++
	if n.calls == 1 {
		n.first = time.Now()
	}
	if n.calls == n.objects {
		n.last = time.Now()
		close(n.all)
	}
	if n.awaited != "" && request.Name == n.awaited {
		n.awaited = ""
		n.came <- time.Now()
	}
	return reconcile.Result{}, nil
}

func (n *notes) await(name string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.awaited = name
}

func (n *notes) perSecond() float64 {
	return float64(n.objects) / n.last.Sub(n.first).Seconds()
}

func startController(config *rest.Config, notes *notes) context.CancelFunc {
	ctx, stop := context.WithCancel(context.Background())
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metrics.Options{BindAddress: "0"}})
	check(err)
	options := controller.Options{MaxConcurrentReconciles: workers}
	check(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).WithOptions(options).Complete(notes))
	go func() { check(manager.Start(ctx)) }()
	return stop
}

// measureLatencies returns milliseconds, sorted, of one write after the other.
func measureLatencies(direct client.Client, notes *notes) []float64 {
	latencies := make([]float64, 0, writes)
	for number := range writes {
		key := keyOf(number * 7919 % notes.objects)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		body := fmt.Sprintf(`{"data":{"value":"%d"}}`, rand.Uint64())
		notes.await(key.Name)
		begin := time.Now()
		check(direct.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(body))))
		came := wait(notes.came)
		latencies = append(latencies, float64(came.Sub(begin).Microseconds())/1e3)
		time.Sleep(pause)
	}
	slices.Sort(latencies)
	return latencies
}

func keyOf(number int) client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("object-%06d", number)}
}

// resident is the memory of this process in bytes.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	check(err)
	return pages * int64(os.Getpagesize())
}

// busy is the processor time of this process.
func busy() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func wait[T any](from <-chan T) T {
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		fail(fmt.Errorf("nothing has happened for %v", patience))
		panic("unreachable")
	}
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}
