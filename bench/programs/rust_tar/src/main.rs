//! rust_tar BUFFER touch|every FILE...
//!
//! The crate `tar` behind a `BufReader` of BUFFER bytes, every member read whole into one recycled
//! `Vec`. The work on the bytes and the JSON line are those of `measure.h`; `every` adds up all.

#[path = "../../measure.rs"]
mod measure;

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read};

use measure::Measure;

fn walk(path: &str, buffer: usize, measure: &mut Measure) -> std::io::Result<()> {
    let mut data = Vec::new();
    let mut archive = tar::Archive::new(BufReader::with_capacity(buffer, File::open(path)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let size = entry.size();
        data.clear();
        data.reserve(size as usize);
        entry.read_to_end(&mut data)?;
        if data.len() as u64 != size {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        measure.member(&data);
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [_, buffer, mode @ ("touch" | "every"), files @ ..] = words.as_slice() else {
        eprintln!("usage: rust_tar BUFFER touch|every FILE...");
        std::process::exit(2);
    };
    let buffer = buffer.parse().expect("a number of bytes");
    let mut measure = Measure::start(*mode == "every");
    for path in files {
        if let Err(error) = walk(path, buffer, &mut measure) {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    }
    measure.print("rust tar");
}
