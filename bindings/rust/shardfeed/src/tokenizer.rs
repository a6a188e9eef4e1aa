//! What a program makes tokens of texts with.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Puts the tokens of a text into an empty list.
pub(crate) type Tokenize =
    dyn Fn(&str, &mut Vec<i32>) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync;

/// A tokenizer, as a builder keeps it.
#[derive(Clone)]
pub(crate) struct Tokenizer(pub(crate) Arc<Tokenize>);

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").finish_non_exhaustive()
    }
}
