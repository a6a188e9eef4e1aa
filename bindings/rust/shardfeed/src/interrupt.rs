//! What ends an opening.

use std::fmt;
use std::sync::{Arc, Mutex, TryLockError};

/// Whether an opening is to end: a function of the user.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<Mutex<dyn FnMut() -> bool + Send>>);

impl Interrupt {
    pub(crate) fn new(is_stopped: impl FnMut() -> bool + Send + 'static) -> Interrupt {
        Interrupt(Arc::new(Mutex::new(is_stopped)))
    }

    /// Asks it. No while somebody is in it, who may be this very thread: the function may open
    /// something with the same builder. The library asks again soon.
    pub(crate) fn ask(&self) -> bool {
        match self.0.try_lock() {
            Ok(mut is_stopped) => is_stopped(),
            // It has panicked before. As a log function, it continues with the next call.
            Err(TryLockError::Poisoned(lock)) => lock.into_inner()(),
            Err(TryLockError::WouldBlock) => false,
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::sync::OnceLock;

    #[test]
    fn a_function_that_asks_itself_is_not_entered_twice() {
        static OWN: OnceLock<Interrupt> = OnceLock::new();
        let interrupt =
            OWN.get_or_init(|| Interrupt::new(|| !OWN.get().is_some_and(Interrupt::ask)));
        assert!(interrupt.ask());
    }

    #[test]
    fn a_function_that_panicked_is_asked_again() {
        let mut count = 0;
        let interrupt = Interrupt::new(move || {
            count += 1;
            assert!(count > 1, "the first time");
            count == 2
        });
        catch_unwind(AssertUnwindSafe(|| interrupt.ask())).unwrap_err();
        assert_eq!([interrupt.ask(), interrupt.ask()], [true, false]);
    }
}
