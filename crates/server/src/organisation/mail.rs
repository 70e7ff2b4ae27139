//! `mail.yaml`: the types of mail, which roles may send each, in which direction, and what each
//! must say.

use chancery_domain::id::RoleId;
use chancery_domain::org::{Direction, MailType};

use super::draft::{Draft, To};
use super::mistake::Mistakes;
use super::read::{Table, text, texts, word};
use super::roles::entries;
use super::tree::{Key, Node};

const DIRECTIONS: [(&str, Direction); 4] = [
    ("up", Direction::Up),
    ("down", Direction::Down),
    ("across", Direction::Across),
    ("any", Direction::Any),
];

pub fn read(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let Some(file) = Table::read(node, "", &["extends", "types"], mistakes) else { return };
    for (key, node) in entries(file, "types", mistakes) {
        if let Some(kind) = kind(key, node, draft, mistakes) {
            draft.mail.insert(key.name.clone(), kind);
        }
    }
}

fn kind(key: &Key, node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) -> Option<MailType> {
    let path = format!("types.{}", key.name);
    let keys = &["description", "senders", "direction", "fields"];
    let table = Table::read(node, &path, keys, mistakes)?;
    let at = |name: &str| format!("{path}.{name}");
    let description =
        table.get("description").and_then(|it| text(it, &at("description"), mistakes));
    let senders = table.get("senders").and_then(|it| texts(it, &at("senders"), mistakes));
    for (name, place) in senders.iter().flatten() {
        draft.refer(To::Sender, name, *place, at("senders"));
    }
    let words = DIRECTIONS.map(|(word, _)| word);
    let direction =
        table.get("direction").and_then(|it| word(it, &at("direction"), &words, mistakes));
    let direction = direction
        .and_then(|given| DIRECTIONS.into_iter().find(|(it, _)| *it == given))
        .map_or(Direction::Any, |(_, it)| it);
    let fields = table.get("fields").and_then(|it| texts(it, &at("fields"), mistakes));
    Some(MailType {
        description: description.unwrap_or_default(),
        senders: senders.map(|it| it.into_iter().map(|(it, _)| RoleId(it)).collect()),
        direction,
        fields: fields.unwrap_or_default().into_iter().map(|(it, _)| it).collect(),
        place: Some(key.at.place()),
    })
}
