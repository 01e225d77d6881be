//! `horus manual`: the page of the manual, made of the texts of `--help` and `horus help`.
//!
//! `clap_mangen` makes a page of plain text for each command; this page could use only its lists of options.

use std::ffi::OsString;
use std::fmt::Write;

use super::completions::commands;
use horus_core::ops::describe::OperationGroup;

use super::table;
use super::{help, line};
use horus::settings::VARIABLES;

/// The answer to `manual`, if `words` are this command.
pub(super) fn asked(words: &[OsString]) -> Option<Result<String, String>> {
    let (first, rest) = words.split_first()?;
    if first != "manual" {
        return None;
    }
    let usage = "usage: horus manual > horus.1".to_owned();
    Some(match rest {
        [] => Ok(page()),
        [word] if word == "--help" || word == "-h" => Ok(usage),
        _ => Err(usage),
    })
}

/// A text in roff: markup of roff is escaped, markup of Markdown is converted.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace("\n.", "\n\\&.");
    let mut out = String::new();
    for (i, part) in text.replace("**", "`").split('`').enumerate() {
        let (before, after) = if i % 2 == 1 { ("\\fB", "\\fR") } else { ("", "") };
        let _ = write!(out, "{before}{part}{after}");
    }
    if out.starts_with('.') { format!("\\&{out}") } else { out }
}

/// A tagged paragraph.
fn entry(tag: &str, text: &str) -> String {
    format!(".TP\n.B {}\n{}\n", roff(tag), roff(text))
}

/// The options of a command that are not in `told`, with their values and help.
fn options(command: &clap::Command, told: &[clap::Id]) -> String {
    let mut text = String::new();
    let new = |argument: &&clap::Arg| !argument.is_positional() && !told.contains(argument.get_id());
    for argument in command.get_arguments().filter(new) {
        let names = argument.get_short().map(|short| format!("-{short}"));
        let names = names.into_iter().chain(argument.get_long().map(|long| format!("--{long}")));
        let mut tag = names.collect::<Vec<_>>().join(", ");
        for name in argument.get_value_names().into_iter().flatten().filter(|_| argument.get_action().takes_values()) {
            tag += &format!(" {name}");
        }
        let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
        text += &entry(&tag, &help.unwrap_or_default());
    }
    text
}

fn page() -> String {
    let command = line::command();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = line::command().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").lines().map(|line| roff(line.trim())).collect::<Vec<_>>();
    let mut text = format!(
        ".TH HORUS 1 \"\" \"horus {}\" \"User Commands\"\n.SH NAME\nhorus \\- {}\n.SH SYNOPSIS\n.nf\n{}\n.fi\n",
        env!("CARGO_PKG_VERSION"),
        roff("image operations on pictures"),
        usage.join("\n")
    );
    let _ = write!(text, ".SH DESCRIPTION\n{}\n.SH OPTIONS\n{}", roff(&about), options(&command, &[]));
    let chains: Vec<_> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    for (name, command) in commands() {
        // The options of chains are described above.
        let told = if name == "profile" { &chains[..] } else { &[] };
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, ".SH HORUS {}\n{}\n{}", name.to_uppercase(), roff(&about), options(&command, told));
    }
    text += ".SH OPERATIONS\nArguments in brackets may be left out; each can be given by name.\n";
    for group in OperationGroup::ALL {
        let _ = writeln!(text, ".SS {}", roff(group.title()));
        for row in table::all().iter().filter(|row| row.group == group) {
            text += &entry(&row.signature(), row.summary);
        }
    }
    text += ".SH TOPICS\n";
    for topic in help::topics() {
        let _ = write!(text, ".PP\n{}\n", roff(topic.trim()));
    }
    text += ".SH EXIT STATUS\n";
    for (status, meaning) in [
        ("0", "Success; of compare, equal pictures."),
        ("1", "A failure, told in a line; of compare, pictures that differ."),
        ("2", "Wrong usage; of compare, pictures that cannot be compared."),
        ("130", "An interrupt."),
    ] {
        text += &entry(status, meaning);
    }
    text += ".SH ENVIRONMENT\n";
    for variable in VARIABLES {
        let row = variable.row();
        let mut cells = row.trim_matches('|').splitn(2, " | ");
        let (name, told) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        text += &entry(name.trim().trim_matches('`'), told.trim());
    }
    text += ".SH EXAMPLES\n.nf\n";
    for example in help::EXAMPLES {
        let _ = writeln!(text, "{}", roff(example));
    }
    text + ".fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_options_and_variables_are_on_the_page() {
        let page = page();
        for row in table::all() {
            assert!(page.contains(&format!(".B {}", roff(&row.signature()))), "{}", row.name);
        }
        for command in commands().map(|(_, command)| command).into_iter().chain([line::command()]) {
            for long in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(page.contains(&roff(&format!("--{long}"))), "--{long}");
            }
        }
        assert!(VARIABLES.iter().all(|variable| page.contains(&format!(".B {}\n", variable.name()))));
        // Lines that begin like a request are requests.
        let requests = [".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".nf", ".fi"];
        let wrong = page.lines().find(|line| {
            line.starts_with(['.', '\'']) && !requests.contains(&line.split(' ').next().unwrap_or_default())
        });
        assert_eq!(wrong, None);
    }

    #[test]
    fn marks_are_those_of_roff() {
        assert_eq!(roff("**Masks** of `-1`: it's"), "\\fBMasks\\fR of \\fB\\-1\\fR: it\\(aqs");
        assert_eq!(roff(".5\n.x"), "\\&.5\n\\&.x");
    }
}
