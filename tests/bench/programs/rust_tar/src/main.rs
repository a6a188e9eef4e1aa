//! rust_tar BUFFER FILE...
//!
//! The crate `tar` behind a `BufReader` of BUFFER bytes, every member read whole into one recycled
//! `Vec`. The work on the bytes and the JSON line are those of `measure.h`.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read};
use std::time::Instant;

const PAGE: usize = 4096;

#[derive(Default)]
struct Counts {
    members: u64,
    bytes: u64,
    checksum: u64,
    first_seconds: f64,
}

/// The CPU seconds of the main thread, which is the only one. The kernel brings the figure up to
/// date when the thread gives way.
fn cpu_seconds() -> f64 {
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = stat
        .split_whitespace()
        .next()
        .and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) * 1e-9
}

fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|n| n.parse().ok());
    kib.unwrap_or(0u64) * 1024
}

fn walk(path: &str, buffer: usize, started: Instant, counts: &mut Counts) -> std::io::Result<()> {
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
        if counts.members == 0 {
            counts.first_seconds = started.elapsed().as_secs_f64();
        }
        counts.checksum += data
            .iter()
            .step_by(PAGE)
            .map(|&byte| u64::from(byte))
            .sum::<u64>();
        counts.bytes += size;
        counts.members += 1;
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let buffer = arguments.get(1).and_then(|text| text.parse::<usize>().ok());
    let (Some(buffer), true) = (buffer, arguments.len() > 2) else {
        eprintln!("usage: rust_tar BUFFER FILE...");
        std::process::exit(2);
    };
    let mut counts = Counts::default();
    let cpu_start = cpu_seconds();
    let started = Instant::now();
    for path in &arguments[2..] {
        if let Err(error) = walk(path, buffer, started, &mut counts) {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{{\"reader\": \"rust tar\", \"samples\": 0, \"members\": {}, \"bytes\": {}, \
         \"checksum\": {}, \"seconds\": {:.6}, \"cpu_seconds\": {:.6}, \"first_seconds\": {:.6}, \
         \"peak_rss_bytes\": {}, \"engine_peak_bytes\": 0}}",
        counts.members,
        counts.bytes,
        counts.checksum,
        seconds,
        cpu_seconds() - cpu_start,
        counts.first_seconds,
        peak_rss_bytes()
    );
}
