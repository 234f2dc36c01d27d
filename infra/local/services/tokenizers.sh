#!/usr/bin/env bash
# Prepares libtokenizers.a, the Rust half of github.com/daulet/tokenizers, for builds with tag `hf`.
#
#   infra/local/services/tokenizers.sh [DIR]
#
# DIR is where the library goes; without it, $XDG_CACHE_HOME/mneme/tokenizers-VERSION (~/.cache by default).
# The folder is printed, so that one line builds and tests the twin:
#
#   CGO_LDFLAGS="-L$(infra/local/services/tokenizers.sh)" go test -tags hf ./shared/token/
#
# Needs cargo and a C compiler; about four minutes of CPU once, nothing when the library stands.
# The library is compiled from the very module that go.mod pins. Its manifest takes one crate, tiktoken-rs,
# from a branch of a git repository; Mneme uses none of it, so the published release of that crate is taken
# instead, and a registry of crates is all that the build reaches.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

module=github.com/daulet/tokenizers
version=$(go list -m -f '{{.Version}}' "$module")
out=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/mneme/tokenizers-$version}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [[ ! -s $out/libtokenizers.a ]]; then
  go mod download "$module" >&2
  from=$(go list -m -f '{{.Dir}}' "$module")
  build=$(mktemp -d)
  trap 'chmod -R u+w "$build" && rm -rf "$build"' EXIT
  cp -R "$from" "$build/src"
  chmod -R u+w "$build/src"
  sed -i.orig 's|^tiktoken-rs *=.*|tiktoken-rs = "0.7"|' "$build/src/Cargo.toml"
  nice cargo build --quiet --release --manifest-path "$build/src/Cargo.toml" --target-dir "$build/target" >&2
  # A rename makes the library appear whole or not at all.
  cp "$build/target/release/libtokenizers.a" "$out/libtokenizers.a.part"
  mv "$out/libtokenizers.a.part" "$out/libtokenizers.a"
fi
printf '%s\n' "$out"
