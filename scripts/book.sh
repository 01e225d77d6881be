#!/usr/bin/env bash
# Checks the pages of the book (docs/book), and builds them.
#
#   scripts/book.sh [DIR]     leaves HTML in DIR, by default in `book` of the target folder
#   scripts/book.sh --check   only checks that the summary lists every page and that links and pictures are files
#
# Takes `mdbook` if it is installed; else builds it once, in the target folder. Links to files outside of the book, which work where the
# repository is browsed, lead to copies beside the pages.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r docs/book/book.toml docs/book/src "$stage"
# A link alone on its line stands for the file where the repository is read; in the book the file stands there: a page as it is, whose
# links lead to chapters, and a program below the link.
python3 - "$root" "$stage/src" <<'END'
import pathlib, re, shutil, sys, urllib.parse

root, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
chapters = {page.name for page in source.glob("*.md")}
languages = {".py": "python", ".rs": "rust", ".sbatch": "sh"}

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
    path = root / "docs/book/src" / alone[1] if alone else None
    if not path or alone[1] in chapters or not path.exists():
        return shown
    text = path.read_text().rstrip()
    return text if path.suffix == ".md" else f"{shown}\n\n```{languages.get(path.suffix, 'text')}\n{text}\n```"

for page in source.glob("*.md"):
    page.write_text("".join(f"{written(line)}\n" for line in page.read_text().splitlines()))

# Programs and code are no links.
broken, count, listed = [], 0, set()
for page in sorted(source.glob("*.md")):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        file = urllib.parse.unquote(link.partition("#")[0])
        if not file or urllib.parse.urlsplit(link).scheme:
            continue
        count += 1
        if page.name == "SUMMARY.md":
            listed.add(file)
        if not (source / file).exists():
            broken.append(f"{page.name} leads to {link}, which there is not")
broken += [f"SUMMARY.md does not list {page}" for page in sorted(chapters - listed - {"SUMMARY.md"})]
print(f"the book: {len(chapters)} pages, {count} links")
sys.exit("\n".join(broken) if broken else 0)
END

if [ "${1:-}" = --check ]; then exit; fi

out=$(realpath -m "${1:-$target/book}")
mdbook=$(command -v mdbook || true)
if [ -z "$mdbook" ]; then
  mdbook=$target/mdbook/bin/mdbook
  # Without optimisation and the server: compiling takes longer than building the book.
  [ -x "$mdbook" ] || CARGO_TARGET_DIR=$target/mdbook cargo install mdbook --quiet --locked --version 0.5.4 --debug \
    --no-default-features --features search --root "$target/mdbook"
fi
rm -rf "$out"
"$mdbook" build --dest-dir "$out" "$stage"
echo "the book is in $out"
