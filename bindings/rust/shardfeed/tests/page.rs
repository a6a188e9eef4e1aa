//! The examples of docs/rust.md, docs/members.md, docs/writing.md and of the crate's README, as
//! programs of a crate of their own that are run.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The blocks of Rust in a page, each as a whole program.
fn programs(page: &str) -> Vec<String> {
    let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole = |block: &str| match block.contains("fn main") {
        true => block.to_owned(),
        false => format!("fn main() -> shardfeed::Result<()> {{\n{block}\nOk(())\n}}\n"),
    };
    blocks.map(whole).collect()
}

#[test]
fn the_examples_of_the_pages_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |path| fs::read_to_string(root.join(path)).expect("the page");
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let data = here.join("data");
    let _ = fs::remove_dir_all(&data);
    fs::create_dir_all(here.join("src/bin")).expect("a folder");
    fs::create_dir_all(&data).expect("a folder");
    for entry in fs::read_dir(root.join("tests/data")).expect("data") {
        let path = entry.expect("a file").path();
        fs::copy(&path, data.join(path.file_name().expect("a name"))).expect("a copy");
    }
    fs::write(
        here.join("Cargo.toml"),
        format!(
            "[package]\nname = \"page\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [dependencies]\nshardfeed = {{ path = {root:?} }}\n\
             [workspace]\n[profile.dev]\ndebug = 0\n"
        ),
    )
    .expect("it is written");
    let mut all = programs(&page("../../../docs/rust.md"));
    all.extend(programs(&page("README.md")));
    all.extend(programs(&page("../../../docs/members.md")));
    all.extend(programs(&page("../../../docs/writing.md")));
    for (number, program) in all.iter().enumerate() {
        fs::write(here.join(format!("src/bin/example{number}.rs")), program).expect("written");
    }
    let cargo = |arguments: &[&str]| {
        let manifest = here.join("Cargo.toml");
        let done = Command::new(env!("CARGO"))
            .args(arguments)
            .args(["--offline", "--quiet", "--manifest-path"])
            .arg(manifest)
            .env("CARGO_TARGET_DIR", here.join("target"))
            .current_dir(&data)
            .output()
            .expect("cargo");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    let printed: Vec<_> =
        (0..all.len()).map(|n| cargo(&["run", "--bin", &format!("example{n}")])).collect();
    assert!(printed.len() >= 6);
    assert_eq!(printed[0], printed[3]);
    let mut first: Vec<_> = printed[0].lines().collect();
    first.sort_unstable();
    assert_eq!(first.len(), 9);
    assert!(first[0].starts_with("a/0000: ") && first[0].ends_with(" bytes of jpg"), "{first:?}");
    assert!(printed[5].starts_with("img_000.png: ") && printed[5].lines().count() == 3);
    for written in [&printed[4]].into_iter().chain(&printed[6..]) {
        let last = written.lines().last().expect("three shards");
        assert!(last.contains("-000002.tar: 500 samples"), "{written}");
    }
    let batches = "4 after 4: [4, 5, 6, 7], 768 pixels\n1 after 4: [8], 192 pixels\n";
    assert_eq!(printed[1], batches);
    assert!(printed[2].starts_with("9 samples, Some([55])\n3 members, "), "{}", printed[2]);
}
