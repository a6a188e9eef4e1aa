//! What must not compile does not, and for the right reason: the programs of `compile_fail`, each
//! with the error that its first line names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn misuse_does_not_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compile_fail");
    let mut wanted = BTreeMap::new();
    for entry in fs::read_dir(folder.join("src/bin")).expect("programs") {
        let path = entry.expect("a program").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8").to_owned();
        let text = fs::read_to_string(&path).expect("UTF-8");
        let code = text.strip_prefix("// E").map(|rest| format!("E{}", &rest[..4]));
        wanted.insert(name, code.into_iter().collect::<BTreeSet<_>>());
    }
    assert!(wanted.len() > 5 && wanted["compiles"].is_empty());

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let checked = Command::new(env!("CARGO"))
        .args(["check", "--bins", "--keep-going", "--offline", "--locked"])
        .args(["--message-format", "json", "--target-dir"])
        .arg(target)
        .current_dir(&folder)
        .output()
        .expect("cargo");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(checked.stdout).expect("UTF-8").lines() {
        let message: Value = serde_json::from_str(line).expect("JSON");
        if message["target"]["kind"][0] != "bin" {
            continue;
        }
        let name = message["target"]["name"].as_str().expect("a name");
        let codes = found.entry(name.to_owned()).or_default();
        if message["message"]["level"] == "error" {
            codes.extend(message["message"]["code"]["code"].as_str().map(str::to_owned));
        }
    }
    let said = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(found, wanted, "{said}");
}
