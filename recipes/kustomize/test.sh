#!/usr/bin/env bash
# Applies an overlay, waits until its pods run, and deletes it.
set -euo pipefail
cd "$(dirname "$0")"
unset KUBECONFIG
. ./control-plane.sh
kubectl=${KUBECTL:-kubectl}

"$kubectl" apply -k production
"$kubectl" rollout status deployment/production-web --timeout 60s
expect "ready replicas" 3 "$("$kubectl" get deployment production-web -o jsonpath='{.status.readyReplicas}')"
expect "objects with the label" 2 "$("$kubectl" get deployments,configmaps -l stage=production -o name | wc -l | tr -d ' ')"
expect "differences" "" "$("$kubectl" diff -k production)"

"$kubectl" delete -k production
"$kubectl" wait --for=delete pods --selector app=web --timeout 60s
expect "pods" "" "$("$kubectl" get pods -o name)"
echo "kustomize: ok"
