//! `src/options.rs` is made from the library's table of options: this test compares them, and
//! with SHARDFEED_WRITE=1 in the environment writes the file again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use shardfeed::{options, OptionInfo};

/// "skip_sample" as "SkipSample".
fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

/// A comment of lines that are not too long.
fn comment(out: &mut String, indent: &str, text: &str) {
    let mut line = format!("{indent}///");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > 100 {
            writeln!(out, "{line}").unwrap();
            line = format!("{indent}///");
        }
        write!(line, " {word}").unwrap();
    }
    writeln!(out, "{line}").unwrap();
}

/// The help of an option as a sentence of rustdoc.
fn help(option: &OptionInfo) -> String {
    let text = option.help;
    let text = text[..1].to_uppercase() + &text[1..];
    text.replace('[', "\\[").replace("${NAME}", "`${NAME}`").replace("::,", "`::`,") + "."
}

fn choice(out: &mut String, option: &OptionInfo) {
    let name = camel(option.name);
    comment(out, "", &format!("The option `{}`: {}.", option.name, option.help));
    writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[non_exhaustive]").unwrap();
    writeln!(out, "pub enum {name} {{").unwrap();
    for choice in option.range.split('|') {
        writeln!(out, "    /// `{choice}`\n    {},", camel(choice)).unwrap();
    }
    writeln!(out, "}}\n").unwrap();
    writeln!(out, "impl Value for {name} {{\n    fn text(self) -> OsString {{").unwrap();
    writeln!(out, "        match self {{").unwrap();
    for choice in option.range.split('|') {
        writeln!(out, "            {name}::{} => \"{choice}\",", camel(choice)).unwrap();
    }
    writeln!(out, "        }}\n        .into()\n    }}\n}}\n").unwrap();
}

fn method(out: &mut String, option: &OptionInfo) {
    let (argument, value) = match option.value_type {
        "bool" => ("value: bool".to_owned(), "value"),
        "count" => ("value: u64".to_owned(), "value"),
        "bytes" => ("value: impl Into<Size>".to_owned(), "value.into()"),
        "duration" => ("value: Duration".to_owned(), "value"),
        "choice" => (format!("value: {}", camel(option.name)), "value"),
        "text" | "secret" => ("value: impl AsRef<OsStr>".to_owned(), "value.as_ref()"),
        other => panic!("option {} has the unknown type {other}", option.name),
    };
    comment(out, "    ", &help(option));
    writeln!(out, "    ///").unwrap();
    let default = match option.default {
        "" => "empty".to_owned(),
        text => format!("`{text}`"),
    };
    comment(out, "    ", &format!("Range: `{}`. Default: {default}.", option.range));
    writeln!(out, "    pub fn {}(self, {argument}) -> Self {{", option.name).unwrap();
    writeln!(out, "        self.with(\"{}\", {value})\n    }}\n", option.name).unwrap();
}

/// The text of `src/options.rs`.
fn source() -> String {
    let table = options();
    let mut out = String::from(
        "//! Made by tests/options.rs from the library's table of options. Do not edit.\n\n\
         use std::ffi::{OsStr, OsString};\nuse std::time::Duration;\n\n\
         use crate::builder::{\
         ArchiveBuilder, DatasetBuilder, MixBuilder, Size, StreamBuilder, Value, WriterBuilder};\n\n",
    );
    for option in table.iter().filter(|option| option.value_type == "choice") {
        choice(&mut out, option);
    }
    let mut by_opener = BTreeMap::<&str, Vec<&OptionInfo>>::new();
    for option in &table {
        for opener in option.openers.split(' ') {
            by_opener.entry(opener).or_default().push(option);
        }
    }
    for (opener, options) in by_opener {
        writeln!(out, "impl {}Builder {{", camel(opener)).unwrap();
        options.into_iter().for_each(|option| method(&mut out, option));
        writeln!(out, "}}\n").unwrap();
    }
    formatted(&out)
}

/// As rustfmt writes it.
fn formatted(source: &str) -> String {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2021", "--config-path", config])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt");
    let mut input = rustfmt.stdin.take().expect("a pipe");
    input.write_all(source.as_bytes()).expect("it reads");
    drop(input);
    let done = rustfmt.wait_with_output().expect("it ends");
    assert!(done.status.success(), "rustfmt does not take\n{source}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

#[test]
fn the_methods_of_builders_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/options.rs");
    let fresh = source();
    if std::env::var_os("SHARDFEED_WRITE").is_some() {
        std::fs::write(path, &fresh).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == fresh,
        "src/options.rs is not of this library; help: run this test with SHARDFEED_WRITE=1"
    );
}
