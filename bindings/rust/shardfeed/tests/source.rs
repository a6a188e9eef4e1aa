//! Shards that the program itself gives.

mod shards;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use shardfeed::{Archive, Dataset, ErrorKind, Members, Source, SourceObject, Stream};

/// The shards of tests/data, by URL.
#[derive(Clone, Default)]
struct Store(Arc<Inner>);

#[derive(Default)]
struct Inner {
    files: HashMap<String, Vec<u8>>,
    open: AtomicUsize,
    sequential: bool,
}

impl Store {
    fn new(sequential: bool) -> Store {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(data).unwrap() {
            let entry = entry.unwrap();
            let url = format!("db://{}", entry.file_name().to_str().unwrap());
            files.insert(url, std::fs::read(entry.path()).unwrap());
        }
        Store(Arc::new(Inner { files, sequential, ..Inner::default() }))
    }
}

impl Source for Store {
    fn open(&self, url: &str) -> io::Result<Box<dyn SourceObject>> {
        let Some(bytes) = self.0.files.get(url) else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        self.0.open.fetch_add(1, Ordering::Relaxed);
        let (bytes, inner) = (bytes.clone(), Arc::clone(&self.0));
        Ok(Box::new(Object { bytes, inner, at: Mutex::new(0) }))
    }
}

struct Object {
    bytes: Vec<u8>,
    inner: Arc<Inner>,
    at: Mutex<u64>,
}

impl Drop for Object {
    fn drop(&mut self) {
        self.inner.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SourceObject for Object {
    fn size(&self) -> Option<u64> {
        (!self.inner.sequential).then_some(self.bytes.len() as u64)
    }

    fn version(&self) -> String {
        "v1".repeat(200) // is cut
    }

    fn is_sequential(&self) -> bool {
        self.inner.sequential
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        if self.inner.sequential {
            let mut at = self.at.lock().unwrap();
            assert_eq!(*at, offset);
            let room = out.len().min(1000);
            let count = self.bytes.read_at(offset, &mut out[..room])?;
            *at += count as u64;
            return Ok(count);
        }
        self.bytes.read_at(offset, out)
    }
}

const URLS: [&str; 1] = ["db://train-{000..002}.tar"];

fn keys(stream: Stream) -> Vec<String> {
    let key = |sample: shardfeed::Result<shardfeed::Sample>| sample.unwrap().key().to_string();
    stream.map(key).collect()
}

#[test]
fn everything_that_opens_urls_takes_a_source() {
    let store = Store::new(false);
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/train-{000..002}.tar");
    let wanted = keys(Stream::builder().open(&[files]).unwrap());
    assert!(!wanted.is_empty());
    let stream = Stream::builder().source("db", store.clone()).open(&URLS).unwrap();
    assert_eq!(keys(stream), wanted);
    let any = Dataset::builder().source("*", store.clone()).set("index", "memory");
    let data = any.open(&URLS).unwrap();
    assert_eq!(data.len(), wanted.len());
    let archive = Archive::builder().source("db", store.clone()).open("db://images.zip").unwrap();
    assert_eq!(&archive.read(archive.find("img_000.png").unwrap()).unwrap()[1..4], b"PNG");
    let builder = Archive::builder().source("db", store.clone());
    let members: Members = builder.open_members("db://images.zip").unwrap();
    assert!(store.0.open.load(Ordering::Relaxed) > 0);
    drop((data, archive, members));
    assert_eq!(store.0.open.load(Ordering::Relaxed), 0);
    drop((any, builder));
    assert_eq!(Arc::strong_count(&store.0), 1);
}

#[test]
fn a_sequential_object_is_read_in_order() {
    let store = Store::new(true);
    let stream = Stream::builder().source("db", store.clone()).open(&URLS).unwrap();
    assert!(!keys(stream).is_empty());
    let archive = Archive::builder().source("db", store).open("db://images.zip").unwrap();
    assert_eq!(archive.len(), 3);
}

#[test]
fn errors_and_panics_are_those_of_the_shard() {
    let builder = Stream::builder().source("db", Store::new(false));
    let mut stream = builder.open(&["db://user:sesame@host/none.tar?sig=sesame"]).unwrap();
    let error = stream.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.os_error(), Some(libc::ENOENT));
    assert!(error.message().starts_with("db://host/none.tar: "), "{error}");
    assert!(!error.message().contains("sesame"), "{error}");

    let panics = |url: &str| -> io::Result<Box<dyn SourceObject>> { panic!("I do not like {url}") };
    let error = Archive::builder().source("db", panics).open("db://a.tar").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.message(), "db://a.tar: the source panicked: I do not like db://a.tar");

    for (kind, class) in [
        (io::ErrorKind::UnexpectedEof, ErrorKind::Truncated),
        (io::ErrorKind::Unsupported, ErrorKind::Usage),
        (io::ErrorKind::ConnectionReset, ErrorKind::Io),
    ] {
        let fails = move |_: &str| -> io::Result<Box<dyn SourceObject>> {
            Err(io::Error::new(kind, "so it is"))
        };
        let error = Archive::builder().source("db", fails).open("db://a.tar").unwrap_err();
        assert_eq!((error.kind(), error.message()), (class, "db://a.tar: so it is"));
    }
}

#[test]
fn a_scheme_that_cannot_be_served_is_refused() {
    let store = Store::new(false);
    for scheme in ["file", "pipe", "DB", "", "a\0b"] {
        let error =
            Archive::builder().source(scheme, store.clone()).open("db://a.tar").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{scheme}");
    }
    assert_eq!(Arc::strong_count(&store.0), 1);
}
