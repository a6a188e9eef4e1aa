//! Saved states of streams.

use std::fmt;

use crate::error::Result;
use crate::native;

/// The position of a stream: a few hundred bytes for each lane, without samples, URLs or secrets.
///
/// It may be stored and restored by another process on another machine. With the feature `serde`
/// it serialises: as bytes, or as hexadecimal text in formats for people.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State(Vec<u8>);

impl State {
    pub(crate) fn new(bytes: Vec<u8>) -> State {
        State(bytes)
    }

    /// A state that was stored. Looked at when it is restored.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> State {
        State(bytes.into())
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes one state of those of all consumers of a run (each rank and worker once), which any of
    /// them, and those of another number of ranks and workers, can restore. The order of all
    /// samples together does not change. A number that divides the option `lanes` reads every shard
    /// once; with any other one several consumers read each lane and keep their own samples of it,
    /// and their states can be merged when all were saved after the same number of samples, between
    /// two batches.
    ///
    /// # Errors
    ///
    /// `Usage` for states of different runs, for a consumer twice, and for consumers that share
    /// lanes and are not all there or did not stop at the same step; `Format`, `Integrity`,
    /// `Unsupported` for bytes that are no state of this version.
    pub fn merge<'a>(states: impl IntoIterator<Item = &'a State>) -> Result<State> {
        native::merge_states(states.into_iter().map(State::as_bytes)).map(State)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} bytes)", self.0.len())
    }
}

#[cfg(feature = "serde")]
mod serialised {
    use std::fmt;

    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::State;

    impl Serialize for State {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if !serializer.is_human_readable() {
                return serializer.serialize_bytes(&self.0);
            }
            let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or_default();
            let digits = self.0.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]);
            serializer.serialize_str(&digits.collect::<String>())
        }
    }

    impl<'de> Deserialize<'de> for State {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                deserializer.deserialize_str(Stored)
            } else {
                deserializer.deserialize_byte_buf(Stored)
            }
        }
    }

    struct Stored;

    impl<'de> Visitor<'de> for Stored {
        type Value = State;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a saved state of shardfeed: hexadecimal digits, or bytes")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<State, E> {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
                [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
                _ => None,
            });
            let bytes: Option<Vec<u8>> = pairs.collect();
            bytes
                .map(State)
                .ok_or_else(|| E::custom("an even number of hexadecimal digits expected"))
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<State, E> {
            Ok(State(bytes.to_vec()))
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<State, E> {
            Ok(State(bytes))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<State, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = numbers.next_element()? {
                bytes.push(byte);
            }
            Ok(State(bytes))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn as_text_in_json() {
            let state = State(vec![0, 1, 0xab, 0xff]);
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(text, "\"0001abff\"");
            assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
            for bad in ["\"012\"", "\"0g\"", "[1]", "7"] {
                assert!(serde_json::from_str::<State>(bad).is_err(), "{bad}");
            }
        }
    }
}
