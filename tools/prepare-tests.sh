#!/bin/sh
# What some tests need beyond Python packages from pyproject.toml. Each part is best effort: where it cannot be had,
# the tests that need it are skipped and say so.
python=$1

# A Chromium for the tests of the report page.
if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1 \
   && ! command -v google-chrome >/dev/null 2>&1; then
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium) >/dev/null 2>&1 \
      || echo "Chromium could not be installed: browser tests will be skipped."
  else
    echo "No Chromium found: browser tests will be skipped. On Debian or Ubuntu: sudo apt-get install chromium"
  fi
fi

# A CPU build of PyTorch for the tests of the torch path. In continuous integration only: elsewhere the
# user decides (pip install 'photostereo[gpu]').
if [ "${CI:-}" = true ] && ! "$python" -c "import torch" >/dev/null 2>&1; then
  "$python" -m pip install --quiet "torch==2.13.0" >/dev/null 2>&1 \
    || echo "PyTorch could not be installed: tests of the torch path will be skipped."
fi
exit 0
