//! Shards for the tests: real files in a folder of their own.
#![allow(dead_code)] // each test program uses some of it

use std::fs;
use std::path::{Path, PathBuf};

/// An empty folder for one test.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A ustar header (POSIX.1-1988) of a file.
fn header(name: &str, size: usize) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Writes a tar of these members, and returns its path.
pub fn tar(path: PathBuf, members: &[(String, Vec<u8>)]) -> PathBuf {
    let mut bytes = Vec::new();
    for (name, data) in members {
        bytes.extend(header(name, data.len()));
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    fs::write(&path, bytes).expect("it is written");
    path
}

/// Members of samples `first..first + count`: fields "bin", whose bytes are those of the number as
/// text, `size` times, and "cls".
pub fn members(first: usize, count: usize, size: usize) -> Vec<(String, Vec<u8>)> {
    (first..first + count)
        .flat_map(|n| {
            let data = n.to_string().repeat(size).into_bytes();
            [(format!("{n:05}.bin"), data), (format!("{n:05}.cls"), n.to_string().into_bytes())]
        })
        .collect()
}

/// Writes `shards` tars of 10 samples each.
pub fn shards(folder: &Path, shards: usize) -> Vec<PathBuf> {
    (0..shards)
        .map(|shard| tar(folder.join(format!("s-{shard:03}.tar")), &members(shard * 10, 10, 3)))
        .collect()
}

/// The key of sample `n` of shards().
pub fn key(n: usize) -> String {
    format!("{n:05}")
}
