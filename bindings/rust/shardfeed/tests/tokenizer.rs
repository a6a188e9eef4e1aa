//! Tokens that a function of the program makes of texts, packed in rows.

mod shards;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use shardfeed::{Batch, ErrorKind, OnError, Stream, StreamBuilder};
use shards::{folder, tar};

const DOCUMENTS: usize = 40;
const WIDTH: u64 = 16;

/// Document `n`: numbers, some none at all, some longer than a row.
fn document(n: usize) -> Vec<i32> {
    (0..n * 7 % 45).map(|i| (n * 1000 + i) as i32).collect()
}

fn text_of(tokens: &[i32]) -> String {
    tokens.iter().map(i32::to_string).collect::<Vec<_>>().join(" ")
}

fn words(text: &str, tokens: &mut Vec<i32>) -> Result<(), std::num::ParseIntError> {
    for word in text.split_whitespace() {
        tokens.push(word.parse()?);
    }
    Ok(())
}

/// An .npy file (NumPy's format 1.0) of these numbers.
fn npy(tokens: &[i32]) -> Vec<u8> {
    let shape = format!("({},)", tokens.len());
    let mut header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    let data: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &data].concat()
}

/// Two shards of the documents, as text and as the tokens of it. `bad` has another text.
fn shards_of(test: &str, bad: Option<usize>) -> Vec<PathBuf> {
    let folder = folder(test);
    let members = |n: usize| {
        let tokens = document(n);
        let text = if bad == Some(n) { "1 2 x 4".to_owned() } else { text_of(&tokens) };
        [(format!("{n:03}.txt"), text.into_bytes()), (format!("{n:03}.npy"), npy(&tokens))]
    };
    let shard = |name: &str, from: usize, to: usize| {
        tar(folder.join(name), &(from..to).flat_map(members).collect::<Vec<_>>())
    };
    vec![shard("a.tar", 0, DOCUMENTS / 2), shard("b.tar", DOCUMENTS / 2, DOCUMENTS)]
}

fn texts() -> StreamBuilder {
    Stream::builder().batch(3).pack(WIDTH).decode("txt").tokenizer(words)
}

/// The tokens, documents and positions of the rows.
fn rows(batch: &Batch, field: &str) -> (Vec<i32>, Vec<i64>, Vec<i64>) {
    let column = batch.column(field).unwrap();
    assert_eq!(column.shape()[1], WIDTH as usize);
    let numbers = |name: &str| batch.column(name).unwrap().values::<i64>().unwrap().to_vec();
    let tokens = column.values::<i32>().expect("int32").to_vec();
    (tokens, numbers("__document__"), numbers("__position__"))
}

fn all_rows(mut stream: Stream, field: &str) -> Vec<(Vec<i32>, Vec<i64>, Vec<i64>)> {
    stream.batches().map(|batch| rows(&batch.unwrap(), field)).collect()
}

#[test]
fn rows_are_those_of_the_same_tokens_in_npy() {
    let paths = shards_of("tokens", None);
    let stored = Stream::builder().batch(3).pack(WIDTH).decode("npy");
    let wanted = all_rows(stored.clone().open(&paths).unwrap(), "npy");
    assert!(wanted.len() > 10);
    for threads in [1, 4] {
        let stream = texts().decode_threads(threads).open(&paths).unwrap();
        assert_eq!(all_rows(stream, "txt"), wanted);
    }
    let shuffled = |builder: StreamBuilder| builder.shuffle(10).seed(3).pack_window(8).threads(2);
    let wanted = all_rows(shuffled(stored).open(&paths).unwrap(), "npy");
    assert_eq!(all_rows(shuffled(texts()).open(&paths).unwrap(), "txt"), wanted);
}

#[test]
fn a_mix_takes_a_tokenizer() {
    let paths = shards_of("mixed-tokens", None);
    let part = |n: usize| (Stream::open([&paths[n]]).unwrap(), 1.0);
    let mixed = || vec![part(0), part(1)];
    let stored = Stream::mix().batch(3).pack(WIDTH).decode("npy").open(mixed()).unwrap();
    let texts = Stream::mix().batch(3).pack(WIDTH).decode("txt").tokenizer(words);
    assert_eq!(all_rows(texts.open(mixed()).unwrap(), "txt"), all_rows(stored, "npy"));
}

#[test]
fn a_state_resumes_in_the_middle_of_a_document() {
    let paths = shards_of("resumed-tokens", None);
    let wanted = all_rows(texts().open(&paths).unwrap(), "txt");
    let mut in_the_middle = 0;
    for given in 1..wanted.len() {
        let mut stream = texts().open(&paths).unwrap();
        for _ in 0..given {
            stream.next_batch().unwrap().unwrap();
        }
        let state = stream.save().unwrap();
        drop(stream);
        let mut resumed = texts().open(&paths).unwrap();
        resumed.restore(&state).unwrap();
        let rest = all_rows(resumed, "txt");
        assert_eq!(rest, wanted[given..]);
        in_the_middle += usize::from(rest[0].2[0] > 0);
    }
    assert!(in_the_middle > 3);
}

#[test]
fn an_error_is_that_of_the_sample() {
    let bad = 11;
    let paths = shards_of("bad-token", Some(bad));
    let mut stream = texts().open(&paths).unwrap();
    let error = stream.batches().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert_eq!(error.shard(), paths[0].to_str());
    assert_eq!(error.member(), Some("011.txt"));
    assert!(error.message().contains("invalid digit found in string"), "{error}");

    let skipped = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&skipped);
    let stream = texts()
        .on_error(OnError::SkipSample)
        .on_skip(move |skip| list.lock().unwrap().push(skip.key.unwrap().to_string()))
        .open(&paths)
        .unwrap();
    let documents: Vec<i32> = (0..DOCUMENTS).filter(|&n| n != bad).flat_map(document).collect();
    let found: Vec<i32> = all_rows(stream, "txt")
        .into_iter()
        .flat_map(|(tokens, _, positions)| tokens.into_iter().zip(positions))
        .filter_map(|(token, position)| (position >= 0).then_some(token))
        .collect();
    assert_eq!(found, documents);
    assert_eq!(*skipped.lock().unwrap(), ["011"]);
}

#[test]
fn what_a_function_fails_with_has_its_class() {
    let paths = shards_of("failing-tokens", None);
    let open = |builder: StreamBuilder| builder.on_error(OnError::SkipSample).open(&paths);
    let first_error = |mut stream: Stream| stream.batches().find_map(Result::err);

    let system = |_: &str, _: &mut Vec<i32>| Err(io::Error::from_raw_os_error(libc::EIO));
    let error = first_error(texts().tokenizer(system).open(&paths).unwrap()).unwrap();
    assert_eq!((error.kind(), error.os_error()), (ErrorKind::Format, Some(libc::EIO)));

    // These are no faults of samples.
    let memory = |_: &str, _: &mut Vec<i32>| Err(io::Error::from(io::ErrorKind::OutOfMemory));
    let error = first_error(open(texts().tokenizer(memory)).unwrap()).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoMemory);
    let panics = |text: &str, _: &mut Vec<i32>| -> Result<(), Infallible> {
        assert!(text != text_of(&document(11)), "I do not like {} bytes", text.len());
        Ok(())
    };
    let error = first_error(open(texts().tokenizer(panics)).unwrap()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let wanted = "the tokenizer panicked at the sample \"011\": I do not like ";
    assert!(error.message().contains(wanted), "{error}");

    let without = Stream::builder().batch(3).decode("txt").tokenizer(words);
    let error = without.open(&paths).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().contains("there is no pack"), "{error}");
}

#[test]
fn a_tokenizer_lives_as_long_as_its_streams() {
    let paths = shards_of("released-tokens", None);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let builder = texts().tokenizer(move |text, tokens| {
        counted.fetch_add(1, Ordering::Relaxed);
        words(text, tokens)
    });
    let mut stream = builder.open(&paths).unwrap();
    drop(builder);
    stream.next_batch().unwrap().unwrap();
    assert_eq!(Arc::strong_count(&calls), 2);
    drop(stream);
    assert_eq!(Arc::strong_count(&calls), 1);
    assert!(calls.load(Ordering::Relaxed) > 0);
}
