#!/bin/sh
# The page tests need Chromium: install the system's when run as root, else say what to install.
set -eu
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
else
  echo "The page tests need Chromium. Install it (Debian: sudo apt-get install chromium) and run 'make test' again." >&2
  exit 1
fi
