//! Server-sent events, read from bytes that arrive in any pieces. Holds no more than its limit
//! says and never guesses: bytes that are not UTF-8 are an error, an event that its sender did
//! not end is no event.

/// What one blank line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `message` unless the sender named it.
    pub kind: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event or a line of the stream is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Bytes go in by [`Decoder::push`], events come out by [`Decoder::next_event`] until there is
/// none. How the bytes were cut makes no difference.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// Not read yet, from `start` on.
    bytes: Vec<u8>,
    start: usize,
    /// Up to here there is no end of line.
    searched: usize,
    /// The last line ended with CR: a line feed right after it belongs to that end.
    after_cr: bool,
    /// A byte order mark may only be before the first line.
    first_line: bool,
    kind: String,
    data: String,
    has_data: bool,
}

impl Decoder {
    /// The limit, in bytes, holds for every line and for the data of every event.
    pub fn new(limit: usize) -> Decoder {
        Decoder {
            limit,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            first_line: true,
            kind: String::new(),
            data: String::new(),
            has_data: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// `None`: more bytes are needed. After an error there is nothing more to be had.
    pub fn next_event(&mut self) -> Result<Option<Event>, SseError> {
        while let Some((from, to)) = self.next_line()? {
            let line = std::str::from_utf8(&self.bytes[from..to]).map_err(|_| SseError::NotUtf8)?;
            let line = match std::mem::take(&mut self.first_line) {
                true => line.strip_prefix('\u{feff}').unwrap_or(line),
                false => line,
            };
            if line.is_empty() {
                let kind = std::mem::take(&mut self.kind);
                let data = std::mem::take(&mut self.data);
                if std::mem::take(&mut self.has_data) {
                    let kind = if kind.is_empty() { "message".to_owned() } else { kind };
                    return Ok(Some(Event { kind, data }));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.kind),
                "data" => {
                    if std::mem::replace(&mut self.has_data, true) {
                        self.data.push('\n');
                    }
                    self.data.push_str(value);
                    if self.data.len() > self.limit {
                        return Err(SseError::TooLong { limit: self.limit });
                    }
                }
                // A comment (no name), `id`, `retry`, or something newer: nothing for us.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where the next whole line is, without its end.
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, SseError> {
        if self.after_cr && self.start < self.bytes.len() {
            self.after_cr = false;
            if self.bytes[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.searched.max(self.start);
            }
        }
        let end = self.bytes[self.searched..].iter().position(|it| matches!(it, b'\n' | b'\r'));
        let to = end.map_or(self.bytes.len(), |end| self.searched + end);
        if to - self.start > self.limit {
            return Err(SseError::TooLong { limit: self.limit });
        }
        let from = self.start;
        self.searched = to;
        if end.is_none() {
            return Ok(None);
        }
        self.after_cr = self.bytes[to] == b'\r';
        self.start = to + 1;
        self.searched = self.start;
        Ok(Some((from, to)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 64;

    /// Everything that comes out when the bytes come in these pieces.
    fn decode<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<(String, String)>, Option<SseError>) {
        let mut decoder = Decoder::new(LIMIT);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => events.push((event.kind, event.data)),
                    Ok(None) => break,
                    Err(error) => return (events, Some(error)),
                }
            }
        }
        (events, None)
    }

    #[track_caller]
    fn check(stream: impl AsRef<[u8]>, expected: &[(&str, &str)], error: Option<SseError>) {
        let stream = stream.as_ref();
        let expected: Vec<_> =
            expected.iter().map(|(kind, data)| ((*kind).to_owned(), (*data).to_owned())).collect();
        assert_eq!(decode([stream]), (expected.clone(), error), "in one piece");
        assert_eq!(decode(stream.chunks(1)), (expected, error), "byte by byte");
    }

    #[test]
    fn every_end_of_line_counts_once() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["data: a", "", "data: b", "data: c", "", ""].join(end);
            check(stream, &[("message", "a"), ("message", "b\nc")], None);
        }
    }

    #[test]
    fn a_named_event_keeps_its_name_and_the_next_one_does_not_inherit_it() {
        check("event: ping\ndata: 1\n\ndata: 2\n\n", &[("ping", "1"), ("message", "2")], None);
        check("event: ping\n\ndata: 2\n\n", &[("message", "2")], None);
    }

    #[test]
    fn comments_unknown_fields_and_a_byte_order_mark_are_passed_over() {
        check("\u{feff}data: a\n: hello\nid: 3\nretry: 5\nx\n\n", &[("message", "a")], None);
    }

    #[test]
    fn one_space_after_the_colon_belongs_to_the_field() {
        check("data:a\ndata:  b\ndata\n\n", &[("message", "a\n b\n")], None);
    }

    #[test]
    fn letters_of_many_bytes_may_be_cut_anywhere() {
        check("data: 定价 🚀\n\n", &[("message", "定价 🚀")], None);
    }

    #[test]
    fn an_event_that_was_not_ended_is_none() {
        check("data: a\n\ndata: b\n", &[("message", "a")], None);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error_after_the_events_before_them() {
        check(b"data: a\n\ndata: \xff\n\n", &[("message", "a")], Some(SseError::NotUtf8));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let fits = "x".repeat(LIMIT - "data: ".len());
        check(format!("data: {fits}\n\n"), &[("message", &fits)], None);
        let error = Some(SseError::TooLong { limit: LIMIT });
        check(format!("data: {fits}y\n\n"), &[], error);
        check(format!("data: a\n\n: {}", "y".repeat(LIMIT)), &[("message", "a")], error);
    }

    #[test]
    fn many_short_lines_do_not_get_round_the_limit() {
        check("data: 12345678\n".repeat(9), &[], Some(SseError::TooLong { limit: LIMIT }));
    }

    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"event: ".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just("定🚀\u{feff}".as_bytes().to_vec()),
            Just(b": c".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..40),
        ];
        proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_makes_no_difference(
            stream in streams(),
            mut cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut pieces = Vec::new();
            cuts.sort_by_key(|cut| cut.index(stream.len() + 1));
            let mut from = 0;
            for cut in cuts {
                let to = cut.index(stream.len() + 1);
                pieces.push(&stream[from..to]);
                from = to;
            }
            pieces.push(&stream[from..]);
            prop_assert_eq!(decode(pieces), decode([&stream[..]]));
        }
    }
}
