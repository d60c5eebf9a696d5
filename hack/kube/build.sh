#!/usr/bin/env bash
# Builds the programs of a real Kubernetes control plane from their Go modules, once per version,
# into a folder under the user's cache, and prints that folder on standard output. Progress goes to
# standard error. A second call with the same versions only prints the folder; README.md says more.
#
#   FAIRLEAD_CACHE      where to keep them (default: $XDG_CACHE_HOME/fairlead or ~/.cache/fairlead)
#   KUBEBUILDER_ASSETS  when set, the programs in that folder are used as they are, and only the
#                       others are built
set -euo pipefail
cd "$(dirname "$0")"

die() { echo "hack/kube/build.sh: $*" >&2; exit 1; }

module_version() { # module
  local version
  version=$(awk -v m="$1" '$1 == m && $2 ~ /^v/ {print $2; exit}' go.mod)
  [ -n "$version" ] || die "go.mod requires no $1"
  echo "$version"
}

command -v go >/dev/null || die "needs Go (https://go.dev/dl)"
kube_version=$(module_version k8s.io/kubernetes)
etcd_version=$(module_version go.etcd.io/etcd/server/v3)
kwok_version=$(module_version sigs.k8s.io/kwok)

cache=${FAIRLEAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fairlead}
assets=${KUBEBUILDER_ASSETS:-}
bin=$cache/kube/$kube_version-etcd-$etcd_version-kwok-$kwok_version
# Programs that come from elsewhere get a folder of their own beside those of this version.
[ -z "$assets" ] || bin=$bin-assets-$(printf %s "$assets" | cksum | cut -d ' ' -f 1)
mkdir -p "$bin"
exec 9>"$bin/.lock"
# Two builds of Kubernetes at once would only make each other slower.
if command -v flock >/dev/null; then flock 9; fi

compiler=
trap '[ -z "$compiler" ] || kill "$compiler" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM # bash has background jobs ignore Ctrl-C: the trap above ends the compiler

version_flags() {
  local minor=${kube_version#v1.}
  local pkg=k8s.io/component-base/version
  echo "-s -w -X $pkg.gitVersion=$kube_version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*} -X $pkg.gitTreeState=clean"
}

# One run of the compiler for all that is missing: while one program is linked others are compiled.
missing=()  # packages, in the order of names
names=()
want() { # name package
  if [ -n "$assets" ] && [ -x "$assets/$1" ]; then
    ln -sf "$assets/$1" "$bin/$1"
  elif [ ! -x "$bin/$1" ]; then
    names+=("$1")
    missing+=("$2")
  fi
}

want etcd go.etcd.io/etcd/server/v3
want kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
want kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
want kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
want kubectl k8s.io/kubernetes/cmd/kubectl
want kwok sigs.k8s.io/kwok/cmd/kwok

# What a build without -o calls the program of a package: the last part of its path that is no version.
built_name() { # package
  local name=${1##*/}
  case $name in v[0-9]*) name=${1%/*} name=${name##*/} ;; esac
  echo "$name"
}

build() {
  local start=$SECONDS unfinished=$bin/.unfinished
  echo "building ${names[*]} (once for this version; all of them take around ten minutes on two cores) ..." >&2
  rm -rf "$unfinished"
  mkdir "$unfinished"
  go build -trimpath -ldflags "$(version_flags)" -o "$unfinished/" "${missing[@]}" >&2 &
  compiler=$!
  while kill -0 "$compiler" 2>/dev/null; do
    for _ in $(seq 15); do
      kill -0 "$compiler" 2>/dev/null || break
      sleep 1
    done
    ! kill -0 "$compiler" 2>/dev/null || echo "  ... $((SECONDS - start)) s" >&2
  done
  wait "$compiler" || die "go build ${missing[*]} failed"
  compiler=
  for i in "${!names[@]}"; do
    mv "$unfinished/$(built_name "${missing[$i]}")" "$bin/${names[$i]}" # whole or not at all
  done
  rmdir "$unfinished"
  echo "built in $((SECONDS - start)) s" >&2
}

[ ${#missing[@]} -eq 0 ] || build
echo "$bin"
