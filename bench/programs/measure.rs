//! What the measuring programs in Rust count, and the JSON line they print: as `measure.h`.

use std::time::Instant;

const PAGE: usize = 4096;

pub struct Measure {
    started: Instant,
    cpu_started: f64,
    every: bool,
    first_seconds: f64,
    pub samples: u64,
    members: u64,
    bytes: u64,
    checksum: u64,
    everything: u64,
    pub engine_peak: u64,
}

impl Measure {
    /// Starts the clocks. `every`: all bytes are to be added up.
    pub fn start(every: bool) -> Measure {
        Measure {
            cpu_started: cpu_seconds(),
            started: Instant::now(),
            every,
            first_seconds: 0.0,
            samples: 0,
            members: 0,
            bytes: 0,
            checksum: 0,
            everything: 0,
            engine_peak: 0,
        }
    }

    /// Does the work on a member.
    #[inline]
    pub fn member(&mut self, data: &[u8]) {
        if self.members == 0 {
            self.first_seconds = self.started.elapsed().as_secs_f64();
        }
        self.checksum += touch(data);
        if self.every {
            self.everything += touch_all(data);
        }
        self.bytes += data.len() as u64;
        self.members += 1;
    }

    /// Stops the clocks.
    pub fn print(&self, reader: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        println!(
            "{{\"reader\": \"{reader}\", \"samples\": {}, \"members\": {}, \"bytes\": {}, \
             \"checksum\": {}, \"everything\": {}, \"seconds\": {seconds:.6}, \
             \"cpu_seconds\": {:.6}, \"first_seconds\": {:.6}, \"peak_rss_bytes\": {}, \
             \"engine_peak_bytes\": {}}}",
            self.samples,
            self.members,
            self.bytes,
            self.checksum,
            self.everything,
            cpu_seconds() - self.cpu_started,
            self.first_seconds,
            peak_rss_bytes(),
            self.engine_peak,
        );
    }
}

/// Sum of the bytes 0, 4096, 8192, ... of a field.
#[inline]
pub fn touch(data: &[u8]) -> u64 {
    data.iter().step_by(PAGE).map(|&byte| u64::from(byte)).sum()
}

/// Sum of all bytes of a field, in pieces of which 16 bits hold the sum: compilers make vectors of
/// these, and adding up takes less time than reading.
#[inline]
fn touch_all(data: &[u8]) -> u64 {
    let pieces = data.chunks_exact(256);
    let rest: u64 = pieces.remainder().iter().map(|&byte| u64::from(byte)).sum();
    let sum_of = |piece: &[u8]| piece.iter().map(|&byte| u16::from(byte)).sum::<u16>();
    rest + pieces.map(|piece| u64::from(sum_of(piece))).sum::<u64>()
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

/// The peak of this program.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0u64) * 1024
}
