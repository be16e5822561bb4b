#!/usr/bin/env bash
# Tries the Debian packages as they are installed: packages/deb/check.sh PACKAGES
# PACKAGES has the files of packages/release.sh. They are unpacked to a folder, since installing needs more rights; a
# program computes with the driver that the program of one package finds in the other. Needs dpkg-deb and python3.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
packages="$(cd "$1" && pwd)"
root="$(mktemp -d)"
trap 'rm -r "$root"' EXIT
export XDG_CACHE_HOME="$root/cache"

for package in "$packages"/*.deb; do
    [ -e "$package" ] || { echo "error: no Debian packages in $packages" >&2; exit 1; }
    dpkg-deb --info "$package" >/dev/null
    dpkg-deb --extract "$package" "$root"
done
library="$(cd "$root" && python3 -c '
import json
print(json.load(open("usr/share/vulkan/icd.d/spelter_icd.json"))["ICD"]["library_path"])')"
case "$library" in
/*) [ -e "$root$library" ] ;;
*) [ -e "$root/usr/lib/x86_64-linux-gnu/$library" ] ;;
esac
for file in usr/share/man/man1/spelter-run.1 usr/share/bash-completion/completions/spelter; do
    [ -e "$root/$file" ] || [ -e "$root/$file.gz" ] || { echo "error: no $file" >&2; exit 1; }
done
"$root/usr/bin/spelter" exec --no-loader -- python3 "$here/../python/tests/compute.py"
