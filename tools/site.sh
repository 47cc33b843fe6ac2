#!/usr/bin/env bash
# Writes the site to BUILD/site: site.sh [BUILD]; with --look also looks at its pages in a headless browser.
set -eu
cd "$(dirname "$0")/.."
look=
[ "${1:-}" != --look ] || { look=1; shift; }
build=${1:-build}
venv=$build/venv-site
stamp=$venv/$(sha256sum docs/requirements.txt | cut -c1-12)
if [ ! -f "$stamp" ]; then
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r docs/requirements.txt
  touch "$stamp"
fi
/usr/bin/python3 tools/site.py "$build"
sed "s|\.\./build/|$PWD/$build/|" docs/mkdocs.yml > "$build/mkdocs.yml"
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build -q -f "$build/mkdocs.yml"
echo "$build/site/index.html"
[ -n "$look" ] || exit 0

# What a reader's browser makes of it: each page has its title and text, a picture is not one colour.
pages=0
shot=$(mktemp -d)
trap 'rm -rf "$shot"' EXIT
browse() { chromium --headless --no-sandbox --disable-gpu --user-data-dir="$shot/profile" --virtual-time-budget=5000 "$@" 2> "$shot/log"; }
for page in index guide/jax guide/fit reference/verbs reference/c reference/chips faq; do
  browse --dump-dom "file://$PWD/$build/site/$page.html" > "$shot/dom"
  heading=$(sed -n 's/^# //p' "$build/site-source/$page.md" | head -1)
  grep -qF "<h1 id=" "$shot/dom" && grep -qF "$heading" "$shot/dom" && grep -q 'md-sidebar' "$shot/dom" ||
    { echo "site: $page is not what was written"; cat "$shot/log"; exit 1; }
  pages=$((pages + 1))
done
browse --window-size=1200,900 --screenshot="$build/site.png" "file://$PWD/$build/site/index.html"
[ "$(stat -c %s "$build/site.png")" -gt 20000 ] || { echo "site: the picture of index.html is empty"; exit 1; }
echo "$pages passed, 0 failed"
