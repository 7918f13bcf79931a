package recipe

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

func testingAPI(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "testing.setpoint.dev", Version: "v1", Resource: resource}
}

// hourly runs a container that ends at once, every hour, and keeps the jobs of a day.
func hourly() *batchv1.CronJob {
	kept := int32(24)
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "report", Image: "busybox", Command: []string{"true"}}},
	}
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "report"},
		Spec: batchv1.CronJobSpec{
			Schedule:                   "0 * * * *",
			SuccessfulJobsHistoryLimit: &kept,
			JobTemplate: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
			},
		},
	}
}

func TestADayOfACronJobHas24Runs(t *testing.T) {
	t.Parallel()
	ctx, config := deadline(t), startControlPlane(t, "--testing")
	client, steering := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	frozen := []byte(`{"spec":{"frozen":true}}`)
	clocks := steering.Resource(testingAPI("clocks"))
	if _, err := clocks.Patch(ctx, "cluster", types.MergePatchType, frozen, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().CronJobs("default").Create(ctx, hourly(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	advance := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "testing.setpoint.dev/v1",
		"kind":       "Advance",
		"metadata":   map[string]any{"generateName": "a-day-"},
		"spec":       map[string]any{"by": "24h"},
	}}
	// It answers when the day is over and its work is done.
	if _, err := steering.Resource(testingAPI("advances")).Create(ctx, advance, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	jobs, err := client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	complete := 0
	for _, job := range jobs.Items {
		complete += int(job.Status.Succeeded)
	}
	if len(jobs.Items) != 24 || complete != 24 {
		t.Fatalf("%d jobs, %d complete; a day has 24 hours", len(jobs.Items), complete)
	}
}
