//! Handles carried across a fork. A program of its own, with one test: the child has only the
//! thread that forked.

mod shards;

use shardfeed::{Dataset, ErrorKind, Stream, Writer};
use shards::{folder, key};

/// Whether `check` is true in a forked child.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls nothing that needs the threads which it has not, and ends with
    // _exit(2), without the destructors of the parent's objects.
    unsafe {
        match libc::fork() {
            -1 => panic!("no fork"),
            0 => {
                let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
                libc::_exit(i32::from(!passed.unwrap_or(false)))
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

#[test]
fn handles_across_a_fork() {
    let folder = folder("fork");
    let paths = shards::shards(&folder, 2);
    let data = Dataset::open(&paths).unwrap();
    let mut stream = Some(Stream::open(&paths).unwrap());
    let sample = stream.as_mut().unwrap().next().unwrap().unwrap();

    // A stream belongs to the process that opened it; dropping it in a child lets go of it.
    assert!(in_child(|| {
        let mut stream = stream.take().unwrap();
        stream.control().cancel();
        // What was fetched before the fork may still be given out.
        let failed = stream.find_map(Result::err).map(|error| error.kind());
        failed == Some(ErrorKind::Forked) && stream.save().is_err()
    }));
    // As does a writer, and its files are the parent's.
    let mut writer = Some(Writer::open(folder.join("written.tar")).unwrap());
    writer.as_mut().unwrap().write_sample(&sample).unwrap();
    assert!(in_child(|| {
        let mut writer = writer.take().unwrap();
        writer.control().cancel();
        let failed = writer.write("a", [("txt", "1")]).unwrap_err().kind();
        failed == ErrorKind::Forked && writer.shards().is_empty() && writer.finish().is_err()
    }));
    assert_eq!(writer.unwrap().finish().unwrap()[0].samples, 1);
    // Samples and datasets go on in the child.
    assert!(in_child(|| sample.get("bin") == Some(b"000") && sample.clone().key() == *key(0)));
    assert!(in_child(|| data.get(11).is_ok_and(|sample| sample.key() == *key(11))));
    // The parent goes on as if nothing had been.
    assert_eq!(stream.unwrap().map(Result::unwrap).count(), 19);
}
