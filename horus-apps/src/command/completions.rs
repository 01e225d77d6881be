//! `horus completions SHELL`: scripts with which shells complete operations, options and files.
//!
//! `clap_complete` does not suffice: where words and files are both possible, it offers only one of them, in fish no
//! words. Its dynamic engine is unstable.

use std::ffi::OsString;

use super::{compare, info, line, montage, profile, serve, table};

/// Words that are neither operations nor options, at the beginning of a line.
const FIRST: [&str; 8] = ["help", "info", "compare", "montage", "profile", "serve", "completions", "manual"];

/// The commands that have options of their own.
pub(super) fn commands() -> [(&'static str, clap::Command); 5] {
    let (info, compare) = (("info", info::command()), ("compare", compare::command()));
    let (montage, profile) = (("montage", montage::command()), ("profile", profile::command()));
    [info, compare, montage, profile, ("serve", serve::command())]
}

/// The answer to `completions SHELL`, if `words` are this command.
pub(super) fn asked(words: &[OsString]) -> Option<Result<String, String>> {
    let (first, rest) = words.split_first()?;
    if first != "completions" {
        return None;
    }
    let usage = "usage: horus completions bash|zsh|fish";
    Some(match rest {
        [word] if word == "--help" || word == "-h" => Ok(usage.into()),
        [shell] => script(&shell.to_string_lossy()).ok_or_else(|| format!("there is no such shell here; {usage}")),
        _ => Err(usage.into()),
    })
}

/// An option of a command as it is typed, its help, and `true` if a value follows.
fn options(command: &clap::Command) -> Vec<(String, String, bool)> {
    let mut all = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_positional()) {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.split(['.', ';', ':']).next().unwrap_or_default().replace(['\n', '\'', '"'], " ");
        let value = argument.get_action().takes_values();
        all.extend(argument.get_long().map(|long| (format!("--{long}"), help.clone(), value)));
        all.extend(argument.get_short().map(|short| (format!("-{short}"), help, value)));
    }
    all.push(("--help".into(), "Print help".into(), false));
    all.push(("--version".into(), "Print the version".into(), false));
    all
}

/// The script for a shell.
fn script(shell: &str) -> Option<String> {
    let options_of_chains = options(&line::command());
    let joined = |options: &[(String, String, bool)]| {
        options.iter().map(|(flag, ..)| flag.as_str()).collect::<Vec<_>>().join(" ")
    };
    let names: Vec<&str> = table::all().iter().map(|row| row.name).collect();
    let (flags, names, first) = (joined(&options_of_chains), names.join(" "), FIRST.join(" "));
    let cases = |assign: &dyn Fn(&str) -> String| -> String {
        let one = |(name, command)| format!("        {name}) {} ;;\n", assign(&joined(&options(&command))));
        commands().into_iter().map(one).collect()
    };
    Some(match shell {
        "bash" => format!(
            "\
# Completions of horus for bash; in ~/.bashrc: source <(horus completions bash)
_horus() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words='{names}' flags='{flags}'
    COMPREPLY=()
    case ${{COMP_WORDS[1]}} in
{}    esac
    case $word in
        -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")); return ;;
        @*) mapfile -t COMPREPLY < <(compgen -P @ -f -- \"${{word#@}}\"); return ;;
    esac
    [ \"$COMP_CWORD\" -gt 1 ] || words=\"{first}\"
    case ${{COMP_WORDS[1]}} in
        completions) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")); return ;;
        help) COMPREPLY=($(compgen -W '{names}' -- \"$word\")); return ;;
        info | compare | montage | serve) words= ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -- \"$word\")
}}
complete -o filenames -F _horus horus
",
            cases(&|flags| format!("flags='{flags}'"))
        ),
        "zsh" => format!(
            "\
#compdef horus
# Completions of horus for zsh; in ~/.zshrc, after compinit: source <(horus completions zsh)
_horus() {{
    local -a words_of flags_of
    words_of=({names})
    flags_of=({flags})
    case ${{words[2]}} in
{}    esac
    if [[ ${{words[CURRENT]}} == -* ]]; then compadd -- $flags_of; return; fi
    if [[ ${{words[CURRENT]}} == @* ]]; then compset -P @; _files; return; fi
    if (( CURRENT == 2 )); then compadd -- {first}; _files; return; fi
    case ${{words[2]}} in
        completions) compadd -- bash zsh fish ;;
        help) compadd -- $words_of ;;
        info|compare|montage|serve) _files ;;
        *) compadd -- $words_of; _files ;;
    esac
}}
compdef _horus horus
",
            cases(&|flags| format!("flags_of=({flags})"))
        ),
        "fish" => {
            let mut text =
                "# Completions of horus for fish: horus completions fish > ~/.config/fish/completions/horus.fish\n"
                    .to_owned();
            for word in FIRST {
                text += &format!("complete -c horus -n __fish_is_first_arg -a {word}\n");
            }
            text += "complete -c horus -n '__fish_seen_subcommand_from completions' -f -a 'bash zsh fish'\n";
            let begun = "not __fish_is_first_arg; and not __fish_seen_subcommand_from info compare montage serve completions manual";
            let chains = "not __fish_seen_subcommand_from info compare montage serve";
            for row in table::all() {
                let help = row.summary.replace(['\'', '`', '\\'], " ");
                text += &format!("complete -c horus -n '{begun}' -a {} -d '{help}'\n", row.name);
            }
            let mut add = |condition: &str, options: Vec<(String, String, bool)>| {
                for (flag, help, value) in options {
                    let (kind, name) =
                        if let Some(long) = flag.strip_prefix("--") { ("l", long) } else { ("s", &flag[1..]) };
                    let value = if value { " -r" } else { "" };
                    text += &format!("complete -c horus -n '{condition}' -{kind} {name}{value} -d '{help}'\n");
                }
            };
            add(chains, options_of_chains);
            for (name, command) in commands() {
                add(&format!("__fish_seen_subcommand_from {name}"), options(&command));
            }
            text
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_option_is_in_each_script() {
        for shell in ["bash", "zsh", "fish"] {
            let script = script(shell).unwrap();
            let words: Vec<&str> = script.split(|c: char| c.is_whitespace() || "()'\"".contains(c)).collect();
            assert!(table::all().iter().all(|row| words.contains(&row.name)), "{shell}");
            let of = commands().map(|(_, command)| options(&command)).concat();
            for (flag, ..) in options(&line::command()).into_iter().chain(of) {
                let flag = if shell == "fish" { flag.trim_start_matches('-') } else { &flag };
                assert!(words.contains(&flag), "{shell}: {flag}");
            }
        }
        assert_eq!(script("csh"), None);
    }
}
