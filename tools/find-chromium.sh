#!/bin/sh
# A Chromium for the tests of the pages; best effort: without one they are skipped and say so.
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium) >/dev/null 2>&1 \
    || echo "Chromium could not be installed: browser tests will be skipped."
else
  echo "No Chromium found: browser tests will be skipped. On Debian or Ubuntu: sudo apt-get install chromium"
fi
exit 0
