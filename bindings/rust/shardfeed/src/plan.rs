//! Plans: what each consumer of a run would read.

use std::fmt;

use crate::error::Result;
use crate::name::Name;
use crate::native::{self, sys};

/// What each rank and worker of a run would read, before it starts, and what is wrong with that.
/// Made by [`StreamBuilder::plan`](crate::StreamBuilder::plan), and by
/// [`StreamBuilder::simulate_plan`](crate::StreamBuilder::simulate_plan).
///
/// ```
/// # std::env::set_current_dir("tests/data").unwrap();
/// let plan = shardfeed::Stream::builder().world_size(2).plan(["train-{000..002}.tar"])?;
/// println!("{plan}");
/// assert_eq!(plan.consumers().len(), 2);
/// assert_eq!(plan.consumers().map(|consumer| consumer.shards).sum::<u64>(), 3);
/// assert_eq!(plan.shards().len(), 3);
/// for warning in plan.warnings() {
///     eprintln!("warning: {warning}");
/// }
/// # Ok::<(), shardfeed::Error>(())
/// ```
pub struct Plan(pub(crate) native::Plan);

/// One rank and worker of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumer {
    /// Number of the process, as the option `rank`.
    pub rank: u64,
    /// Number of the worker in it.
    pub worker: u64,
    /// Lanes that it reads, with or without shards.
    pub lanes: u64,
    /// Shards in the first epoch; with `epoch_samples` in one pass.
    pub shards: u64,
    /// Samples in the first epoch, where that is known: when every shard has an index.
    pub samples: Option<u64>,
    /// Bytes of its shards, where that is known.
    pub bytes: Option<u64>,
}

/// One shard of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedShard {
    /// Samples in it, where that is known: when every shard has an index.
    pub samples: Option<u64>,
    /// Bytes of it, where that is known.
    pub bytes: Option<u64>,
}

/// A reading of one shard by one consumer, as [`Plan::reads`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardRead {
    /// Place of the shard in [`Plan::shards`].
    pub shard: u64,
    /// Samples that are read of it.
    pub samples: u64,
    /// Number, from 0, of the first sample that the consumer takes while the shard is read.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
}

fn known(value: u64) -> Option<u64> {
    Some(value).filter(|&value| value != u64::MAX)
}

impl Plan {
    /// All ranks and workers.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = Consumer> + '_ {
        // As many as world_size x num_workers, at most 2^40: all are places in memory's terms.
        (0..self.0.count() as usize).map(|number| {
            let info = |what| self.0.info(number as u64, what);
            Consumer {
                rank: info(sys::SHF_PLAN_RANK),
                worker: info(sys::SHF_PLAN_WORKER),
                lanes: info(sys::SHF_PLAN_LANES),
                shards: info(sys::SHF_PLAN_SHARDS),
                samples: known(info(sys::SHF_PLAN_SAMPLES)),
                bytes: known(info(sys::SHF_PLAN_BYTES)),
            }
        })
    }

    /// All shards, in the order of the expanded list.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = PlannedShard> + '_ {
        (0..self.0.shard_count() as usize).map(|number| {
            let info = |what| known(self.0.shard_info(number as u64, what));
            PlannedShard {
                samples: info(sys::SHF_PLAN_SHARD_SAMPLES),
                bytes: info(sys::SHF_PLAN_SHARD_BYTES),
            }
        })
    }

    /// When the consumer of this place in [`consumers`](Self::consumers) reads which shard in the
    /// first epoch, in the order of beginning. A sample is read when its lane needs it to give the
    /// next one: threads read ahead of that.
    ///
    /// # Errors
    ///
    /// `Usage` (no such consumer, `epoch_samples` is set, samples are not known), `NoMemory`.
    pub fn reads(&self, consumer: u64) -> Result<Vec<ShardRead>> {
        let read =
            |[shard, samples, first, last]: [u64; 4]| ShardRead { shard, samples, first, last };
        Ok(self.0.reads(consumer)?.into_iter().map(read).collect())
    }

    /// What is wrong, each with what to do after `help: `.
    pub fn warnings(&self) -> impl Iterator<Item = Name<'_>> {
        (0..).map_while(|index| self.0.warning(index).map(Name::new))
    }
}

/// A summary, one line for each consumer (of many: the first eight and the last one), and the
/// warnings.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0.text()))
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
