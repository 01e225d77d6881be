#!/usr/bin/env bash
# Builds the book (docs/book) and checks its pages: scripts/book.sh [DIR] leaves HTML in DIR, by default in `book` of the target folder.
#
# Takes `mdbook` if it is installed; else builds it once, in the target folder. Links to files outside of the book, which work where the
# repository is browsed, lead to copies beside the pages.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$(realpath -m "${1:-$target/book}")

mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
  mdbook=$target/mdbook/bin/mdbook
  # Without optimisation and the server: compiling takes longer than building the book.
  [ -x "$mdbook" ] || CARGO_TARGET_DIR=$target/mdbook cargo install mdbook --quiet --locked --version 0.5.4 --debug \
    --no-default-features --features search --root "$target/mdbook"
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r docs/book/book.toml docs/book/src "$stage"
# A link alone on its line stands for the file where the repository is read; in the book the file stands there: a page as it is, whose
# links lead to chapters, and a program below the link.
python3 - "$root" "$stage/src" <<'END'
import pathlib, re, shutil, sys

root, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
chapters = {page.name for page in source.glob("*.md")}
languages = {".rs": "rust", ".sbatch": "sh"}

def beside(match):
    path = (root / "docs/book/src" / match[1]).resolve()
    if path.is_relative_to(root / "docs/book"):
        return match[0]
    name = path.relative_to(root)
    # Files served verbatim: mdbook would treat their own names as pages or programs.
    names = {".md": name.with_suffix(".txt"), ".rs": f"{name}.txt"}
    copy = pathlib.Path("repository") / names.get(name.suffix, f"{name}.txt" if path.is_dir() else name)
    (source / copy).parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        # A folder becomes a list of its entries.
        (source / copy).write_text("".join(f"{entry.name}\n" for entry in sorted(path.iterdir())))
    else:
        shutil.copy(path, source / copy)
    return f"]({copy})"

def written(line):
    alone = re.fullmatch(r"\[[^\]]+\]\(([^)#]+)\)", line)
    shown = re.sub(r"\]\((\.\./[^)#]*)(?:#[^)]*)?\)", beside, line)
    if not alone or alone[1] in chapters:
        return shown
    path = root / "docs/book/src" / alone[1]
    text = path.read_text().rstrip()
    return text if path.suffix == ".md" else f"{shown}\n\n```{languages.get(path.suffix, 'text')}\n{text}\n```"

for page in source.glob("*.md"):
    page.write_text("".join(f"{written(line)}\n" for line in page.read_text().splitlines()))
END
rm -rf "$out"
"$mdbook" build --dest-dir "$out" "$stage"

# Checks every page: links and pictures are files, and no directive is left.
python3 - "$out" <<'END'
import html.parser, pathlib, sys, urllib.parse

out, broken, count = pathlib.Path(sys.argv[1]), [], 0

class Links(html.parser.HTMLParser):
    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("href", "src") and value]

for page in out.rglob("*.html"):
    text = page.read_text()
    if "{{#" in text:
        broken.append(f"{page.name} has a directive that was not replaced")
    links = Links()
    links.found = []
    links.feed(text)
    for link in links.found:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path or page.name == "404.html":
            continue
        count += 1
        if not (page.parent / urllib.parse.unquote(parts.path)).exists():
            broken.append(f"{page.name} leads to {link}, which there is not")
print(f"the book: {len(list(out.glob('*.html')))} pages, {count} links, in {out}")
sys.exit("\n".join(sorted(set(broken))) if broken else 0)
END
