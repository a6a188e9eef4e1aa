//! rust_zip walk-file|walk-map|walk-stream touch|every FILE...
//! rust_zip open|read|file FILE ORDER ROUNDS
//!
//! The crate `zip`, every member read whole into one recycled `Vec`. The first three read all
//! members in the order of the directory: over a `BufReader` of the file, as its documentation has
//! it, and over a memory map; or without the directory, with `read_zipfile_from_stream`. `open` and
//! `read` are over a memory map, `file` as `read` but over a `BufReader`; ORDER holds 64-bit
//! positions. The work on the bytes and the JSON line are those of `measure.h`; `every` adds up all.

#[path = "../../measure.rs"]
mod measure;

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::time::Instant;

use measure::{touch, Measure};
use memmap2::Mmap;
use zip::read::{read_zipfile_from_stream, ZipFile};
use zip::result::ZipResult;
use zip::ZipArchive;

#[derive(Clone, Copy, Default)]
struct Counts {
    members: u64,
    bytes: u64,
    checksum: u64,
}

fn open(map: &Mmap) -> ZipArchive<Cursor<&[u8]>> {
    ZipArchive::new(Cursor::new(&map[..])).expect("a ZIP file")
}

/// Reads a member whole; its end checks the CRC.
fn fill<R: Read>(member: &mut ZipFile<'_, R>, data: &mut Vec<u8>) -> std::io::Result<()> {
    data.clear();
    data.reserve(member.size() as usize);
    member.read_to_end(data).map(|_| ())
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: nobody writes to the files of the benchmark.
    unsafe { Mmap::map(file) }
}

fn walk_archive(
    archive: &mut ZipArchive<impl Read + Seek>,
    measure: &mut Measure,
) -> ZipResult<()> {
    let mut data = Vec::new();
    for position in 0..archive.len() {
        fill(&mut archive.by_index(position)?, &mut data)?;
        measure.member(&data);
    }
    Ok(())
}

fn walk(mode: &str, path: &str, measure: &mut Measure) -> ZipResult<()> {
    let file = File::open(path)?;
    match mode {
        "walk-file" => walk_archive(&mut ZipArchive::new(BufReader::new(file))?, measure),
        "walk-map" => walk_archive(
            &mut ZipArchive::new(Cursor::new(&map(&file)?[..]))?,
            measure,
        ),
        _ => {
            let mut file = BufReader::new(file);
            let mut data = Vec::new();
            while let Some(mut member) = read_zipfile_from_stream(&mut file)? {
                fill(&mut member, &mut data)?;
                measure.member(&data);
            }
            Ok(())
        }
    }
}

fn walk_all(mode: &str, work: &str, files: &[&str]) {
    let mut measure = Measure::start(work == "every");
    for path in files {
        if let Err(error) = walk(mode, path, &mut measure) {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    }
    measure.print(&format!("rust zip {mode}"));
}

fn read(archive: &mut ZipArchive<impl Read + Seek>, order: &[u64], data: &mut Vec<u8>) -> Counts {
    let mut counts = Counts::default();
    for &position in order {
        let mut member = archive.by_index(position as usize).expect("a member");
        fill(&mut member, data).expect("the bytes of a member");
        counts.members += 1;
        counts.bytes += data.len() as u64;
        counts.checksum += touch(data);
    }
    counts
}

fn read_in_order(mode: &str, path: &str, order: &str, rounds: &str) {
    let file = File::open(path).expect("the file");
    let map = map(&file).expect("a memory map");
    let order: Vec<u64> = std::fs::read(order)
        .expect("the order")
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    let mut data = Vec::new();
    let mut archive = open(&map);
    let mut over_file = ZipArchive::new(BufReader::new(file)).expect("a ZIP file");
    let mut best = (f64::INFINITY, Counts::default());
    for _ in 0..rounds.parse().expect("a number of rounds") {
        let start = Instant::now();
        let counts = if mode == "open" {
            Counts {
                members: open(&map).len() as u64,
                ..Counts::default()
            }
        } else if mode == "file" {
            read(&mut over_file, &order, &mut data)
        } else {
            read(&mut archive, &order, &mut data)
        };
        let seconds = start.elapsed().as_secs_f64();
        if seconds < best.0 {
            best = (seconds, counts);
        }
    }
    println!(
        "{{\"reader\": \"{mode}\", \"members\": {}, \"bytes\": {}, \"checksum\": {}, \
         \"seconds\": {:.6}}}",
        best.1.members, best.1.bytes, best.1.checksum, best.0
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, mode @ ("walk-file" | "walk-map" | "walk-stream"), work @ ("touch" | "every"), files @ ..] =>
        {
            walk_all(mode, work, files);
        }
        [_, mode @ ("open" | "read" | "file"), path, order, rounds] => {
            read_in_order(mode, path, order, rounds);
        }
        _ => {
            eprintln!("usage: rust_zip walk-file|walk-map|walk-stream touch|every FILE...");
            eprintln!("       rust_zip open|read|file FILE ORDER ROUNDS");
            std::process::exit(2);
        }
    }
}
