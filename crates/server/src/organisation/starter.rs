//! Organisations to begin with.

use std::collections::BTreeMap;

/// One that can be put in force as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starter {
    pub name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

pub const ALL: [Starter; 2] = [
    // Everything that is built in.
    Starter { name: "company", files: &[] },
    Starter {
        name: "small_team",
        files: &[
            ("roles.yaml", include_str!("small_team/roles.yaml")),
            ("groups.yaml", include_str!("small_team/groups.yaml")),
            ("policy.yaml", include_str!("small_team/policy.yaml")),
        ],
    },
];

impl Starter {
    pub fn of(name: &str) -> Option<Starter> {
        ALL.into_iter().find(|it| it.name == name)
    }

    pub fn files(self) -> BTreeMap<String, String> {
        let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        self.files.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::organisation::reload::load_texts;

    #[test]
    fn every_one_can_be_put_in_force_and_leaves_nothing_to_warn_of() {
        for it in ALL {
            let loaded = load_texts(it.files()).unwrap();
            let own = loaded.warnings.iter().filter(|it| !it.file.starts_with("builtin/"));
            assert_eq!(own.map(ToString::to_string).collect::<Vec<_>>(), [""; 0], "{}", it.name);
        }
    }
}
