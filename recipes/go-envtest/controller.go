// Package recipe holds an operator of controller-runtime: it writes a Secret for every labelled ConfigMap.
package recipe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Label marks the ConfigMaps that get a Secret of the same name.
const Label = "wants-secret"

// Reconciler writes the Secrets.
type Reconciler struct {
	client.Client
}

// SetupWithManager watches ConfigMaps and the Secrets that they own.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(r)
}

// Reconcile makes the Secret of one ConfigMap as it should be.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var owner corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, wanted := owner.Labels[Label]; !wanted {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.StringData = owner.Data
		return controllerutil.SetControllerReference(&owner, secret, r.Scheme())
	})
	return ctrl.Result{}, err
}
