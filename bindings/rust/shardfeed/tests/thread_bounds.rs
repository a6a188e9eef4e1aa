//! Send and Sync exactly as the header says: the compiler checks it.

use shardfeed::*;

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn everywhere<T: Send + Sync + 'static>() {}

#[test]
fn what_goes_to_other_threads() {
    // "Samples and blocks are read-only: any number of threads."
    everywhere::<Sample>();
    everywhere::<Block>();
    send::<SampleRef<'_>>();
    sync::<SampleRef<'_>>();
    // "An archive", "a dataset": any number of threads.
    everywhere::<Archive>();
    everywhere::<Dataset>();
    everywhere::<Plan>();
    // Writing to a batch takes `&mut`.
    everywhere::<Batch>();
    send::<Column<'_>>();
    sync::<Column<'_>>();
    // "shf_stream_cancel and shf_stream_stat may be called from any thread at any time."
    everywhere::<Control>();
    everywhere::<Error>();
    everywhere::<State>();
    everywhere::<StreamBuilder>();
    everywhere::<MixBuilder>();
    everywhere::<ArchiveBuilder>();
    everywhere::<DatasetBuilder>();
    everywhere::<WriterBuilder>();
    // shf_writer_cancel: "any thread".
    everywhere::<WriterControl>();
    everywhere::<Shard>();
    // "All functions are called by any thread" of a shf_source.
    everywhere::<Box<dyn Source>>();
    everywhere::<Box<dyn SourceObject>>();
    // "A stream serves one thread at a time (it may be another one each time)." That it is not
    // Sync: stream_is_not_sync.rs in compile_fail.
    send::<Stream>();
    send::<Members>();
    send::<Batches<'_>>();
    // As a stream; that it is not Sync: writer_is_not_sync.rs.
    send::<Writer>();
    send::<NewSample<'_>>();
}

#[test]
fn a_result_is_small() {
    assert!(std::mem::size_of::<Result<Sample>>() <= 2 * std::mem::size_of::<usize>());
}
