#!/usr/bin/env bash
# Checks what `go test` does not: generated files are current (a second run changes nothing), modules
# are tidy, gofmt, vet and the linters are clean. Layers and docs are checked by go test ./hack/check.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "verify: $*" >&2; }
digest() { git ls-files -z -- '*.go' go.mod go.sum 'hack/*/go.mod' 'hack/*/go.sum' charts | xargs -0 sha256sum 2>/dev/null | sha256sum; }

before=$(digest)
step "generated files"
go generate ./pkg/...
step "modules"
go mod tidy
(cd hack/tools && go mod tidy)
(cd hack/kube && go mod tidy)
if [ "$before" != "$(digest)" ]; then
  echo "verify: generated files or modules are not current; run make generate, go mod tidy, and commit:" >&2
  git status --short >&2
  exit 1
fi

step "format"
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
  echo "verify: run gofmt -w on: $unformatted" >&2
  exit 1
fi

step "vet"
go vet ./...

step "lint"
go tool -modfile=hack/tools/go.mod golangci-lint run --allow-parallel-runners ./...

step "layers and docs"
go test -count=1 ./hack/check

step "clean"
