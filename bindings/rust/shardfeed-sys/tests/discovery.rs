//! How the build script finds the library: build.rs is compiled, and run as Cargo runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with these files in it.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("it is written");
    }
    folder
}

/// What the build script says with these variables: to Cargo, or why it fails.
fn run(script: &Path, variables: &[(&str, &str)]) -> Result<String, String> {
    let mut command = Command::new(script);
    for name in ["SHARDFEED_LIB_DIR", "SHF_NO_VENDOR", "PKG_CONFIG", "DOCS_RS"] {
        command.env_remove(name);
    }
    command.env("PKG_CONFIG_PATH", "").env("PKG_CONFIG_LIBDIR", "/nonexistent");
    command.env_remove("CARGO_FEATURE_VENDORED").envs(variables.iter().copied());
    let done = command.output().expect("it runs");
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout).expect("UTF-8")),
        false => Err(String::from_utf8(done.stderr).expect("UTF-8")),
    }
}

/// A pkg-config file of a library of this version, which needs others when it is linked statically.
fn pc(version: &str) -> String {
    format!(
        "libdir=/some/lib\nName: shardfeed\nDescription: x\nVersion: {version}\n\
         Libs: -L${{libdir}} -lshardfeed\nLibs.private: -lz -pthread -lstdc++\n"
    )
}

#[test]
fn the_library_is_found() {
    let build = folder("build-script", &[]);
    let script = build.join("script");
    let compiled = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2021", "-o"])
        .arg(&script)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs"))
        .status();
    assert!(compiled.expect("rustc").success());
    let run = |variables: &[(&str, &str)]| run(&script, variables);

    // docs.rs
    assert!(!run(&[("DOCS_RS", "1")]).unwrap().contains("rustc-link"));

    // A folder that is named
    let shared = folder("shared", &[("libshardfeed.so", "")]);
    let said = run(&[("SHARDFEED_LIB_DIR", shared.to_str().unwrap())]).unwrap();
    assert!(said.contains("cargo:rustc-link-lib=dylib=shardfeed\n"), "{said}");
    assert!(said.contains(&format!("cargo:lib_dir={}\n", shared.display())), "{said}");
    let fixed = folder("static", &[("libshardfeed.a", "")]);
    fs::create_dir(fixed.join("pkgconfig")).unwrap();
    fs::write(fixed.join("pkgconfig/shardfeed.pc"), pc("0.1.0")).unwrap();
    let said = run(&[("SHARDFEED_LIB_DIR", fixed.to_str().unwrap())]).unwrap();
    assert!(said.contains("=static=shardfeed\n") && said.contains("-lib=stdc++\n"), "{said}");
    assert!(said.contains("-lib=z\n") && !said.contains("pthread"), "{said}");
    let empty = folder("empty", &[]);
    let said = run(&[("SHARDFEED_LIB_DIR", empty.to_str().unwrap())]).unwrap_err();
    assert!(said.contains("no libshardfeed.so"), "{said}");

    // pkg-config, of the versions that have the declarations
    let version = env!("CARGO_PKG_VERSION");
    let good = folder("good", &[("shardfeed.pc", &pc(version))]);
    let said = run(&[("PKG_CONFIG_PATH", good.to_str().unwrap())]).unwrap();
    assert!(said.contains("-search=native=/some/lib\n"), "{said}");
    assert!(said.contains("-lib=shardfeed\n") && !said.contains("stdc++"), "{said}");
    assert!(said.contains("cargo:lib_dir=/some/lib\n"), "{said}");
    for other in ["0.0.9", "99.0.0"] {
        let bad = folder("bad", &[("shardfeed.pc", &pc(other))]);
        let said = run(&[("PKG_CONFIG_PATH", bad.to_str().unwrap())]).unwrap_err();
        assert!(said.contains(other) && said.contains("help: "), "{said}");
    }

    // Not built from source where that is refused
    let vendored = ("CARGO_FEATURE_VENDORED", "1");
    let said = run(&[vendored, ("SHF_NO_VENDOR", "1")]).unwrap_err();
    assert!(said.contains("SHF_NO_VENDOR"), "{said}");
    let found = [vendored, ("SHF_NO_VENDOR", "1"), ("PKG_CONFIG_PATH", good.to_str().unwrap())];
    assert!(run(&found).unwrap().contains("-lib=shardfeed\n"));
    assert!(run(&[("PKG_CONFIG", "/nonexistent/pkg-config")])
        .unwrap_err()
        .contains("/nonexistent"));
}
