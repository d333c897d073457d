#!/usr/bin/env bash
# Installs what is missing of the packages named as arguments, where root or a passwordless sudo allows; else names them.
set -euo pipefail

installed() {
    # Newer releases call some libraries name-t64. A name that dpkg does not know is no error here.
    local states
    states="$(dpkg-query --show --showformat '${db:Status-Status}\n' "$1" "$1t64" 2>/dev/null || true)"
    grep -qx installed <<<"$states"
}

missing=()
for package in "$@"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

advice="install these system packages and run it again: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
    echo "error: apt-get was not found; $advice" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=(env)
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n env)
else
    echo "error: neither root nor a passwordless sudo; $advice (sudo apt-get install ${missing[*]})" >&2
    exit 1
fi

echo "installing ${missing[*]}"
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null
if ! "${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null; then
    echo "error: apt-get failed; $advice" >&2
    exit 1
fi
