//! The conformance suite that all languages run: `tests/conformance` of the repository, or the
//! folder in SHARDFEED_CONFORMANCE; with SHARDFEED_CONFORMANCE_FOLDER the archives are at that URL.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{json, Value};
use shardfeed::{
    Archive, Batch, Column, Consumer, Dataset, Members, Result, SampleRef, State, Stream,
    StreamBuilder, Writer,
};
use xxhash_rust::xxh64::Xxh64;

/// URLs of a case, with the folder.
fn urls_in(folder: &str, urls: &Value) -> Vec<String> {
    let whole = |url: &str| match url.contains("$FOLDER") || url.contains("://") {
        true => url.replace("$FOLDER", folder),
        false => format!("{folder}/{url}"),
    };
    texts(urls).map(whole).collect()
}

/// Options of a case, with the folder, in the order of their names.
fn options_in<'a>(folder: &str, options: &'a Value) -> Vec<(&'a str, String)> {
    let options = options.as_object().expect("options").iter();
    let value = |value: &Value| value.as_str().expect("a text").replace("$FOLDER", folder);
    options.map(|(name, text)| (&**name, value(text))).collect()
}

/// A builder with these options.
macro_rules! set {
    ($builder:expr, $options:expr) => {
        $options.iter().fold($builder, |builder, (name, value)| builder.set(*name, value))
    };
}

/// A case, and what came of it.
struct Run<'a> {
    case: &'a Value,
    folder: &'a str,
    urls: Vec<String>,
    options: Vec<(&'a str, String)>,
    hash: Xxh64,
    count: u64,
    stats: BTreeMap<String, u64>,
    out: String, // where a case writes; empty: nowhere
}

impl<'a> Run<'a> {
    fn new(case: &'a Value, folder: &'a str) -> Self {
        Run {
            case,
            folder,
            urls: urls_in(folder, &case["urls"]),
            options: options_in(folder, &case["options"]),
            hash: Xxh64::new(0),
            count: 0,
            stats: BTreeMap::new(),
            out: String::new(),
        }
    }

    /// What "expect" has to be. `blocks`: a stream is taken in blocks, and not one by one.
    fn result(mut self, blocks: bool) -> Value {
        let failure = self.run(blocks).err();
        let mut expect = json!({
            "count": self.count,
            "digest": format!("{:016x}", self.hash.digest()),
        });
        if let Some(error) = failure {
            expect["error"] = json!({
                "class": error.kind().name(),
                "message": self.shown(error.message()),
            });
            if let Some(offset) = error.offset() {
                expect["error"]["offset"] = json!(offset);
            }
        }
        if !self.stats.is_empty() {
            expect["stats"] = json!(self.stats);
        }
        expect
    }

    fn run(&mut self, blocks: bool) -> Result<()> {
        match self.case["kind"].as_str() {
            Some("stream") => self.stream(blocks),
            Some("resume") => self.resume(),
            Some("batches") => self.batches(),
            Some("resume_batches") => self.resume_batches(),
            Some("merge") => self.merge(),
            Some("archive") => self.archive(),
            Some("members") => self.members(),
            Some("dataset") => self.dataset(),
            Some("expand") => self.expand(),
            Some("mix") => self.mix(),
            Some("plan") => self.plan(),
            Some("simulate") => self.simulate(),
            Some("write") => self.write(),
            kind => panic!("unknown kind {kind:?}"),
        }
    }

    // ---- Hashing ----

    fn u64(&mut self, number: u64) {
        self.hash.update(&number.to_le_bytes());
    }

    fn str(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.hash.update(bytes);
    }

    /// A text without FOLDER + "/", wherever it is.
    fn url(&mut self, text: &[u8]) {
        let place = if self.out.is_empty() { self.folder } else { &self.out };
        let prefix = [place.as_bytes(), b"/"].concat();
        let mut rest = Vec::new();
        let mut bytes = text;
        while let Some(&first) = bytes.first() {
            bytes = match bytes.strip_prefix(&*prefix) {
                Some(stripped) => stripped,
                None => {
                    rest.push(first);
                    &bytes[1..]
                }
            };
        }
        self.str(&rest);
    }

    fn sample(&mut self, sample: SampleRef<'_>) {
        self.str(sample.key().as_bytes());
        self.url(sample.shard().as_bytes());
        self.u64(sample.len() as u64);
        for (name, bytes) in sample.fields() {
            self.str(name.as_bytes());
            self.str(bytes);
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.u64(batch.len() as u64);
        self.u64(batch.columns().len() as u64);
        for column in batch.columns() {
            self.str(column.name().as_bytes());
            if column.name() == "__url__" {
                for row in 0..column.rows() {
                    self.url(column.row_bytes(row).unwrap());
                }
            } else {
                self.column(column);
            }
        }
    }

    fn column(&mut self, column: Column<'_>) {
        self.u64(column.kind() as u64);
        self.u64(column.dtype().code() as u64);
        self.u64(column.row_ndim() as u64);
        self.u64(column.shape().len() as u64);
        for &length in column.shape() {
            self.u64(length as u64);
        }
        self.str(column.as_bytes());
        for numbers in [column.offsets(), column.row_shapes()] {
            let numbers = numbers.unwrap_or_default();
            self.u64(numbers.len() as u64);
            for &number in numbers {
                self.u64(number as u64);
            }
        }
    }

    // ---- Streams ----

    fn builder(&self) -> StreamBuilder {
        set!(Stream::builder(), self.options)
    }

    /// Takes `stop` samples, or all of them.
    fn drain(&mut self, stream: &mut Stream, stop: Option<usize>) -> Result<()> {
        for sample in stream.take(stop.unwrap_or(usize::MAX)) {
            self.sample(sample?.borrow());
            self.count += 1;
        }
        Ok(())
    }

    fn drain_blocks(&mut self, stream: &mut Stream) -> Result<()> {
        while let Some(block) = stream.next_block(0)? {
            for sample in &block {
                self.sample(sample);
                self.count += 1;
            }
        }
        Ok(())
    }

    fn drain_batches(&mut self, stream: &mut Stream, stop: Option<usize>) -> Result<()> {
        for batch in stream.batches().take(stop.unwrap_or(usize::MAX)) {
            self.batch(&batch?);
            self.count += 1;
        }
        Ok(())
    }

    fn stream(&mut self, blocks: bool) -> Result<()> {
        let mut stream = self.builder().open(&self.urls)?;
        let result = match blocks {
            true => self.drain_blocks(&mut stream),
            false => self.drain(&mut stream, None),
        };
        if let Some(wanted) = self.case["expect"]["stats"].as_object() {
            let counter = |name: &String| Some((name.clone(), stream.counter(name)?));
            self.stats = wanted.keys().filter_map(counter).collect();
        }
        result
    }

    fn stop(&self) -> Option<usize> {
        Some(self.case["stop"].as_u64().expect("where to stop") as usize)
    }

    fn resume(&mut self) -> Result<()> {
        let mut stream = self.builder().open(&self.urls)?;
        self.drain(&mut stream, self.stop())?;
        let state = stored(stream.save()?);
        drop(stream);
        let mut stream = self.builder().open(&self.urls)?;
        stream.restore(&state)?;
        self.drain(&mut stream, None)
    }

    fn batches(&mut self) -> Result<()> {
        let mut stream = self.builder().open(&self.urls)?;
        self.drain_batches(&mut stream, None)
    }

    fn resume_batches(&mut self) -> Result<()> {
        let mut stream = self.builder().open(&self.urls)?;
        self.drain_batches(&mut stream, self.stop())?;
        let state = stored(stream.save()?);
        drop(stream);
        let mut stream = self.builder().open(&self.urls)?;
        stream.restore(&state)?;
        self.drain_batches(&mut stream, None)
    }

    fn merge(&mut self) -> Result<()> {
        let consumers = |place: usize| self.case["consumers"][place].as_u64().expect("consumers");
        let (before, after) = (consumers(0), consumers(1));
        let mut states = Vec::new();
        for rank in 0..before {
            let mut stream = self.builder().world_size(before).rank(rank).open(&self.urls)?;
            self.drain(&mut stream, self.stop())?;
            states.push(stored(stream.save()?));
        }
        let state = stored(State::merge(&states)?);
        for rank in 0..after {
            let mut stream = self.builder().world_size(after).rank(rank).open(&self.urls)?;
            stream.restore(&state)?;
            self.drain(&mut stream, None)?;
        }
        Ok(())
    }

    fn open_mix(&self) -> Result<Stream> {
        let parts = self.case["parts"].as_array().expect("parts").iter();
        let weight = |place: usize| self.case["weights"][place].as_f64().unwrap_or(1.0);
        let open = |(place, part): (usize, &Value)| {
            let builder = set!(Stream::builder(), options_in(self.folder, &part["options"]));
            Ok((builder.open(urls_in(self.folder, &part["urls"]))?, weight(place)))
        };
        let parts = parts.enumerate().map(open).collect::<Result<Vec<_>>>()?;
        set!(Stream::mix(), self.options).open(parts)
    }

    fn mix(&mut self) -> Result<()> {
        let mut mix = self.open_mix()?;
        if self.case["stop"].is_u64() {
            self.drain(&mut mix, self.stop())?;
            let state = stored(mix.save()?);
            mix = self.open_mix()?;
            mix.restore(&state)?;
        }
        self.drain(&mut mix, None)
    }

    fn plan(&mut self) -> Result<()> {
        let plan = self.builder().plan(&self.urls)?;
        self.url(plan.to_string().as_bytes());
        self.u64(plan.warnings().count() as u64);
        for warning in plan.warnings() {
            self.url(warning.as_bytes());
        }
        for consumer in plan.consumers() {
            self.share(consumer);
        }
        Ok(())
    }

    fn simulate(&mut self) -> Result<()> {
        let numbers = |list: &Value| -> Option<Vec<u64>> {
            let list = list.as_array()?;
            Some(list.iter().map(|number| number.as_u64().expect("a number")).collect())
        };
        let samples = numbers(&self.case["shards"]).expect("shards");
        let bytes = numbers(&self.case["bytes"]);
        let plan = self.builder().simulate_plan(&samples, bytes.as_deref())?;
        for (number, consumer) in plan.consumers().enumerate() {
            self.share(consumer);
            let reads = plan.reads(number as u64)?;
            self.u64(reads.len() as u64);
            for read in reads {
                for number in [read.shard, read.samples, read.first, read.last] {
                    self.u64(number);
                }
            }
        }
        Ok(())
    }

    fn share(&mut self, consumer: Consumer) {
        let known = |value: Option<u64>| value.unwrap_or(u64::MAX);
        for number in [
            consumer.rank,
            consumer.worker,
            consumer.lanes,
            consumer.shards,
            known(consumer.samples),
            known(consumer.bytes),
        ] {
            self.u64(number);
        }
        self.count += 1;
    }

    // ---- Random access ----

    fn archive(&mut self) -> Result<()> {
        let builder = set!(Archive::builder(), self.options);
        let archive = builder.open(&self.urls[0])?;
        for member in archive.members() {
            let bytes = member.read()?;
            self.str(member.name().as_bytes());
            self.str(&bytes);
            self.count += 1;
        }
        for name in texts(&self.case["find"]) {
            self.u64(archive.find(name)? as u64);
        }
        Ok(())
    }

    fn members(&mut self) -> Result<()> {
        let builder = set!(Members::builder(), self.options);
        let mut members = builder.open_members(&self.urls[0])?;
        while let Some(mut member) = members.next_member()? {
            let (mut data, mut piece) = (Vec::new(), [0; 1000]);
            loop {
                match member.read_some(&mut piece)? {
                    0 => break,
                    size => data.extend(&piece[..size]),
                }
            }
            self.str(member.name().as_bytes());
            self.u64(member.kind() as u64);
            let mode = member.mode().map(u64::from);
            let mtime = member.mtime_ns().map(|time| time as u64);
            for number in [mode, member.uid(), member.gid(), mtime] {
                self.u64(number.unwrap_or(u64::MAX));
            }
            for text in [member.link(), member.user(), member.group()] {
                self.str(text.unwrap_or_default().as_bytes());
            }
            self.str(&data);
            self.count += 1;
        }
        Ok(())
    }

    fn dataset(&mut self) -> Result<()> {
        let builder = set!(Dataset::builder(), self.options);
        let dataset = builder.open(&self.urls)?;
        self.count = dataset.len() as u64;
        for position in self.case["positions"].as_array().into_iter().flatten() {
            let sample = dataset.get(position.as_u64().expect("a number") as usize)?;
            self.sample(sample.borrow());
        }
        for key in texts(&self.case["find"]) {
            self.u64(dataset.find(key)? as u64);
        }
        Ok(())
    }

    /// Without the folders of this run.
    fn shown(&self, text: &str) -> String {
        let text = text.replace(&format!("{}/", self.folder), "");
        match self.out.as_str() {
            "" => text,
            out => text.replace(&format!("{out}/"), ""),
        }
    }

    fn write(&mut self) -> Result<()> {
        let name = self.case["name"].as_str().expect("a text");
        let out = std::env::temp_dir().join(format!("shardfeed-{name}-{}", std::process::id()));
        fs::create_dir_all(&out).expect("a temporary folder");
        self.out = out.to_str().expect("UTF-8").to_owned();
        let result = self.write_into(&out);
        fs::remove_dir_all(&out).expect("what was written is removed");
        result
    }

    fn write_into(&mut self, out: &Path) -> Result<()> {
        let builder = match self.case["pattern"].as_str() {
            Some(pattern) => Writer::builder(out.join(pattern)),
            None => {
                let names: Vec<_> = texts(&self.case["names"]).map(|name| out.join(name)).collect();
                Writer::named(move |number| names[number as usize].clone())
            }
        };
        let place = format!("{}/", self.out);
        let mut writer = self
            .options
            .iter()
            .fold(builder, |builder, (name, value)| {
                builder.set(*name, value.replace("$OUT/", &place))
            })
            .open()?;
        for sample in self.case["samples"].as_array().expect("a list") {
            let parts: Vec<_> = texts(sample).map(from_hex).collect();
            let fields = parts[1..].chunks(2).map(|pair| (&pair[0], &pair[1]));
            if let Err(error) = writer.write(&parts[0], fields) {
                self.str(error.kind().name().as_bytes());
            }
        }
        let shards = writer.finish()?;
        for shard in &shards {
            self.url(shard.url.as_bytes());
            self.u64(shard.samples);
        }
        let mut files: Vec<_> = fs::read_dir(out)
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
            .collect();
        files.sort();
        for file in files {
            self.str(file.file_name().expect("a name").as_bytes());
            if file.extension().is_some_and(|suffix| suffix == "tar" || suffix == "idx") {
                self.str(&fs::read(&file).expect("a file"));
            }
        }
        for sample in Stream::open(shards.iter().map(|shard| &shard.url))? {
            let sample = sample?;
            self.sample(sample.borrow());
            self.count += 1;
        }
        Ok(())
    }

    fn expand(&mut self) -> Result<()> {
        let (builder, urls) = (self.builder(), self.urls.clone());
        let whole = builder.expand_urls(&urls, |url| {
            self.url(url.as_bytes());
            self.count += 1;
            ControlFlow::Continue(())
        })?;
        assert!(whole);
        Ok(())
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().expect("a text"))
}

fn from_hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// A state as it comes back from where it was stored.
fn stored(state: State) -> State {
    State::from_bytes(state.as_bytes())
}

/// Whether a case passes; the first difference is printed.
fn passes(case: &Value, folder: &str) -> bool {
    let ways: &[bool] = if case["kind"] == "stream" { &[false, true] } else { &[false] };
    for &blocks in ways {
        let found = Run::new(case, folder).result(blocks);
        if found != case["expect"] {
            let (name, place) = (&case["name"], if blocks { " (in blocks)" } else { "" });
            println!("{name}{place}: {} expected, not {found}", case["expect"]);
            return false;
        }
    }
    true
}

/// The suite, and a folder with its archives, made again.
fn suite() -> (Value, String) {
    let suite = match std::env::var_os("SHARDFEED_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/conformance"),
    };
    let cases = std::fs::read_to_string(suite.join("cases.json")).expect("cases.json");
    let cases: Value = serde_json::from_str(&cases).expect("JSON");
    assert_eq!(cases["version"], 1);
    // Where a server has the archives.
    if let Ok(url) = std::env::var("SHARDFEED_CONFORMANCE_FOLDER") {
        return (cases, url);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let folder = folder.canonicalize().expect("it is there");
    let script = suite.join("make_archives.py");
    let made = Command::new("python3").arg(script).arg(&folder).status().expect("python3");
    assert!(made.success());
    (cases, folder.into_os_string().into_string().expect("UTF-8"))
}

#[test]
fn all_cases() {
    let (cases, folder) = suite();
    let cases = cases["cases"].as_array().expect("cases");
    let failed = cases.iter().filter(|case| !passes(case, &folder)).count();
    println!("{} cases passed, {failed} failed", cases.len() - failed);
    assert_eq!(failed, 0, "{failed} cases failed");
    assert!(!cases.is_empty());
}
