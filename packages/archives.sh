#!/usr/bin/env bash
# Tries the archives of a release as a user would: packages/archives.sh PACKAGES
# PACKAGES has the files of packages/release.sh. Needs python3 for a program that computes.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
packages="$(cd "$1" && pwd)"
folder="$(mktemp -d)"
trap 'rm -r "$folder"' EXIT
export XDG_CACHE_HOME="$folder/cache" XDG_DATA_HOME="$folder/data"

compute() { # compute PROGRAM: the driver is found, and computes in the place of a loader
    "$1" exec --no-loader -- python3 "$here/python/tests/compute.py"
    "$1" icd install
    "$1" icd uninstall >/dev/null
}

# Side by side, as they are unpacked.
mkdir "$folder/apart"
for archive in "$packages"/spelter-*-linux.tar.xz; do
    tar --extract --file "$archive" --directory "$folder/apart"
done
compute "$(ls "$folder"/apart/*/bin/spelter)"

# Over each other.
mkdir "$folder/together"
for archive in "$packages"/spelter-*-linux.tar.xz; do
    tar --extract --file "$archive" --directory "$folder/together" --strip-components=1
done
compute "$folder/together/bin/spelter"
