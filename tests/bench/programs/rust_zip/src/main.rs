//! rust_zip open|read|file FILE ORDER ROUNDS
//!
//! The crate `zip` over a memory map (`file`: over a `BufReader` of the file, as its documentation
//! has it), every member read whole into one recycled `Vec`. The work on the bytes and the JSON line are those of `measure.h`; ORDER holds 64-bit positions.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::time::Instant;

use memmap2::Mmap;
use zip::ZipArchive;

const PAGE: usize = 4096;

#[derive(Clone, Copy, Default)]
struct Counts {
    members: u64,
    bytes: u64,
    checksum: u64,
}

fn open(map: &Mmap) -> ZipArchive<Cursor<&[u8]>> {
    ZipArchive::new(Cursor::new(&map[..])).expect("a ZIP file")
}

fn read(archive: &mut ZipArchive<impl Read + Seek>, order: &[u64], data: &mut Vec<u8>) -> Counts {
    let mut counts = Counts::default();
    for &position in order {
        let mut member = archive.by_index(position as usize).expect("a member");
        data.clear();
        data.reserve(member.size() as usize);
        member.read_to_end(data).expect("the bytes of a member");
        counts.members += 1;
        counts.bytes += data.len() as u64;
        counts.checksum += data
            .iter()
            .step_by(PAGE)
            .map(|&byte| u64::from(byte))
            .sum::<u64>();
    }
    counts
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, path, order, rounds] = arguments.as_slice() else {
        eprintln!("usage: rust_zip open|read|file FILE ORDER ROUNDS");
        std::process::exit(2);
    };
    let file = File::open(path).expect("the file");
    // Nobody writes to the files of the benchmark.
    let map = unsafe { Mmap::map(&file) }.expect("a memory map");
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
