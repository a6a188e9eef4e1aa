//! Feeds machine-learning training from tar and ZIP shards (the WebDataset convention: files that
//! share a basename are one sample).
//!
//! ```
//! # std::env::set_current_dir("tests/data").unwrap();
//! for sample in shardfeed::Stream::builder().threads(8).shuffle(1000).open(&["train-{000..002}.tar"])? {
//!     let sample = sample?;
//!     let jpg: Option<&[u8]> = sample.get("jpg");
//!     # assert!(jpg.is_some());
//! }
//! # Ok::<(), shardfeed::Error>(())
//! ```
//!
//! * [`Stream`]: the samples of many shards one after another, shuffled, split over ranks and
//!   workers, mixed, saved and resumed; or batches of them, decoded by threads of the library.
//! * [`Dataset`]: the samples of many shards by number and by key.
//! * [`Archive`]: the members of one tar or ZIP file, in any order.
//! * [`Members`]: the same from front to back, of any size, from a pipe too.
//! * [`Writer`]: makes shards of samples.
//!
//! A stream delivers every sample of its shards that its options ask for, or says why not: the end
//! of a shard is reported only when it is proven. The same URLs and options give the same samples
//! in the same order, regardless of the number of threads.
//!
//! # Features
//!
//! * `ndarray`: columns of batches as views of the crate `ndarray`.
//! * `serde`: a [`State`] serialises.
//! * `vendored`: builds the C library from source, with Meson. Without, it is found as the
//!   documentation of `shardfeed-sys` describes.

#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]
#![warn(missing_debug_implementations, rust_2018_idioms)]

mod archive;
mod batch;
mod builder;
mod dataset;
mod error;
mod interrupt;
mod log;
mod members;
mod name;
mod native;
mod options;
mod plan;
mod sample;
mod skip;
mod source;
mod state;
mod stream;
mod tokenizer;
mod writer;

pub use archive::{Archive, Member, MemberKind};
pub use batch::{Batch, Column, ColumnKind, Dtype, Element, BF16, F16};
pub use builder::{
    options, ArchiveBuilder, DatasetBuilder, MixBuilder, OptionInfo, Size, StreamBuilder,
    WriterBuilder,
};
pub use dataset::{Dataset, IndexFormat};
pub use error::{Error, ErrorKind, Result};
pub use log::LogLevel;
pub use members::{CurrentMember, Members};
pub use name::Name;
pub use options::*;
pub use plan::{Consumer, Plan, PlannedShard, ShardRead};
pub use sample::{Block, Fields, Position, Sample, SampleRef, Samples};
pub use skip::Skip;
pub use source::{Source, SourceObject};
pub use state::State;
pub use stream::{Batches, Control, Stream};
pub use writer::{NewSample, Shard, Writer, WriterControl};

/// The version of the library that runs, `"0.1.0"`.
pub fn version() -> &'static str {
    native::version()
}

/// Tells whether the library was built with a feature, and by which library: `"zlib 1.2.13"` for
/// `"gzip"`. Names: gzip, bzip2, xz, zstd, lz4, lzip, compress, pipe, jpeg, png, webp,
/// gif, tiff, jxl, avif, audio, video, http, libarchive, feed, feed_http.
pub fn feature(name: &str) -> Option<&'static str> {
    native::feature(name)
}
