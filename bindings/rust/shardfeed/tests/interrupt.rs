//! What hangs while it is opened ends when the interrupt function says so.

mod shards;

use std::ffi::CString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use shardfeed::{Archive, ArchiveBuilder, Dataset, Error, ErrorKind, IndexFormat, Stream};
use shards::folder;

const SLEEP: &str = "pipe:sleep 1000";

/// A FIFO that nobody writes into.
fn fifo(test: &str) -> PathBuf {
    let path = folder(test).join("fifo");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a NUL-terminated path.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

fn list(path: &Path) -> String {
    format!("@{}", path.display())
}

/// Calls `open` with a flag that is set after 100 ms. It must end within a second from then on.
fn cancelled<T>(open: impl FnOnce(Arc<AtomicBool>) -> Result<T, Error>) {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        flag.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let error = open(stop).err().expect("it cannot be opened");
    let ended = Instant::now();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.message().contains("interrupt function"), "{error}");
    assert!(ended.duration_since(stopper.join().unwrap()) < Duration::from_secs(1));
}

/// A function that says what the flag says.
fn says(flag: Arc<AtomicBool>) -> impl FnMut() -> bool + Send {
    move || flag.load(Ordering::Relaxed)
}

#[test]
fn every_opening_ends() {
    let fifo = fifo("interrupt");
    let list = list(&fifo);
    let index = folder("interrupt-index").join("a.json");
    cancelled(|flag| Archive::builder().interrupt(says(flag)).open(SLEEP));
    cancelled(|flag| Archive::builder().interrupt(says(flag)).open(&fifo));
    cancelled(|flag| Stream::builder().interrupt(says(flag)).open([&list]));
    cancelled(|flag| Stream::builder().interrupt(says(flag)).plan([&list]));
    cancelled(|flag| {
        let builder = Stream::builder().interrupt(says(flag));
        builder.expand_urls([&list], |_| ControlFlow::Continue(()))
    });
    cancelled(|flag| Dataset::builder().interrupt(says(flag)).open([&list]));
    cancelled(|flag| {
        let builder = Dataset::builder().interrupt(says(flag));
        builder.export_index([&list], IndexFormat::Wids, &index)
    });
    cancelled(|flag| {
        let builder = Dataset::builder().interrupt(says(flag));
        builder.import_index(None, IndexFormat::Wids, &fifo)
    });
    assert!(!index.exists());
}

#[test]
fn it_is_asked_by_the_thread_that_opens_and_may_keep_what_it_likes() {
    let opener = thread::current().id();
    let (sender, receiver) = mpsc::channel();
    let mut left = 3;
    let builder = Archive::builder().interrupt(move || {
        left -= 1;
        sender.send(thread::current().id()).unwrap();
        left == 0
    });
    assert_eq!(builder.open(SLEEP).unwrap_err().kind(), ErrorKind::Cancelled);
    drop(builder);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [opener; 3]);
}

#[test]
fn what_is_open_is_not_asked_about() {
    let paths = shards::shards(&folder("interrupt-open"), 2);
    let questions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&questions);
    let builder = Stream::builder().interrupt(move || {
        count.fetch_add(1, Ordering::Relaxed);
        true
    });
    let mut stream = builder.open(&paths).unwrap();
    thread::sleep(Duration::from_millis(120));
    assert_eq!(stream.by_ref().map(Result::unwrap).count(), 20);
    assert_eq!(questions.load(Ordering::Relaxed), 0);
}

#[test]
fn what_breaks_an_expansion_is_no_error() {
    let builder = Stream::builder().interrupt(|| true);
    assert!(!builder.expand_urls(["{0..9}"], |_| ControlFlow::Break(())).unwrap());
}

/// The text of the panic that comes out of an opening.
fn thrown<T>(open: impl FnOnce() -> T) -> String {
    let start = Instant::now();
    let payload = catch_unwind(AssertUnwindSafe(open)).err().expect("it panics");
    assert!(start.elapsed() < Duration::from_secs(1));
    payload.downcast_ref::<&str>().unwrap().to_string()
}

#[test]
fn a_panic_in_it_ends_the_call_and_is_carried() {
    let fifo = fifo("interrupt-panic");
    let list = list(&fifo);
    let archive = Archive::builder().interrupt(|| panic!("in an archive"));
    assert_eq!(thrown(|| archive.open(SLEEP)), "in an archive");
    assert_eq!(thrown(|| archive.open(&fifo)), "in an archive"); // the next call asks again
    let stream = Stream::builder().interrupt(|| panic!("in a stream"));
    assert_eq!(thrown(|| stream.open([&list])), "in a stream");
    assert_eq!(thrown(|| stream.plan([&list])), "in a stream");
    let expand = || stream.expand_urls([&list], |_| ControlFlow::Continue(()));
    assert_eq!(thrown(expand), "in a stream");
    let dataset = Dataset::builder().interrupt(|| panic!("in a dataset"));
    assert_eq!(thrown(|| dataset.open([&list])), "in a dataset");
    let import = || dataset.import_index(None, IndexFormat::Wids, &fifo);
    assert_eq!(thrown(import), "in a dataset");
}

#[test]
fn it_may_open_something_itself() {
    const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/images.zip");
    static BUILDER: OnceLock<ArchiveBuilder> = OnceLock::new();
    let builder = BUILDER.get_or_init(|| {
        let own = || BUILDER.get().is_some_and(|builder| builder.open(IMAGES).unwrap().len() == 3);
        Archive::builder().interrupt(own)
    });
    assert_eq!(builder.open(SLEEP).unwrap_err().kind(), ErrorKind::Cancelled);
}
