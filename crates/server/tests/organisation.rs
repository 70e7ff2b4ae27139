//! Organisations in files: what is wrong with them, all of it at once, and what is built in.

#[path = "organisation/amending.rs"]
mod amending;
#[path = "organisation/built_in.rs"]
mod built_in;
#[path = "organisation/mistakes.rs"]
mod mistakes;
#[path = "organisation/strangers.rs"]
mod strangers;

use chancery_server::organisation::{Files, Loaded, Mistake, Mistakes, load};

/// An organisation of these files.
fn loaded(given: &[(&str, &str)]) -> Result<Loaded, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let given = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let files = Files::new(given, &mut mistakes);
    load(files, mistakes)
}

/// What was said about it, errors or warnings, a line each.
fn said(given: &[(&str, &str)]) -> String {
    let mistakes = match loaded(given) {
        Ok(loaded) => loaded.warnings,
        Err(mistakes) => mistakes,
    };
    mistakes.iter().map(|it| format!("{it}\n")).collect()
}
