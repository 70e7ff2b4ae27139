//! Every key, and where it works.

use askama::Template;
use axum::response::Response;

use super::page::{Frame, Room, draw};
use super::visitor::Visitor;
use super::words::Words;
use crate::error::Result;

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    frame: Frame,
    places: Vec<Place>,
}

/// Where the focus is, and what the keys do there.
#[derive(Debug)]
struct Place {
    name: &'static str,
    keys: Vec<(&'static str, String)>,
}

pub async fn show(visitor: Visitor) -> Result<Response> {
    let frame = Frame::of(&visitor, Room::Help, visitor.words().keys_title);
    let places = places(&frame);
    draw(&HelpPage { frame, places })
}

fn places(frame: &Frame) -> Vec<Place> {
    let w: &'static Words = frame.w;
    let said = |keys: &[(&'static str, &'static str)]| {
        keys.iter().map(|(key, what)| (*key, (*what).to_owned())).collect::<Vec<_>>()
    };
    let mut everywhere = said(&[("?", w.key_help), ("Ctrl K", w.key_jump), ("Esc", w.key_escape)]);
    let rooms = frame.rooms().into_iter().zip(ROOM_KEYS);
    everywhere.extend(rooms.map(|((_, _, name), (key, _))| (key, name.to_owned())));
    vec![
        Place { name: w.keys_everywhere, keys: everywhere },
        Place {
            name: w.keys_in_list,
            keys: said(&[
                ("j ↓", w.key_next),
                ("k ↑", w.key_before),
                ("Enter", w.open_it),
                ("x", w.key_select),
            ]),
        },
        Place {
            name: w.keys_on_call,
            keys: said(&[
                ("j k", w.key_calls),
                ("a", w.key_approve),
                ("Shift A", w.key_approve_high),
                ("d", w.key_deny),
                ("e", w.key_edit),
                ("r", w.key_ask),
                ("w", w.key_why),
                ("t", w.key_trace),
                ("+", w.key_extend),
            ]),
        },
        Place {
            name: w.keys_in_trace,
            keys: said(&[
                ("j ↓ k ↑", w.key_lines),
                ("→ ←", w.key_open_line),
                ("[ ]", w.key_trouble),
                ("f", w.key_follow),
            ]),
        },
        Place {
            name: w.keys_in_matrix,
            keys: said(&[
                ("← → ↑ ↓", w.key_cells),
                ("Home End", w.key_row_ends),
                ("Ctrl Home", w.key_first_cell),
                ("Ctrl End", w.key_last_cell),
                ("Enter", w.key_cell_why),
            ]),
        },
        Place {
            name: w.keys_in_chat,
            keys: said(&[
                ("Enter", w.send),
                ("Shift Enter", w.key_newline),
                ("Alt ↑", w.key_last_card),
                ("Alt 1", w.key_composer),
                ("Alt 2", w.key_room),
            ]),
        },
    ]
}

/// In the order of the navigation: what is pressed, and the letter after `g`.
pub const ROOM_KEYS: [(&str, &str); 9] = [
    ("g i", "i"),
    ("g c", "c"),
    ("g r", "r"),
    ("g l", "l"),
    ("g o", "o"),
    ("g m", "m"),
    ("g a", "a"),
    ("g u", "u"),
    ("g s", "s"),
];
