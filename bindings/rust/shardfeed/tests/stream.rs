//! Streams: what they deliver, how they end, and what stays.

mod shards;

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use shardfeed::{ErrorKind, LogLevel, OnError, Result, Sample, State, Stream};
use shards::{folder, key, members, tar};

fn keys(samples: &[Sample]) -> Vec<String> {
    samples.iter().map(|sample| sample.key().to_string()).collect()
}

fn first_keys(count: usize) -> Vec<String> {
    (0..count).map(key).collect()
}

#[test]
fn every_sample_comes_in_order_for_any_number_of_threads() {
    let paths = shards::shards(&folder("order"), 4);
    for threads in [1, 4] {
        let stream = Stream::builder().threads(threads).open(&paths).unwrap();
        let samples = stream.collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(keys(&samples), first_keys(40));
        let sample = &samples[12];
        assert_eq!(sample.get("bin"), Some(&b"121212"[..]));
        assert_eq!(sample.get("BIN"), None);
        assert_eq!(sample.shard().to_os_str(), paths[1].as_os_str());
        let fields: Vec<_> = sample.fields().collect();
        assert_eq!(
            (fields.len(), fields[1].0.as_bytes(), fields[1].1),
            (2, &b"cls"[..], &b"12"[..])
        );
        assert_eq!(sample.values().collect::<Vec<_>>(), [&b"121212"[..], b"12"]);
        let position = sample.position();
        assert_eq!((position.epoch, position.lane, position.shard), (0, 0, 1));
        assert_eq!(position.offset, 2 * 2 * 1024);
    }
}

#[test]
fn a_field_that_has_to_be_there_is_an_index() {
    let mut stream = Stream::open(shards::shards(&folder("index"), 1)).unwrap();
    let block = stream.next_block(1).unwrap().unwrap();
    let lent = block.get(0).unwrap();
    let sample = lent.to_owned();
    assert_eq!((&sample["bin"], &lent["cls"]), (sample.get("bin").unwrap(), &b"0"[..]));
    let said = |index: &dyn Fn() -> usize| {
        let panic = catch_unwind(AssertUnwindSafe(index)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    let expected = format!("sample \"{}\" has no field \"jpg\"; its fields: bin, cls", key(0));
    assert_eq!(said(&|| sample["jpg"].len()), expected);
    assert_eq!(said(&|| lent["jpg"].len()), expected);
}

#[test]
fn a_stream_that_has_ended_stays_at_its_end() {
    let mut stream = Stream::open(shards::shards(&folder("end"), 1)).unwrap();
    assert_eq!(stream.by_ref().count(), 10);
    assert!(stream.next().is_none() && stream.next().is_none());
    assert!(stream.next_block(0).unwrap().is_none());
    assert_eq!(stream.counter("samples"), Some(10));
    assert_eq!(stream.counter("no such counter"), None);
}

#[test]
fn an_error_ends_the_iterator_and_repeats_in_blocks() {
    let path = tar(folder("cut").join("a.tar"), &members(0, 10, 3));
    fs::write(&path, &fs::read(&path).unwrap()[..5 * 1024]).unwrap();
    let mut stream = Stream::open([&path]).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = stream.by_ref().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (2, 1));
    let error = bad.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.offset(), Some(5 * 1024));
    assert_eq!(error.shard(), path.to_str());
    assert!(error.help().is_some(), "{error}");
    assert!(stream.next().is_none());
    for _ in 0..2 {
        assert_eq!(stream.next_block(0).unwrap_err(), error);
    }
}

#[test]
fn samples_outlive_the_stream_and_go_to_other_threads() {
    let mut stream = Stream::open(shards::shards(&folder("outlive"), 2)).unwrap();
    let sample = stream.nth(3).unwrap().unwrap();
    let block = stream.next_block(0).unwrap().unwrap();
    let of_block = block.get(0).unwrap().to_owned();
    drop((stream, block));
    let clone = sample.clone();
    let other =
        thread::spawn(move || (clone.key().to_string(), clone.get("bin").map(<[u8]>::to_vec)));
    assert_eq!(other.join().unwrap(), (key(3), Some(b"333".to_vec())));
    assert_eq!(sample.get("cls"), Some(&b"3"[..]));
    assert_eq!(of_block.key(), &*key(4));
}

#[test]
fn blocks_and_the_iterator_may_be_mixed() {
    let mut stream = Stream::open(shards::shards(&folder("mixed"), 2)).unwrap();
    let mut taken = Vec::new();
    let mut turn = 0;
    loop {
        turn += 1;
        if turn % 2 == 0 {
            let Some(sample) = stream.next() else { break };
            taken.push(sample.unwrap().key().to_string());
        } else {
            let Some(block) = stream.next_block(3).unwrap() else { break };
            assert!(!block.is_empty() && block.len() <= 3);
            assert_eq!(block.iter().len(), block.len());
            taken.extend(block.iter().map(|sample| sample.key().to_string()));
        }
    }
    assert_eq!(taken, first_keys(20));
}

#[test]
fn a_stream_moves_to_another_thread() {
    let mut stream = Stream::open(shards::shards(&folder("moves"), 1)).unwrap();
    stream.next().unwrap().unwrap();
    assert_eq!(thread::spawn(move || stream.count()).join().unwrap(), 9);
}

// ---- Options ----

#[test]
fn options_are_checked_by_the_library() {
    let open = |name, value| Stream::builder().set(name, value).open(["a.tar"]).unwrap_err();
    let typo = open("shufle", "10");
    assert_eq!(typo.kind(), ErrorKind::Usage);
    assert!(typo.message().contains("shuffle"), "{typo}");
    assert!(open("shuffle", "many").message().contains("shuffle"));
    let other = open("index", "memory");
    assert!(other.message().contains("not for stream"), "{other}");
    assert!(open("fields", "a\0b").message().contains("NUL"));
    let long = Stream::builder().timeout(Duration::MAX).open(["a.tar"]).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::Usage);
}

#[test]
fn a_builder_opens_any_number_of_streams() {
    let paths = shards::shards(&folder("builder"), 3);
    let builder = Stream::builder().shuffle(20).seed(7).epochs(2);
    let taken = |stream: Stream| keys(&stream.collect::<Result<Vec<_>>>().unwrap());
    let first = taken(builder.open(&paths).unwrap());
    assert_eq!(first, taken(builder.open(&paths).unwrap()));
    assert_eq!(first.len(), 60);
    assert_ne!(first, taken(builder.seed(8).open(&paths).unwrap()));
}

// ---- Waiting ----

#[test]
fn a_timeout_loses_nothing() {
    let folder = folder("timeout");
    let path = tar(folder.join("a.tar"), &members(0, 10, 3));
    // The command waits for the first timeout, regardless of the speed of the machine.
    let go = folder.join("go");
    let url =
        format!("pipe:until [ -e {} ]; do sleep 0.01; done; cat {}", go.display(), path.display());
    let builder = Stream::builder().timeout(Duration::from_millis(20));
    let mut timeouts = 0;
    let mut taken = Vec::new();
    for sample in builder.open([url]).unwrap() {
        match sample {
            Ok(sample) => taken.push(sample),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                timeouts += 1;
                fs::write(&go, "").unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(keys(&taken), first_keys(10));
    assert!(timeouts > 0);
}

#[test]
fn a_stream_is_cancelled_from_another_thread() {
    let mut stream = Stream::open(["pipe:sleep 60"]).unwrap();
    let control = stream.control();
    let canceller = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        control.cancel();
    });
    let start = Instant::now();
    assert_eq!(stream.next().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(30));
    canceller.join().unwrap();
}

#[test]
fn a_control_does_nothing_once_the_stream_is_dropped() {
    let mut stream = Stream::open(shards::shards(&folder("control"), 1)).unwrap();
    stream.next().unwrap().unwrap();
    let control = stream.control();
    assert!(control.counter("samples").is_some_and(|samples| samples > 0));
    assert!(control.counters().iter().any(|&(name, _)| name == "skips_truncated"));
    drop(stream);
    control.cancel();
    assert_eq!(control.counter("samples"), None);
    assert!(control.counters().is_empty());
}

// ---- Log ----

type Heard = Arc<Mutex<Vec<(LogLevel, String)>>>;

/// Two shards, the first of which is cut after two of its ten samples.
fn one_damaged(test: &str) -> Vec<std::path::PathBuf> {
    let paths = shards::shards(&folder(test), 2);
    fs::write(&paths[0], &fs::read(&paths[0]).unwrap()[..5 * 1024]).unwrap();
    paths
}

#[test]
fn skips_are_logged() {
    let heard = Heard::default();
    let list = Arc::clone(&heard);
    let builder =
        Stream::builder().on_error(OnError::SkipShard).log(LogLevel::Info, move |level, text| {
            list.lock().unwrap().push((level, text.to_owned()))
        });
    let mut stream = builder.open(one_damaged("logged")).unwrap();
    assert_eq!(stream.by_ref().filter(Result::is_ok).count(), 12);
    assert_eq!(stream.counter("skipped_shards"), Some(1));
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].0, LogLevel::Warning);
    assert!(heard[0].1.contains("s-000.tar"), "{}", heard[0].1);
}

#[test]
fn skips_are_delivered_with_their_error() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    let receive = move |skip: &shardfeed::Skip<'_>| {
        let url = skip.url.to_string();
        let key = skip.key.map(|key| key.to_string());
        list.lock().unwrap().push((skip.error.kind(), url, key, skip.whole_shard));
    };
    let builder = Stream::builder().on_error(OnError::SkipSample).on_skip(receive);
    let paths = one_damaged("skips");
    assert_eq!(builder.open(&paths).unwrap().filter(Result::is_ok).count(), 12);
    assert_eq!(builder.max_member(0).open(&paths[1..]).unwrap().count(), 0);
    let heard = heard.lock().unwrap();
    let (kind, url, key, whole_shard) = &heard[0];
    assert_eq!((*kind, key, *whole_shard), (ErrorKind::Truncated, &None, true));
    assert!(url.ends_with("s-000.tar"), "{url}");
    assert_eq!(heard.len(), 1 + 10);
    let (kind, url, key, whole_shard) = &heard[1];
    assert_eq!((*kind, *whole_shard), (ErrorKind::Limit, false));
    assert!(url.ends_with("s-001.tar") && key.is_some(), "{url} {key:?}");
}

#[test]
fn a_panic_in_the_log_function_is_carried_and_loses_nothing() {
    let builder = Stream::builder()
        .on_error(OnError::SkipShard)
        .log(LogLevel::Warning, |_, text| panic!("no: {text}"));
    let mut stream = builder.open(one_damaged("panic")).unwrap();
    let mut taken = Vec::new();
    let mut thrown = Vec::new();
    loop {
        match catch_unwind(AssertUnwindSafe(|| stream.next())) {
            Ok(Some(sample)) => taken.push(sample.unwrap()),
            Ok(None) => break,
            Err(payload) => thrown.push(payload),
        }
    }
    assert_eq!(thrown.len(), 1);
    let text = thrown[0].downcast_ref::<String>().unwrap();
    assert!(text.starts_with("no: ") && text.contains("s-000.tar"), "{text}");
    let wanted: Vec<String> = [0, 1].into_iter().chain(10..20).map(key).collect();
    assert_eq!(keys(&taken), wanted);
}

#[test]
fn a_panic_while_urls_are_expanded_is_carried() {
    let expand = || Stream::builder().expand_urls(["{0..9}"], |url| panic!("at {url}"));
    let payload = catch_unwind(expand).unwrap_err();
    assert_eq!(payload.downcast_ref::<String>().unwrap(), "at 0");
}

// ---- Saved states ----

#[test]
fn a_stream_goes_on_where_it_was_saved() {
    let paths = shards::shards(&folder("saved"), 4);
    let builder = Stream::builder().shuffle(8).seed(3).threads(2);
    let whole = keys(&builder.open(&paths).unwrap().collect::<Result<Vec<_>>>().unwrap());
    for stop in [0, 1, 7, 23, 40] {
        let mut stream = builder.open(&paths).unwrap();
        let mut taken = stream.by_ref().take(stop).collect::<Result<Vec<_>>>().unwrap();
        let state = State::from_bytes(stream.save().unwrap().as_bytes());
        drop(stream);
        let mut stream = builder.open(&paths).unwrap();
        stream.restore(&state).unwrap();
        taken.extend(stream.map(Result::unwrap));
        assert_eq!(keys(&taken), whole, "after {stop}");
    }
}

#[test]
fn a_state_is_refused_where_it_does_not_fit() {
    let paths = shards::shards(&folder("refused"), 2);
    let mut stream = Stream::open(&paths).unwrap();
    stream.next().unwrap().unwrap();
    let state = stream.save().unwrap();
    let used = stream.restore(&state).unwrap_err();
    assert_eq!(used.kind(), ErrorKind::Usage);
    let other = Stream::builder().seed(1).shuffle(4).open(&paths).unwrap().restore(&state);
    assert!(other.unwrap_err().message().contains("shuffle"));
    let mut damaged = state.as_bytes().to_vec();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let damaged = Stream::open(&paths).unwrap().restore(&State::from_bytes(damaged));
    assert!(matches!(damaged.unwrap_err().kind(), ErrorKind::Format | ErrorKind::Integrity));
}

#[cfg(feature = "serde")]
#[test]
fn a_state_comes_back_from_json() {
    let paths = shards::shards(&folder("json"), 2);
    let mut stream = Stream::open(&paths).unwrap();
    stream.nth(4).unwrap().unwrap();
    let text = serde_json::to_string(&stream.save().unwrap()).unwrap();
    let mut other = Stream::open(&paths).unwrap();
    other.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(other.next().unwrap().unwrap().key(), &*key(5));
}

// ---- Mixes ----

#[test]
fn a_mix_takes_its_parts_over() {
    let paths = shards::shards(&folder("mix"), 2);
    let parts = || [&paths[0], &paths[1]].map(|path| Stream::open([path]).unwrap());
    let [first, second] = parts();
    let control = first.control();
    let mut mix = Stream::mix().seed(5).open([(first, 3.0), (second, 1.0)]).unwrap();
    assert_eq!(control.counter("samples"), None); // that of a stream which is gone
    let samples = mix.by_ref().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(mix.counter("samples"), Some(20));
    for (part, first) in [(0, 0), (1, 10)] {
        let of_part = samples.iter().filter(|sample| sample.position().part == part);
        let of_part: Vec<_> = of_part.map(|sample| sample.key().to_string()).collect();
        assert_eq!(of_part, (first..first + 10).map(key).collect::<Vec<_>>());
    }
    let [mut used, new] = parts();
    used.next().unwrap().unwrap();
    let error = Stream::mix().open([(used, 1.0), (new, 1.0)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let [first, second] = parts();
    let negative = Stream::mix().open([(first, 1.0), (second, -1.0)]).unwrap_err();
    assert_eq!(negative.kind(), ErrorKind::Usage);
}

#[test]
fn the_log_function_of_a_part_is_heard_in_the_mix() {
    let paths = one_damaged("mix-log");
    let heard = Heard::default();
    let list = Arc::clone(&heard);
    let builder =
        Stream::builder().on_error(OnError::SkipShard).log(LogLevel::Info, move |level, text| {
            list.lock().unwrap().push((level, text.to_owned()))
        });
    let parts = [builder.open([&paths[0]]).unwrap(), builder.open([&paths[1]]).unwrap()];
    drop(builder);
    let mix = Stream::mix().open(parts.map(|part| (part, 1.0))).unwrap();
    assert_eq!(mix.filter(Result::is_ok).count(), 12);
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn plans_of_shards_that_are_not_there() {
    let run = Stream::builder().world_size(2);
    let plan = run.simulate_plan(&[10, 20, 30, 40], Some(&[1, 2, 3, 4])).unwrap();
    let shares: Vec<_> = plan.consumers().map(|share| (share.samples, share.bytes)).collect();
    assert_eq!(shares, [(Some(40), Some(4)), (Some(60), Some(6))]);
    let reads = plan.reads(1).unwrap();
    let numbers = |read: &shardfeed::ShardRead| (read.shard, read.samples, read.first, read.last);
    assert_eq!(reads.iter().map(numbers).collect::<Vec<_>>(), [(1, 20, 0, 19), (3, 40, 20, 59)]);
    let wrong = [
        run.simulate_plan(&[], None).err(),
        run.simulate_plan(&[1, 2], Some(&[1])).err(),
        run.simulate_plan(&[1 << 32], None).err(),
        plan.reads(2).err(),
        Stream::builder().epoch_samples(1).simulate_plan(&[1], None).unwrap().reads(0).err(),
    ];
    for error in wrong {
        assert_eq!(error.unwrap().kind(), ErrorKind::Usage);
    }
}
