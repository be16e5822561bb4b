#!/usr/bin/env bash
# Puts the driver and the program of a release into a job of GitHub Actions: the step of action.yml.
# Needs bash, curl, tar and sha256sum. Reads SPELTER_RELEASE (the address of a release's files), SPELTER_VERSION and
# SPELTER_GRAPHICS, besides the runner's RUNNER_TEMP, GITHUB_ENV and GITHUB_PATH.
set -euo pipefail

folder="$RUNNER_TEMP/spelter-$SPELTER_VERSION"
archives=("spelter-driver-$SPELTER_VERSION-x86_64-linux.tar.xz" "spelter-$SPELTER_VERSION-x86_64-linux.tar.xz")

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "error: Spelter's releases are for Linux on x86-64, and this runner is $(uname -sm)" >&2
    exit 1
fi

mkdir -p "$folder"
cd "$folder"
for archive in "${archives[@]}"; do
    files=("$SPELTER_RELEASE/$archive" "$SPELTER_RELEASE/SHA256SUMS")
    curl --fail --silent --show-error --location --retry 5 --remote-name-all "${files[@]}" || {
        echo "error: $SPELTER_RELEASE does not have $archive and SHA256SUMS: is there a release $SPELTER_VERSION?" >&2
        echo "A job that builds Spelter and needs no release is in docs/testing-in-ci.md." >&2
        exit 1
    }
    # The line of this archive only; none is an error.
    grep " $archive\$" SHA256SUMS | sha256sum --check --strict --quiet
    tar --extract --file "$archive" --strip-components=1
done
# The program finds the driver in the folder above its own.
printf '%s\n' "$folder/bin" >>"$GITHUB_PATH"

set_variable() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_ENV"; }

set_variable VK_DRIVER_FILES "$folder/spelter_icd.json"
set_variable VK_ICD_FILENAMES "$folder/spelter_icd.json"
# A loader that is there stays in use, so that layers work.
case "$(/sbin/ldconfig -p 2>/dev/null)" in
*"libvulkan.so.1 "*) ;;
*) set_variable LD_LIBRARY_PATH "$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac
if [ "$SPELTER_GRAPHICS" = true ]; then
    set_variable SPELTER_ADVERTISE_GRAPHICS 1
    set_variable SPELTER_CONFORMANCE 1.3.0.0
    set_variable WGPU_ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER 1
fi
