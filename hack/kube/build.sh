#!/usr/bin/env bash
# Builds the programs of a real Kubernetes control plane from their Go modules, once per version,
# into a folder under the user's cache, and prints that folder on standard output. Progress goes to
# standard error. A second call with the same versions only prints the folder.
#
#   FAIRLEAD_CACHE      where to keep them (default: $XDG_CACHE_HOME/fairlead or ~/.cache/fairlead)
#   KUBEBUILDER_ASSETS  when set, kube-apiserver, etcd and kubectl there are used as they are
set -euo pipefail
cd "$(dirname "$0")"

module_version() { awk -v m="$1" '$1 == m && $2 ~ /^v/ {print $2; exit}' go.mod; }
kube_version=$(module_version k8s.io/kubernetes)
etcd_version=$(module_version go.etcd.io/etcd/server/v3)
kwok_version=$(module_version sigs.k8s.io/kwok)

cache=${FAIRLEAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fairlead}
bin=$cache/kube/$kube_version-etcd-$etcd_version-kwok-$kwok_version
mkdir -p "$bin"
exec 9>"$bin/.lock"
flock 9 # two builds of Kubernetes at once would only make each other slower

version_flags() {
  local minor=${kube_version#v1.}
  local pkg=k8s.io/component-base/version
  echo "-s -w -X $pkg.gitVersion=$kube_version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*} -X $pkg.gitTreeState=clean"
}

build() { # name package
  local name=$1 pkg=$2
  [ -x "$bin/$name" ] && return
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$name" ]; then
    ln -sf "$KUBEBUILDER_ASSETS/$name" "$bin/$name"
    return
  fi
  local start=$SECONDS
  echo "building $name (once for this version) ..." >&2
  go build -trimpath -ldflags "$(version_flags)" -o "$bin/.$name.tmp" "$pkg" &
  local pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    for _ in $(seq 15); do kill -0 "$pid" 2>/dev/null || break; sleep 1; done
    kill -0 "$pid" 2>/dev/null && echo "  ... $name: $((SECONDS - start)) s" >&2
  done
  wait "$pid"
  mv "$bin/.$name.tmp" "$bin/$name"
  echo "built $name in $((SECONDS - start)) s" >&2
}

build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
build kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
build kubectl k8s.io/kubernetes/cmd/kubectl
build kwok sigs.k8s.io/kwok/cmd/kwok
echo "$bin"
