//! Texts by people about a picture: title, author, description and others, by the keywords of PNG.
//!
//! TIFF files have tags for some of them, EXIF data of JPEG files the same tags, and JPEG files a comment. Texts that
//! programs write for programs to describe the file are excluded.

use std::sync::Arc;

use super::DirectoryFields;
use super::exif::find;
use super::tiff::directory::DirectoryEntry;

/// Texts by their keywords.
pub(super) type Texts = Arc<[(String, String)]>;

pub(super) const COMMENT: &str = "Comment";
pub(super) const DESCRIPTION: &str = "Description";
/// Texts for which TIFF files have tags.
const TAGS: [(&str, u16); 4] = [(DESCRIPTION, 270), ("Title", 269), ("Author", 315), ("Copyright", 33432)];

/// Maximum bytes of all texts of a file.
const MOST: usize = 32 << 10;

/// Selects the texts written by people, each keyword once, up to a limit.
pub(super) fn select_authored_texts(found: Vec<(String, String)>) -> Option<Texts> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut left = MOST;
    for (keyword, text) in found {
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        let new = all.iter().all(|(known, _)| *known != keyword);
        if is_authored_text(&keyword, text) && new && keyword.len() + text.len() <= left {
            left -= keyword.len() + text.len();
            all.push((keyword, text.to_owned()));
        }
    }
    (!all.is_empty()).then(|| all.into())
}

/// Returns `true` for texts that people write and that are valid in other files.
fn is_authored_text(keyword: &str, text: &str) -> bool {
    // Texts of the program that wrote the file, of ImageMagick about the file, and other metadata as texts.
    let of_file = keyword == "Software" || keyword.contains(':') || keyword.starts_with("Raw profile");
    // XML, JSON, named values.
    let coded = |text: &str| {
        let name = text.split_once('=').map_or("", |(name, _)| name);
        let named = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._[]".contains(&c));
        text.starts_with(['<', '{', '[']) || text.starts_with("Aperio ") || named
    };
    !of_file && !keyword.is_empty() && !text.is_empty() && !coded(text)
}

/// Decodes bytes as UTF-8 or Latin-1.
pub(super) fn decoded(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect())
}

/// The texts in these fields of a TIFF file or of EXIF data.
pub(super) fn of_fields(fields: Option<DirectoryFields<'_>>) -> Vec<(String, String)> {
    let fields = fields.map(|mut fields| fields.all(&TAGS.map(|(_, tag)| tag))).unwrap_or_default();
    let field = |(keyword, tag): (&str, u16)| Some((keyword.to_owned(), decoded(&find(&fields, tag)?.text()?)));
    TAGS.into_iter().filter_map(field).collect()
}

/// The tags of a TIFF file, or of EXIF data, for texts, and the keywords of texts without a tag. A comment becomes the
/// description of a file without one, and its loss is not reported.
pub(super) fn entries(texts: &[(String, String)]) -> (Vec<DirectoryEntry>, Vec<&str>) {
    let (mut all, mut others) = (Vec::new(), Vec::new());
    let has_description = texts.iter().any(|(keyword, _)| keyword == DESCRIPTION);
    for (keyword, text) in texts {
        let name = if keyword == COMMENT && !has_description { DESCRIPTION } else { keyword };
        match TAGS.into_iter().find(|(known, _)| *known == name) {
            Some((_, tag)) => all.push(DirectoryEntry::ascii(tag, text)),
            None => others.push(&keyword[..]),
        }
    }
    (all, others)
}
