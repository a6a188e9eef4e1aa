//! Datasets: samples by number and key, batches of them, and their indexes.

mod shards;

use std::ffi::OsStr;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;

use shardfeed::{Dataset, ErrorKind, Index, IndexFormat, LogLevel};
use shards::{folder, key};

#[test]
fn samples_by_number_and_key() {
    let data = Dataset::open(shards::shards(&folder("by-number"), 3)).unwrap();
    assert_eq!((data.len(), data.is_empty()), (30, false));
    let sample = data.get(17).unwrap();
    assert_eq!(sample.key(), &*key(17));
    assert_eq!(sample.get("bin"), Some(&b"171717"[..]));
    let numbers = [29, 0, 17, 17];
    let many = data.get_many(&numbers).unwrap();
    assert!(many.iter().zip(numbers).all(|(sample, n)| sample.key() == *key(n)));
    assert_eq!(data.find(key(21)).unwrap(), 21);
    assert_eq!(data.shard(21), Some((2, 1)));
    assert_eq!(data.iter().filter(|sample| sample.is_ok()).count(), 30);
    drop(data); // samples outlive it
    assert_eq!(many[1].get("cls"), Some(&b"0"[..]));
}

#[test]
fn what_there_is_not() {
    let data = Dataset::open(shards::shards(&folder("no-number"), 1)).unwrap();
    assert_eq!(data.get(10).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(data.get_many(&[0, usize::MAX]).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(data.find("x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(data.shard(10), None);
    assert!(data.get_many(&[]).unwrap().is_empty());
    assert_eq!(data.batch(&[]).unwrap_err().kind(), ErrorKind::Usage);
    assert!(Dataset::open(["/no/such.tar"]).is_err());
}

#[test]
fn batches_by_number() {
    let builder = Dataset::builder().decode("cls:int");
    let data = builder.clone().open(shards::shards(&folder("batch"), 2)).unwrap();
    let batch = data.batch(&[13, 2, 2]).unwrap();
    assert_eq!(batch.column("cls").unwrap().values::<i64>(), Some(&[13, 2, 2][..]));
    let batch = data.batch_with(&[13, 2], &builder.decode("cls:float").epoch(7)).unwrap();
    assert_eq!(batch.column("cls").unwrap().values::<f64>(), Some(&[13.0, 2.0][..]));
    let error = data.batch_with(&[1], &Dataset::builder().set("epoch", "no")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_shard_that_changes_is_an_error() {
    let paths = shards::shards(&folder("changed"), 1);
    let data = Dataset::open(&paths).unwrap();
    data.get(1).unwrap();
    shards::tar(paths[0].clone(), &shards::members(5, 9, 3));
    let error = data.get(1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Changed | ErrorKind::Truncated), "{error:?}");
}

#[test]
fn many_threads_read_one_dataset() {
    let data = Dataset::open(shards::shards(&folder("threads-dataset"), 5)).unwrap();
    thread::scope(|scope| {
        for first in 0..4 {
            let data = &data;
            scope.spawn(move || {
                for n in (first..50).step_by(4) {
                    assert_eq!(data.get(n).unwrap().key(), &*key(n));
                    assert_eq!(data.find(key(n)).unwrap(), n);
                }
            });
        }
    });
}

#[test]
fn making_an_index_is_logged() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    let builder = Dataset::builder().log(LogLevel::Info, move |level, text| {
        list.lock().unwrap().push((level, text.to_owned()))
    });
    let paths = shards::shards(&folder("index"), 1);
    builder.open(&paths).unwrap();
    let first = heard.lock().unwrap().clone();
    assert!(first.iter().all(|(level, text)| {
        *level == LogLevel::Info && text.contains("s-000.tar") && text.contains("index")
    }));
    assert!(!first.is_empty());
    builder.open(&paths).unwrap(); // it is there now
    assert_eq!(*heard.lock().unwrap(), first);
    Dataset::builder().index(Index::Require).open(&paths).unwrap();
}

#[test]
fn a_panic_in_the_log_function_is_carried() {
    let paths = shards::shards(&folder("index-panic"), 1);
    let builder = Dataset::builder().log(LogLevel::Info, |_, text| panic!("heard {text}"));
    let payload = catch_unwind(AssertUnwindSafe(|| builder.open(&paths))).unwrap_err();
    assert!(payload.downcast_ref::<String>().unwrap().starts_with("heard "));
}

#[test]
fn indexes_of_other_tools() {
    let folder = folder("foreign");
    let path = shards::shards(&folder, 1).remove(0);
    let foreign = folder.join("a.idx");
    let builder = Dataset::builder();
    builder.export_index([&path], IndexFormat::Dali1_2, &foreign).unwrap();
    assert!(fs::read_to_string(&foreign).unwrap().starts_with("v1.2 10\n"));
    let own = path.with_extension("tar.sfidx");
    let _ = fs::remove_file(&own);
    builder.import_index(Some(path.as_os_str()), IndexFormat::Dali1_2, &foreign).unwrap();
    assert!(own.exists());
    fs::remove_file(&own).unwrap();
    builder.build_index(&path).unwrap();
    assert!(own.exists());
    let bad = builder.import_index(Some(OsStr::new("/no.tar")), IndexFormat::Energon, &foreign);
    assert!(bad.is_err());
}
