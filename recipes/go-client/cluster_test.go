package recipe

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// untilPods follows the pods of the namespace default with an informer, until the condition holds.
func untilPods(ctx context.Context, t *testing.T, client kubernetes.Interface, condition func([]*corev1.Pod) bool) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	pods := factory.Core().V1().Pods()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	defer factory.Shutdown()
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	for {
		var found []*corev1.Pod
		for _, object := range pods.Informer().GetStore().List() {
			found = append(found, object.(*corev1.Pod))
		}
		if condition(found) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("not within %s; there are %d pods", patience, len(found))
		}
	}
}

func deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func TestADeploymentRunsItsPods(t *testing.T) {
	t.Parallel()
	ctx, client := deadline(t), kubernetes.NewForConfigOrDie(startControlPlane(t))
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment(3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	untilPods(ctx, t, client, func(pods []*corev1.Pod) bool {
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName != "" {
				running++
			}
		}
		return running == 3
	})
}

func TestDeletingADeploymentDeletesWhatItOwns(t *testing.T) {
	t.Parallel()
	ctx, client := deadline(t), kubernetes.NewForConfigOrDie(startControlPlane(t))
	deployments := client.AppsV1().Deployments("default")
	if _, err := deployments.Create(ctx, deployment(2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	untilPods(ctx, t, client, func(pods []*corev1.Pod) bool { return len(pods) == 2 })
	if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	untilPods(ctx, t, client, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 {
		t.Fatalf("replica sets are left: %v, %v", sets.Items, err)
	}
}

func TestCustomResourcesAreValidated(t *testing.T) {
	t.Parallel()
	ctx, config := deadline(t), startControlPlane(t)
	definitions := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(ctx, definition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shirts"}
	shirts := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace("default")
	create := func(size int64) error {
		shirt := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1",
			"kind":       "Shirt",
			"metadata":   map[string]any{"generateName": "shirt-"},
			"spec":       map[string]any{"size": size},
		}}
		_, err := shirts.Create(ctx, shirt, metav1.CreateOptions{})
		return err
	}
	if err := create(2); err != nil {
		t.Fatal(err)
	}
	if err := create(4); !errors.IsInvalid(err) {
		t.Fatalf("a shirt of size 4 must be invalid: %v", err)
	}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	largest := 3.0
	size := apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: &largest}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": size},
	}
	shirt := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shirts.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shirts", Singular: "shirt", Kind: "Shirt"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &shirt},
			}},
		},
	}
}
