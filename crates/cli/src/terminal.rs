//! What standard output is: how wide, and whether it has colours.

use std::io::IsTerminal as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    pub colours: bool,
    /// Absent: nothing is wrapped.
    pub width: Option<usize>,
}

/// Narrower ones wrap for themselves.
const WIDTH_MIN: usize = 40;

impl Terminal {
    /// No colours and no width.
    pub const PLAIN: Terminal = Terminal { colours: false, width: None };

    pub fn of_stdout() -> Terminal {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Terminal::PLAIN;
        }
        let set = |name| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
        let size = rustix::termios::tcgetwinsize(&out).ok();
        let width = size.map(|it| usize::from(it.ws_col)).filter(|it| *it >= WIDTH_MIN);
        Terminal { colours: !set("NO_COLOR") && !dumb, width }
    }

    /// For notes, which are not wrapped.
    pub fn of_stderr() -> Terminal {
        let set = |name| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|it| it == "dumb");
        let colours = std::io::stderr().is_terminal() && !set("NO_COLOR") && !dumb;
        Terminal { colours, width: None }
    }

    /// What nobody should overlook.
    pub fn alarm(self, text: &str) -> String {
        self.painted("1;31", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    /// In the colour of a risk; the word says it too.
    pub fn risk(self, risk: Option<&str>) -> String {
        let (word, colour) = match risk {
            Some("low") => ("LOW", "34"),
            Some("medium") => ("MED", "33"),
            Some("high") => ("HIGH", "1;31"),
            // Nothing is known of it, least of all that it is harmless.
            _ => ("HIGH?", "1;31"),
        };
        self.painted(colour, word)
    }

    /// In the colour of what is added, taken away, or neither.
    pub fn of_diff(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.painted("32", line),
            Some(b'-') => self.painted("31", line),
            _ => line.to_owned(),
        }
    }

    fn painted(self, colour: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
