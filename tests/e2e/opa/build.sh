#!/bin/sh
# Builds the real Open Policy Agent of the version that go.mod names, and
# prints the path of the program `opa` as the last line of its output. What is
# already built is only looked up, so every test may call this.
#
# SLICEGATE_OPA, when set, names the program to take instead.
set -eu

fail() {
    echo "tests/e2e/opa/build.sh: $*" >&2
    exit 1
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
store=$(dirname -- "$(dirname -- "$(dirname -- "$here")")")/target/opa
given=${SLICEGATE_OPA:-}

if [ -n "$given" ]; then
    [ -x "$given" ] || fail "SLICEGATE_OPA names no program: $given; correct it, or unset it to build OPA"
    echo "$given"
    exit 0
fi

# The name of the result holds all that it depends on, so that a change never
# finds an older build, and going back to an older commit finds its own.
version=$(sed -n 's|^[[:space:]]*github\.com/open-policy-agent/opa \(v[0-9.]*\).*|\1|p' "$here/go.mod")
[ -n "$version" ] || fail "no version of github.com/open-policy-agent/opa is found in $here/go.mod"
if command -v sha256sum >/dev/null; then digest=sha256sum; else digest='shasum -a 256'; fi
hash=$(cd "$here" && cat build.sh go.mod go.sum | $digest | cut -c1-16)
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
    echo "tests/e2e/opa/build.sh: building Open Policy Agent $version for the tests; the first time takes a minute or two" >&2
    (cd "$here" && CGO_ENABLED=0 GOWORK=off go build -mod=readonly -buildvcs=false -trimpath -ldflags '-s -w' \
        -o "$work/opa" github.com/open-policy-agent/opa) >&2 ||
        fail "Open Policy Agent does not build; go's own message stands above"
    # Appears whole or not at all. mktemp's own mode would shut other users out.
    chmod 755 "$work"
    [ -d "$result" ] || mv "$work" "$result"
fi

echo "$result/opa"
