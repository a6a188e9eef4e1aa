//! Batches: columns of every kind, rows, and what is refused.

mod shards;

use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};

use shardfeed::{
    Batch, ColumnKind, Dtype, ErrorKind, LogLevel, Missing, OnError, Ragged, Stream, F16,
};
use shards::{folder, members, tar};

/// An .npy file (NumPy's format 1.0) of these bytes.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

/// The batch of these members.
fn batch(test: &str, members: &[(&str, Vec<u8>)], ragged: Ragged) -> Batch {
    let members: Vec<_> =
        members.iter().map(|(name, data)| (name.to_string(), data.clone())).collect();
    let path = tar(folder(test).join("a.tar"), &members);
    let builder = Stream::builder().batch(100).ragged(ragged);
    builder.open([path]).unwrap().next_batch().unwrap().unwrap()
}

#[test]
fn a_stream_of_batches() {
    let path = tar(folder("batches").join("a.tar"), &members(0, 10, 3));
    let builder = Stream::builder().batch(4).decode("cls:int, bin");
    let mut stream = builder.open([&path]).unwrap();
    let batches = stream.batches().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [4, 4, 2]);
    assert!(stream.next_batch().unwrap().is_none() && stream.batches().next().is_none());
    drop(stream); // batches outlive it
    let names: Vec<_> = batches[1].columns().map(|column| column.name().to_string()).collect();
    assert_eq!(names, ["cls", "bin", "__key__", "__url__"]);
    assert_eq!(batches[1].key(2).unwrap(), "00006");
    assert!(batches[1].key(4).is_none() && batches[1].column("jpg").is_none());
    let labels = batches[1].column("cls").unwrap();
    assert_eq!(
        (labels.kind(), labels.dtype(), labels.shape()),
        (ColumnKind::Array, Dtype::Int64, &[4][..])
    );
    assert_eq!(labels.values::<i64>(), Some(&[4, 5, 6, 7][..]));
    assert_eq!(labels.values::<f64>(), None);
    assert_eq!(labels.as_bytes().as_ptr() as usize % 64, 0);
    let bytes = batches[2].column("bin").unwrap();
    assert_eq!((bytes.kind(), bytes.row_bytes(1)), (ColumnKind::Bytes, Some(&b"999"[..])));
    assert_eq!(bytes.row_bytes(2), None);
    assert_eq!(batches[2].column("__key__").unwrap().row_str(0), Some("00008"));
}

#[test]
fn numbers_of_every_type() {
    let arrays: Vec<(&str, Vec<u8>)> = vec![
        ("0.bool.npy", npy("|b1", "(2,)", &[0, 1])),
        ("0.half.npy", npy("<f2", "(2,)", &[0, 60, 0, 64])),
        ("0.complex.npy", npy("<c8", "(1,)", &[0, 0, 128, 63, 0, 0, 0, 64])),
        ("0.short.npy", npy("<i2", "(1, 2)", &[1, 0, 255, 255])),
        ("0.f8.npy", npy("<f8", "()", &1.5f64.to_le_bytes())),
    ];
    let batch = batch("types", &arrays, Ragged::Error);
    let column = |name: &str| batch.column(name).unwrap();
    assert_eq!(column("bool.npy").dtype(), Dtype::Bool);
    assert_eq!(column("bool.npy").values::<u8>(), Some(&[0, 1][..]));
    assert_eq!(column("half.npy").values::<F16>(), Some(&[F16(0x3c00), F16(0x4000)][..]));
    assert_eq!(column("half.npy").values::<u16>(), None);
    assert_eq!(column("complex.npy").values::<[f32; 2]>(), Some(&[[1.0, 2.0]][..]));
    assert_eq!(column("short.npy").row::<i16>(0), Some(&[1, -1][..]));
    assert_eq!(column("short.npy").row_shape(0), Some(vec![1, 2]));
    assert_eq!(column("f8.npy").values::<f64>(), Some(&[1.5][..]));
    assert_eq!(column("f8.npy").row_shape(0), Some(vec![]));
}

fn unequal() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("0.x.npy", npy("|u1", "(1, 2)", &[1, 2])),
        ("1.x.npy", npy("|u1", "(2, 2)", &[3, 4, 5, 6])),
    ]
}

#[test]
fn rows_of_unequal_shape() {
    let ragged = batch("ragged", &unequal(), Ragged::Offsets);
    let column = ragged.column("x.npy").unwrap();
    assert_eq!(column.offsets(), Some(&[0, 2, 6][..]));
    assert_eq!(
        (column.row::<u8>(1), column.row_shape(1)),
        (Some(&[3, 4, 5, 6][..]), Some(vec![2, 2]))
    );
    assert_eq!(column.row::<u8>(2), None);
    let padded = batch("padded", &unequal(), Ragged::Pad);
    let column = padded.column("x.npy").unwrap();
    assert_eq!((column.shape(), column.offsets()), (&[2, 2, 2][..], None));
    assert_eq!(
        (column.row::<u8>(0), column.row_shape(0)),
        (Some(&[1, 2, 0, 0][..]), Some(vec![1, 2]))
    );
}

#[cfg(feature = "ndarray")]
#[test]
fn columns_are_arrays() {
    use ndarray::{array, IxDyn};

    let padded = batch("ndarray-padded", &unequal(), Ragged::Pad);
    let column = padded.column("x.npy").unwrap();
    let whole = column.array::<u8>().unwrap();
    assert_eq!(whole, array![[[1, 2], [0, 0]], [[3, 4], [5, 6]]].into_dyn());
    assert!(column.array::<i8>().is_none());
    assert_eq!(column.row_array::<u8>(0).unwrap(), array![[1, 2], [0, 0]].into_dyn());
    let ragged = batch("ndarray-ragged", &unequal(), Ragged::Offsets);
    let column = ragged.column("x.npy").unwrap();
    assert!(column.array::<u8>().is_none());
    let row = column.row_array::<u8>(1).unwrap();
    assert_eq!((row.raw_dim(), row[[1, 0]]), (IxDyn(&[2, 2]), 5));
}

#[test]
fn numbers_may_be_written() {
    let path = tar(folder("written").join("a.tar"), &members(0, 3, 1));
    let mut stream = Stream::builder().batch(3).decode("cls:float").open([path]).unwrap();
    let mut batch = stream.next_batch().unwrap().unwrap();
    assert!(batch.values_mut::<i64>("cls").is_none() && batch.values_mut::<f64>("x").is_none());
    batch.values_mut::<f64>("cls").unwrap().iter_mut().for_each(|value| *value *= 10.0);
    assert_eq!(batch.column("cls").unwrap().values::<f64>(), Some(&[0.0, 10.0, 20.0][..]));
}

#[test]
fn a_batch_of_samples_at_hand() {
    let path = tar(folder("at-hand").join("a.tar"), &members(0, 10, 3));
    let samples: Vec<_> = Stream::open([path]).unwrap().map(Result::unwrap).collect();
    let builder = Stream::builder().decode("cls:int, txt").missing(Missing::Empty);
    let batch = builder.make_batch(samples[2..5].iter().rev()).unwrap();
    assert_eq!(batch.column("cls").unwrap().values::<i64>(), Some(&[4, 3, 2][..]));
    let missing = Stream::builder().decode("cls:int, txt").make_batch(&samples).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Format);
    assert_eq!(builder.make_batch([]).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn what_a_stream_does_not_deliver_is_refused() {
    let paths = shards::shards(&folder("refused-batches"), 1);
    let mut samples = Stream::open(&paths).unwrap();
    assert_eq!(samples.next_batch().unwrap_err().kind(), ErrorKind::Usage);
    let mut batches = Stream::builder().batch(2).open(&paths).unwrap();
    assert_eq!(batches.next().unwrap().unwrap_err().kind(), ErrorKind::Usage);
    assert!(Stream::builder().batch(2).decode("cls:nothing").open(&paths).is_err());
}

#[test]
fn every_row_comes_once_with_many_threads() {
    let paths = shards::shards(&folder("rows"), 5);
    let builder =
        Stream::builder().batch(7).decode("cls:int").decode_threads(4).threads(4).shuffle(20);
    let mut seen = BTreeSet::new();
    for batch in builder.open(paths).unwrap().batches() {
        let batch = batch.unwrap();
        seen.extend(batch.column("cls").unwrap().values::<i64>().unwrap());
    }
    assert_eq!(seen, (0..50).collect());
}

#[test]
fn a_panic_in_the_log_function_loses_no_batch() {
    let mut all = members(0, 12, 1);
    all[2 * 5 + 1].1 = b"no number".to_vec();
    let path = tar(folder("panic-batch").join("a.tar"), &all);
    let builder = Stream::builder()
        .batch(4)
        .decode("cls:int")
        .on_error(OnError::SkipSample)
        .log(LogLevel::Info, |_, text| panic!("{text}"));
    let mut stream = builder.open([&path]).unwrap();
    let mut labels = Vec::new();
    let mut thrown = 0;
    loop {
        match catch_unwind(AssertUnwindSafe(|| stream.next_batch().unwrap())) {
            Ok(Some(batch)) => labels.extend(batch.column("cls").unwrap().values::<i64>().unwrap()),
            Ok(None) => break,
            Err(_) => {
                thrown += 1;
                // What was not given out counts as unread.
                let state = stream.save().unwrap();
                let mut other =
                    builder.clone().log(LogLevel::Error, |_, _| {}).open([&path]).unwrap();
                other.restore(&state).unwrap();
                let rest: usize = other.batches().map(|batch| batch.unwrap().len()).sum();
                assert_eq!(labels.len() + rest, 11);
            }
        }
    }
    assert_eq!((thrown, labels), (1, (0..12).filter(|&n| n != 5).collect()));
}
