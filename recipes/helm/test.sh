#!/usr/bin/env bash
# Installs a chart, waits until its pods run, upgrades it and takes it away.
set -euo pipefail
cd "$(dirname "$0")"
unset KUBECONFIG
. ./control-plane.sh
helm=${HELM:-helm} kubectl=${KUBECTL:-kubectl}

"$helm" lint chart
"$helm" install web chart --wait --timeout 60s
expect "ready replicas" 2 "$("$kubectl" get deployment web -o jsonpath='{.status.readyReplicas}')"
expect "endpoints" 2 "$("$kubectl" get endpointslices -l kubernetes.io/service-name=web -o jsonpath='{.items[*].endpoints[*].addresses[0]}' | wc -w | tr -d ' ')"

"$helm" upgrade web chart --set replicas=3 --set image=nginx:2 --wait --timeout 60s
expect "ready replicas" 3 "$("$kubectl" get deployment web -o jsonpath='{.status.readyReplicas}')"
expect "revisions" 2 "$("$helm" history web -o json | grep -o '"revision":' | wc -l | tr -d ' ')"

"$helm" rollback web 1 --wait --timeout 60s
expect "image" nginx "$("$kubectl" get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}')"

"$helm" uninstall web --wait --timeout 60s
"$kubectl" wait --for=delete pods --selector app=web --timeout 60s
expect "pods" "" "$("$kubectl" get pods -o name)"
echo "helm: ok"
