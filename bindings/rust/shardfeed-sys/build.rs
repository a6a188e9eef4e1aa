//! Finds libshardfeed, or builds it. Only the standard library is used, so that a build needs
//! neither network nor other crates. src/lib.rs describes what is searched where.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in [
        "SHARDFEED_LIB_DIR",
        "SHF_NO_VENDOR",
        "SHARDFEED_MESON_ARGS",
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_SYSROOT_DIR",
        "DOCS_RS",
    ] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    // docs.rs has neither the library nor a network.
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Some(folder) = set("SHARDFEED_LIB_DIR") {
        link_folder(Path::new(&folder));
    } else if env::var_os("CARGO_FEATURE_VENDORED").is_some() && set("SHF_NO_VENDOR").is_none() {
        build_vendored();
    } else {
        link_packaged();
    }
}

/// A variable of the environment that is neither empty nor 0.
fn set(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty() && value != "0")
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}

/// The output of a command, or what it said when it failed.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    match command.output() {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.stdout).into()),
        Ok(done) => Err(format!(
            "{shown}: {}\n{}{}",
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

// ---- A folder with the library ----

fn link_folder(folder: &Path) {
    if folder.join("libshardfeed.so").exists() {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=dylib=shardfeed");
        println!("cargo:lib_dir={}", folder.display());
    } else if folder.join("libshardfeed.a").exists() {
        link_static(folder);
    } else {
        fail(&format!(
            "SHARDFEED_LIB_DIR is {}, where there is no libshardfeed.so and no libshardfeed.a",
            folder.display()
        ));
    }
}

// ---- pkg-config ----

/// The versions of the library that have the declarations of this crate, whose version is that of
/// the library that they were made from: this one, up to the next that may break.
fn versions() -> [String; 2] {
    let part = |text: &str| text.parse::<u32>().expect("Cargo knows it");
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let next = match part(major) {
        0 => format!("0.{}", part(minor) + 1),
        major => (major + 1).to_string(),
    };
    let version = env!("CARGO_PKG_VERSION");
    [format!("shardfeed >= {version}"), format!("shardfeed < {next}")]
}

fn pkg_config() -> Command {
    Command::new(set("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into()))
}

fn link_packaged() {
    match output(pkg_config().arg("--libs").args(versions())) {
        Ok(flags) => {
            let folder = output(pkg_config().args(["--variable=libdir", "shardfeed"]));
            println!("cargo:lib_dir={}", folder.unwrap_or_default().trim());
            link_flags(&flags);
        }
        Err(message) => fail(&format!(
            "libshardfeed is not found.\n{message}\nhelp: install it, or set PKG_CONFIG_PATH to \
             the folder of shardfeed.pc or SHARDFEED_LIB_DIR to that of libshardfeed.so, or build \
             it from source with the feature `vendored`{}",
            if set("SHF_NO_VENDOR").is_some() { " (which SHF_NO_VENDOR refuses now)" } else { "" }
        )),
    }
}

/// What pkg-config says to the linker, for Cargo.
fn link_flags(flags: &str) {
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        } else {
            println!("cargo:rustc-link-arg={flag}");
        }
    }
}

/// Links libshardfeed.a and, shared, what it stands on. `folder`/pkgconfig has its shardfeed.pc.
fn link_static(folder: &Path) {
    println!("cargo:lib_dir={}", folder.display());
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=shardfeed");
    let mut paths = vec![folder.join("pkgconfig")];
    paths.extend(env::split_paths(&env::var_os("PKG_CONFIG_PATH").unwrap_or_default()));
    let path = env::join_paths(paths).expect("no colon in the path");
    match output(
        pkg_config().args(["--libs", "--static", "shardfeed"]).env("PKG_CONFIG_PATH", path),
    ) {
        Ok(flags) => {
            // Rust's own library has the threads.
            let done = ["-lshardfeed", "-pthread"];
            let others = flags.split_whitespace().filter(|flag| !done.contains(flag));
            link_flags(&others.collect::<Vec<_>>().join(" "));
        }
        Err(message) => fail(&format!("what libshardfeed.a needs is not known.\n{message}")),
    }
}

// ---- Building ----

fn build_vendored() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor");
    // The library is compiled for release in debug builds too: without, it is ten times as slow.
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let (build, installed) = (out.join("build"), out.join("installed"));
    println!("cargo:rerun-if-changed=vendor");
    let mut setup = Command::new("meson");
    setup.arg("setup").arg(&build).arg(&sources).args([
        "--buildtype=release",
        "-Ddefault_library=static",
        "-Dtests=disabled",
        "-Dpython=disabled",
        "-Dman=disabled",
        "-Dcommand=disabled",
        "--libdir=lib",
    ]);
    setup.arg("--prefix").arg(&installed);
    let more = env::var("SHARDFEED_MESON_ARGS").unwrap_or_default();
    setup.args(more.split_whitespace());
    if build.join("build.ninja").exists() {
        setup.arg("--reconfigure");
    }
    let mut ninja = Command::new("ninja");
    ninja.arg("-C").arg(&build);
    if let Some(jobs) = env::var_os("NUM_JOBS") {
        ninja.args([OsStr::new("-j"), &jobs]);
    }
    let mut install = Command::new("meson");
    install.args(["install", "--quiet", "-C"]).arg(&build);
    for command in [&mut setup, &mut ninja, &mut install] {
        if let Err(message) = output(command) {
            fail(&format!(
                "building libshardfeed failed.\n{message}\nhelp: scripts/install_dependencies.sh \
                 of the repository names what it takes; SHF_NO_VENDOR=1 takes the installed library"
            ));
        }
    }
    link_static(&installed.join("lib"));
}
