//! What was skipped under `on_error`.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::name::Name;

/// A sample or shard that was skipped, as [`StreamBuilder::on_skip`] receives it.
///
/// [`StreamBuilder::on_skip`]: crate::StreamBuilder::on_skip
#[derive(Debug)]
#[non_exhaustive]
pub struct Skip<'a> {
    /// What is wrong with it.
    pub error: Error,
    /// The URL of the shard, without secrets.
    pub url: Name<'a>,
    /// The key of the sample, where a sample is known to be at fault.
    pub key: Option<Name<'a>>,
    /// Whether the rest of the shard was skipped, and not one sample.
    pub whole_shard: bool,
}

/// Who receives skips.
#[derive(Clone)]
pub(crate) struct OnSkip(pub(crate) Arc<SkipReceiver>);

pub(crate) type SkipReceiver = dyn Fn(&Skip<'_>) + Send + Sync;

impl fmt::Debug for OnSkip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnSkip").finish_non_exhaustive()
    }
}
