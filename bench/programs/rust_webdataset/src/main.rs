//! rust_webdataset FIELD BATCH WORKERS FILE...
//!
//! The crate `webdataset` (webdataset-rs): FIELD and cls decoded, as tuples, in batches of BATCH.
//! Its workers are threads; 0 or 1 of them run in the caller's. The work on the rows and the JSON
//! line are those of `batch_readers.py`.

use std::time::Instant;

use webdataset::filters::{SampleIteratorExt, TupleIteratorExt};
use webdataset::{Result, Value, WebDataset};

const PAGE: usize = 4096;

#[derive(Default)]
struct Counts {
    samples: u64,
    batches: u64,
    labels: i64,
    bytes: u64,
    checksum: u64,
    first_seconds: f64,
}

/// User and system time of all threads, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() * 0.01
}

fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|n| n.parse().ok());
    kib.unwrap_or(0u64) * 1024
}

fn touch(data: &[u8]) -> u64 {
    data.iter()
        .step_by(PAGE)
        .map(|&byte| u64::from(byte))
        .sum::<u64>()
}

fn take(batch: &[Value], counts: &mut Counts) {
    let labels = batch[1].as_tensor().expect("labels are numbers");
    let rows = labels.shape()[0];
    counts.samples += rows as u64;
    counts.batches += 1;
    counts.labels += labels
        .data()
        .chunks_exact(8)
        .map(|bytes| i64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
        .sum::<i64>();
    // Objects of JSON stay a list, and have no bytes.
    if let Some(column) = batch[0].as_tensor() {
        let data = column.data();
        counts.bytes += data.len() as u64;
        counts.checksum += data.chunks_exact(data.len() / rows).map(touch).sum::<u64>();
    }
}

fn walk(
    field: &str,
    batch: usize,
    workers: usize,
    shards: &[String],
    started: Instant,
) -> Result<Counts> {
    let mut counts = Counts::default();
    let dataset = WebDataset::builder_verbatim(shards.iter().cloned())
        .worker_split(workers > 1)
        .build()?;
    let dataset = match field {
        "jpg" => dataset.decode_images("rgb8")?,
        _ => dataset.decode_basic(),
    };
    let loader = dataset.loader().with_workers(workers);
    for batch in loader.iter().to_tuple([field, "cls"]).batched(batch, true) {
        let batch = batch?;
        if counts.batches == 0 {
            counts.first_seconds = started.elapsed().as_secs_f64();
        }
        take(&batch, &mut counts);
    }
    Ok(counts)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse().ok());
    let (Some(batch), Some(workers), true) = (number(2), number(3), arguments.len() > 4) else {
        eprintln!("usage: rust_webdataset FIELD BATCH WORKERS FILE...");
        std::process::exit(2);
    };
    let started = Instant::now();
    let counts = match walk(&arguments[1], batch, workers, &arguments[4..], started) {
        Ok(counts) => counts,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    println!(
        "{{\"reader\": \"webdataset-rs\", \"samples\": {}, \"members\": 0, \"bytes\": {}, \
         \"checksum\": {}, \"batches\": {}, \"labels\": {}, \"seconds\": {:.6}, \
         \"cpu_seconds\": {:.6}, \"first_seconds\": {:.6}, \"peak_rss_bytes\": {}, \
         \"engine_peak_bytes\": 0}}",
        counts.samples,
        counts.bytes,
        counts.checksum,
        counts.batches,
        counts.labels,
        started.elapsed().as_secs_f64(),
        cpu_seconds(),
        counts.first_seconds,
        peak_rss_bytes()
    );
}
