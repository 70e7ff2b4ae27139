//! YAML as a tree in which everything knows its place. Reads no meaning into it.
//!
//! What a stranger may have written is kept small here: size, depth, and what aliases unfold to.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, options};

use super::mistake::{At, Mistakes};

/// A thousand roles fit in it many times.
pub const BYTES_MAX: usize = 1024 * 1024;
/// The deepest that anything goes here is a command's JSON Schema.
const DEPTH_MAX: usize = 64;
/// Also what aliases may unfold to, all together.
const NODES_MAX: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub at: At,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// As it was written; a plain one may be a number, a yes or no, or nothing.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub at: At,
    pub name: String,
}

impl Node {
    fn nothing(at: At) -> Node {
        Node { at, value: Value::Scalar { text: String::new(), plain: true } }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { plain: false, .. } => "text",
            Value::Scalar { text, .. } if as_bool(text).is_some() => "a yes or no",
            Value::Scalar { text, .. } if text.parse::<f64>().is_ok() => "a number",
            Value::Scalar { .. } => "text",
        }
    }

    /// This one over `base`: mappings key by key, everything else as it stands here.
    pub fn over(self, base: Node) -> Node {
        match (self.value, base.value) {
            (Value::Map(own), Value::Map(mut entries)) => {
                let under = entries.len();
                for (key, node) in own {
                    match entries[..under].iter().position(|(it, _)| it.name == key.name) {
                        Some(at) => {
                            let (_, under) =
                                std::mem::replace(&mut entries[at], (key, Node::nothing(self.at)));
                            entries[at].1 = node.over(under);
                        }
                        None => entries.push((key, node)),
                    }
                }
                Node { at: self.at, value: Value::Map(entries) }
            }
            (value, _) => Node { at: self.at, value },
        }
    }

    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Node::count).sum(),
            Value::Map(entries) => entries.iter().map(|(_, it)| 1 + it.count()).sum(),
        }
    }
}

/// The two words of YAML 1.2; `yes` and `on` are text.
pub fn as_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// A file's tree. Nothing at all is an empty mapping. `None`: the mistakes say why.
pub fn parse(file: &'static str, text: &str, mistakes: &mut Mistakes) -> Option<Node> {
    if text.len() > BYTES_MAX {
        let detail = format!("the file has {} bytes; the limit is {BYTES_MAX}", text.len());
        mistakes.add(At::file(file), "E102", detail);
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder {
        file,
        mistakes,
        stack: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        nodes: 0,
        documents: 0,
    };
    for next in Parser::new_from_str_with_options(text, options! { emit_comments: false }) {
        match next {
            Ok((event, span)) => builder.event(event, &span.start)?,
            Err(error) => {
                let at = place(file, error.marker());
                let code = if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
                    "E102"
                } else {
                    "E101"
                };
                builder.mistakes.add(at, code, format!("this is not YAML: {}", error.info()));
                return None;
            }
        }
    }
    let empty = Node { at: At::file(file), value: Value::Map(Vec::new()) };
    Some(builder.root.filter(|it| !it.is_null()).unwrap_or(empty))
}

fn place(file: &'static str, marker: &Marker) -> At {
    let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    At { file, line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) }
}

struct Builder<'m> {
    file: &'static str,
    mistakes: &'m mut Mistakes,
    stack: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
}

/// A collection that is not closed yet.
struct Open {
    at: At,
    anchor: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    /// With the key whose value comes next; a key that cannot be one has no name.
    Map {
        entries: Vec<(Key, Node)>,
        pending: Option<Option<Key>>,
        seen: HashMap<String, u32>,
    },
}

impl Builder<'_> {
    /// `None`: it goes no further.
    fn event(&mut self, event: Event<'_>, start: &Marker) -> Option<()> {
        let at = place(self.file, start);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.mistakes.add(at, "E101", "a file has one document, and here is another");
                    return None;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(at, tag.is_some());
                let plain = style == ScalarStyle::Plain;
                let node = Node { at, value: Value::Scalar { text: text.into_owned(), plain } };
                return self.finished(node, anchor);
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(at, tag.is_some());
                return self.open(Open { at, anchor, inside: Inside::List(Vec::new()) });
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(at, tag.is_some());
                let (entries, seen) = (Vec::new(), HashMap::new());
                let inside = Inside::Map { entries, pending: None, seen };
                return self.open(Open { at, anchor, inside });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { at, anchor, inside } = self.stack.pop()?;
                let value = match inside {
                    Inside::List(items) => Value::List(items),
                    Inside::Map { entries, .. } => Value::Map(entries),
                };
                return self.finished(Node { at, value }, anchor);
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    self.mistakes.add(at, "E101", "an alias cannot stand within its own anchor");
                    return None;
                };
                let node = Node { at, value: node.value.clone() };
                self.nodes += node.count();
                return self.finished(node, 0);
            }
            _ => {}
        }
        Some(())
    }

    fn refuse_tag(&mut self, at: At, tagged: bool) {
        if tagged {
            self.mistakes.add(at, "E104", "tags (`!…`) have no meaning here");
        }
    }

    fn open(&mut self, open: Open) -> Option<()> {
        if self.stack.len() >= DEPTH_MAX {
            let detail = format!("this is nested more than {DEPTH_MAX} levels deep");
            self.mistakes.add(open.at, "E102", detail);
            return None;
        }
        self.stack.push(open);
        Some(())
    }

    fn finished(&mut self, node: Node, anchor: usize) -> Option<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let detail = format!("the file has more than {NODES_MAX} values, aliases unfolded");
            self.mistakes.add(node.at, "E102", detail);
            return None;
        }
        if anchor != 0 {
            // A copy is a node too: whoever anchors everything pays for it.
            self.nodes += node.count();
            self.anchors.insert(anchor, node.clone());
        }
        match self.stack.last_mut().map(|it| &mut it.inside) {
            None => self.root = Some(node),
            Some(Inside::List(items)) => items.push(node),
            Some(Inside::Map { entries, pending, seen }) => match pending.take() {
                None => *pending = Some(key(node, seen, self.mistakes)),
                Some(Some(key)) => entries.push((key, node)),
                Some(None) => {}
            },
        }
        Some(())
    }
}

fn key(node: Node, seen: &mut HashMap<String, u32>, mistakes: &mut Mistakes) -> Option<Key> {
    let at = node.at;
    if node.is_null() {
        mistakes.add(at, "E104", "a key has a name");
        return None;
    }
    let Value::Scalar { text: name, .. } = node.value else {
        mistakes.add(at, "E104", format!("{} cannot be a key", node.kind()));
        return None;
    };
    if let Some(first) = seen.get(&name) {
        mistakes.add(at, "E103", format!("`{name}` is here twice; first in line {first}"));
        return None;
    }
    seen.insert(name.clone(), at.line);
    Some(Key { at, name })
}
