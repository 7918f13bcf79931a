package recipe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const patience = 30 * time.Second

// start runs a control plane of envtest and the operator, which end with the test. KUBEBUILDER_ASSETS says
// where envtest finds its programs.
func start(t *testing.T) (context.Context, client.WithWatch) {
	t.Helper()
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Reconciler{Client: manager.GetClient()}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	watching, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, watching
}

func TestALabelledConfigMapGetsItsSecret(t *testing.T) {
	ctx, cluster := start(t)
	owner := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{Label: "true"}},
		Data:       map[string]string{"k": "v"},
	}
	if err := cluster.Create(ctx, owner); err != nil {
		t.Fatal(err)
	}
	selected := &client.ListOptions{Namespace: "default", FieldSelector: fields.OneTermEqualSelector("metadata.name", "a")}
	secrets, err := cluster.Watch(ctx, &corev1.SecretList{}, selected)
	if err != nil {
		t.Fatal(err)
	}
	defer secrets.Stop()
	for event := range secrets.ResultChan() {
		secret, found := event.Object.(*corev1.Secret)
		if found && string(secret.Data["k"]) == "v" && metav1.IsControlledBy(secret, owner) {
			return
		}
	}
	t.Fatalf("no secret within %s", patience)
}
