//! Options, and the functions of the user that go with them.

use std::any::Any;
use std::ffi::{c_char, c_void, CStr, OsStr};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::{c_string, checked, lent, received, source, static_text, sys, tokenizer, Urls};
use crate::builder::{OptionInfo, Settings};
use crate::error::{Error, ErrorKind, Result};
use crate::interrupt::Interrupt;
use crate::log::{Log, LogLevel};
use crate::name::Name;
use crate::skip::{OnSkip, Skip};
use crate::writer::ShardNames;

/// What a callback threw, until the call that it was made in has returned: nothing may unwind
/// through the library.
#[derive(Default)]
struct Carried(Mutex<Option<Box<dyn Any + Send>>>);

impl Carried {
    /// Runs a callback, unless an earlier one of this call has panicked: what it works with may be
    /// half changed, and a panic without the library between would have ended the calls too.
    fn run<R>(&self, callback: impl FnOnce() -> R) -> Option<R> {
        let mut thrown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if thrown.is_some() {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(callback)) {
            Ok(result) => Some(result),
            Err(payload) => {
                *thrown = Some(payload);
                None
            }
        }
    }

    fn resume(&self) {
        let thrown = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(payload) = thrown {
            resume_unwind(payload);
        }
    }
}

/// Receives the messages and the skips of one handle.
#[derive(Default)]
pub(super) struct Receivers {
    log: Option<Log>,
    on_skip: Option<OnSkip>,
    carried: Carried,
}

impl Receivers {
    /// Continues with the panic of a receiver in the last call.
    pub(super) fn resume_panic(&self) {
        self.carried.resume();
    }
}

/// # Safety
/// `receivers` is a `Receivers`, `message` a NUL-terminated string.
unsafe extern "C" fn receive(receivers: *mut c_void, level: i32, message: *const c_char) {
    // SAFETY: as the caller promises. Only shared references are made of it.
    let (receivers, message) =
        unsafe { (&*receivers.cast::<Receivers>(), CStr::from_ptr(message)) };
    let level = match level {
        sys::SHF_LOG_ERROR => LogLevel::Error,
        sys::SHF_LOG_WARNING => LogLevel::Warning,
        _ => LogLevel::Info,
    };
    if let Some(log) = &receivers.log {
        receivers.carried.run(|| (log.receive)(level, &message.to_string_lossy()));
    }
}

/// # Safety
/// `receivers` is a `Receivers`, `skip` what the library gives to a shf_skip_fn.
unsafe extern "C" fn receive_skip(receivers: *mut c_void, skip: *const sys::shf_skip) {
    // SAFETY: as the caller promises. All of it lives until this returns.
    let (receivers, skip) = unsafe {
        let (receivers, skip) = (&*receivers.cast::<Receivers>(), &*skip);
        let key = lent(skip.key);
        let skip = Skip {
            error: received(&*skip.error),
            url: Name::new(lent(skip.url)),
            key: (!key.is_empty()).then(|| Name::new(key)),
            whole_shard: skip.whole_shard != 0,
        };
        (receivers, skip)
    };
    if let Some(OnSkip(receive)) = &receivers.on_skip {
        receivers.carried.run(|| receive(&skip));
    }
}

/// Is asked whether a call with these options is to end.
struct Asked {
    interrupt: Interrupt,
    carried: Carried,
}

/// # Safety
/// `asked` is an `Asked`.
unsafe extern "C" fn ask(asked: *mut c_void) -> i32 {
    // SAFETY: as the caller promises. Only shared references are made of it.
    let asked = unsafe { &*asked.cast::<Asked>() };
    match asked.carried.run(|| asked.interrupt.ask()) {
        Some(false) => 0,
        Some(true) | None => 1, // a panic has to get to the caller
    }
}

/// Names shards for one writer.
struct Named {
    names: ShardNames,
    last: Mutex<Vec<u8>>, // lent to the library until the next name
    carried: Carried,
}

/// # Safety
/// `named` is a `Named`, `out` where the name goes.
unsafe extern "C" fn name_shard(named: *mut c_void, number: u64, out: *mut sys::shf_bytes) -> i32 {
    // SAFETY: as the caller promises. Only shared references are made of the first.
    let named = unsafe { &*named.cast::<Named>() };
    let Some(name) = named.carried.run(|| named.names.name(number)) else {
        return 1; // a panic has to get to the caller
    };
    let mut last = named.last.lock().unwrap_or_else(PoisonError::into_inner);
    *last = name.into_vec();
    // SAFETY: as the caller promises. The bytes stay until the next name, or the end of the writer.
    unsafe { *out = sys::shf_bytes { data: last.as_ptr(), size: last.len() } }
    0
}

/// A shf_options. Not kept: openers copy it.
pub(crate) struct Options {
    pointer: NonNull<sys::shf_options>,
    receivers: Option<Arc<Receivers>>,
    /// In an Arc, whose pointer stays valid when it is moved. The library asks only inside of
    /// calls that have these options.
    asked: Option<Arc<Asked>>,
    named: Option<Arc<Named>>, // likewise
}

impl Options {
    /// These settings for a "stream", an "archive", a "dataset" or a "writer".
    pub(crate) fn new(settings: &Settings, opener: &str) -> Result<Options> {
        // SAFETY: takes nothing.
        let pointer = NonNull::new(unsafe { sys::shf_options_new() })
            .ok_or_else(|| Error::of(ErrorKind::NoMemory, "out of memory".to_owned()))?;
        let mut options = Options { pointer, receivers: None, asked: None, named: None };
        for (name, value) in &settings.options {
            options.set(name, value)?;
            refuse_of_others(name, opener)?;
        }
        if settings.log.is_some() || settings.on_skip.is_some() {
            options.set_receivers(settings);
        }
        if let Some(interrupt) = &settings.interrupt {
            options.set_interrupt(interrupt);
        }
        if let Some(names) = &settings.names {
            options.set_names(names);
        }
        for served in &settings.sources {
            // SAFETY: an owned handle.
            unsafe { source::set(options.pointer.as_ptr(), served) }?;
        }
        if let Some(made_by) = &settings.tokenizer {
            // SAFETY: an owned handle.
            unsafe { tokenizer::set(options.pointer.as_ptr(), made_by) }?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &OsStr) -> Result<()> {
        let value = c_string(value, &format!("option {name}: the value"))?;
        let name = c_string(OsStr::new(name), "the name of an option")?;
        // SAFETY: an owned handle and two NUL-terminated strings.
        checked(|error| unsafe {
            sys::shf_options_set(self.pointer.as_ptr(), name.as_ptr(), value.as_ptr(), error)
        })?;
        Ok(())
    }

    fn set_receivers(&mut self, settings: &Settings) {
        let receivers = Arc::new(Receivers {
            log: settings.log.clone(),
            on_skip: settings.on_skip.clone(),
            carried: Carried::default(),
        });
        let context = Arc::as_ptr(&receivers).cast_mut().cast();
        if let Some(log) = &settings.log {
            let level = match log.level {
                LogLevel::Error => sys::SHF_LOG_ERROR,
                LogLevel::Warning => sys::SHF_LOG_WARNING,
                LogLevel::Info => sys::SHF_LOG_INFO,
            };
            // SAFETY: whoever opens something with these options keeps receivers() as long.
            unsafe {
                sys::shf_options_set_log(self.pointer.as_ptr(), level, Some(receive), context);
            }
        }
        if settings.on_skip.is_some() {
            // SAFETY: as above.
            unsafe {
                sys::shf_options_set_on_skip(self.pointer.as_ptr(), Some(receive_skip), context);
            }
        }
        self.receivers = Some(receivers);
    }

    fn set_interrupt(&mut self, interrupt: &Interrupt) {
        let interrupt = interrupt.clone();
        let asked = Arc::new(Asked { interrupt, carried: Carried::default() });
        let context = Arc::as_ptr(&asked).cast_mut().cast();
        // SAFETY: `asked` lives as long as the options, and calls borrow these.
        unsafe { sys::shf_options_set_interrupt(self.pointer.as_ptr(), Some(ask), context) }
        self.asked = Some(asked);
    }

    fn set_names(&mut self, names: &ShardNames) {
        let names = names.clone();
        let named = Arc::new(Named { names, last: Mutex::default(), carried: Carried::default() });
        let context = Arc::as_ptr(&named).cast_mut().cast();
        // SAFETY: `named` lives as long as the options, and a writer keeps these.
        unsafe {
            sys::shf_options_set_shard_name(self.pointer.as_ptr(), Some(name_shard), context);
        }
        self.named = Some(named);
    }

    pub(super) fn pointer(&self) -> *const sys::shf_options {
        self.pointer.as_ptr()
    }

    /// What must live as long as that which was opened with these options.
    pub(super) fn receivers(&self) -> Option<Arc<Receivers>> {
        self.receivers.clone()
    }

    /// Continues with the panic of a receiver, of the interrupt function or of the one that names
    /// shards in the last call.
    pub(super) fn resume_panic(&self) {
        if let Some(receivers) = &self.receivers {
            receivers.resume_panic();
        }
        if let Some(asked) = &self.asked {
            asked.carried.resume();
        }
        if let Some(named) = &self.named {
            named.carried.resume();
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { sys::shf_options_free(self.pointer.as_ptr()) }
    }
}

/// The library passes over the options that an opener does not take; who sets one means something
/// by it.
fn refuse_of_others(name: &str, opener: &str) -> Result<()> {
    let info = (0..).map_while(option_info).find(|info| info.name == name);
    match info {
        Some(info) if !info.openers.split(' ').any(|word| word == opener) => Err(Error::of(
            ErrorKind::Usage,
            format!(
                "option {name} is not for {opener}; help: leave it out, it is for: {}",
                info.openers
            ),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn option_info(index: usize) -> Option<OptionInfo> {
    // SAFETY: static or NULL, for any arguments.
    let property = |what| unsafe { static_text(sys::shf_option_describe(index, what)) };
    Some(OptionInfo {
        name: property(sys::SHF_OPTION_NAME)?,
        value_type: property(sys::SHF_OPTION_TYPE)?,
        default: property(sys::SHF_OPTION_DEFAULT)?,
        range: property(sys::SHF_OPTION_RANGE)?,
        openers: property(sys::SHF_OPTION_OPENERS)?,
        help: property(sys::SHF_OPTION_HELP)?,
        group: property(sys::SHF_OPTION_GROUP)?,
    })
}

// ---- Expanding URLs ----

struct Expansion<'a> {
    each: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    stopped: bool,
    carried: Carried,
}

/// # Safety
/// `expansion` is an `Expansion` that nobody else uses, `url` has `size` bytes.
unsafe extern "C" fn take_url(expansion: *mut c_void, url: *const c_char, size: usize) -> i32 {
    // SAFETY: as the caller promises.
    let (expansion, url) = unsafe {
        let url = std::slice::from_raw_parts(url.cast::<u8>(), size);
        (&mut *expansion.cast::<Expansion<'_>>(), url)
    };
    let each = &mut expansion.each;
    match expansion.carried.run(|| each(url)) {
        Some(ControlFlow::Continue(())) => 0,
        Some(ControlFlow::Break(())) | None => {
            expansion.stopped = true;
            1
        }
    }
}

/// Passes every shard to `each` until it breaks. Whether it did not.
pub(crate) fn expand(
    urls: &Urls,
    options: &Options,
    each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<bool> {
    let mut expansion = Expansion { each, stopped: false, carried: Carried::default() };
    let context: *mut Expansion<'_> = &mut expansion;
    // SAFETY: everything lives until the call returns.
    let result = checked(|error| unsafe {
        let (urls, count, options) = (urls.pointer(), urls.count(), options.pointer());
        sys::shf_expand_urls(urls, count, options, Some(take_url), context.cast(), error)
    });
    expansion.carried.resume();
    options.resume_panic();
    match result {
        Ok(_) => Ok(true),
        // The interrupt function has the same class.
        Err(_) if expansion.stopped => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // These run in Miri too: they call the callbacks as the library does.

    fn receivers(receive: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Arc<Receivers> {
        let log = Log { level: LogLevel::Info, receive: Arc::new(receive) };
        Arc::new(Receivers { log: Some(log), ..Receivers::default() })
    }

    fn send(receivers: &Arc<Receivers>, message: &str) {
        let message = c_string(OsStr::new(message), "").unwrap();
        let context = Arc::as_ptr(receivers).cast_mut().cast();
        // SAFETY: a Receivers and a NUL-terminated string.
        unsafe { receive(context, sys::SHF_LOG_WARNING, message.as_ptr()) }
    }

    #[test]
    fn a_panic_in_a_callback_waits_until_the_call_is_over() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&heard);
        let target = receivers(move |level, message| {
            list.lock().unwrap().push((level, message.to_owned()));
            assert!(message != "two", "I do not like {message}");
        });
        for message in ["one", "two", "three"] {
            send(&target, message);
        }
        let thrown = catch_unwind(AssertUnwindSafe(|| target.resume_panic())).unwrap_err();
        assert_eq!(*thrown.downcast::<String>().unwrap(), "I do not like two");
        target.resume_panic(); // it is thrown once
        send(&target, "four");
        let heard: Vec<_> = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let wanted = ["one", "two", "four"].map(|m| (LogLevel::Warning, m.to_owned()));
        assert_eq!(heard, wanted);
    }

    #[test]
    fn a_panic_in_an_interrupt_function_ends_the_call_and_waits_until_it_is_over() {
        let mut count = 0;
        let interrupt = Interrupt::new(move || {
            count += 1;
            assert!(count != 2, "I do not like the second question");
            false
        });
        let asked = Arc::new(Asked { interrupt, carried: Carried::default() });
        // SAFETY: an Asked.
        let question = || unsafe { ask(Arc::as_ptr(&asked).cast_mut().cast()) };
        assert_eq!([question(), question(), question()], [0, 1, 1]);
        let thrown = catch_unwind(AssertUnwindSafe(|| asked.carried.resume())).unwrap_err();
        let text = thrown.downcast_ref::<&str>().unwrap();
        assert_eq!(*text, "I do not like the second question");
        asked.carried.resume(); // it is thrown once
        assert_eq!(question(), 0);
    }

    #[test]
    fn urls_are_taken_until_the_callback_breaks() {
        let mut taken = Vec::new();
        let mut each = |url: &[u8]| {
            taken.push(url.to_vec());
            match url {
                b"b" => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let mut expansion =
            Expansion { each: &mut each, stopped: false, carried: Carried::default() };
        let context: *mut Expansion<'_> = &mut expansion;
        let results = ["a", "b"].map(|url| {
            // SAFETY: an Expansion, and a text of that length.
            unsafe { take_url(context.cast(), url.as_ptr().cast(), url.len()) }
        });
        assert_eq!(results, [0, 1]);
        assert!(expansion.stopped);
        assert_eq!(taken, [b"a", b"b"]);
    }

    #[test]
    fn nul_bytes_are_refused() {
        let error = Urls::new(["a.tar", "b\0.tar"]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.message().contains("position 1"), "{error}");
    }
}
