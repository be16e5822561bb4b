#!/usr/bin/env bash
# Tries setup.sh as a runner would, with files in place of a release: packages/action/check.sh PACKAGES VERSION
# PACKAGES has the files of packages/release.sh. Needs python3 for a program that computes.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
packages="$(cd "$1" && pwd)"
runner="$(mktemp -d)"
trap 'rm -r "$runner"' EXIT

setup() { # setup RELEASE: runs the step in the runner's folder
    : >"$runner/env"
    : >"$runner/path"
    RUNNER_TEMP="$runner" GITHUB_ENV="$runner/env" GITHUB_PATH="$runner/path" \
        SPELTER_VERSION="$2" SPELTER_GRAPHICS=true SPELTER_RELEASE="$1" "$here/setup.sh"
}

setup "file://$packages" "$2"
(
    set -a
    # Values have no spaces here.
    . "$runner/env"
    [ "$SPELTER_CONFORMANCE" = 1.3.0.0 ]
    # The driver through a loader where there is one, then in its place.
    python3 - <<'PYTHON'
import json, os, pathlib
manifest = pathlib.Path(os.environ["VK_DRIVER_FILES"])
assert (manifest.parent / json.loads(manifest.read_text())["ICD"]["library_path"]).is_file(), manifest
PYTHON
    LD_LIBRARY_PATH="$(dirname "$VK_DRIVER_FILES")" python3 "$here/../python/tests/compute.py"
    # The program is on the path, and finds the driver.
    PATH="$(cat "$runner/path"):$PATH" XDG_CACHE_HOME="$runner/cache" \
        spelter exec --no-loader -- python3 "$here/../python/tests/compute.py"
)

# A file that is not the release's is refused.
mkdir "$runner/bad"
cp "$packages/SHA256SUMS" "$runner/bad/"
for archive in "$packages"/spelter-driver-*.tar.xz; do
    head --bytes=1000 "$archive" >"$runner/bad/$(basename "$archive")"
done
if setup "file://$runner/bad" "$2" >"$runner/refused" 2>&1; then
    echo "error: a damaged archive was accepted" >&2
    exit 1
fi
grep -q 'FAILED' "$runner/refused"

# Without a release, the message says what to do.
if setup "file://$runner/none" "$2" >"$runner/refused" 2>&1; then
    echo "error: a release that does not exist was accepted" >&2
    exit 1
fi
grep -q 'docs/testing-in-ci.md' "$runner/refused"
echo "the action works"
