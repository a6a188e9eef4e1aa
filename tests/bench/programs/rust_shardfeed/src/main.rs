//! rust_shardfeed next|block [NAME=VALUE...] -- URL...
//! rust_shardfeed open|read|many|memory FILE ORDER ROUNDS
//!
//! shardfeed from Rust, as shardfeed_walk and shardfeed_random do it from C: a stream one by one
//! (`next`, a sample of its own each time) and in blocks; opening an archive, and reading its
//! members in the order of ORDER, a file of 64-bit positions, one by one, 256 at a time, and one by
//! one of a file that was read into memory. The work on the bytes and the JSON line are those of `measure.h`.

use std::time::Instant;

use shardfeed::{Archive, Result, Stream};

const PAGE: usize = 4096;
const BATCH: usize = 256;

#[derive(Clone, Copy, Default)]
struct Counts {
    samples: u64,
    members: u64,
    bytes: u64,
    checksum: u64,
    first_seconds: f64,
}

impl Counts {
    fn member(&mut self, data: &[u8]) {
        self.checksum += data
            .iter()
            .step_by(PAGE)
            .map(|&byte| u64::from(byte))
            .sum::<u64>();
        self.bytes += data.len() as u64;
        self.members += 1;
    }
}

/// A line of a file of /proc: what follows `name`.
fn proc_value(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// The CPU seconds of all threads, those that have ended included.
fn cpu_seconds() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn walk(blocks: bool, stream: &mut Stream, started: Instant) -> Result<Counts> {
    let mut counts = Counts::default();
    let first = |counts: &mut Counts| {
        if counts.samples == 0 {
            counts.first_seconds = started.elapsed().as_secs_f64();
        }
    };
    if blocks {
        while let Some(block) = stream.next_block(0)? {
            first(&mut counts);
            for sample in &block {
                sample.values().for_each(|data| counts.member(data));
                counts.samples += 1;
            }
        }
    } else {
        for sample in stream {
            let sample = sample?;
            first(&mut counts);
            sample.values().for_each(|data| counts.member(data));
            counts.samples += 1;
        }
    }
    Ok(counts)
}

fn stream(mode: &str, arguments: &[String]) -> Result<()> {
    let cpu_start = cpu_seconds();
    let started = Instant::now();
    let split = arguments.iter().position(|word| word == "--").unwrap_or(0);
    let options = arguments[..split]
        .iter()
        .filter_map(|word| word.split_once('='));
    let builder = options.fold(Stream::builder(), |builder, (name, value)| {
        builder.set(name, value)
    });
    let mut stream = builder.open(&arguments[split + 1..])?;
    let counts = walk(mode == "block", &mut stream, started)?;
    let engine_peak = stream.counter("memory_peak").unwrap_or(0);
    drop(stream);
    let cpu = cpu_seconds() - cpu_start;
    println!(
        "{{\"reader\": \"rust {mode}\", \"samples\": {}, \"members\": {}, \"bytes\": {}, \
         \"checksum\": {}, \"seconds\": {:.6}, \"cpu_seconds\": {:.6}, \"first_seconds\": {:.6}, \
         \"peak_rss_bytes\": {}, \"engine_peak_bytes\": {engine_peak}}}",
        counts.samples,
        counts.members,
        counts.bytes,
        counts.checksum,
        started.elapsed().as_secs_f64(),
        cpu,
        counts.first_seconds,
        proc_value("/proc/self/status", "VmHWM:") * 1024
    );
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
        [_, mode @ ("next" | "block"), ..] if words.contains(&"--") => {
            stream(mode, &arguments[2..])
        }
        [_, mode @ ("open" | "read" | "many" | "memory"), path, order, rounds] => {
            archive(mode, path, order, rounds)
        }
        _ => {
            eprintln!("usage: rust_shardfeed next|block [NAME=VALUE...] -- URL...");
            eprintln!("       rust_shardfeed open|read|many|memory FILE ORDER ROUNDS");
            std::process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}: {}", error.kind().name());
        std::process::exit(1);
    }
}
