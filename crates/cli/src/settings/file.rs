//! Where the file is, and what it says.

use super::{EXCLUDED, Fault, OF_SECTIONS, PATHS, READ_WHEN_NEEDED, SHARED_WITH_ACCEPT, SHARING, WITH_SECTION, option};
use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub const NAME: &str = "rashomon.toml";
/// Longest file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Permission of everybody to write.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// For which executions a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Every,
    Command(String),
    /// A pattern of programs.
    Program(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Switch(bool),
    Texts(Vec<OsString>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub scope: Scope,
    pub key: String,
    pub value: Value,
    pub line: usize,
}

/// What a file says, in its order.
#[derive(Clone, Debug)]
pub struct Settings {
    pub path: PathBuf,
    pub entries: Vec<Entry>,
}

impl Settings {
    /// The nearest file at or above the program's folder; else at or above the working directory.
    pub fn find(program: Option<&Path>) -> Option<PathBuf> {
        let program = program.and_then(|program| program.canonicalize().ok());
        let above = |folder: &Path| folder.ancestors().map(|folder| folder.join(NAME)).find(|file| file.is_file());
        let of_program = program.as_deref().and_then(Path::parent).and_then(above);
        of_program.or_else(|| above(&std::env::current_dir().ok()?))
    }

    /// Reads a file; `whole` is the definition of the command line.
    pub fn read(path: &Path, whole: &Command) -> Result<Self> {
        let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if metadata.len() > LONGEST {
            return Err(Fault(format!("{}: {} bytes are too many; it may have {LONGEST}", path.display(), metadata.len())).into());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let reader = Reader { path, text: &text, whole };
        let entries = reader.entries()?;
        Ok(Self { path: path.to_path_buf(), entries })
    }

    /// Why a file that was found is not obeyed: it may have commands that are executed, and whoever else can write it is not the
    /// one who asked.
    pub fn distrusted(path: &Path) -> Option<&'static str> {
        let metadata = std::fs::metadata(path).ok()?;
        if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
            return Some("it belongs to another user");
        }
        (metadata.mode() & WRITABLE_BY_OTHERS != 0).then_some("everybody can write it")
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    whole: &'a Command,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.bytes().take(span.start).filter(|&byte| byte == b'\n').count() + 1
    }

    fn fault(&self, span: &Range<usize>, words: &str) -> anyhow::Error {
        Fault(format!("{}:{}: {words}", self.path.display(), self.line(span))).into()
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let parsed = DeTable::parse(self.text)
            .map_err(|error| self.fault(&error.span().unwrap_or(0..0), error.message().lines().next().unwrap_or_default()))?;
        let mut entries = Vec::new();
        for (key, value) in parsed.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("target", DeValue::Table(targets)) => {
                    for (pattern, section) in targets {
                        let DeValue::Table(table) = section.get_ref() else {
                            return Err(self.fault(&pattern.span(), "expected a section, such as [target.\"tests/*\"]"));
                        };
                        self.section(&Scope::Program(pattern.get_ref().to_string()), table, &mut entries)?;
                    }
                }
                ("target", _) => return Err(self.fault(&key.span(), "expected a section, such as [target.\"tests/*\"]")),
                (name, DeValue::Table(table)) => {
                    if !SHARING.contains(&name) && !WITH_SECTION.contains(&name) {
                        let known = SHARING.iter().chain(&WITH_SECTION).map(|name| format!("[{name}]"));
                        let known = known.collect::<Vec<_>>().join(", ");
                        let words = format!("unknown section [{name}]; expected [target.PATTERN] or one of {known}");
                        return Err(self.fault(&key.span(), &words));
                    }
                    self.section(&Scope::Command(name.to_owned()), table, &mut entries)?;
                }
                (name, _) => entries.push(self.entry(&Scope::Every, name, key.span(), value)?),
            }
        }
        entries.sort_by_key(|entry| entry.line);
        Ok(entries)
    }

    fn section(&self, scope: &Scope, table: &DeTable<'_>, entries: &mut Vec<Entry>) -> Result<()> {
        for (key, value) in table {
            entries.push(self.entry(scope, key.get_ref(), key.span(), value)?);
        }
        Ok(())
    }

    /// The commands whose options a section may name.
    fn commands(&self, scope: &Scope) -> Vec<&Command> {
        let find = |name: &str| self.whole.get_subcommands().find(|command| command.get_name() == name);
        match scope {
            Scope::Command(name) => find(name).into_iter().collect(),
            Scope::Every | Scope::Program(_) => SHARING.iter().filter_map(|name| find(name)).collect(),
        }
    }

    fn entry(&self, scope: &Scope, key: &str, span: Range<usize>, value: &Spanned<DeValue<'_>>) -> Result<Entry> {
        let commands = self.commands(scope);
        if !matches!(scope, Scope::Command(_)) && OF_SECTIONS.contains(&key) {
            let words = format!("{key} means something else for each command: put it into a section, such as [explore]");
            return Err(self.fault(&span, &words));
        }
        let found = commands.iter().find_map(|command| Some((command.get_name(), option(command, key)?)));
        let Some((command, argument)) = found else { return Err(self.fault(&span, &unknown(key, scope, &commands))) };
        let mut value = read(argument, value.get_ref()).map_err(|words| self.fault(&value.span(), &format!("{key}: {words}")))?;
        if let Value::Texts(texts) = &mut value {
            texts.iter_mut().for_each(|text| self.place(key, text));
        }
        if !READ_WHEN_NEEDED.contains(&key) {
            self.try_out(command, key, &value).map_err(|words| self.fault(&span, &words))?;
        }
        Ok(Entry { scope: scope.clone(), key: key.to_owned(), value, line: self.line(&span) })
    }

    /// Paths are seen from the folder of the file; `-` is no path.
    fn place(&self, key: &str, text: &mut OsString) {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if PATHS.contains(&key) && text != "-" {
            *text = folder.join(&*text).into_os_string();
        }
        if let Some((format, file)) = text.to_str().filter(|_| key == "report").and_then(|text| text.split_once('='))
            && file != "-"
            && !file.is_empty()
        {
            let mut placed = OsString::from(format!("{format}="));
            placed.push(folder.join(file));
            *text = placed;
        }
    }

    /// The command line judges the value.
    fn try_out(&self, command: &str, key: &str, value: &Value) -> std::result::Result<(), String> {
        let mut line: Vec<OsString> = vec!["rashomon".into(), command.into()];
        line.extend(words(key, value));
        line.extend(["--".into(), "true".into()]);
        match self.whole.clone().try_get_matches_from(line) {
            Ok(_) => Ok(()),
            Err(error) if [ErrorKind::MissingRequiredArgument, ErrorKind::ArgumentConflict].contains(&error.kind()) => Ok(()),
            Err(error) => Err(said(&error)),
        }
    }
}

/// What clap says, in one line.
pub fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words = paragraph.trim_start_matches("error: ").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

fn unknown(key: &str, scope: &Scope, commands: &[&Command]) -> String {
    let is_possible =
        |option: &&str| !EXCLUDED.contains(option) && (matches!(scope, Scope::Command(_)) || !OF_SECTIONS.contains(option));
    let options = commands.iter().flat_map(|command| command.get_arguments()).filter(|argument| !argument.is_hide_set());
    let mut options: Vec<&str> = options.filter_map(Arg::get_long).filter(is_possible).collect();
    options.sort_unstable();
    options.dedup();
    if EXCLUDED.contains(&key) {
        return format!("{key} is for the command line alone");
    }
    format!("unknown key {key}; expected one of {}", options.join(", "))
}

/// A value of the kind that the option takes.
fn read(argument: &Arg, value: &DeValue<'_>) -> std::result::Result<Value, String> {
    let may_be_bare = !argument.get_action().takes_values();
    let optional = argument.get_num_args().is_some_and(|number| number.min_values() == 0);
    let many = matches!(argument.get_action(), ArgAction::Append);
    match value {
        DeValue::Boolean(on) if may_be_bare || optional => Ok(Value::Switch(*on)),
        _ if may_be_bare => Err("expected true or false".into()),
        DeValue::Array(all) if many => all.iter().map(|one| text(one.get_ref())).collect::<Result<_, _>>().map(Value::Texts),
        DeValue::Array(_) => Err("expected one value, not a list".into()),
        one => text(one).map(|text| Value::Texts(vec![text])),
    }
}

fn text(value: &DeValue<'_>) -> std::result::Result<OsString, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            i128::from_str_radix(digits, number.radix())
                .map(|number| number.to_string().into())
                .map_err(|error| error.to_string())
        }
        DeValue::Float(number) => Ok(number.as_str().into()),
        _ => Err("expected a text or a number".into()),
    }
}

/// A value as words of the command line.
pub fn words(key: &str, value: &Value) -> Vec<OsString> {
    match value {
        Value::Switch(true) => vec![format!("--{key}").into()],
        Value::Switch(false) => vec![],
        Value::Texts(texts) => texts.iter().map(|text| word(key, text)).collect(),
    }
}

fn word(key: &str, text: &std::ffi::OsStr) -> OsString {
    let mut word = OsString::from(format!("--{key}="));
    word.push(text);
    word
}

/// Whether a section is for a program: its name, or, of patterns with a `/`, its path from the folder of the file.
pub fn is_for(pattern: &str, settings: &Path, program: Option<&Path>) -> bool {
    let Some(program) = program else { return false };
    let name = if pattern.contains('/') {
        let folder = settings.parent().and_then(|folder| folder.canonicalize().ok());
        let whole = program.canonicalize().ok();
        match (folder, whole) {
            (Some(folder), Some(whole)) => whole.strip_prefix(&folder).map(Path::to_path_buf).ok(),
            _ => None,
        }
    } else {
        program.file_name().map(PathBuf::from)
    };
    name.is_some_and(|name| {
        rashomon_abi::pattern::matches(format!("^{pattern}$").as_bytes(), name.as_os_str().as_encoded_bytes())
    })
}

/// Keys of `accept` and of what all share.
pub fn holds_for(scope: &Scope, key: &str, command: &str) -> bool {
    match scope {
        Scope::Command(name) => name == command,
        Scope::Every | Scope::Program(_) => SHARING.contains(&command) || (command == "accept" && key == SHARED_WITH_ACCEPT),
    }
}
