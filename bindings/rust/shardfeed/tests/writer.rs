//! Writers: what is written comes back, whole shards alone appear, an error costs its sample.

mod shards;

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Mutex};

use shardfeed::{Archive, Compression, Dataset, ErrorKind, Stream, Writer};
use shards::{folder, key};

type Samples = Vec<(String, Vec<(String, Vec<u8>)>)>;

/// `count` samples of fields of several sizes, an empty one too.
fn samples(count: usize) -> Samples {
    let fields = |n: usize| {
        let data: Vec<u8> = (0..n * 37).map(|at| (at * at % 251) as u8).collect();
        vec![("jpg".to_owned(), data), ("cls".to_owned(), vec![b'7']), ("b.txt".to_owned(), vec![])]
    };
    (0..count).map(|n| (format!("a/{n:04}"), fields(n))).collect()
}

fn write(writer: &mut Writer, samples: &Samples) {
    for (key, fields) in samples {
        let fields = fields.iter().map(|(name, bytes)| (name, bytes));
        writer.write(key, fields).unwrap();
    }
}

fn read<U: AsRef<std::ffi::OsStr>>(urls: impl IntoIterator<Item = U>) -> Samples {
    let sample = |sample: shardfeed::Sample| {
        let fields = sample.fields().map(|(name, bytes)| (name.to_string(), bytes.to_vec()));
        (sample.key().to_string(), fields.collect())
    };
    Stream::open(urls).unwrap().map(|next| sample(next.unwrap())).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn every_format_comes_back_with_the_same_bytes_for_any_threads() {
    let folder = folder("writer-formats");
    let samples = samples(40);
    for suffix in ["tar", "zip", "tar.zst", "tar.gz"] {
        let mut digests = Vec::new();
        for threads in [1, 3] {
            let path = folder.join(format!("{threads}.{suffix}"));
            let mut writer = Writer::builder(&path).compress_threads(threads).open().unwrap();
            write(&mut writer, &samples);
            let shards = writer.finish().unwrap();
            assert_eq!(shards.len(), 1);
            assert_eq!(shards[0].url, path);
            assert_eq!(shards[0].samples, 40);
            assert_eq!(shards[0].bytes, fs::metadata(&path).unwrap().len());
            assert_eq!(shards[0].payload, (0..40).map(|n| n * 37 + 1).sum::<u64>());
            assert_eq!((shards[0].digest.len(), &shards[0].index), (32, &None));
            assert_eq!(read([&path]), samples, "{suffix}");
            digests.push(shards[0].digest.clone());
        }
        assert_eq!(digests[0], digests[1], "{suffix}");
    }
    let mut writer = Writer::open(folder.join("a.tar")).unwrap();
    writer.write("a", [("txt", "1")]).unwrap();
    assert_eq!(writer.finish().unwrap()[0].digest, "e82fc83296452490c90480ddb80fc4c9");
    let named = Writer::builder(folder.join("b")).compression(Compression::Zstd).open();
    let mut named = named.unwrap();
    named.write("a", [("txt", "1")]).unwrap();
    assert!(named.finish().unwrap()[0].bytes < 512);
}

#[test]
fn shards_are_cut_by_samples_and_by_hand() {
    let folder = folder("writer-cut");
    let samples = samples(25);
    let builder = Writer::builder(folder.join("t-%03d.tar")).max_samples(10).write_index(true);
    let mut writer = builder.first_shard(7).open().unwrap();
    write(&mut writer, &samples);
    writer.next_shard().unwrap();
    writer.next_shard().unwrap(); // there is nothing to end
    let image = [0; 10];
    writer.write("last", [("jpg", &image[..]), ("cls", b"7")]).unwrap();
    writer.flush(true).unwrap();
    assert_eq!(writer.shards().len(), 3, "durable: those that were ended are published");
    let shards = writer.finish().unwrap();
    assert_eq!(shards.iter().map(|shard| shard.samples).collect::<Vec<_>>(), [10, 10, 5, 1]);
    assert_eq!(shards[3].url, folder.join("t-010.tar"));
    assert_eq!(shards[3].index.as_deref(), Some(folder.join("t-010.tar.sfidx").as_path()));
    assert_eq!(read(shards[..3].iter().map(|shard| &shard.url)), samples);
    let data = Dataset::open([folder.join("t-{007..010}.tar")]).unwrap();
    assert_eq!((data.len(), data.get(25).unwrap().key().to_string()), (26, "last".to_owned()));
}

#[test]
fn shards_wait_until_they_are_published() {
    let folder = folder("writer-prepared");
    let samples = samples(5);
    let builder = Writer::builder(folder.join("a-%d.tar")).max_samples(2).prepare(true);
    let mut writer = builder.clone().write_index(true).open().unwrap();
    write(&mut writer, &samples);
    let shards = writer.finish().unwrap();
    assert_eq!(names(&folder).iter().filter(|name| name.ends_with(".partial")).count(), 6);
    assert!(names(&folder).iter().all(|name| name.starts_with('.')));
    let token = |number: usize| shards[number].token.as_deref().unwrap();
    builder.discard_prepared(token(2)).unwrap();
    for _ in 0..2 {
        builder.publish_prepared(token(0)).unwrap();
        builder.publish_prepared(token(1)).unwrap();
    }
    assert_eq!(
        names(&folder),
        ["a-0.tar", "a-0.tar.sfidx", "a-1.tar", "a-1.tar.sfidx"],
        "and nothing is left"
    );
    assert_eq!(read(shards[..2].iter().map(|shard| &shard.url)), samples[..4]);
    assert_eq!(builder.publish_prepared(token(2)).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(builder.publish_prepared("a").unwrap_err().kind(), ErrorKind::Usage);
    builder.discard_left().unwrap(); // of paths nothing
    let mut published = Writer::open(folder.join("b.tar")).unwrap();
    write(&mut published, &samples);
    assert_eq!(published.finish().unwrap()[0].token, None);
}

#[test]
fn nothing_appears_of_what_is_not_finished() {
    let folder = folder("writer-dropped");
    {
        let mut writer = Writer::builder(folder.join("a-%d.tar")).max_samples(2).open().unwrap();
        write(&mut writer, &samples(5));
        writer.flush(true).unwrap();
        assert_eq!(names(&folder).iter().filter(|name| name.ends_with(".partial")).count(), 1);
    }
    assert_eq!(names(&folder), ["a-0.tar", "a-1.tar"]);
    assert!(Writer::open(folder.join("none.tar")).unwrap().finish().unwrap().is_empty());
    // What is there stays.
    let before = fs::read(folder.join("a-0.tar")).unwrap();
    let mut writer = Writer::builder(folder.join("a-%d.tar")).open().unwrap();
    for _ in 0..2 {
        let error = writer.write("a", [("txt", "1")]).unwrap_err();
        assert_eq!((error.kind(), error.os_error()), (ErrorKind::Io, Some(libc::EEXIST)));
    }
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Io, "it repeats");
    assert_eq!(fs::read(folder.join("a-0.tar")).unwrap(), before);
}

#[test]
fn an_error_costs_its_sample() {
    let folder = folder("writer-errors");
    let path = folder.join("a.tar");
    let mut writer = Writer::open(&path).unwrap();
    let mut refused = |key: &str, fields: &[(&str, &str)], cause: &str| {
        let error = writer.write(key, fields.iter().copied()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.message().contains(cause), "{error}");
    };
    refused("a.b", &[("txt", "1")], "dot in its last component");
    refused("a\0", &[("txt", "1")], "NUL");
    refused("../a", &[("txt", "1")], "\"..\"");
    refused("a", &[], "no fields");
    refused("a", &[("txt", "1"), ("TXT", "2")], "there already");
    writer.write("a", [("txt", "1")]).unwrap();
    assert_eq!(writer.write("a", [("txt", "2")]).unwrap_err().kind(), ErrorKind::Usage);

    fs::write(folder.join("image"), "bytes").unwrap();
    let missing = writer.write_files("b", [("jpg", folder.join("none"))]).unwrap_err();
    assert_eq!((missing.kind(), missing.os_error()), (ErrorKind::Io, Some(libc::ENOENT)));
    let odd = writer.write_files("b", [("jpg", "a\0b")]).unwrap_err();
    assert_eq!(odd.kind(), ErrorKind::Usage, "{odd}");
    writer.write_files("b", [("jpg", folder.join("image"))]).unwrap();

    // A sample that is not ended is dropped, and one with a bad field.
    writer.begin("c").unwrap().field("txt", "lost").unwrap();
    let mut sample = writer.begin("c").unwrap();
    assert_eq!(sample.field("a/b", "1").unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(sample.end().unwrap_err().kind(), ErrorKind::Usage);
    let mut sample = writer.begin("c").unwrap();
    sample.file("jpg", folder.join("image")).unwrap();
    sample.field("cls", b"7").unwrap();
    sample.url("txt", "pipe:printf words").unwrap();
    assert!(!format!("{sample:?}").is_empty());
    sample.end().unwrap();
    assert_eq!(writer.finish().unwrap()[0].samples, 3);
    let read: Vec<_> = read([&path]).into_iter().map(|(key, fields)| (key, fields.len())).collect();
    assert_eq!(read, [("a".to_owned(), 1), ("b".to_owned(), 1), ("c".to_owned(), 3)]);
}

#[test]
fn samples_are_passed_on_byte_for_byte() {
    let folder = folder("writer-passed");
    let paths = shards::shards(&folder, 2);
    let mut stream = Stream::open(&paths).unwrap();
    let mut writer = Writer::builder(folder.join("c-%d.tar")).max_samples(10).open().unwrap();
    for sample in stream.by_ref().take(3) {
        writer.write_sample(&sample.unwrap()).unwrap();
    }
    while let Some(block) = stream.next_block(0).unwrap() {
        block.iter().for_each(|sample| writer.write_sample(sample).unwrap());
    }
    let data = Dataset::open(&paths).unwrap();
    writer.next_shard().unwrap();
    writer.write_sample(&data.get(4).unwrap()).unwrap();
    let shards = writer.finish().unwrap();
    assert_eq!(read(shards[..2].iter().map(|shard| &shard.url)), read(&paths));
    let members = |path: &std::ffi::OsStr| {
        let archive = Archive::open(path).unwrap();
        (0..archive.len()).map(|at| archive.read(at).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(members(&shards[0].url), members(paths[0].as_os_str()));
    assert_eq!(read([&shards[2].url])[0].0, key(4));
}

#[test]
fn options_and_patterns_are_checked() {
    let refused = |opened: shardfeed::Result<Writer>, cause: &str| {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.message().contains(cause), "{error}");
    };
    refused(Writer::open("a-%s.tar"), "no number of a shard");
    refused(Writer::open("a\0.tar"), "NUL");
    refused(Writer::builder("a.tar").max_samples(1).open(), "has no number");
    refused(Writer::builder("a.tar").set("shuffle", "1").open(), "shuffle is not for writer");
    refused(Writer::builder("a.tar").set("max_smaples", "1").open(), "max_samples");
    let writer = Writer::builder("a.tar").open().unwrap();
    assert_eq!(format!("{writer:?}"), "Writer { shards: 0, .. }");
}

#[test]
fn calls_after_a_cancel_are_cancelled() {
    let folder = folder("writer-cancel");
    let mut writer = Writer::open(folder.join("a.tar")).unwrap();
    writer.write("a", [("txt", "1")]).unwrap();
    let control = writer.control();
    let other = control.clone();
    std::thread::spawn(move || other.cancel()).join().unwrap();
    for _ in 0..2 {
        let error = writer.write("b", [("txt", "1")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    }
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(names(&folder).is_empty());
    control.cancel(); // of a writer that is gone
}

#[test]
fn a_function_names_shards_once_each() {
    let folder = folder("writer-named");
    let (asked, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (list, published, place) = (Arc::clone(&asked), Arc::clone(&seen), folder.clone());
    let mut writer = Writer::named(move |number| {
        list.lock().unwrap().push(number);
        place.join(format!("part-{}.tar", ["one", "two", "three"][number as usize]))
    })
    .max_samples(2)
    .on_shard(move |shard| published.lock().unwrap().push(shard.clone()))
    .open()
    .unwrap();
    write(&mut writer, &samples(6));
    let shards = writer.finish().unwrap();
    assert_eq!(*asked.lock().unwrap(), [0, 1, 2]);
    assert_eq!(*seen.lock().unwrap(), shards);
    assert_eq!(shards[2].url, folder.join("part-three.tar"));
    assert_eq!(names(&folder), ["part-one.tar", "part-three.tar", "part-two.tar"]);
    assert_eq!(read(shards.iter().map(|shard| &shard.url)), samples(6));
}

#[test]
fn a_name_that_comes_again_is_an_error() {
    let folder = folder("writer-named-twice");
    let path = folder.join("a.tar");
    let mut writer =
        Writer::named(move |_| path.clone()).max_samples(1).overwrite(true).open().unwrap();
    writer.write("1", [("txt", "kept")]).unwrap();
    let error = writer.write("2", [("txt", "x")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("a name twice"), "{error}");
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(names(&folder), ["a.tar"]);
    assert_eq!(
        &Stream::open([folder.join("a.tar")]).unwrap().next().unwrap().unwrap()["txt"],
        b"kept"
    );
}

#[test]
fn a_panic_of_the_function_that_names_shards_reaches_the_caller() {
    let folder = folder("writer-named-panic");
    let place = folder.clone();
    let mut writer = Writer::named(move |number| {
        assert!(number == 0, "no name for {number}");
        place.join("a.tar")
    })
    .max_samples(1)
    .open()
    .unwrap();
    writer.write("1", [("txt", "x")]).unwrap();
    let thrown = catch_unwind(AssertUnwindSafe(|| writer.write("2", [("txt", "x")]))).unwrap_err();
    assert_eq!(thrown.downcast_ref::<String>().unwrap(), "no name for 1");
    // It cost that sample alone: the shard before it is published.
    assert_eq!(writer.finish().unwrap().len(), 1);
    assert_eq!(names(&folder), ["a.tar"]);
    let opened = catch_unwind(|| Writer::named(|_| -> String { panic!("none") }).open());
    assert_eq!(*opened.unwrap_err().downcast_ref::<&str>().unwrap(), "none");
}

#[test]
fn indexes_of_other_tools_appear_with_shards() {
    let folder = folder("writer-index-for");
    let mut writer = Writer::builder(folder.join("a-%d.tar"))
        .max_samples(3)
        .index_for("dali,energon")
        .wids_index(folder.join("a.json"))
        .open()
        .unwrap();
    write(&mut writer, &samples(5));
    writer.finish().unwrap();
    let wanted =
        ["a-0.idx", "a-0.tar", "a-0.tar.idx", "a-1.idx", "a-1.tar", "a-1.tar.idx", "a.json"];
    assert_eq!(names(&folder), wanted);
    assert!(fs::read_to_string(folder.join("a-0.idx")).unwrap().starts_with("v1.2 3\njpg 512 "));
    assert_eq!(fs::metadata(folder.join("a-1.tar.idx")).unwrap().len(), 24);
}
