#!/bin/sh
# Makes a release by goreleaser, and says first what is missing.
#
#   scripts/release.sh snapshot    everything of this commit into bin/dist and bin/release; nothing is published
#   scripts/release.sh publish     the tag of this commit, as a draft on GitHub (GITHUB_TOKEN)
#
# Keys are given by the environment: GPG_FINGERPRINT signs the checksums. Without it nothing is signed.
set -eu
cd "$(dirname "$0")/.."

say() { echo "release: $*" >&2; }
wrong=""
missing() { say "$*"; wrong=yes; }
skip=""
without() { skip=$skip${skip:+,}$1; shift; say "$*"; }

mode=${1:-}
case $mode in
snapshot | publish) ;;
*) say "a mode is required: snapshot or publish" && exit 2 ;;
esac

command -v goreleaser >/dev/null || missing "goreleaser is not installed: go install github.com/goreleaser/goreleaser/v2@latest"
command -v cyclonedx-gomod >/dev/null ||
	without sbom "no SBOM, because cyclonedx-gomod is not installed: go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@latest"
# Modules are all that is needed of the network; GOPROXY=off shows whether they are there.
if ! GOPROXY=off GOFLAGS=-mod=mod go list -deps . ./internal/tool/release >/dev/null 2>&1 && ! go mod download 2>/dev/null; then
	missing "modules are not in the cache, and the module proxy does not answer: go mod download, with a network"
fi
if [ -z "${GPG_FINGERPRINT:-}" ]; then
	without sign "no signature, because no key is given: GPG_FINGERPRINT=... signs checksums.txt"
elif ! gpg --list-secret-keys "$GPG_FINGERPRINT" >/dev/null 2>&1; then
	missing "gpg has no secret key $GPG_FINGERPRINT: gpg --import FILE"
fi
if [ "$mode" = publish ]; then
	[ -n "${GITHUB_TOKEN:-}" ] || missing "no token to publish with: GITHUB_TOKEN=..."
	git describe --exact-match --tags >/dev/null 2>&1 || missing "this commit has no tag: git tag -s v0.1.0"
fi
[ -z "$wrong" ] || { say "fix the items above"; exit 1; }

# goreleaser asks for the address of a remote before it looks at the commit. A clone without one has ours for this command.
if [ -z "$(git remote)" ]; then
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/cnibench/cnibench
fi
set -- release --clean ${skip:+--skip=$skip}
[ "$mode" = publish ] || set -- "$@" --snapshot
goreleaser "$@"
say "bin/dist has the archives and packages, bin/release the chart and the image"
