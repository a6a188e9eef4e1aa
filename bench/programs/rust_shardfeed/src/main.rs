//! rust_shardfeed next|block|every|every-block [NAME=VALUE...] -- URL...
//! rust_shardfeed open|read|many|memory FILE ORDER ROUNDS
//!
//! shardfeed from Rust, as shardfeed_walk and shardfeed_random do it from C: a stream one by one
//! (`next`, a sample of its own each time) and in blocks, `every` with all bytes added up; opening an archive, and reading its
//! members in the order of ORDER, a file of 64-bit positions, one by one, 256 at a time, and one by
//! one of a file that was read into memory. The work on the bytes and the JSON line are those of `measure.h`.

#[path = "../../measure.rs"]
mod measure;

use std::time::Instant;

use measure::{touch, Measure};
use shardfeed::{Archive, Result, Stream};

const BATCH: usize = 256;

#[derive(Clone, Copy, Default)]
struct Counts {
    members: u64,
    bytes: u64,
    checksum: u64,
}

impl Counts {
    fn member(&mut self, data: &[u8]) {
        self.checksum += touch(data);
        self.bytes += data.len() as u64;
        self.members += 1;
    }
}

fn walk(blocks: bool, stream: &mut Stream, measure: &mut Measure) -> Result<()> {
    if blocks {
        while let Some(block) = stream.next_block(0)? {
            for sample in &block {
                sample.values().for_each(|data| measure.member(data));
                measure.samples += 1;
            }
        }
    } else {
        for sample in stream {
            sample?.values().for_each(|data| measure.member(data));
            measure.samples += 1;
        }
    }
    Ok(())
}

fn stream(mode: &str, arguments: &[String]) -> Result<()> {
    let mut measure = Measure::start(mode.starts_with("every"));
    let split = arguments.iter().position(|word| word == "--").unwrap_or(0);
    let options = arguments[..split]
        .iter()
        .filter_map(|word| word.split_once('='));
    let builder = options.fold(Stream::builder(), |builder, (name, value)| {
        builder.set(name, value)
    });
    let mut stream = builder.open(&arguments[split + 1..])?;
    walk(mode.ends_with("block"), &mut stream, &mut measure)?;
    measure.engine_peak = stream.counter("memory_peak").unwrap_or(0);
    drop(stream);
    measure.print(&format!("rust {mode}"));
    Ok(())
}

fn pass(mode: &str, path: &str, archive: &Archive, order: &[usize]) -> Result<Counts> {
    let mut counts = Counts::default();
    match mode {
        "open" => counts.members = Archive::open(path)?.len() as u64,
        "read" | "memory" => {
            let largest = archive
                .members()
                .map(|member| member.size())
                .max()
                .unwrap_or(0);
            let mut buffer = vec![0; largest as usize];
            for &position in order {
                counts.member(archive.read_into(position, &mut buffer)?);
            }
        }
        _ => {
            let mut buffer = Vec::new();
            for positions in order.chunks(BATCH) {
                let members = archive.read_many_into(positions, &mut buffer)?;
                members.into_iter().for_each(|data| counts.member(data));
            }
        }
    }
    Ok(counts)
}

fn archive(mode: &str, path: &str, order: &str, rounds: &str) -> Result<()> {
    let bytes = std::fs::read(order).expect("the order");
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize;
    let order: Vec<usize> = bytes.chunks_exact(8).map(number).collect();
    let archive = match mode {
        "memory" => Archive::builder().open_bytes(std::fs::read(path).expect("the file"))?,
        _ => Archive::open(path)?,
    };
    let mut best = (f64::INFINITY, Counts::default());
    for _ in 0..rounds.parse().expect("a number of rounds") {
        let start = Instant::now();
        let counts = pass(mode, path, &archive, &order)?;
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
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [_, mode @ ("next" | "block" | "every" | "every-block"), ..] if words.contains(&"--") => {
            stream(mode, &arguments[2..])
        }
        [_, mode @ ("open" | "read" | "many" | "memory"), path, order, rounds] => {
            archive(mode, path, order, rounds)
        }
        _ => {
            eprintln!(
                "usage: rust_shardfeed next|block|every|every-block [NAME=VALUE...] -- URL..."
            );
            eprintln!("       rust_shardfeed open|read|many|memory FILE ORDER ROUNDS");
            std::process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}: {}", error.kind().name());
        std::process::exit(1);
    }
}
