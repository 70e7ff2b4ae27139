//! An answer of `/v1/responses` as a stream of events.

use axum::response::sse::Event as Frame;
use chancery_api::openai::{ErrorDetail, OutputItem, ResponseEvent, ResponseEventKind};
use chancery_domain::event::Usage;

use super::super::follow::End;
use super::super::telling::{self, Teller, Told};
use super::{Heading, part};

pub struct Events {
    heading: Heading,
    /// All that was said so far.
    text: String,
    next: u64,
}

impl Events {
    pub fn new(heading: Heading) -> Events {
        Events { heading, text: String::new(), next: 0 }
    }

    fn frame(&mut self, kind: ResponseEventKind) -> Frame {
        let name = kind.name();
        let event = ResponseEvent { sequence_number: self.next, kind };
        self.next += 1;
        telling::json(&event).event(name)
    }

    fn item_id(&self) -> String {
        self.heading.message.clone()
    }

    /// The message as it begins.
    fn open(&mut self) -> Vec<Frame> {
        let item = self.heading.said(String::new(), "in_progress");
        let (item_id, part) = (self.item_id(), part(String::new()));
        let added = ResponseEventKind::ItemAdded { output_index: 0, item };
        let began =
            ResponseEventKind::PartAdded { item_id, output_index: 0, content_index: 0, part };
        vec![self.frame(added), self.frame(began)]
    }

    /// The message as it ends.
    fn close(&mut self, item: OutputItem) -> Vec<Frame> {
        let (item_id, text) = (self.item_id(), self.text.clone());
        let (output_index, content_index, logprobs) = (0, 0, Vec::new());
        let part = part(text.clone());
        let kinds = [
            ResponseEventKind::TextDone {
                item_id: item_id.clone(),
                output_index,
                content_index,
                text,
                logprobs,
            },
            ResponseEventKind::PartDone { item_id, output_index, content_index, part },
            ResponseEventKind::ItemDone { output_index, item },
        ];
        kinds.into_iter().map(|it| self.frame(it)).collect()
    }
}

impl Teller for Events {
    fn begin(&mut self) -> Vec<Frame> {
        let created = ResponseEventKind::Created { response: self.heading.bare() };
        let begun = ResponseEventKind::InProgress { response: self.heading.bare() };
        vec![self.frame(created), self.frame(begun)]
    }

    fn words(&mut self, text: String) -> Vec<Frame> {
        let mut frames = if self.text.is_empty() { self.open() } else { Vec::new() };
        self.text.push_str(&text);
        let delta = ResponseEventKind::TextDelta {
            item_id: self.item_id(),
            output_index: 0,
            content_index: 0,
            delta: text,
            logprobs: Vec::new(),
        };
        frames.push(self.frame(delta));
        frames
    }

    fn end(&mut self, end: End, usage: Usage) -> Vec<Frame> {
        let told = Told { text: self.text.clone(), end, usage };
        let response = Box::new(self.heading.answer(told));
        let mut frames = Vec::new();
        for (output_index, item) in response.output.iter().cloned().enumerate() {
            if matches!(item, OutputItem::Message { .. }) {
                frames.extend(self.close(item));
                continue;
            }
            let added = ResponseEventKind::ItemAdded { output_index, item: item.clone() };
            frames.push(self.frame(added));
            frames.push(self.frame(ResponseEventKind::ItemDone { output_index, item }));
        }
        let last = match response.status {
            "failed" => ResponseEventKind::Failed { response },
            _ => ResponseEventKind::Completed { response },
        };
        frames.push(self.frame(last));
        frames
    }

    fn error(&mut self, error: ErrorDetail) -> Vec<Frame> {
        vec![self.frame(ResponseEventKind::error(error))]
    }
}
