//! Where a real process dies on purpose, as `kill -9` would have it: before, amid and after a
//! write. A test names a file in `CHANCERY_TEST_BRINK`; the number in it says how many brinks are
//! passed alive. Without the file every one is, so that a test arms the process when it likes.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

static FILE: LazyLock<Option<Mutex<PathBuf>>> = LazyLock::new(|| {
    // A released server has no business with it, however it was built.
    let named = std::env::var_os("CHANCERY_TEST_BRINK").filter(|_| cfg!(debug_assertions));
    named.map(|it| Mutex::new(it.into()))
});

pub(crate) fn brink() {
    let Some(file) = &*FILE else { return };
    let file = file.lock().unwrap_or_else(PoisonError::into_inner);
    match left(&file) {
        None => {}
        Some(0) => {
            let _ = std::fs::remove_file(&*file);
            let _ = kill_process(getpid(), Signal::KILL);
        }
        Some(left) => {
            let _ = std::fs::write(&*file, (left - 1).to_string());
        }
    }
}

fn left(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}
