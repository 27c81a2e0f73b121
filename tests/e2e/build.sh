#!/bin/sh
# Builds the programs that the end-to-end tests run against, and prints the
# folder that holds them as the last line of its output: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubectl and the tests' own oracle.
# What is already built is only looked up, so every test may call this.
#
# KUBEBUILDER_ASSETS, when set, names a folder with the first five; then only
# the oracle is built here.
set -eu

fail() {
    echo "tests/e2e/build.sh: $*" >&2
    exit 1
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
module=$here/controlplane
store=$(dirname -- "$(dirname -- "$here")")/target/controlplane
components='etcd kube-apiserver kube-controller-manager kube-scheduler kubectl'
assets=${KUBEBUILDER_ASSETS:-}

if [ -n "$assets" ]; then
    assets=$(CDPATH='' cd -- "$assets" && pwd) ||
        fail "KUBEBUILDER_ASSETS names no folder: $KUBEBUILDER_ASSETS; correct it, or unset it to build the control plane"
    for name in $components; do
        [ -x "$assets/$name" ] ||
            fail "KUBEBUILDER_ASSETS has no program $name in $assets; put it there, or unset KUBEBUILDER_ASSETS to build the control plane"
    done
fi

# The name of the result holds all that it depends on, so that a change never
# finds an older build, and going back to an older commit finds its own.
version=$(sed -n 's|^[[:space:]]*k8s\.io/kubernetes \(v[0-9.]*\)$|\1|p' "$module/go.mod")
[ -n "$version" ] || fail "no version of k8s.io/kubernetes is found in $module/go.mod"
if command -v sha256sum >/dev/null; then digest=sha256sum; else digest='shasum -a 256'; fi
hash=$(cd "$here" && { cat build.sh controlplane/go.mod controlplane/go.sum controlplane/*.go && echo "$assets"; } |
    $digest | cut -c1-16)
result=$store/$version-$hash

if [ ! -d "$result" ]; then
    command -v go >/dev/null ||
        fail "the Go toolchain is missing: install Go 1.26 or newer (https://go.dev/dl) and put its go command into PATH"
    mkdir -p "$store"
    # Test programs that start together wait here for one build instead of
    # each making its own. Without flock they do the work twice, unharmed.
    if command -v flock >/dev/null; then
        exec 9>"$store/.lock"
        flock 9
    fi
fi

# Another call may have finished while this one waited for the lock.
if [ ! -d "$result" ]; then
    work=$(mktemp -d "$store/.building.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    echo "tests/e2e/build.sh: building Kubernetes $version for the tests; the first time takes some minutes" >&2

    # Without these the programs call themselves v0.0.0-master+$Format:%H$,
    # which kubectl cannot read.
    minor=${version#v*.}
    major=${version#v}
    stamp=
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        stamp="$stamp -X $package.gitVersion=$version -X $package.gitMajor=${major%%.*} -X $package.gitMinor=${minor%%.*}"
        stamp="$stamp -X $package.gitCommit=unknown -X $package.gitTreeState=clean"
    done

    tags=
    if [ -n "$assets" ]; then tags=oracle_only; fi
    (cd "$module" && CGO_ENABLED=0 GOWORK=off go build -mod=readonly -buildvcs=false -trimpath -tags "$tags" \
        -ldflags "-s -w$stamp" -o "$work/controlplane" .) >&2 ||
        fail "the control plane does not build; go's own message stands above"

    ln -s controlplane "$work/oracle"
    for name in $components; do
        if [ -n "$assets" ]; then
            ln -s "$assets/$name" "$work/$name"
        else
            ln -s controlplane "$work/$name"
        fi
    done
    # Appears whole or not at all. mktemp's own mode would shut other users out.
    chmod 755 "$work"
    [ -d "$result" ] || mv "$work" "$result"
fi

echo "$result"
